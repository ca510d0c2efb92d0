//! External agents: discovered, called in every dialect of A2A, and what bounds and binds them (spec 3, A2A).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{ModelServer, Received, Reply};
use crate::support::until;

/// How an external agent answers.
pub(crate) type Answers = Arc<Mutex<Script>>;

/// What it says.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) card: Value,
    /// Answers by method of JSON-RPC, or by path; the last one again and again.
    by: BTreeMap<String, Vec<Reply>>,
}

/// A scripted external agent.
pub(crate) struct External {
    pub(crate) server: ModelServer,
    pub(crate) script: Answers,
}

pub(crate) fn json_reply(body: &Value) -> Reply {
    Reply::raw(200, &[("content-type", "application/json")], &body.to_string())
}

/// The method of a request, or its path.
fn key_of(request: &Received) -> String {
    request.body["method"].as_str().map_or_else(|| request.path.clone(), str::to_owned)
}

impl External {
    /// One whose card is `card` with the URL of the server in it.
    pub(crate) fn new(card: &Value) -> Self {
        let (server, script) = (ModelServer::start(), Answers::default());
        let url = format!("http://{}/rpc", server.address());
        script.lock().unwrap().card = serde_json::from_str(&card.to_string().replace("$URL", &url)).unwrap();
        let answers = Arc::clone(&script);
        server.respond(move |request| {
            let mut script = answers.lock().unwrap();
            if request.path == "/.well-known/agent-card.json" {
                return json_reply(&script.card);
            }
            let Some(replies) = script.by.get_mut(&key_of(request)) else {
                return match request.path.as_str() {
                    "/rpc" if request.body["method"].is_string() => {
                        json_reply(&json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": { "code": -32601, "message": "no" } }))
                    }
                    _ => Reply::raw(404, &[], "nothing here"),
                };
            };
            if replies.len() > 1 { replies.remove(0) } else { replies[0].clone() }
        });
        Self { server, script }
    }

    pub(crate) fn v0() -> Self {
        Self::new(&json!({ "name": "Weather", "description": "Tells the weather.", "url": "$URL", "version": "2.1",
            "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC", "capabilities": { "streaming": true },
            "skills": [{ "id": "today", "name": "Today", "description": "The weather of today." }] }))
    }

    pub(crate) fn v1() -> Self {
        Self::new(&json!({ "name": "Weather", "description": "Tells the weather.", "version": "2.1",
            "supportedInterfaces": [{ "url": "$URL", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }] }))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// From now on it answers a method, or a path, with these in turn.
    pub(crate) fn on(&self, key: &str, replies: impl IntoIterator<Item = Reply>) {
        self.script.lock().unwrap().by.insert(key.to_owned(), replies.into_iter().collect());
    }

    /// The same with results of JSON-RPC.
    pub(crate) fn results(&self, method: &str, results: &[Value]) {
        self.on(
            method,
            results.iter().map(|result| json_reply(&json!({ "jsonrpc": "2.0", "id": 1, "result": result }))),
        );
    }

    /// The requests of a method, or a path.
    pub(crate) fn asked(&self, key: &str) -> Vec<Received> {
        self.server.requests().into_iter().filter(|request| key_of(request) == key).collect()
    }

    /// A daemon that may reach it.
    pub(crate) fn daemon(&self, more: &str) -> Daemon {
        Daemon::with(&self.config(more))
    }

    pub(crate) fn config(&self, more: &str) -> String {
        format!("{more}\n[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", self.server.address())
    }
}

pub(crate) fn discover(daemon: &Daemon, external: &External) -> Value {
    daemon.post("/api/a2a/discover", &json!({ "url": external.url() })).expect(201)
}

pub(crate) fn send(daemon: &Daemon, agent: &Value, message: &str) -> Value {
    daemon.post("/api/a2a/send", &json!({ "agent_id": agent["id"], "message": message })).expect(200)
}

pub(crate) fn begin(daemon: &Daemon, agent: &Value, message: &str) -> String {
    let body = json!({ "agent_id": agent["id"], "message": message, "blocking": false });
    text(&daemon.post("/api/a2a/send", &body).expect(200)["task_id"])
}

pub(crate) fn status(daemon: &Daemon, task: &str) -> Value {
    daemon.get(&format!("/api/a2a/tasks/{task}/status")).expect(200)
}

/// The task once it has ended.
pub(crate) fn ended(daemon: &Daemon, task: &str) -> Value {
    until("the task has ended", || Some(status(daemon, task)).filter(|task| !task["ended_at"].is_null()))
}

pub(crate) fn answer(task: &Value) -> String {
    assert_eq!((&task["status"], &task["error"]), (&json!("completed"), &Value::Null), "{task}");
    text(&task["result"]["parts"][0]["text"])
}

pub(crate) fn task_v0(state: &str, answer: &str) -> Value {
    let artifacts = if answer.is_empty() {
        json!([])
    } else {
        json!([{ "artifactId": "a", "parts": [{ "kind": "text", "text": answer }] }])
    };
    json!({ "kind": "task", "id": "remote-1", "contextId": "context-1", "status": { "state": state }, "artifacts": artifacts })
}

#[test]
fn an_agent_is_discovered_listed_read_and_removed() {
    let external = External::v0();
    let mut daemon = external.daemon("");
    let made = discover(&daemon, &external);
    assert_eq!((&made["name"], &made["status"]), (&json!("Weather"), &json!("approved")));
    assert_eq!((&made["url"], &made["endpoint"]), (&json!(external.url()), &json!(format!("{}/rpc", external.url()))));
    assert_eq!((&made["protocol_version"], &made["skills"][0]["id"]), (&json!("0.3"), &json!("today")));
    let paths: Vec<String> = external.server.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(paths, ["/.well-known/agent.json", "/.well-known/agent-card.json"], "both well-known paths");
    daemon.kill();
    daemon.restart();
    let list = daemon.get("/api/a2a/agents").expect(200);
    assert_eq!((&list["total"], &list["agents"][0]), (&json!(1), &made));
    let encoded = external.url().replace(':', "%3A").replace('/', "%2F");
    for path in [text(&made["id"]), "Weather".to_owned(), encoded.clone()] {
        assert_eq!(daemon.get(&format!("/api/a2a/agents/{path}")).expect(200), made, "{path}");
    }
    assert_eq!(daemon.post(&format!("/api/a2a/agents/{encoded}/approve"), &json!({})).expect(200), made);
    let again =
        daemon.post("/api/a2a/discover", &json!({ "url": format!("{}/", external.url()), "name": "Rain" })).expect(200);
    assert_eq!((&again["id"], &again["name"], &again["card_name"]), (&made["id"], &json!("Rain"), &json!("Weather")));
    assert!(again["card_changed_at"].is_null());
    assert_eq!(daemon.delete(&format!("/api/a2a/agents/{}", text(&made["id"]))).status, 204);
    daemon.get("/api/a2a/agents/Rain").refused(404);
    assert_eq!(daemon.get("/api/a2a/agents").expect(200)["total"], 0);
    let trail = daemon.get("/api/audit/recent?n=50").expect(200).to_string();
    assert!(trail.contains("a2a_agent_discovered") && trail.contains("a2a_agent_removed"), "{trail}");
}

#[test]
fn a_message_is_answered_in_version_0_3() {
    let external = External::v0();
    external.results("message/send", &[task_v0("submitted", "")]);
    external.results("tasks/get", &[task_v0("working", ""), task_v0("completed", "sunny")]);
    let daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    let task = send(&daemon, &agent, "and today?");
    assert_eq!(answer(&task), "sunny");
    assert_eq!((&task["remote_task_id"], &task["context_id"]), (&json!("remote-1"), &json!("context-1")));
    let sent = external.asked("message/send").remove(0);
    let message = &sent.body["params"]["message"];
    assert_eq!((&message["messageId"], &message["role"]), (&task["task_id"], &json!("user")));
    assert_eq!(message["parts"], json!([{ "kind": "text", "text": "and today?" }]));
    assert_eq!(sent.body["params"]["configuration"]["blocking"], false);
    assert!(sent.headers.get("a2a-version").is_none() && sent.headers.get("authorization").is_none());
    assert_eq!(external.asked("tasks/get")[0].body["params"]["id"], "remote-1");
    assert_eq!(daemon.get(&format!("/api/a2a/tasks/{}", text(&task["task_id"]))).expect(200), task);
    assert_eq!(daemon.get("/api/a2a/tasks").expect(200)["tasks"], json!([task]));
    external.results(
        "message/send",
        &[json!({ "kind": "message", "role": "agent", "messageId": "m", "contextId": "context-2",
        "parts": [{ "kind": "text", "text": "at once" }] })],
    );
    let body = json!({ "url": external.url(), "message": "more", "session_id": "context-1" });
    let more = daemon.post("/api/a2a/send", &body).expect(200);
    assert_eq!((answer(&more).as_str(), &more["context_id"]), ("at once", &json!("context-2")));
    assert_eq!(external.asked("message/send")[1].body["params"]["message"]["contextId"], "context-1");
}

#[test]
fn a_message_is_answered_in_version_1_0() {
    let external = External::v1();
    let task = |state: &str| {
        json!({ "id": "remote-1", "contextId": "c", "status": { "state": state },
        "artifacts": [{ "artifactId": "a", "parts": [{ "text": "cloudy" }] }] })
    };
    external.results("SendMessage", &[json!({ "task": task("TASK_STATE_SUBMITTED") })]);
    external.results("GetTask", &[task("TASK_STATE_COMPLETED")]);
    let daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    assert_eq!(agent["protocol_version"], "1.0");
    assert_eq!(answer(&send(&daemon, &agent, "tomorrow?")), "cloudy");
    let sent = external.asked("SendMessage").remove(0);
    assert_eq!(sent.headers["a2a-version"], "1.0");
    let params = &sent.body["params"];
    assert_eq!(
        (&params["message"]["role"], &params["message"]["parts"]),
        (&json!("ROLE_USER"), &json!([{ "text": "tomorrow?" }]))
    );
    assert_eq!(params["configuration"]["returnImmediately"], true);
}

#[test]
fn older_dialects_are_found_out_once() {
    let external = External::new(&json!({ "name": "Old", "url": "$URL" }));
    external.results(
        "tasks/send",
        &[json!({ "id": "theirs", "sessionId": "s", "status": { "state": "completed" },
        "artifacts": [{ "parts": [{ "type": "text", "text": "old" }] }] })],
    );
    let daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    let task = send(&daemon, &agent, "one");
    assert_eq!(answer(&task), "old");
    assert_eq!(external.asked("tasks/send")[0].body["params"]["id"], task["task_id"], "the id is this side's");
    assert_eq!(daemon.get("/api/a2a/agents/Old").expect(200)["protocol_version"], "0.1");
    send(&daemon, &agent, "two");
    assert_eq!((external.asked("message/send").len(), external.asked("tasks/send").len()), (1, 2));
    let external = External::new(&json!({ "name": "Rest", "url": "$URL" }));
    external.on("message/send", [Reply::raw(404, &[], "no")]);
    external.on("/rpc/tasks/send", [json_reply(&json!({ "id": "t1", "sessionId": "s", "status": "working" }))]);
    external.on("/rpc/tasks/t1", [json_reply(&json!({ "id": "t1", "status": "completed",
        "messages": [{ "role": "user", "parts": [] }, { "role": "agent", "parts": [{ "type": "text", "text": "plain" }] }] }))]);
    let daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    assert_eq!(answer(&send(&daemon, &agent, "one")), "plain");
    let sent = external.asked("/rpc/tasks/send").remove(0);
    assert_eq!(sent.body["params"]["message"]["parts"][0]["type"], "text");
}

#[test]
fn a_task_that_asks_for_more_is_continued() {
    let external = External::v0();
    let asks = json!({ "kind": "task", "id": "remote-1", "contextId": "context-1", "status": { "state": "input-required",
        "message": { "role": "agent", "parts": [{ "kind": "text", "text": "where?" }] } } });
    external.results("message/send", &[asks, task_v0("completed", "rain")]);
    let daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    let first = send(&daemon, &agent, "the weather");
    assert_eq!((&first["status"], &first["result"]["parts"][0]["text"]), (&json!("input-required"), &json!("where?")));
    let body = json!({ "agent_id": "Weather", "message": "in Oslo", "task_id": first["task_id"] });
    assert_eq!(answer(&daemon.post("/api/a2a/send", &body).expect(200)), "rain");
    let message = external.asked("message/send")[1].body["params"]["message"].clone();
    assert_eq!((&message["taskId"], &message["contextId"]), (&json!("remote-1"), &json!("context-1")));
}

#[test]
fn failures_say_why_and_nothing_is_sent_twice() {
    let external = External::v0();
    let daemon = external.daemon("[a2a]\nexternal_timeout_secs = 1\n");
    let agent = discover(&daemon, &external);
    let error =
        json_reply(&json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32602, "message": "no such thing" } }));
    let failed =
        json_reply(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "id": "r", "status": { "state": "rejected",
        "message": { "parts": [{ "text": "not my job" }] } } } }));
    for (reply, status, why) in [
        (error, "failed", "no such thing"),
        (failed, "rejected", "not my job"),
        (Reply::raw(401, &[], "who?"), "failed", "status 401"),
        (Reply::raw(302, &[("location", "http://169.254.169.254/")], ""), "failed", "redirect"),
        (Reply::raw(200, &[], "<html>"), "unknown", "not JSON"),
        (Reply::raw(200, &[], "{}"), "unknown", "no result"),
        (Reply::raw(500, &[], "oops"), "unknown", "status 500"),
        (Reply::raw(503, &[], r#"{"error":{"code":-32603,"message":"overloaded"}}"#), "unknown", "status 503"),
        (Reply::raw(200, &[], &"x".repeat(2 << 20)), "unknown", "longer than"),
        (Reply::hang(), "unknown", "within 1 seconds"),
    ] {
        let before = external.asked("message/send").len();
        external.on("message/send", [reply]);
        let task = send(&daemon, &agent, "now");
        assert_eq!(task["status"], status, "{task}");
        assert!(text(&task["error"]).contains(why), "{why}: {task}");
        assert_eq!(external.asked("message/send").len(), before + 1, "{why}: sent once");
    }
    external.results("message/send", &[task_v0("working", "")]);
    external.on(
        "tasks/get",
        [json_reply(&json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "gone" } }))],
    );
    let task = send(&daemon, &agent, "now");
    assert_eq!(task["status"], "unknown");
    assert!(text(&task["error"]).contains("does not know the task"), "{task}");
}

#[test]
fn an_agent_that_takes_no_more_for_now_is_asked_again_with_the_same_id() {
    let external = External::v0();
    let busy = Reply::raw(429, &[("retry-after", "0")], r#"{"error":{"code":429,"message":"slow down"}}"#);
    let done = json_reply(&json!({ "jsonrpc": "2.0", "id": 1, "result": task_v0("completed", "later") }));
    external.on("message/send", [busy, done]);
    let daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    assert_eq!(answer(&send(&daemon, &agent, "now")), "later");
    let sent = external.asked("message/send");
    let id = |at: usize| &sent[at].body["params"]["message"]["messageId"];
    assert_eq!((sent.len(), id(0)), (2, id(1)));
}

#[test]
fn a_kill_while_a_message_is_out_sends_it_once_and_says_so() {
    let external = External::v0();
    external.on("message/send", [Reply::hang()]);
    let mut daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    let task = begin(&daemon, &agent, "once");
    until("it was sent", || (external.asked("message/send").len() == 1).then_some(()));
    daemon.kill();
    external.results("message/send", &[task_v0("completed", "twice?")]);
    daemon.restart();
    let task = ended(&daemon, &task);
    assert_eq!(task["status"], "unknown");
    assert!(text(&task["error"]).contains("not sent again"), "{task}");
    assert_eq!(external.asked("message/send").len(), 1);
}

#[test]
fn a_kill_while_an_agent_works_asks_for_its_task_and_sends_nothing() {
    let external = External::v0();
    external.results("message/send", &[task_v0("working", "")]);
    external.on("tasks/get", [Reply::hang()]);
    let mut daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    let task = begin(&daemon, &agent, "once");
    until("it was asked for", || (!external.asked("tasks/get").is_empty()).then_some(()));
    assert_eq!(status(&daemon, &task)["status"], "working");
    daemon.kill();
    external.results("tasks/get", &[task_v0("completed", "after all")]);
    daemon.restart();
    assert_eq!(answer(&ended(&daemon, &task)), "after all");
    assert_eq!(external.asked("message/send").len(), 1);
}

#[test]
fn a_kill_in_an_older_dialect_asks_for_the_task_whose_id_is_known() {
    let external = External::new(&json!({ "name": "Old", "url": "$URL" }));
    let done =
        json!({ "id": "mine", "status": { "state": "completed" }, "artifacts": [{ "parts": [{ "text": "kept" }] }] });
    external.results("tasks/send", std::slice::from_ref(&done));
    let mut daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    send(&daemon, &agent, "one");
    external.on("tasks/send", [Reply::hang()]);
    external.results("tasks/get", &[done]);
    let task = begin(&daemon, &agent, "two");
    until("it was sent", || (external.asked("tasks/send").len() == 2).then_some(()));
    daemon.kill();
    daemon.restart();
    assert_eq!(answer(&ended(&daemon, &task)), "kept");
    assert_eq!(external.asked("tasks/get")[0].body["params"]["id"], json!(task));
    assert_eq!(external.asked("tasks/send").len(), 2);
}
