//! The sandbox under attack: an agent of the real daemon, told by a scripted model to do what it must not, and fuzzed
//! paths against the workspace itself.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

#[path = "../support/mod.rs"]
mod support;

mod bounds;
mod commands;
mod ends;
mod files;
mod fuzz;
mod patterns;
mod walls;

use std::path::PathBuf;

use serde_json::{Value, json};

use support::daemon::Daemon;
use support::model::Model;
use support::model_server::Reply;

/// A daemon, and one agent that may use every tool.
pub(crate) struct Harness {
    pub(crate) model: Model,
    pub(crate) daemon: Daemon,
    pub(crate) agent: String,
}

impl Harness {
    /// With more lines of configuration, and of the manifest's `[capabilities]`.
    #[track_caller]
    pub(crate) fn new(config: &str, capabilities: &str) -> Self {
        let model = Model::start();
        let environment = [("PASSED", "passed-value"), ("NOT_PASSED", "secret-value"), ("MINE_KEY", "key-of-mine")];
        let daemon = Daemon::with_env(&format!("{}{config}", model.config()), &environment);
        let agent = daemon.agent_with("ann", &format!("[capabilities]\ntools = [\"*\"]\n{capabilities}"));
        Self { model, daemon, agent }
    }

    /// A harness where `shell_exec` may do what the manifest grants, and that is all.
    #[track_caller]
    pub(crate) fn full() -> Self {
        Self::new("[exec_policy]\nmode = \"full\"\n", "shell = [\"*\"]\n")
    }

    /// Lets the agent call a tool and gives what the model got as its result.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, input: &Value) -> String {
        self.model.script([Reply::calls(&[("c1", tool, &input.to_string())]), Reply::text("done")]);
        self.daemon.say(&self.agent, "go on");
        // Not simply the last request: one for a summary of the session may have come behind it.
        let requests = self.model.requests();
        let messages = requests.iter().rev().filter_map(|request| request["messages"].as_array()?.last());
        let result = messages.into_iter().find(|message| message["role"] == "tool");
        result.and_then(|message| message["content"].as_str()).expect("a tool's result").to_owned()
    }

    /// Runs a command line.
    #[track_caller]
    pub(crate) fn sh(&self, line: &str) -> String {
        self.call("shell_exec", &json!({ "command": line }))
    }

    /// Where the agent's files are.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.daemon.home().join("workspaces/ann")
    }

    /// Whether commands run under Landlock here; says so when they do not.
    #[track_caller]
    pub(crate) fn landlock(&self) -> Option<u64> {
        let detail = self.daemon.get("/api/health/detail").expect(200);
        let sandbox = &detail["sandbox"];
        assert!(sandbox["files"].is_string() && sandbox["commands"].is_string(), "{detail}");
        assert!(sandbox.get("landlock_abi").is_some(), "{detail}");
        let abi = sandbox["landlock_abi"].as_u64();
        if abi.is_none() {
            eprintln!("skipped: this kernel has no Landlock");
        }
        abi
    }
}
