//! The official `a2a-sdk` packages of both versions as servers that the daemon calls.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support;
use crate::support::clients::{python_of, skipped};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;

/// A running server; it ends when this is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(script: &str, venv: &str) -> Self {
        let mut command = Command::new(python_of(venv, "a2a, uvicorn, starlette, sse_starlette"));
        command.arg(support::routes::root().join("tests/clients").join(script));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut url).expect("it says where it is");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_a2a_servers_of_both_versions_are_called() {
    if skipped() {
        return;
    }
    for (script, venv, version) in [("a2a_sdk_server_v0.py", "a2a0", "0.3"), ("a2a_sdk_server_v1.py", "a2a1", "1.0")] {
        let (server, model) = (Server::start(script, venv), Model::start());
        let address = server.url.trim_start_matches("http://");
        let daemon = Daemon::with(&format!("{}[web.fetch]\nssrf_allowed_hosts = [\"{address}\"]\n", model.config()));
        let agent = daemon.post("/api/a2a/discover", &json!({ "url": server.url })).expect(201);
        assert_eq!((&agent["name"], &agent["protocol_version"]), (&json!("Echo"), &json!(version)), "{agent}");
        assert_eq!(agent["skills"][0]["id"], "echo");
        let send = |body: Value| daemon.post("/api/a2a/send", &body).expect(200);
        let told = |task: &Value| text(&task["result"]["parts"][0]["text"]);
        let task = send(json!({ "agent_id": "Echo", "message": "hello" }));
        assert_eq!((told(&task).as_str(), &task["status"]), ("echo: hello", &json!("completed")), "{task}");
        let plain = send(json!({ "agent_id": "Echo", "message": "plain" }));
        assert_eq!(told(&plain), "a plain message", "{plain}");
        let asks = send(json!({ "agent_id": "Echo", "message": "ask" }));
        assert_eq!((told(&asks).as_str(), &asks["status"]), ("ask what?", &json!("input-required")), "{asks}");
        let more = send(json!({ "agent_id": "Echo", "message": "this", "task_id": asks["task_id"] }));
        assert_eq!((told(&more).as_str(), &more["remote_task_id"]), ("echo: this", &asks["remote_task_id"]), "{more}");
        let next = send(json!({ "agent_id": "Echo", "message": "on", "context_id": task["context_id"] }));
        assert_eq!((told(&next).as_str(), &next["context_id"]), ("echo: on", &task["context_id"]), "{next}");
        let grants = "[capabilities]\ntools = [\"a2a_send\"]\nnetwork = [\"127.0.0.1\"]\n";
        let scout = daemon.agent_with("scout", grants);
        let call = json!({ "agent": "Echo", "message": "from an agent" }).to_string();
        model.script([Reply::calls(&[("c1", "a2a_send", &call)]), Reply::text("done")]);
        daemon.say(&scout, "go");
        assert!(model.requests().pop().unwrap()["messages"].to_string().contains("echo: from an agent"));
    }
}

/// Two daemons of this program.
#[test]
fn a_daemon_calls_another_one() {
    let model = Model::start();
    let on = "[a2a]\nenabled = true\nagents = [\"scout\"]\n";
    let offering = Daemon::with(&format!("{on}{}", model.config()));
    offering.agent_with("scout", "");
    let daemon = Daemon::with(&format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", offering.addr));
    let url = format!("http://{}", offering.addr);
    let agent = daemon.post("/api/a2a/discover", &json!({ "url": url, "name": "other" })).expect(201);
    assert_eq!(agent["protocol_version"], "1.0");
    let task = daemon.post("/api/a2a/send", &json!({ "agent_id": "other", "message": "hello" })).expect(200);
    assert_eq!((&task["status"], &task["result"]["parts"][0]["text"]), (&json!("completed"), &json!("echo: hello")));
}
