//! One event that many triggers of many agents wait for, while the daemon is killed at random moments. Every trigger fires
//! once: none is lost, none fires twice, each has one turn with one answer. Meanwhile a client reads an agent over and
//! over, and how long that takes is printed.
//!
//! `AGENTSVC_CRASH_TRIGGERS` says how many triggers there are (2,000 unless set, in hundreds), `AGENTSVC_CRASH_SEED`
//! repeats a run.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::daemon::{Daemon, text};
use support::http::Client;
use support::model::Model;
use support::model_server::Reply;
use support::{Rng, number, seed_of_run, until};

/// Triggers of each agent: as many as a manifest may have.
const EACH: usize = 100;
/// Agents of one bulk request.
const BULK: usize = 100;
/// Kills of one run at most.
const KILLS_MAX: usize = 25;

/// The name of the n-th trigger, which begins its message.
fn label(n: usize) -> String {
    format!("trigger-{n}")
}

/// An agent and its triggers, each of which says its name and fires in a session of its own.
fn manifest(agent: usize) -> String {
    let mut text = format!("name = \"worker-{agent}\"\nsession_mode = \"new\"\n");
    for n in agent * EACH..(agent + 1) * EACH {
        let label = label(n);
        text += "[[triggers]]\npattern = { agent_spawned = { name_pattern = \"signal\" } }\n";
        text += &format!("prompt_template = \"{label} {{{{event}}}}\"\n");
    }
    text
}

/// The name that a message begins with.
fn label_of(message: &str) -> String {
    message.split(' ').next().unwrap_or_default().to_owned()
}

fn spawn(daemon: &Daemon, agents: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for from in (0..agents).step_by(BULK) {
        let items = from..agents.min(from + BULK);
        let items: Vec<_> = items.map(|agent| json!({ "manifest_toml": manifest(agent) })).collect();
        let made = daemon.post("/api/agents/bulk", &json!({ "agents": items })).expect(200);
        ids.extend(made["results"].as_array().expect("results").iter().map(|row| text(&row["agent_id"])));
    }
    ids
}

/// A number of the metrics page.
fn metric(page: &str, name: &str) -> u64 {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse::<f64>().ok()).map_or(0, |value| value as u64)
}

/// How many sessions there are, and how many turns and matches are open.
fn progress(daemon: &Daemon) -> (u64, u64) {
    let page = daemon.get("/api/metrics").text();
    let open = metric(&page, "agentsvc_turns_open") + metric(&page, "agentsvc_trigger_matches_waiting");
    (metric(&page, "agentsvc_sessions"), open)
}

/// Reads one agent until told to stop; gives how long each read took.
fn watch(client: &Client, agent: &str, stop: &AtomicBool) -> Vec<Duration> {
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        match client.try_send("GET", &format!("/api/agents/{agent}"), &[], None) {
            Ok(reply) if reply.status == 200 => times.push(begun.elapsed()),
            // The daemon was killed.
            _ => break,
        }
        // A client that asks without a pause would measure its own share of the machine.
        thread::sleep(Duration::from_millis(2));
    }
    times
}

/// Every item of a list that is an array, or stands under `key`.
fn all(daemon: &Daemon, path: &str, key: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let reply = daemon.get(&format!("{path}?limit=500{cursor}"));
        let body = reply.expect(200);
        let page = if key.is_empty() { &body } else { &body[key] };
        items.extend(page.as_array().expect("items").iter().cloned());
        match reply.header("x-next-cursor").or_else(|| body["next_cursor"].as_str()) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

/// Checks that every trigger fired once and has one turn with one answer.
fn audit(daemon: &Daemon, agents: &[String], asked: &BTreeMap<String, usize>) {
    let triggers = all(daemon, "/api/triggers", "");
    assert_eq!(triggers.len(), agents.len() * EACH);
    let wrong = triggers.iter().find(|trigger| trigger["fire_count"] != 1);
    assert!(wrong.is_none(), "fired another number of times than once: {}", wrong.unwrap_or(&Value::Null));
    let mut seen = BTreeSet::new();
    for agent in agents {
        let traces = all(daemon, &format!("/api/agents/{agent}/traces"), "traces");
        assert_eq!(traces.len(), EACH, "one ended turn for each trigger of {agent}");
        for trace in traces {
            assert_eq!((&trace["status"], &trace["origin"]), (&json!("done"), &json!("trigger")));
            let said = daemon.transcript(&text(&trace["session_id"]));
            let [(user, question), (assistant, answer)] = said.as_slice() else { panic!("one turn: {said:?}") };
            assert_eq!((&**user, &**assistant), ("User", "Assistant"));
            let label = label_of(question);
            assert_eq!(*answer, format!("done {label}"));
            assert!(question.contains("\"kind\":\"agent_spawned\"") && question.contains("\"name\":\"signal\""));
            assert!(asked.contains_key(&label), "{label} has an answer that nobody gave");
            assert!(seen.insert(label), "{question} has two turns");
        }
    }
    assert_eq!(seen.len(), agents.len() * EACH, "a trigger has no turn");
}

/// Waits until every fire has its session and none is open; as long as something moves.
fn at_rest(daemon: &Daemon, sessions: u64) {
    let mut before = None;
    loop {
        let now = until("something moves", || Some(progress(daemon)).filter(|now| Some(*now) != before));
        if now.0 >= sessions && now.1 == 0 {
            return daemon.settle();
        }
        before = Some(now);
    }
}

#[test]
fn one_event_reaches_every_trigger_once_whatever_is_killed() {
    let count = number("AGENTSVC_CRASH_TRIGGERS").unwrap_or(2_000) as usize;
    let agents = count.div_ceil(EACH).max(1);
    let mut rng = Rng(seed_of_run(&format!("{} triggers of {agents} agents", agents * EACH)));
    let asked = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let model = Model::start();
    let counts = asked.clone();
    model.server.respond(move |request| {
        let label = label_of(request.last_user());
        *counts.lock().expect("nobody panics").entry(label.clone()).or_default() += 1;
        Reply::text(format!("done {label}"))
    });
    let mut daemon =
        Daemon::with(&format!("rate_limit_per_second = 1000000\nlog_level = \"warn\"\n{}", model.config()));
    let ids = spawn(&daemon, agents);
    let sessions = progress(&daemon).0.max(ids.len() as u64) + (agents * EACH) as u64;
    let signal = daemon.agent("signal");
    let begun = Instant::now();
    let (mut kills, mut times) = (0, Vec::new());
    loop {
        let stop = Arc::new(AtomicBool::new(false));
        let (client, agent, told) = (daemon.client(), signal.clone(), stop.clone());
        let watcher = thread::spawn(move || watch(&client, &agent, &told));
        let (so_far, open) = progress(&daemon);
        let is_last = kills == KILLS_MAX || (so_far >= sessions && open == 0);
        if is_last {
            at_rest(&daemon, sessions);
        } else {
            // The moment itself is the subject: a random time under load, not a wait for anything.
            thread::sleep(Duration::from_micros(5_000 + rng.below(100 * count + 50_000) as u64));
            daemon.kill();
            kills += 1;
        }
        stop.store(true, Ordering::Relaxed);
        times.extend(watcher.join().expect("the watcher does not panic"));
        if is_last {
            break;
        }
        daemon.restart();
    }
    let took = begun.elapsed();
    let asked = asked.lock().expect("nobody panics");
    audit(&daemon, &ids, &asked);
    times.sort_unstable();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
    let calls: usize = asked.values().sum();
    println!("all {} delivered once after {kills} kills in {took:.1?}; {calls} model calls", agents * EACH);
    println!(
        "GET agent meanwhile: {} reads, p50 {:.1?}, p99 {:.1?}, max {:.1?}",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0 - f64::EPSILON)
    );
}
