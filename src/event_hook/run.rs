//! Events come in, and hooks run.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agentsvc_api::event_hook::host::{EventHookList, EventHookState, HookRun};
use agentsvc_api::http::shutdown::Shutdown;
use agentsvc_components::Timestamp;
use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_systems::kernel::engine::Told;
use agentsvc_systems::session::{SessionChange, SessionEvent, changes_of};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Semaphore, mpsc};

use super::files::{FILE, Hook, load};
use crate::kernel::sandbox::{Commands, Server, ServerProgram};
use crate::kernel::settings::Settings;

/// Events that wait for hooks. Further ones are dropped and counted.
const QUEUE_MAX: usize = 256;
/// Runs at once.
const RUNS_MAX: usize = 8;
/// How long a run may take.
const RUN_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of what a run writes that are looked at; the rest is read and dropped.
const OUTPUT_BYTES_MAX: usize = 2_048;
/// Bytes of the data of an event.
const DATA_BYTES_MAX: usize = 64 << 10;

/// Something that hooks may want to hear of.
struct Happened {
    event: &'static str,
    data: Value,
}

/// The event hooks of the daemon. Copies share them.
#[derive(Clone, Default)]
pub(crate) struct EventHooks(Arc<Inner>);

#[derive(Default)]
struct Inner {
    directory: PathBuf,
    hooks: ArcSwap<Vec<Arc<Hook>>>,
    queue: Mutex<Option<mpsc::Sender<Happened>>>,
    dropped: AtomicU64,
    counts: Mutex<HashMap<String, Counts>>,
}

#[derive(Clone, Default)]
struct Counts {
    runs: u64,
    failures: u64,
    last: Option<HookRun>,
}

/// What an event is called here.
const fn name_of(event: &Event) -> Option<&'static str> {
    match event {
        Event::TurnStarted { .. } => Some("agent:start"),
        Event::ToolCalled { .. } => Some("agent:step"),
        Event::TurnCompleted { .. } | Event::TurnFailed { .. } => Some("agent:end"),
        _ => None,
    }
}

/// What a change of a session is called here, and in its data; and why it came.
const fn session_event(event: SessionEvent) -> (&'static str, &'static str, Option<&'static str>) {
    match event {
        SessionEvent::Started => ("session:start", "session_started", None),
        SessionEvent::Ended { why } => ("session:end", "session_ended", Some(why)),
        SessionEvent::Reset { why } => ("session:reset", "session_reset", Some(why)),
    }
}

impl EventHooks {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(Arc::new(Inner { directory, ..Inner::default() }))
    }

    /// Takes the changes of sessions of what a step told, which is durable; gives back what is something else. Never waits.
    pub(crate) fn take(&self, told: Told) -> Option<Told> {
        let changes = match changes_of(told) {
            Ok(changes) => changes,
            Err(told) => return Some(told),
        };
        for SessionChange { agent, session, event, at } in changes {
            let (event, kind, why) = session_event(event);
            if self.is_wanted(event) {
                let mut data = json!({ "kind": kind, "agent_id": agent, "session_id": session, "at": at.to_string() });
                if let Some(why) = why {
                    data["reason"] = why.into();
                }
                self.send(Happened { event, data });
            }
        }
        None
    }

    fn is_wanted(&self, event: &str) -> bool {
        self.0.hooks.load().iter().any(|hook| hook.wants(event))
    }

    /// Something happened and is durable. Never waits.
    pub(crate) fn note(&self, happened: &EventEnvelope) {
        let Some(event) = name_of(&happened.event) else { return };
        if !self.is_wanted(event) {
            return;
        }
        let mut data = json!(happened.event);
        data["at"] = json!(happened.at.to_string());
        self.send(Happened { event, data });
    }

    fn send(&self, happened: Happened) {
        let queue = self.0.queue.lock();
        if queue.as_ref().is_none_or(|queue| queue.try_send(happened).is_err()) {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn load(&self) {
        let hooks = load(&self.0.directory);
        for hook in &hooks {
            if let Some(problem) = &hook.problem {
                tracing::warn!(hook = %hook.folder, problem, "an event hook has a problem");
            }
        }
        self.0.hooks.store(Arc::new(hooks.into_iter().map(Arc::new).collect()));
    }

    /// Reads the hooks, now and with each reload of the configuration, and runs them on a thread of its own.
    pub(super) fn start(self, commands: Commands, settings: Settings, shutdown: Shutdown) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (to_hooks, mut events) = mpsc::channel(QUEUE_MAX);
        self.0.queue.lock().replace(to_hooks);
        let mut reloads = settings.changes();
        let work = async move {
            let places = Arc::new(Semaphore::new(RUNS_MAX));
            self.load();
            self.begin(&commands, &places, Happened { event: "gateway:startup", data: json!({}) }).await;
            loop {
                tokio::select! {
                    () = shutdown.wait() => return,
                    changed = reloads.changed() => match changed {
                        Ok(()) => self.load(),
                        Err(_) => return,
                    },
                    happened = events.recv() => match happened {
                        Some(happened) => self.begin(&commands, &places, happened).await,
                        None => return,
                    },
                }
            }
        };
        std::thread::Builder::new().name("event-hooks".to_owned()).spawn(move || runtime.block_on(work)).map(drop)
    }

    /// Begins the runs of those that want the event, each as soon as it has a place.
    async fn begin(&self, commands: &Commands, places: &Arc<Semaphore>, happened: Happened) {
        let Happened { event, data } = happened;
        let hooks = self.0.hooks.load_full();
        for hook in hooks.iter().filter(|hook| hook.wants(event)) {
            let Ok(place) = Arc::clone(places).acquire_owned().await else { return };
            let (own, commands, hook, data) = (self.clone(), commands.clone(), Arc::clone(hook), data.clone());
            drop(tokio::spawn(async move {
                let at = Timestamp(chrono::Utc::now().timestamp_millis());
                let started = Instant::now();
                let error = run(&commands, &hook, event, &data).await.err();
                let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                own.ended(&hook, HookRun { at, event: event.to_owned(), took_ms, error });
                drop(place);
            }));
        }
    }

    fn ended(&self, hook: &Hook, run: HookRun) {
        if let Some(error) = &run.error {
            tracing::warn!(hook = %hook.folder, event = %run.event, error, "an event hook failed");
        }
        let mut counts = self.0.counts.lock();
        let counts = counts.entry(hook.folder.clone()).or_default();
        counts.runs += 1;
        counts.failures += u64::from(run.error.is_some());
        counts.last = Some(run);
    }
}

impl EventHookList for EventHooks {
    fn list(&self) -> (Vec<EventHookState>, u64) {
        let counts = self.0.counts.lock();
        let state = |hook: &Arc<Hook>| {
            let Counts { runs, failures, last } = counts.get(&hook.folder).cloned().unwrap_or_default();
            let Hook { folder, name, description, events, command, problem, .. } = Hook::clone(hook);
            EventHookState {
                directory: folder,
                name,
                description,
                events,
                command,
                problem,
                runs,
                failures,
                last_run: last,
            }
        };
        (self.0.hooks.load().iter().map(state).collect(), self.0.dropped.load(Ordering::Relaxed))
    }
}

/// Runs a hook for an event.
async fn run(commands: &Commands, hook: &Hook, event: &str, data: &Value) -> Result<(), String> {
    let Some((command, arguments)) = hook.command.split_first() else { return Err("it has no command".to_owned()) };
    let is_relative = command.contains('/') && !command.starts_with('/');
    let command = if is_relative { hook.directory.join(command).display().to_string() } else { command.clone() };
    let mut text = data.to_string();
    if text.len() > DATA_BYTES_MAX {
        let kept = |key: &str| data.get(key).cloned().unwrap_or_default();
        text = json!({ "kind": kept("kind"), "agent_id": kept("agent_id"), "turn_id": kept("turn_id"), "truncated": true })
            .to_string();
    }
    let environment =
        vec![("HOOK_EVENT".to_owned(), OsString::from(event)), ("HOOK_EVENT_DATA".to_owned(), OsString::from(text))];
    let program = ServerProgram {
        // What it may do is not its own to change.
        shown: vec![hook.directory.join(FILE)],
        memory_bytes: None,
        command,
        arguments: arguments.to_vec(),
        directory: hook.directory.clone(),
        environment,
        readable: Vec::new(),
        writable: Vec::new(),
        network: hook.network,
    };
    let Server { mut stream, mut stderr, mut process } = commands.serve(program).await?;
    let whole = async {
        let (_, said, ended) = tokio::join!(beginning(&mut stream), beginning(&mut stderr), process.ended());
        (said, ended)
    };
    match tokio::time::timeout(RUN_TIME_MAX, whole).await {
        Err(_) => Err(format!("it took longer than {} s and was killed", RUN_TIME_MAX.as_secs())),
        Ok((_, ended)) if ended == "exit code 0" => Ok(()),
        Ok((said, ended)) => {
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Err(if last.is_empty() { ended } else { format!("{ended}: {last}") })
        }
    }
}

/// The beginning of what a program writes; the rest is read and dropped.
async fn beginning(from: &mut (impl AsyncRead + Unpin)) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 1_024]);
    while let Ok(count) = from.read(&mut piece).await {
        if count == 0 {
            break;
        }
        let room = OUTPUT_BYTES_MAX.saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..count.min(room)]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
