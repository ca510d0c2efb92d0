//! Adapters of channels as processes, over real pipes: started, talked with, ended and started again. The test plays the
//! adapter itself, behind a small script.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{routes, until};

/// How long the other side may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where adapters connect to.
pub(crate) struct Stage(pub(crate) TcpListener);

/// A run of an adapter.
pub(crate) struct Adapter {
    to: TcpStream,
    from: BufReader<TcpStream>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("not blocking");
        Self(listener)
    }

    /// The entry of a channel that comes here.
    pub(crate) fn entry(&self, name: &str, more: &str) -> String {
        let script = std::fs::read_to_string(routes::root().join("tests/http/channel_adapter.py")).expect("the script");
        let port = self.0.local_addr().expect("an address").port();
        format!(
            "[[sidecar_channels]]\nname = \"{name}\"\ncommand = \"/usr/bin/python3\"\nargs = [\"-c\", {}]\n\
             env = {{ TEST_PORT = \"{port}\", TEST_TOKEN = \"hunter2-hunter2\" }}\nagent = \"scout\"\n\
             restart_initial_backoff_ms = 10\n{more}\n",
            toml::Value::from(script)
        )
    }

    /// The next run of an adapter.
    #[track_caller]
    pub(super) fn accept(&self) -> Adapter {
        let (to, _) = until("an adapter comes", || self.0.accept().ok());
        to.set_nonblocking(false).expect("blocking");
        to.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let from = BufReader::new(to.try_clone().expect("a copy"));
        Adapter { to, from }
    }

    /// The next run, which says that it is ready.
    #[track_caller]
    pub(crate) fn ready(&self, capabilities: &[&str]) -> Adapter {
        let mut adapter = self.accept();
        adapter.say(&json!({ "method": "ready", "params": { "capabilities": capabilities, "protocol_version": 1 } }));
        assert_eq!(adapter.next(), json!({ "method": "ready_ack" }));
        adapter
    }
}

impl Adapter {
    pub(crate) fn say(&mut self, event: &Value) {
        self.line(&event.to_string());
    }

    pub(crate) fn line(&mut self, line: &str) {
        writeln!(self.to, "{line}").expect("the adapter hears");
    }

    pub(super) fn message(&mut self, id: &str, text: &str, token: Option<&str>) {
        let params =
            json!({ "user_id": "ann", "user_name": "Ann", "text": text, "message_id": id, "librefang_user": token });
        self.say(&json!({ "method": "message", "params": params }));
    }

    /// The next command.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a command in time");
        serde_json::from_str(&line).expect("a command")
    }

    /// The next command of this method.
    #[track_caller]
    pub(crate) fn next_of(&mut self, method: &str) -> Value {
        loop {
            let command = self.next();
            if command["method"] == method {
                return command["params"].clone();
            }
        }
    }

    /// It is over.
    pub(super) fn ended(&mut self) -> bool {
        let mut line = String::new();
        loop {
            line.clear();
            match self.from.read_line(&mut line) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}

pub(super) fn status_of(daemon: &Daemon, name: &str) -> Value {
    daemon.get(&format!("/api/channels/{name}")).expect(200)
}

/// Waits until the newest send is over; gives it.
#[track_caller]
pub(crate) fn send_ended(daemon: &Daemon, name: &str, count: usize) -> Value {
    until("the send is over", || {
        let list = daemon.get(&format!("/api/channels/{name}/sends")).expect(200);
        let sends = list["sends"].as_array().cloned().unwrap_or_default();
        let is_over = sends.len() == count && sends.iter().all(|send| send["status"] != "queued");
        is_over.then(|| sends[0].clone())
    })
}

pub(crate) const OPEN: &str = "dm_policy = \"respond\"";

pub(crate) fn daemon_with(model: &Model, channels: &str) -> Daemon {
    let daemon = Daemon::with(&format!("{}{channels}", model.config()));
    daemon.agent_with("scout", "");
    daemon
}

#[test]
fn a_message_is_answered_with_its_reply_token() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&["thread"]);
    let token = "{\"uri\": \"at://x\"} \u{e9}\t ";
    adapter.message("m1", "hello", Some(token));
    let send = adapter.next_of("send");
    assert_eq!(send["channel_id"], "ann");
    assert_eq!((&send["text"], &send["content"]["Text"]), (&json!("echo: hello"), &json!("echo: hello")));
    assert_eq!(send["user"]["librefang_user"], token);
    assert!(send.get("id").is_none() && send.get("thread_id").is_none());
    assert_eq!(send_ended(&daemon, "bot", 1)["status"], "sent");
    // The platform delivers it again.
    adapter.message("m1", "hello", Some(token));
    adapter.message("m2", "again", None);
    let send = adapter.next_of("send");
    assert_eq!((&send["text"], &send["user"]["librefang_user"]), (&json!("echo: again"), &Value::Null));
    let row = status_of(&daemon, "bot");
    assert_eq!(
        (&row["state"], &row["connected"], &row["messages_received"]),
        (&json!("active"), &json!(true), &json!(3))
    );
}

#[test]
fn ready_alone_is_not_connected() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&[]);
    let row = status_of(&daemon, "bot");
    assert_eq!((&row["state"], &row["connected"]), (&json!("started"), &json!(false)));
    // Each one is answered.
    adapter.say(&json!({ "method": "ready" }));
    assert_eq!(adapter.next(), json!({ "method": "ready_ack" }));
    adapter.line("!stderr {\"ts\":1.0,\"level\":\"error\",\"message\":\"login failed for hunter2-hunter2\"}");
    let error = until("the error is shown", || {
        let row = status_of(&daemon, "bot");
        row["last_error"].as_str().map(str::to_owned)
    });
    assert_eq!(error, "login failed for ***");
    let logs = daemon.get("/api/channels/bot/logs").expect(200).to_string();
    assert!(logs.contains("login failed") && !logs.contains("hunter2"), "{logs}");
}

#[test]
fn a_failure_that_the_adapter_reports_is_a_refused_send() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", &format!("{OPEN}\ndefault_conversation = \"ops\"")));
    let mut adapter = stage.ready(&["ack"]);
    let send = |text: &str| json!({ "text": text });
    let reply = std::thread::scope(|scope| {
        let test = scope.spawn(|| daemon.post("/api/channels/bot/test", &send("one")));
        let sent = adapter.next_of("send");
        let failed = json!({ "method": "ack", "params": { "id": sent["id"], "ok": false, "error": "HTTP 403" } });
        adapter.say(&failed);
        test.join().expect("an answer")
    });
    let sends = send_ended(&daemon, "bot", 1);
    assert_eq!((&sends["status"], &sends["reason"]), (&json!("refused"), &json!("HTTP 403")), "{}", reply.status);
    assert_eq!(status_of(&daemon, "bot")["messages_refused"], 1);
}

#[test]
fn exit_code_2_is_not_tried_again() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.accept();
    adapter.line("!stderr TEST_TOKEN is required; exiting");
    adapter.line("!exit 2");
    let row = until("it is given up", || Some(status_of(&daemon, "bot")).filter(|row| row["state"] == "failed"));
    let error = row["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("exit code 2") && error.contains("TEST_TOKEN is required"), "{error}");
    assert!(stage.0.accept().is_err(), "no second run");
    daemon.post("/api/channels/reload", &json!({})).expect(200);
    stage.ready(&[]);
}

#[test]
fn a_loop_of_crashes_opens_the_circuit() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", &format!("{OPEN}\nrestart_max_retries = 2")));
    for _ in 0..3 {
        stage.ready(&[]).line("!exit 1");
    }
    let row = until("it is given up", || Some(status_of(&daemon, "bot")).filter(|row| row["state"] == "failed"));
    assert_eq!(row["restarts"], 2);
    assert!(row["last_error"].as_str().is_some_and(|error| error.contains("exit code 1")), "{row}");
}

#[test]
fn an_answer_waits_for_an_adapter_that_was_killed() {
    let (model, stage) = (Model::start(), Stage::new());
    model.hold();
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&[]);
    adapter.message("m1", "hello", Some("token"));
    until("the turn runs", || (model.waiting() == 1).then_some(()));
    adapter.line("!exit 1");
    assert!(adapter.ended());
    // What is written before the daemon knows of the end is `unknown` and never repeated.
    let mut next = stage.ready(&[]);
    model.release();
    let send = next.next_of("send");
    assert_eq!((&send["text"], &send["user"]["librefang_user"]), (&json!("echo: hello"), &json!("token")));
    assert_eq!(send_ended(&daemon, "bot", 1)["status"], "sent");
}

#[test]
fn an_answer_outlives_a_kill_of_the_daemon() {
    let (model, stage) = (Model::start(), Stage::new());
    model.hold();
    let mut daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&[]);
    adapter.message("m1", "hello", Some("token"));
    until("the turn runs", || (model.waiting() == 1).then_some(()));
    daemon.kill();
    model.release();
    daemon.restart();
    let mut adapter = stage.ready(&[]);
    // The platform delivers it again.
    adapter.message("m1", "hello", Some("token"));
    let send = adapter.next_of("send");
    assert_eq!((&send["text"], &send["user"]["librefang_user"]), (&json!("echo: hello"), &json!("token")));
    adapter.message("m2", "next", None);
    assert_eq!(adapter.next_of("send")["text"], "echo: next", "it is answered once");
}

#[test]
fn commands_of_a_chat_are_answered() {
    let (model, stage) = (Model::start(), Stage::new());
    let _daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&["interactive"]);
    adapter.message("m1", "/help", None);
    let help = adapter.next_of("send");
    assert!(help["text"].as_str().is_some_and(|text| text.contains("/approve")), "{help}");
    adapter.message("m2", "/approve 12345678", None);
    let denied = adapter.next_of("send");
    assert!(denied["text"].as_str().is_some_and(|text| !text.contains("Approved")), "{denied}");
    adapter.message("m3", "/new", None);
    assert!(adapter.next_of("send")["text"].as_str().is_some_and(|text| text.contains("new session")));
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn signs_end_and_the_text_is_streamed_where_the_adapter_can() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&["reaction", "typing", "streaming"]);
    model.script([Reply::text("one two three")]);
    adapter.message("m1", "hello", None);
    let (mut text, mut phases, mut ended) = (String::new(), Vec::new(), false);
    while !(ended && phases.last().is_some_and(|phase| *phase == json!("done"))) {
        let command = adapter.next();
        let params = &command["params"];
        match command["method"].as_str().unwrap_or_default() {
            "stream_delta" => text.push_str(params["text"].as_str().unwrap_or_default()),
            "stream_end" => ended = true,
            "reaction" => phases.push(params["phase"].clone()),
            "stream_start" | "typing" => {}
            other => panic!("{other}: {params}"),
        }
    }
    assert_eq!((text.as_str(), &phases[0]), ("one two three", &json!("queued")));
    assert_eq!(send_ended(&daemon, "bot", 1)["status"], "sent");
    model.fail(400);
    adapter.message("m2", "hello", None);
    while adapter.next_of("reaction")["phase"] != "error" {}
}

#[test]
fn a_hostile_adapter_harms_no_other() {
    let (model, stage, other) = (Model::start(), Stage::new(), Stage::new());
    let channels = format!("{}{}", stage.entry("bad", OPEN), other.entry("good", OPEN));
    let daemon = daemon_with(&model, &channels);
    let (mut bad, mut good) = (stage.ready(&[]), other.ready(&[]));
    for line in ["no json", "[]", "{\"method\":\"message\",\"params\":{}}", "{\"method\":\"later\"}"] {
        bad.line(line);
    }
    bad.line("!big 67108865");
    assert!(bad.ended(), "it is killed");
    good.message("m1", "hello", None);
    assert_eq!(good.next_of("send")["text"], "echo: hello");
    let row = status_of(&daemon, "bad");
    assert!(row["last_error"].as_str().is_some_and(|error| error.contains("67108864 bytes")), "{row}");
    stage.ready(&[]);
}

#[test]
fn a_stop_tells_the_adapter() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&[]);
    let heard = std::thread::spawn(move || {
        let shutdown = adapter.next();
        (shutdown, adapter.ended())
    });
    assert!(daemon.cli(&["stop"]).status.success());
    let (shutdown, ended) = heard.join().expect("it heard");
    assert_eq!((shutdown, ended), (json!({ "method": "shutdown" }), true));
}
