//! Turns with three tool calls each while the daemon is killed at random moments. Every call appends one line to a
//! file, so that a call that ran twice is seen. A call that has settled is never repeated, none is lost, and every one
//! whose effect is not known says so to the model and to the operator.
//!
//! `AGENTSVC_CRASH_TURNS` says how many turns are run (400 unless set), `AGENTSVC_CRASH_SEED` repeats a run.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::daemon::Daemon;
use support::http::Client;
use support::model::Model;
use support::model_server::{Received, Reply};
use support::{Rng, number, seed_of_run, until};
use uuid::Uuid;

/// Agents, each with a workspace of its own.
const AGENTS: usize = 8;
/// Sessions of each agent; as many loaders as there are sessions at most.
const SESSIONS: usize = 4;
/// Tool calls of each turn.
const CALLS: usize = 3;

/// The n-th call of a turn.
fn call_id(turn: &str, n: usize) -> String {
    format!("{turn}.{n}")
}

/// Two calls at once, then a third, then the answer; from the conversation alone, so that it goes on after a kill.
/// Only a request for a summary of older turns offers no tools.
fn model_says(request: &Received) -> Reply {
    if request.body.get("tools").is_none() {
        return Reply::text("Lines were appended to a file.");
    }
    let messages = request.messages();
    let question = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let turn = messages[question]["content"].as_str().unwrap_or_default().to_owned();
    let results = messages[question..].iter().filter(|message| message["role"] == "tool").count();
    let append = |n: usize| {
        let input = json!({ "path": "effects.log", "content": format!("{}\n", call_id(&turn, n)), "mode": "append" });
        (call_id(&turn, n), input.to_string())
    };
    let calls = match results {
        0 => vec![append(0), append(1)],
        2 => vec![append(2)],
        _ => return Reply::text(format!("done {turn}")),
    };
    let calls: Vec<_> = calls.iter().map(|(id, input)| (&**id, "file_write", &**input)).collect();
    Reply::calls(&calls)
}

/// What the loaders share.
struct Load {
    /// (agent, session), one for each loader.
    places: Vec<(String, String)>,
    /// Turns that were asked for.
    asked: AtomicU64,
    /// Turns that were answered, with the session.
    answered: Mutex<BTreeSet<String>>,
    stop: AtomicBool,
}

impl Load {
    fn run(&self, client: &Client, place: usize, turns: u64) {
        let (agent, session) = &self.places[place];
        while !self.stop.load(Ordering::Relaxed) {
            let serial = self.asked.fetch_add(1, Ordering::Relaxed);
            if serial >= turns {
                return;
            }
            let turn = format!("t{serial}");
            let body = json!({ "message": turn, "session_id": session }).to_string();
            let path = format!("/api/agents/{agent}/message");
            let Ok(reply) = client.try_send("POST", &path, &[], Some(body.as_bytes())) else { return };
            match reply.status {
                200 => {
                    assert_eq!(reply.expect(200)["response"], format!("done {turn}"));
                    self.answered.lock().expect("no loader panics").insert(turn);
                }
                503 => {}
                other => panic!("{turn}: {other} {}", reply.text()),
            }
        }
    }
}

/// What became of one call, as the session's trail tells.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Settled,
    Unknown,
}

/// The calls of every turn in a session, with what became of them; and the turns that are there.
fn fates(daemon: &Daemon, agent: &str, session: &str) -> (BTreeMap<String, Fate>, BTreeSet<String>) {
    let path = format!("/api/agents/{agent}/sessions/{session}/trajectory?format=jsonl");
    let reply = daemon.get(&path);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let (mut fates, mut turns) = (BTreeMap::new(), BTreeSet::new());
    for line in reply.text().lines().skip(1) {
        let message: Value = serde_json::from_str(line).expect("a line of JSON");
        if message["role"] == "User" {
            turns.insert(message["content"].as_str().expect("text").to_owned());
        }
        for result in message["tool_results"].as_array().into_iter().flatten() {
            let id = result["call_id"].as_str().expect("an id").to_owned();
            let content = result["content"].as_str().expect("text");
            let fate = if content.starts_with("Unknown: ") { Fate::Unknown } else { Fate::Settled };
            assert!(fate == Fate::Unknown || result["is_error"] == false, "{id}: {content}");
            assert!(fates.insert(id.clone(), fate).is_none(), "{id} has two results");
        }
    }
    (fates, turns)
}

/// How many tool steps the traces of an agent's turns call unknown.
fn unknown_in_traces(daemon: &Daemon, agent: &str) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = daemon.get(&format!("/api/agents/{agent}/traces?limit=500{cursor}")).expect(200);
        let traces = page["traces"].as_array().expect("traces").clone();
        let steps = traces.iter().flat_map(|trace| trace["steps"].as_array().cloned().unwrap_or_default());
        count += steps.filter(|step| step["status"] == "unknown").count();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return count,
        }
    }
}

/// Lines of an agent's file, each with how often it is there.
fn effects(daemon: &Daemon, name: &str) -> BTreeMap<String, usize> {
    let file = daemon.home().join("workspaces").join(name).join("effects.log");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    lines
}

/// Checks everything that was asked for against everything that happened. Gives turns, calls and unknown calls.
fn audit(daemon: &Daemon, load: &Load) -> (usize, usize, usize) {
    let (mut turns_seen, mut calls, mut unknowns) = (BTreeSet::new(), 0, 0);
    for at in 0..AGENTS {
        let (agent, _) = &load.places[at * SESSIONS];
        let effects = effects(daemon, &format!("worker-{at}"));
        let (mut known, mut unknown) = (BTreeSet::new(), 0);
        for (_, session) in &load.places[at * SESSIONS..(at + 1) * SESSIONS] {
            let (fates, turns) = fates(daemon, agent, session);
            for turn in turns {
                for n in 0..CALLS {
                    let id = call_id(&turn, n);
                    let ran = effects.get(&id).copied().unwrap_or(0);
                    match fates.get(&id) {
                        Some(Fate::Settled) => assert_eq!(ran, 1, "{id} is settled and ran {ran} times"),
                        Some(Fate::Unknown) => {
                            assert!(ran <= 1, "{id} is unknown and ran {ran} times");
                            unknown += 1;
                        }
                        None => panic!("{id} has no result"),
                    }
                    known.insert(id);
                }
                assert!(turns_seen.insert(turn), "a turn ran twice");
            }
        }
        assert!(effects.keys().all(|id| known.contains(id)), "an effect of no call");
        assert_eq!(unknown_in_traces(daemon, agent), unknown, "every unknown call is listed for the operator");
        (calls, unknowns) = (calls + known.len(), unknowns + unknown);
    }
    let answered = load.answered.lock().expect("no loader panics");
    assert!(answered.iter().all(|turn| turns_seen.contains(turn)), "an answered turn is lost");
    (turns_seen.len(), calls, unknowns)
}

/// Waits for every turn's end; gives up only when none ends any more.
fn at_rest(daemon: &Daemon) {
    let mut open = usize::MAX;
    while open > 0 {
        open = until("a turn ends", || {
            let page = daemon.get("/api/metrics").text();
            let value = |name: &str| -> Option<usize> {
                page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
            };
            // Before its first step after a start the world counts nothing at all.
            value("agentsvc_agents ").filter(|agents| *agents > 0)?;
            value("agentsvc_turns_open ").filter(|now| *now < open)
        });
    }
    daemon.settle();
}

#[test]
fn no_settled_tool_call_is_repeated_and_none_is_lost() {
    let turns = number("AGENTSVC_CRASH_TURNS").unwrap_or(400);
    let seed = seed_of_run(&format!("{turns} turns"));
    let mut rng = Rng(seed);
    let model = Model::start();
    model.server.respond(model_says);
    let mut daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let agents: Vec<String> = (0..AGENTS)
        .map(|n| daemon.agent_with(&format!("worker-{n}"), "[capabilities]\ntools = [\"file_*\"]\n"))
        .collect();
    let place = |n: usize| (agents[n / SESSIONS].clone(), Uuid::from_u128(0x7001_0000 + n as u128).to_string());
    let load = Arc::new(Load {
        places: (0..AGENTS * SESSIONS).map(place).collect(),
        asked: AtomicU64::new(0),
        answered: Mutex::default(),
        stop: AtomicBool::new(false),
    });
    let mut kills = 0;
    while load.asked.load(Ordering::Relaxed) < turns {
        let loaders: Vec<_> = (0..AGENTS * SESSIONS)
            .map(|place| {
                let (load, client) = (load.clone(), daemon.client());
                thread::spawn(move || load.run(&client, place, turns))
            })
            .collect();
        // The moment itself is the subject: a random time under load, not a wait for anything.
        thread::sleep(Duration::from_micros(20_000 + rng.below(500_000) as u64));
        daemon.kill();
        kills += 1;
        load.stop.store(true, Ordering::Relaxed);
        for loader in loaders {
            loader.join().unwrap_or_else(|_| panic!("a loader failed (seed {seed}, kill {kills})"));
        }
        load.stop.store(false, Ordering::Relaxed);
        daemon.restart();
    }
    at_rest(&daemon);
    let (turns, calls, unknown) = audit(&daemon, &load);
    println!("{turns} turns, {calls} calls, {unknown} of them unknown, after {kills} kills");
}
