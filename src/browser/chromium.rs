//! One Chromium: a program in the sandbox, without any network. It speaks over a pipe; what its pages ask for comes through
//! [`relay`](super::relay).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::oneshot;

use super::cdp::{Connection, Event};
use super::page::Page;
use super::relay::Posts;
use crate::kernel::sandbox::{Commands, ServerProgram};

/// How long it may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(30);
/// How long it may take for what it does by itself.
pub(super) const COMMAND_TIME_MAX: Duration = Duration::from_secs(10);
/// Moves the socket that is stdin and stdout to where Chromium has its pipe: it reads from 3 and writes to 4.
const SCRIPT: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
/// What it reads beside the system's programs: fonts, and what the system says to it.
const READABLE: &[&str] = &["/etc/fonts", "/etc/chromium", "/etc/chromium.d", "/etc/opt/chrome"];
/// How it is started. The sandbox that it is in stands in place of its own, which needs what that one refuses.
const FLAGS: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-zygote",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-breakpad",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--deny-permission-prompts",
    "--disable-features=Translate,MediaRouter,OptimizationHints,DialMediaRouteProvider",
    "--mute-audio",
    "--password-store=basic",
    "about:blank",
];
/// Bytes of the directory's path: Chromium makes a socket in it, and the kernel bounds the paths of those.
const DIRECTORY_BYTES_MAX: usize = 56;

/// The pages by their sessions, those of frames and workers included.
#[derive(Default)]
pub(super) struct Routes(Mutex<HashMap<String, Arc<Page>>>);

impl Routes {
    pub(super) fn add(&self, session: &str, page: &Arc<Page>) {
        self.0.lock().insert(session.to_owned(), Arc::clone(page));
    }

    /// Forgets a page with all of its sessions.
    pub(super) fn remove(&self, page: &Page) {
        self.0.lock().retain(|_, of| !std::ptr::eq(&**of, page));
    }

    fn of_session(&self, session: &str) -> Option<Arc<Page>> {
        self.0.lock().get(session).cloned()
    }

    fn find(&self, is_meant: impl Fn(&Page) -> bool) -> Option<Arc<Page>> {
        self.0.lock().values().find(|page| is_meant(page)).cloned()
    }
}

/// One that runs. Dropped, it is killed with all of its processes.
pub(super) struct Chromium {
    pub(super) connection: Connection,
    pub(super) routes: Arc<Routes>,
    /// Memory for what its pages send.
    pub(super) posts: Posts,
    _wanted: oneshot::Sender<()>,
}

impl Chromium {
    /// Starts one in `directory`, which is removed when it has ended.
    ///
    /// # Errors
    /// A sentence: why it does not run.
    pub(super) async fn start(commands: &Commands, executable: &Path, directory: PathBuf) -> Result<Self, String> {
        if directory.as_os_str().len() > DIRECTORY_BYTES_MAX {
            return Err(format!(
                "the path {} is too long for a browser; set a shorter `data_dir`",
                directory.display()
            ));
        }
        let file = executable.canonicalize().map_err(|error| format!("{}: {error}", executable.display()))?;
        let mut readable: Vec<PathBuf> = READABLE.iter().map(PathBuf::from).collect();
        readable.extend(file.parent().map(Path::to_owned));
        let mut arguments = vec!["-c".to_owned(), SCRIPT.to_owned(), executable.display().to_string()];
        arguments.push(format!("--user-data-dir={}", directory.join("profile").display()));
        arguments.extend(FLAGS.iter().map(|flag| (*flag).to_owned()));
        let program = ServerProgram {
            shown: Vec::new(),
            memory_bytes: None,
            command: "/bin/sh".to_owned(),
            arguments,
            directory: directory.clone(),
            environment: Vec::new(),
            readable,
            writable: Vec::new(),
            network: false,
        };
        let mut server = commands.serve(program).await?;
        let routes = Arc::<Routes>::default();
        let told = Arc::clone(&routes);
        // It tells nothing before it is asked.
        let known = Arc::new(OnceLock::<Connection>::new());
        let speaks = Arc::clone(&known);
        let connection = Connection::start(server.stream, move |event| {
            if let Some(connection) = speaks.get() {
                dispatch(&told, connection, event);
            }
        });
        let _first = known.set(connection.clone());
        let (wanted, unwanted) = oneshot::channel();
        drop(tokio::spawn(async move {
            let why = tokio::select! {
                _ = unwanted => None,
                why = server.process.ended() => Some(why),
                () = drained(server.stderr) => Some(server.process.ended().await),
            };
            if let Some(why) = why {
                tracing::warn!(%why, "a browser ended");
            }
            drop(server.process);
            remove(directory).await;
        }));
        let chromium = Self { connection, routes, posts: Posts::default(), _wanted: wanted };
        let discover = json!({ "discover": true });
        let started = chromium.connection.call("", "Target.setDiscoverTargets", &discover, START_TIME_MAX).await;
        match started {
            Ok(_) => Ok(chromium),
            Err(error) => Err(format!("it did not start ({error:?})")),
        }
    }
}

#[cfg(test)]
impl Chromium {
    /// One that somebody else speaks for.
    pub(super) fn spoken_for(connection: Connection) -> Self {
        Self { connection, routes: Arc::default(), posts: Posts::default(), _wanted: oneshot::channel().0 }
    }
}

/// Reads what it says of itself, so that it can say more.
async fn drained(stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        tracing::debug!(line = %String::from_utf8_lossy(&line[..line.len().min(500)]), "browser");
    }
}

/// Removes its directory. Its last processes may still write there.
async fn remove(directory: PathBuf) {
    for _ in 0..50 {
        let path = directory.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path)).await;
        match removed {
            Ok(Ok(())) => return,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => return,
            _ => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
    tracing::warn!(directory = %directory.display(), "the directory of a browser could not be removed");
}

/// Takes an event where it belongs. Never blocks.
fn dispatch(routes: &Arc<Routes>, connection: &Connection, event: Event) {
    let Event { session, method, params } = event;
    if session.is_empty() {
        return of_browser(routes, connection, &method, &params);
    }
    let Some(page) = routes.of_session(&session) else { return };
    match &*method {
        "Fetch.requestPaused" => page.paused(session, params),
        "Target.attachedToTarget" => attached(routes, connection, &page, &params),
        "Target.detachedFromTarget" => {
            let session = params["sessionId"].as_str().unwrap_or_default();
            routes.0.lock().remove(session);
        }
        _ => page.told(&session, &method, &params),
    }
}

/// An event of the browser itself: other windows of a page are closed, they have no session.
fn of_browser(routes: &Arc<Routes>, connection: &Connection, method: &str, params: &Value) {
    match method {
        "Target.targetCreated" => {
            let info = &params["targetInfo"];
            let (context, target) = (info["browserContextId"].as_str(), info["targetId"].as_str().unwrap_or_default());
            let of_page = routes.find(|page| Some(&*page.context) == context && page.target != target);
            if of_page.is_some() && info["type"] == "page" {
                send(connection, String::new(), "Target.closeTarget", json!({ "targetId": target }));
            }
        }
        "Target.targetCrashed" => {
            let target = params["targetId"].as_str().unwrap_or_default();
            if let Some(page) = routes.find(|page| page.target == target) {
                page.crashed();
            }
        }
        _ => {}
    }
}

/// A frame or worker of a page that has a process of its own.
fn attached(routes: &Arc<Routes>, connection: &Connection, page: &Arc<Page>, params: &Value) {
    let Some(session) = params["sessionId"].as_str() else { return };
    routes.add(session, page);
    let (connection, session) = (connection.clone(), session.to_owned());
    drop(tokio::spawn(async move {
        // One after the other: it goes on only when its requests are taken. Not every kind knows all of these.
        for (method, params) in [
            ("Fetch.enable", json!({ "patterns": [{ "urlPattern": "*" }] })),
            ("Target.setAutoAttach", attach_all()),
            ("Runtime.runIfWaitingForDebugger", json!({})),
        ] {
            if let Err(error) = connection.call(&session, method, &params, COMMAND_TIME_MAX).await {
                tracing::debug!(method, ?error, "a command to the browser failed");
            }
        }
    }));
}

/// Frames and workers wait until their requests are taken.
pub(super) fn attach_all() -> Value {
    json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true })
}

/// Sends a command whose result nothing depends on: what it is for may be gone.
pub(super) fn send(connection: &Connection, session: String, method: &'static str, params: Value) {
    let connection = connection.clone();
    drop(tokio::spawn(async move {
        if let Err(error) = connection.call(&session, method, &params, COMMAND_TIME_MAX).await {
            tracing::debug!(method, ?error, "a command to the browser failed");
        }
    }));
}
