//! One channel: its process, started again when it ends, and the ways to it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_api::http::timestamp::timestamp_now;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

use super::definition::Definition;
use super::inbound::Incoming;
use super::ledger::{Handled, Ledger};
use super::run::{self, Awaited, Outgoing};
use super::status::{self, State, Status};
use super::wire::Command;
use super::wire::event::Ready;
use crate::kernel::sandbox::Server;

/// Commands that may wait for an adapter. More: signs are left out, and sends are refused.
const QUEUE_MAX: usize = 64;
/// Large messages, which bring files, that may wait for the world. More: the adapter waits.
const LARGE_MESSAGES_MAX: usize = 4;
/// Files that are on their way out at once.
const FILES_MAX: usize = 2;
/// How long a send waits for its place, and then for its outcome.
const PLACE_WAIT: Duration = Duration::from_secs(20);
const OUTCOME_WAIT: Duration = Duration::from_secs(60);
/// How long a send waits for its adapter to be ready.
const READY_WAIT: Duration = Duration::from_secs(5);
/// How long one waits for a confirmation of an adapter that has never confirmed anything.
const FIRST_WAIT: Duration = Duration::from_secs(20);
/// Sends in a row without an answer after which an adapter is taken for one that does not confirm.
const SILENT_MAX: u32 = 2;
/// The exit code of an adapter that lacks a value: it would lack it again.
const EXIT_UNCONFIGURED: i32 = 2;

/// Names of sends to adapters that confirm them.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// What starts the process.
pub(super) type Start = BoxFuture<'static, Result<Server, String>>;

/// A channel.
pub(crate) struct Instance {
    pub(crate) definition: Definition,
    pub(super) status: Mutex<Status>,
    pub(super) ledger: Mutex<Ledger>,
    /// The way to the process of this run.
    to: Mutex<Option<Run>>,
    /// One send at a time.
    sending: tokio::sync::Mutex<u32>,
    /// Its messages, in their order.
    pub(super) messages: mpsc::Sender<Incoming>,
    /// Places of large messages that are not brought yet.
    pub(super) large: Arc<Semaphore>,
    /// Places of files that are on their way out.
    pub(super) files: Semaphore,
    again: Notify,
    stop: watch::Sender<bool>,
    /// Tells of each change of state.
    changes: watch::Sender<()>,
    /// Tells that the world is to be told of the rules again.
    rules: Arc<Notify>,
}

/// The way to the process of one run: nothing goes to a later one.
#[derive(Clone, Debug)]
pub(crate) struct Run(mpsc::Sender<Outgoing>);

/// How a run ended.
pub(super) enum End {
    Stopped,
    Asked,
    /// By itself: its exit code, and why.
    Ended(Option<i32>, String),
}

impl Run {
    /// Tells it something, and waits for a place: pieces of one text must all come. False when it was lost.
    pub(crate) async fn tell(&self, command: &Command) -> bool {
        matches!(timeout(PLACE_WAIT, self.0.send(Outgoing::Sign(command.line()))).await, Ok(Ok(())))
    }

    /// It is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_closed()
    }
}

impl Instance {
    /// The channel, not started yet, and where its messages come out.
    pub(crate) fn new(definition: Definition, rules: Arc<Notify>) -> (Arc<Self>, mpsc::Receiver<Incoming>) {
        let (messages, received) = mpsc::channel(definition.config.message_buffer);
        let instance = Self {
            definition,
            status: Mutex::default(),
            ledger: Mutex::default(),
            to: Mutex::default(),
            sending: tokio::sync::Mutex::default(),
            messages,
            large: Arc::new(Semaphore::new(LARGE_MESSAGES_MAX)),
            files: Semaphore::new(FILES_MAX),
            again: Notify::new(),
            stop: watch::Sender::default(),
            changes: watch::Sender::default(),
            rules,
        };
        (Arc::new(instance), received)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.definition.name
    }

    /// Starts it again at once, also when it had been given up.
    pub(crate) fn restart(&self) {
        self.again.notify_one();
    }

    /// Lets it end: it is told, and killed when it does not.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Tells of changes of its state, from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Changes what is known of it.
    pub(super) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock());
        self.changes.send_replace(());
    }

    /// A message was given up.
    pub(super) fn note_dropped(&self, why: &str) {
        let noted = self.status.lock().note_dropped();
        if let Some(dropped) = noted {
            tracing::warn!(channel = self.name(), why, dropped, "messages of a channel were given up");
        }
    }

    /// The channel has ended, and so many of its messages did not reach the world.
    pub(super) fn note_left(&self, messages: usize) {
        status::note_left(messages);
        tracing::warn!(channel = self.name(), messages, "messages of a channel were still waiting when it ended");
    }

    /// It is ready, and says what it can do and wants.
    pub(super) fn take_ready(&self, ready: Ready) {
        let wants = |ready: &Ready| ready.suppress_error_responses;
        let mut is_new = false;
        self.update(|status| {
            is_new = wants(&status.ready) != wants(&ready);
            status.set_ready(ready);
        });
        if is_new {
            self.rules.notify_one();
        }
    }

    /// Can it do this now?
    pub(crate) fn can(&self, what: &str) -> bool {
        self.status.lock().can(what)
    }

    /// Waits until it is ready, for so long at most.
    pub(crate) async fn is_ready_within(&self, wait: Duration) -> bool {
        let mut changes = self.changes();
        let is_ready = async {
            while self.status.lock().state != State::Started {
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        timeout(wait, is_ready).await.is_ok()
    }

    /// The text without the secrets of this channel.
    pub(super) fn masked(&self, text: String) -> String {
        self.definition.masked(text)
    }

    /// Keeps it running until it is stopped.
    pub(crate) async fn keep(self: Arc<Self>, start: impl Fn() -> Start) {
        let mut failures = 0;
        loop {
            self.update(Status::begin);
            let begun = Instant::now();
            // A panic is one more way to end: what keeps a channel must not end with it.
            let end = AssertUnwindSafe(self.run(start())).catch_unwind().await;
            *self.to.lock() = None;
            let (code, why) = match end {
                Ok(End::Stopped) => break,
                Ok(End::Asked) => {
                    self.ledger.lock().close("it was restarted");
                    failures = 0;
                    continue;
                }
                Ok(End::Ended(code, why)) => (code, why),
                Err(_) => (None, "an internal error ended it".to_owned()),
            };
            self.ledger.lock().close(&why);
            let config = &self.definition.config;
            if begun.elapsed() >= Duration::from_secs(config.restart_reset_after_secs) {
                failures = 0;
            }
            failures += 1;
            let gives_up = !config.restart || code == Some(EXIT_UNCONFIGURED) || failures > config.restart_max_retries;
            let pause = (!gives_up).then(|| self.pause(failures - 1));
            self.note_end(code, why, pause, failures);
            if self.rests(pause, &mut failures).await {
                break;
            }
        }
        self.ledger.lock().close("it was stopped");
        self.update(|status| (status.state, status.started_at) = (State::Stopped, None));
    }

    /// Waits until it is to be started again. True when it is to be stopped instead.
    async fn rests(&self, pause: Option<Duration>, failures: &mut u32) -> bool {
        let mut stop = self.stop.subscribe();
        let pause = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pause => {}
            () = self.again.notified() => *failures = 0,
            _ = stop.wait_for(|stop| *stop) => return true,
        }
        self.update(|status| status.restarts += 1);
        false
    }

    /// How long it rests: twice as long each time, up to a fifth less or more so that channels do not start together.
    fn pause(&self, failures: u32) -> Duration {
        let config = &self.definition.config;
        let full = config
            .restart_initial_backoff_ms
            .saturating_mul(2_u64.saturating_pow(failures))
            .min(config.restart_max_backoff_ms);
        let mut random = [0];
        let _certain = getrandom::fill(&mut random);
        Duration::from_millis(full - full / 5 * u64::from(random[0]) / 255)
    }

    fn note_end(&self, code: Option<i32>, why: String, pause: Option<Duration>, failures: u32) {
        let said = self.status.lock().log.last().map(str::to_owned);
        let mut text = match said.filter(|_| code != Some(0)) {
            Some(said) => format!("{why}: {said}"),
            None => why,
        };
        if text.contains("No module named 'librefang'") {
            text.push_str("; install the SDK with `pip install librefang-sdk` for the Python that runs it");
        }
        if code == Some(EXIT_UNCONFIGURED) {
            text.push_str(" (a value is missing: it is not started again until the channel is configured or reloaded)");
        }
        let (name, restart_ms) = (self.name(), pause.map(|pause| pause.as_millis()));
        tracing::warn!(channel = name, why = %text, restart_ms, "an adapter ended");
        self.update(|status| {
            status.note_error(&text);
            status.failures = failures;
            status.state = if pause.is_some() { State::Restarting } else { State::Failed };
            status.next_restart_at = pause.map(|pause| {
                let mut at = timestamp_now();
                at.0 = at.0.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX));
                at
            });
            (status.started_at, status.ready_at) = (None, None);
        });
    }

    async fn run(&self, start: Start) -> End {
        let mut stop = self.stop.subscribe();
        let server = tokio::select! {
            server = start => server,
            () = self.again.notified() => return End::Asked,
            _ = stop.wait_for(|stop| *stop) => return End::Stopped,
        };
        let server = match server {
            Ok(server) => server,
            Err(why) => return End::Ended(None, why),
        };
        let (to, commands) = mpsc::channel(QUEUE_MAX);
        *self.to.lock() = Some(Run(to));
        let asked = async {
            tokio::select! {
                () = self.again.notified() => End::Asked,
                _ = stop.wait_for(|stop| *stop) => End::Stopped,
            }
        };
        run::run(self, server, commands, asked).await
    }

    /// The run that goes on now.
    pub(crate) fn this_run(&self) -> Option<Run> {
        self.to.lock().clone()
    }

    /// Tells the adapter something that may be lost: a sign. False when it was.
    pub(crate) fn tell(&self, command: &Command) -> bool {
        self.this_run().is_some_and(|run| run.0.try_send(Outgoing::Sign(command.line())).is_ok())
    }

    /// As [`tell`](Self::tell), but waits for a place.
    pub(crate) async fn tell_all(&self, command: &Command) -> bool {
        match self.this_run() {
            Some(run) => run.tell(command).await,
            None => false,
        }
    }

    /// Waits for what the adapter does with the commands that this run was told.
    pub(crate) async fn barrier(&self, run: Run) -> Handled {
        self.pass(Some(run), Vec::new(), None).await
    }

    /// Waits until it is ready to be sent something.
    ///
    /// # Errors
    /// It is not; nothing was written.
    pub(super) async fn ready(&self) -> Result<(), Handled> {
        let is_ready = self.is_ready_within(READY_WAIT).await;
        if is_ready { Ok(()) } else { Err(Handled::Unwritten(self.why_down())) }
    }

    /// Sends something and waits for what the adapter does with it. It is made when the adapter has said what it can do.
    pub(crate) async fn send(&self, make: impl FnOnce() -> Command) -> Handled {
        if let Err(handled) = self.ready().await {
            return handled;
        }
        let (mut command, mut id) = (make(), None);
        if let Command::Send(send) = &mut command {
            id = self.can("ack").then(|| NUMBERS.fetch_add(1, Ordering::Relaxed).to_string());
            send.id.clone_from(&id);
        }
        let line = match command.is_large() {
            true => tokio::task::spawn_blocking(move || command.line()).await.unwrap_or_default(),
            false => command.line(),
        };
        self.pass(None, line, id).await
    }

    /// Passes it to this run, or to the one that goes on when its turn comes.
    async fn pass(&self, run: Option<Run>, line: Vec<u8>, id: Option<String>) -> Handled {
        let Ok(mut silent) = timeout(PLACE_WAIT, self.sending.lock()).await else {
            return Handled::Unwritten("earlier messages to the adapter are not done yet".to_owned());
        };
        let (reply, outcome) = oneshot::channel();
        let (written, is_written) = oneshot::channel();
        let outgoing = Outgoing::Send(Box::new(Awaited { line, id, reply, written }));
        let Some(run) = run.or_else(|| self.this_run()) else { return Handled::Unwritten(self.why_down()) };
        if timeout(PLACE_WAIT, run.0.send(outgoing)).await.is_err() {
            return Handled::Unwritten("the adapter does not read its input".to_owned());
        }
        // It may be dropped with its queue before it was taken out of it.
        if is_written.await.is_err() {
            return Handled::Unwritten(self.why_down());
        }
        let answers = self.ledger.lock().answers;
        let wait = match (answers, *silent) {
            (true, _) => OUTCOME_WAIT,
            (false, SILENT_MAX..) => Duration::ZERO,
            (false, _) => FIRST_WAIT,
        };
        let handled = match timeout(wait, outcome).await {
            Ok(Ok(handled)) => handled,
            Ok(Err(_)) => Handled::Unknown("the adapter ended".to_owned()),
            Err(_) => Handled::Unknown("the adapter did not confirm the message in time".to_owned()),
        };
        *silent = if matches!(handled, Handled::Unknown(_)) { silent.saturating_add(1) } else { 0 };
        drop(silent);
        self.count(&handled);
        handled
    }

    fn why_down(&self) -> String {
        let status = self.status.lock();
        let cause = status.last_error.as_ref().map(|(_, text)| format!(": {text}")).unwrap_or_default();
        format!("the adapter is not running{cause}")
    }

    fn count(&self, handled: &Handled) {
        self.update(|status| match handled {
            Handled::Sent | Handled::Acknowledged(_) => {
                status.sent += 1;
                status.traffic = true;
            }
            Handled::Refused(why) => {
                status.refused += 1;
                status.note_error(why);
            }
            Handled::Unknown(_) => status.unknown += 1,
            Handled::Unwritten(_) => {}
        });
    }
}
