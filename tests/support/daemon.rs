//! The real binary as a child process on a home of its own.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::Client;
use super::until;

/// A running daemon. Dropped: killed, and its home removed. Requests go through its [`Client`].
pub(crate) struct Daemon {
    child: Child,
    client: Client,
    home: TempDir,
    environment: Vec<(String, String)>,
    /// A program and its arguments that run the binary.
    launcher: Vec<String>,
    /// The `api_key` of the configuration; what a test sends is its own choice.
    key: Option<String>,
}

impl Deref for Daemon {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Daemon {
    /// A daemon with the default configuration on a free port.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// A daemon whose `config.toml` is the listen address followed by `config`.
    #[track_caller]
    pub(crate) fn with(config: &str) -> Self {
        Self::with_env(config, &[])
    }

    /// As [`with`](Self::with), with variables in the environment.
    #[track_caller]
    pub(crate) fn with_env(config: &str, environment: &[(&str, &str)]) -> Self {
        Self::launched(&[], config, environment)
    }

    /// As [`with_env`](Self::with_env), by way of a program that runs the binary in its own place.
    #[track_caller]
    pub(crate) fn launched(launcher: &[&str], config: &str, environment: &[(&str, &str)]) -> Self {
        let launcher: Vec<String> = launcher.iter().map(|word| (*word).to_owned()).collect();
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::write(home.path().join("config.toml"), format!("api_listen = \"127.0.0.1:0\"\n{config}"))
            .expect("config.toml can be written");
        let environment: Vec<_> = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let child = spawn(home.path(), &environment, &launcher).expect("the binary starts");
        let client = Client::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut daemon = Self { child, client, home, environment, launcher, key: key_in(config) };
        daemon.wait_ready();
        daemon
    }

    /// A daemon on a home that is there, as it is.
    #[track_caller]
    pub(crate) fn on(home: TempDir) -> Self {
        let child = spawn(home.path(), &[], &[]).expect("the binary starts");
        let client = Client::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let key = key_in(&fs::read_to_string(home.path().join("config.toml")).unwrap_or_default());
        let mut daemon = Self { child, client, home, environment: Vec::new(), launcher: Vec::new(), key };
        daemon.wait_ready();
        daemon
    }

    /// The home directory.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client that sends `key`.
    pub(crate) fn keyed(&self, key: &str) -> Client {
        Client { key: Some(key.to_owned()), ..self.client.clone() }
    }

    /// The client, to move into threads.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Makes the daemon's own client send `key` from here on.
    pub(crate) fn use_key(&mut self, key: &str) {
        self.client.key = Some(key.to_owned());
    }

    /// SIGKILL, reaped.
    pub(crate) fn kill(&mut self) {
        // Both fail only when the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until the process ends by itself.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("the daemon is shutting down", || self.child.try_wait().expect("the child can be waited for"))
    }

    /// True while the process runs.
    pub(crate) fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// True when the process still runs after `wait`.
    pub(crate) fn outlives(&mut self, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        until("the process ends or the time is over", || (!self.alive() || Instant::now() >= end).then_some(()));
        self.alive()
    }

    /// Starts the binary again on the same home and waits until the world is loaded.
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.home.path(), &self.environment, &self.launcher).expect("the binary starts");
        self.wait_ready();
    }

    /// Runs the command line against this home.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Output {
        command(self.home.path()).args(arguments).output().expect("the binary starts")
    }

    /// What the daemon wrote to stderr so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.home.path().join("stderr.txt")).unwrap_or_default()
    }

    #[track_caller]
    fn wait_ready(&mut self) {
        let file = self.home.path().join("daemon.json");
        until("the daemon serves its world", || {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the daemon ended ({status}): {}", self.stderr());
            }
            let known: Value = serde_json::from_str(&fs::read_to_string(&file).ok()?).ok()?;
            if known["pid"] != self.child.id() {
                return None;
            }
            self.client.addr = known["listen"].as_str()?.parse().ok()?;
            // Loading ends when a read of the world is no longer 503.
            let owner = Client { key: self.key.clone(), ..self.client.clone() };
            let status = owner.try_send("GET", "/api/status", &[], None).ok()?.status;
            (status == 200).then_some(())
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- stderr of the daemon\n{}", self.stderr());
        }
        self.kill();
    }
}

/// The calls that most tests begin with.
impl Client {
    /// Creates an agent on the built-in model; gives its id.
    #[track_caller]
    pub(crate) fn agent(&self, name: &str) -> String {
        self.agent_with(name, "[model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n")
    }

    /// Creates an agent `name` whose other manifest lines are `rest`; gives its id.
    #[track_caller]
    pub(crate) fn agent_with(&self, name: &str, rest: &str) -> String {
        let made = self.post("/api/agents", &json!({ "manifest_toml": format!("name = \"{name}\"\n{rest}") }));
        text(&made.expect(201)["agent_id"])
    }

    /// Waits until all that the world shows by now is stored: a write is answered behind all that happened before it, and
    /// an event leaves nothing.
    #[track_caller]
    pub(crate) fn settle(&self) {
        self.post("/api/events", &json!({ "event_type": "test.settled" })).expect(200);
    }

    /// The detail of an agent.
    #[track_caller]
    pub(crate) fn detail(&self, agent: &str) -> Value {
        self.get(&format!("/api/agents/{agent}")).expect(200)
    }

    /// Sends a message and gives the answer's body.
    #[track_caller]
    pub(crate) fn say(&self, agent: &str, message: &str) -> Value {
        self.post(&format!("/api/agents/{agent}/message"), &json!({ "message": message })).expect(200)
    }

    /// Sends a message to a session and gives the answer's body.
    #[track_caller]
    pub(crate) fn say_in(&self, agent: &str, session: &str, message: &str) -> Value {
        let body = json!({ "message": message, "session_id": session });
        self.post(&format!("/api/agents/{agent}/message"), &body).expect(200)
    }

    /// The texts of a session, as `(role, content)`.
    #[track_caller]
    pub(crate) fn transcript(&self, session: &str) -> Vec<(String, String)> {
        let body = self.get(&format!("/api/sessions/{session}")).expect(200);
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        messages.iter().map(|m| (text(&m["role"]), text(&m["content"]))).collect()
    }

    /// As [`transcript`](Self::transcript), what was compacted since included; without tool results and empty texts.
    #[track_caller]
    pub(crate) fn trail(&self, agent: &str, session: &str) -> Vec<(String, String)> {
        let trail = self.get(&format!("/api/agents/{agent}/sessions/{session}/trajectory")).expect(200);
        let said = |message: &Value| (text(&message["role"]), text(&message["content"]));
        let messages = trail["messages"].as_array().expect("messages").iter().map(said);
        messages.filter(|(role, text)| role != "Tool" && !text.is_empty()).collect()
    }
}

/// The key that a configuration sets.
fn key_in(config: &str) -> Option<String> {
    config.lines().find_map(|line| Some(line.strip_prefix("api_key = \"")?.split('"').next()?.to_owned()))
}

/// A JSON string's text; panics on anything else.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => panic!("a string is expected, not {other}"),
    }
}

/// The binary with a clean environment on `home`.
pub(crate) fn command(home: &Path) -> Command {
    command_behind(home, &[])
}

/// The same, run by another program.
pub(crate) fn command_behind(home: &Path, launcher: &[String]) -> Command {
    let mut command = match launcher {
        [] => Command::new(binary()),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(binary());
            command
        }
    };
    // A key or proxy of the developer's own environment must not change what a test sees.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("AGENTSVC_HOME", home);
    command.env("HOME", home).env("TEST_MODEL_KEY", "key-of-the-test-model").stdin(Stdio::null());
    command
}

/// The one that `AGENTSVC_BIN` names, else the one that was built with this program.
fn binary() -> PathBuf {
    std::env::var_os("AGENTSVC_BIN").map_or_else(|| env!("CARGO_BIN_EXE_agentsvc").into(), PathBuf::from)
}

fn spawn(home: &Path, environment: &[(String, String)], launcher: &[String]) -> io::Result<Child> {
    let log = File::options().create(true).append(true).open(home.join("stderr.txt"))?;
    let mut command = command_behind(home, launcher);
    command.arg("start").envs(environment.iter().map(|(k, v)| (k, v)));
    command.stdout(Stdio::null()).stderr(log).spawn()
}
