//! Servers of the official `mcp` package, started by the daemon for its agents.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::clients::{python, skipped};
use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{routes, until};

/// The script of the server.
const SCRIPT: &str = "tests/clients/mcp_server.py";

/// A daemon with the server, and an agent that may call its tools.
struct Harness {
    model: Model,
    daemon: Daemon,
    agent: String,
}

impl Harness {
    /// With more lines of the server's configuration.
    #[track_caller]
    fn new(config: &str, argument: &str) -> Self {
        let (python, script) = (python("mcp"), routes::root().join(SCRIPT));
        let places =
            "import mcp, os, sys; print(sys.prefix, sys.base_prefix, os.path.dirname(mcp.__path__[0]), sep='\\n')";
        let places = Command::new(&python).args(["-c", places]).output().unwrap().stdout;
        let places = String::from_utf8(places).unwrap();
        let readable: Vec<&str> = places.lines().chain(script.parent().and_then(Path::to_str)).collect();
        // As a path: the programs of `[exec_policy] path` are the system's.
        let python = if python.contains('/') { python } else { format!("/usr/bin/{python}") };
        let server = format!(
            "[mcp_servers.official]\ncommand = {python:?}\nargs = [{script:?}, {argument:?}]\nreadable_paths = {readable:?}\n"
        );
        let model = Model::start();
        let environment = [("PASSED", "passed-value"), ("NOT_PASSED", "secret-value")];
        let daemon = Daemon::with_env(&format!("{}{server}{config}", model.config()), &environment);
        let agent = daemon.agent_with("ann", "mcp_servers = [\"official\"]\n[capabilities]\ntools = [\"*\"]\n");
        let harness = Self { model, daemon, agent };
        harness.wait_for("mcp_official_add");
        harness
    }

    #[track_caller]
    fn wait_for(&self, tool: &str) {
        until("the server's tools are there", || {
            (self.daemon.get(&format!("/api/tools/{tool}")).status == 200).then_some(())
        });
    }

    /// Lets an agent call a tool and gives what the model got as its result.
    #[track_caller]
    fn call_as(&self, agent: &str, tool: &str, input: &Value) -> String {
        self.model.script([Reply::calls(&[("c1", tool, &input.to_string())]), Reply::text("done")]);
        self.daemon.say(agent, "go on");
        let requests = self.model.requests();
        let messages = requests.iter().rev().filter_map(|request| request["messages"].as_array()?.last());
        let result = messages.into_iter().find(|message| message["role"] == "tool");
        result.and_then(|message| message["content"].as_str()).expect("a tool's result").to_owned()
    }

    #[track_caller]
    fn call(&self, tool: &str, input: &Value) -> String {
        self.call_as(&self.agent, &format!("mcp_official_{tool}"), input)
    }
}

#[test]
fn agents_call_the_tools_of_a_server_in_its_sandbox() {
    if skipped() {
        return;
    }
    let shared = tempfile::tempdir().unwrap();
    let config = format!(
        "env = [\"PASSED\", \"SET=hunter2\", \"MISSING\"]\nwritable_paths = [{:?}]\n",
        shared.path().display().to_string()
    );
    let harness = Harness::new(&config, "--flag");
    assert_eq!(harness.call("add", &json!({ "a": 1, "b": 2 })), "sum 3");
    let wrong = harness.call("add", &json!({ "a": "x" }));
    assert!(wrong.contains("add") && !wrong.contains("sum"), "{wrong}");
    assert!(harness.call("read", &json!({ "path": "/no-such-file" })).contains("No such file"));

    let started: Value = serde_json::from_str(&harness.call("environment", &json!({}))).unwrap();
    let directory = harness.daemon.home().join("mcp_servers/official").canonicalize().unwrap();
    let (cwd, variables) = (&started["cwd"], started["variables"].as_object().unwrap());
    assert_eq!((cwd, &variables["HOME"]), (&json!(directory), &json!(directory)));
    assert_eq!((&variables["PASSED"], &variables["SET"]), (&json!("passed-value"), &json!("hunter2")));
    assert!(!variables.contains_key("NOT_PASSED") && !variables.contains_key("MISSING"), "{variables:?}");
    assert_eq!(started["arguments"], json!(["--flag"]));

    let written = shared.path().join("a");
    for path in [directory.join("own"), written.clone()] {
        assert_eq!(harness.call("write", &json!({ "path": path, "text": "x" })), "written", "{}", path.display());
    }
    assert_eq!(fs::read_to_string(written).unwrap(), "x");
    for path in [harness.daemon.home().join("config.toml"), "/etc/shadow".into()] {
        let said = harness.call("read", &json!({ "path": path }));
        assert!(said.contains("No such file") || said.contains("denied"), "{said}");
    }
    let said = harness.call("write", &json!({ "path": routes::root().join("x"), "text": "x" }));
    assert!(!said.contains("written") && !routes::root().join("x").exists(), "{said}");

    let shown = harness.daemon.get("/api/config").expect(200);
    assert_eq!(shown["mcp_servers"]["official"]["env"], json!(["PASSED", "SET=***", "MISSING"]));
}

#[test]
fn only_agents_that_are_granted_the_server_call_it() {
    if skipped() {
        return;
    }
    let harness = Harness::new("", "");
    for (name, servers, is_granted) in
        [("none", "", false), ("other", "mcp_servers = [\"x\"]\n", false), ("all", "mcp_servers = [\"*\"]\n", true)]
    {
        let agent = harness.daemon.agent_with(name, &format!("{servers}[capabilities]\ntools = [\"*\"]\n"));
        let said = harness.call_as(&agent, "mcp_official_add", &json!({ "a": 1, "b": 2 }));
        let is_offered = harness.model.requests().iter().rev().take(2).any(|request| {
            let tools = request["tools"].as_array().into_iter().flatten();
            tools.into_iter().any(|tool| tool["function"]["name"] == "mcp_official_add")
        });
        assert_eq!((said == "sum 3", is_offered), (is_granted, is_granted), "{name}: {said}");
        assert_eq!(said.contains("is not allowed to call the tool"), !is_granted, "{name}: {said}");
    }
    let agent = harness.daemon.agent_with("nameless", "mcp_servers = [\"*\"]\n[capabilities]\ntools = [\"file_*\"]\n");
    let said = harness.call_as(&agent, "mcp_official_add", &json!({ "a": 1, "b": 2 }));
    assert!(said.contains("is not allowed to call the tool"), "{said}");
}

#[test]
fn a_server_that_hangs_changes_or_dies_costs_one_call_at_most() {
    if skipped() {
        return;
    }
    let mut harness = Harness::new("timeout_secs = 2\n", &format!("mark-{}", std::process::id()));
    let said = harness.call("hang_on", &json!({}));
    assert!(said.contains("gave no result: it did not answer within 2 seconds"), "{said}");
    assert_eq!(harness.call("add", &json!({ "a": 1, "b": 2 })), "sum 3");

    assert_eq!(harness.call("change", &json!({})), "changed");
    harness.wait_for("mcp_official_late");
    assert_eq!(harness.call("late", &json!({})), "late");

    let said = harness.call("die", &json!({}));
    assert!(said.contains("gave no result: it ended before it answered"), "{said}");
    let said = until("the daemon sees the end", || {
        let said = harness.call("add", &json!({ "a": 1, "b": 2 }));
        said.contains("is not connected").then_some(said)
    });
    assert!(said.contains("because it closed its output: exit code 7"), "{said}");
    until("it is started again", || (harness.call("add", &json!({ "a": 1, "b": 2 })) == "sum 3").then_some(()));
    // The new one has its own tools.
    assert_eq!(harness.daemon.get("/api/tools/mcp_official_late").status, 404);

    assert!(!processes().is_empty());
    harness.daemon.kill();
    until("nothing is left of the server", || processes().is_empty().then_some(()));
}

#[test]
fn a_call_that_ran_when_the_daemon_died_is_not_repeated() {
    if skipped() {
        return;
    }
    let mut harness = Harness::new("timeout_secs = 600\n", "");
    harness.model.script([Reply::calls(&[("c1", "mcp_official_hang_on", "{}")]), Reply::text("done")]);
    let (client, path) = (harness.daemon.client(), format!("/api/agents/{}/message", harness.agent));
    let asking = std::thread::spawn(move || {
        // It has no answer: the daemon is gone by then.
        let _ = client.try_send("POST", &path, &[], Some(json!({ "message": "go" }).to_string().as_bytes()));
    });
    let calls = harness.daemon.home().join("mcp_servers/official/calls");
    until("the call runs", || fs::read_to_string(&calls).ok().filter(|text| text.ends_with('\n')));
    harness.daemon.kill();
    asking.join().unwrap();
    harness.daemon.restart();
    let told = until("the turn goes on", || {
        let requests = harness.model.requests();
        let last = requests.last()?["messages"].as_array()?.last()?.clone();
        (last["role"] == "tool").then(|| last["content"].to_string())
    });
    assert!(told.contains("Unknown: the daemon was restarted while this call ran"), "{told}");
    harness.wait_for("mcp_official_add");
    assert_eq!(fs::read_to_string(calls).unwrap(), "hang\n");
}

/// The processes of the server of this test.
fn processes() -> Vec<String> {
    let mark = format!("mark-{}", std::process::id());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(&mark)).collect()
}
