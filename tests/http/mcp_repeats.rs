//! Calls of MCP servers that are under way when the daemon is killed: only those are repeated whose tools said beforehand that
//! they may be.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{routes, until};

const SERVER: &str = "/api/mcp/servers/s";

/// A daemon with this in `[security]`, a server `s` that records its calls, and a turn that calls all of its tools.
struct Calls {
    model: Model,
    daemon: Daemon,
    tools: Vec<&'static str>,
}

fn directory(daemon: &Daemon) -> PathBuf {
    daemon.home().join("mcp_servers/s")
}

fn tool(name: &str, annotations: Value) -> Value {
    json!({ "name": name, "description": "Does it.", "inputSchema": { "type": "object" }, "annotations": annotations })
}

fn list(tools: &[(&str, Value)]) -> String {
    let tools: Vec<_> = tools.iter().map(|(name, annotations)| tool(name, annotations.clone())).collect();
    json!(tools).to_string()
}

impl Calls {
    /// All calls are under way, and none is answered.
    fn hanging(security: &str, tools: &[(&'static str, Value)]) -> Self {
        let model = Model::start();
        let config = format!(
            "rate_limit_per_second = 1000000\n{}[exec_policy]\nmode = \"full\"\n[security]\n{security}\n",
            model.config()
        );
        let daemon = Daemon::with(&config);
        fs::create_dir_all(directory(&daemon)).unwrap();
        fs::write(directory(&daemon).join("tools.json"), list(tools)).unwrap();
        fs::write(directory(&daemon).join("hang"), "").unwrap();
        let script = fs::read_to_string(routes::root().join("tests/http/mcp_recording_server.py")).unwrap();
        let body = json!({ "name": "s", "transport": "stdio", "command": "/usr/bin/python3", "args": ["-c", script] });
        daemon.post("/api/mcp/servers", &body).expect(201);
        until("the server is connected", || (daemon.get(SERVER).expect(200)["connected"] == true).then_some(()));
        let grants = "mcp_servers = [\"s\"]\n[capabilities]\ntools = [\"mcp_*\"]\n";
        let agent = daemon.agent_with("ann", grants);
        let names: Vec<_> = tools.iter().map(|(name, _)| (*name, format!("mcp_s_{name}"))).collect();
        let calls: Vec<_> = names.iter().map(|(id, name)| (*id, &**name, "{}")).collect();
        model.script([Reply::calls(&calls), Reply::text("done")]);
        let client = daemon.client();
        let turn = thread::spawn(move || {
            let body = json!({ "message": "go on" }).to_string();
            client.try_send("POST", &format!("/api/agents/{agent}/message"), &[], Some(body.as_bytes()))
        });
        let tools = tools.iter().map(|(name, _)| *name).collect();
        let mut calls = Self { model, daemon, tools };
        until("all calls are under way", || (calls.made().len() == calls.tools.len()).then_some(()));
        calls.daemon.kill();
        assert!(turn.join().unwrap().is_err(), "the daemon was killed before it answered");
        calls
    }

    /// How often each tool was called.
    fn made(&self) -> BTreeMap<String, usize> {
        let mut made = BTreeMap::new();
        let calls = fs::read_to_string(directory(&self.daemon).join("calls.txt")).unwrap_or_default();
        calls.lines().for_each(|name| *made.entry(name.to_owned()).or_default() += 1);
        made
    }

    /// Starts the daemon anew, with a server that answers and has these tools. Gives the result of each call as the model
    /// read it.
    fn resumed(&mut self, tools: &str) -> BTreeMap<String, String> {
        fs::remove_file(directory(&self.daemon).join("hang")).unwrap();
        fs::write(directory(&self.daemon).join("tools.json"), tools).unwrap();
        self.daemon.restart();
        let messages = until("the turn goes on", || {
            let request = self.model.requests().pop()?;
            let messages = request["messages"].as_array()?.clone();
            (messages.last()?["role"] == "tool").then_some(messages)
        });
        self.daemon.settle();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        results.map(|message| (text(&message["tool_call_id"]), text(&message["content"]))).collect()
    }
}

#[test]
fn only_what_says_that_it_may_be_is_called_twice() {
    let tools = [
        ("plain", json!({})),
        ("destroys", json!({ "readOnlyHint": false, "idempotentHint": false, "destructiveHint": true })),
        ("reads", json!({ "readOnlyHint": true })),
        ("repeats", json!({ "idempotentHint": true })),
    ];
    let mut calls = Calls::hanging("", &tools);
    let results = calls.resumed(&list(&tools));
    let made: Vec<_> = calls.made().into_iter().collect();
    let expected = [("destroys", 1), ("plain", 1), ("reads", 2), ("repeats", 2)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!((made, results.len()), (expected.to_vec(), 4));
    for name in ["plain", "destroys"] {
        assert!(results[name].starts_with("Unknown: ") && results[name].contains("not run again"), "{results:?}");
    }
    for name in ["reads", "repeats"] {
        assert!(results[name].contains(&format!("called {name}")), "{results:?}");
    }
}

#[test]
fn what_a_tool_says_after_the_call_is_no_leave_to_repeat_it() {
    let before = [("plain", json!({})), ("repeats", json!({ "idempotentHint": true }))];
    let after = list(&[("plain", json!({ "readOnlyHint": true, "idempotentHint": true })), ("repeats", json!({}))]);
    for security in ["taint = \"audit\"", "taint = \"deny\""] {
        let mut calls = Calls::hanging(security, &before);
        let results = calls.resumed(&after);
        let made: Vec<_> = calls.made().into_values().collect();
        assert_eq!(made, [1, 1], "{security} {results:?}");
        assert!(results.len() == 2 && results.values().all(|result| result.starts_with("Unknown: ")), "{results:?}");
    }
}

#[test]
fn a_server_that_does_not_come_back_leaves_its_calls_unknown() {
    let tools = [("reads", json!({ "readOnlyHint": true }))];
    let mut calls = Calls::hanging("", &tools);
    // Its list cannot be read: it is not connected.
    let results = calls.resumed("no list");
    assert_eq!(calls.made()["reads"], 1);
    assert!(results["reads"].starts_with("Unknown: "), "{results:?}");
}
