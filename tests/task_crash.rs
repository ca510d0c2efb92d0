//! Agents that post, claim and complete tasks with their tools while the daemon is killed at random moments. A tool's
//! change and the result of its call are one commit: every turn leaves exactly one task, claimed once and completed.
//!
//! `AGENTSVC_CRASH_TURNS` says how many turns are run (200 unless set), `AGENTSVC_CRASH_SEED` repeats a run.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::daemon::{Daemon, text};
use support::http::Client;
use support::model::Model;
use support::model_server::{Received, Reply};
use support::{Rng, number, seed_of_run, until};

/// Agents; each has one loader.
const AGENTS: usize = 8;

/// Posts a task named after the turn, claims it, completes it, and answers; from the conversation alone, so that it goes
/// on after a kill. Only a request for a summary of older turns offers no tools.
fn model_says(request: &Received) -> Reply {
    if request.body.get("tools").is_none() {
        return Reply::text("Tasks were done.");
    }
    let messages = request.messages();
    let question = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let turn = messages[question]["content"].as_str().unwrap_or_default().to_owned();
    let results: Vec<&str> = messages[question..]
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap_or_default())
        .collect();
    let task = || serde_json::from_str::<Value>(results[0]).map(|posted| posted["task_id"].clone()).unwrap_or_default();
    let (tool, input) = match results.len() {
        0 => ("task_post", json!({ "title": turn })),
        1 => ("task_claim", json!({ "task_id": task() })),
        2 => ("task_complete", json!({ "task_id": task(), "result": turn })),
        _ => return Reply::text(format!("done {turn}")),
    };
    Reply::calls(&[(&format!("{turn}.{}", results.len()), tool, &input.to_string())])
}

/// What the loaders share.
#[derive(Default)]
struct Load {
    /// Turns that were asked for.
    asked: AtomicU64,
    stop: AtomicBool,
}

impl Load {
    fn run(&self, client: &Client, agent: &str, turns: u64) {
        while !self.stop.load(Ordering::Relaxed) {
            let serial = self.asked.fetch_add(1, Ordering::Relaxed);
            if serial >= turns {
                return;
            }
            let body = json!({ "message": format!("t{serial}") }).to_string();
            let path = format!("/api/agents/{agent}/message");
            let Ok(reply) = client.try_send("POST", &path, &[], Some(body.as_bytes())) else { return };
            match reply.status {
                200 => assert_eq!(reply.expect(200)["response"], format!("done t{serial}")),
                503 => {}
                other => panic!("t{serial}: {other} {}", reply.text()),
            }
        }
    }
}

/// The turns that the sessions of the agents know.
fn turns_taken(daemon: &Daemon, agents: &[String]) -> Vec<String> {
    let mut turns = Vec::new();
    for agent in agents {
        let session = text(&daemon.detail(agent)["session_id"]);
        let path = format!("/api/agents/{agent}/sessions/{session}/trajectory?format=jsonl");
        for line in daemon.get(&path).text().lines().skip(1) {
            let message: Value = serde_json::from_str(line).expect("a line of JSON");
            if message["role"] == "User" {
                turns.push(text(&message["content"]));
            }
            for result in message["tool_results"].as_array().into_iter().flatten() {
                assert_eq!(result["is_error"], false, "{result}");
            }
        }
    }
    turns.sort();
    turns
}

#[test]
fn every_turn_leaves_exactly_one_task_however_often_the_daemon_dies() {
    let turns = number("AGENTSVC_CRASH_TURNS").unwrap_or(200);
    let seed = seed_of_run(&format!("{turns} turns"));
    let mut rng = Rng(seed);
    let model = Model::start();
    model.server.respond(model_says);
    let mut daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let grants = "[capabilities]\ntools = [\"task_*\"]\n";
    let agents: Vec<String> = (0..AGENTS).map(|n| daemon.agent_with(&format!("worker-{n}"), grants)).collect();
    let load = Arc::new(Load::default());
    let mut kills = 0;
    while load.asked.load(Ordering::Relaxed) < turns {
        let loader = |agent: &String| {
            let (load, client, agent) = (load.clone(), daemon.client(), agent.clone());
            thread::spawn(move || load.run(&client, &agent, turns))
        };
        let loaders: Vec<_> = agents.iter().map(loader).collect();
        // The moment itself is the subject: a random time under load, not a wait for anything.
        thread::sleep(Duration::from_micros(20_000 + rng.below(200_000) as u64));
        daemon.kill();
        kills += 1;
        load.stop.store(true, Ordering::Relaxed);
        for loader in loaders {
            loader.join().unwrap_or_else(|_| panic!("a loader failed (seed {seed}, kill {kills})"));
        }
        load.stop.store(false, Ordering::Relaxed);
        daemon.restart();
    }
    until("every turn ends", || (daemon.get("/api/queue/status").expect(200)["turns"]["open"] == 0).then_some(()));
    daemon.settle();
    let listed = daemon.get("/api/tasks").expect(200)["tasks"].as_array().cloned().unwrap_or_default();
    let mut tasks = BTreeMap::new();
    for task in listed {
        assert_eq!((&task["status"], &task["attempts"]), (&json!("completed"), &json!(1)), "{task}");
        assert_eq!(task["result"], task["title"]);
        assert!(tasks.insert(text(&task["title"]), ()).is_none(), "posted twice: {task} (seed {seed})");
    }
    let tasks: Vec<String> = tasks.into_keys().collect();
    assert_eq!(tasks, turns_taken(&daemon, &agents), "seed {seed}");
    println!("{} tasks after {kills} kills", tasks.len());
}
