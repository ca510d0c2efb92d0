//! The daemon is killed at random moments under mixed load; what it acknowledged must be there after each restart,
//! once, and every turn that was running must end with its answer.
//!
//! `AGENTSVC_CRASH_KILLS` says how often it is killed (20 unless set; 6 while its configuration is written), `AGENTSVC_CRASH_SEED` repeats a run.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::daemon::Daemon;
use support::http::{Client, Reply};
use support::model::Model;
use support::{Rng, number, seed_of_run, some_time, until};
use uuid::Uuid;

/// Threads that load the daemon at once.
const LOADERS: u64 = 8;
/// Agents that answer messages all along; they are never deleted.
const SPEAKERS: usize = 6;

/// What the daemon has acknowledged, and what it may or may not have done.
#[derive(Default)]
struct Ledger {
    /// Agent id to name, acknowledged and not deleted.
    agents: BTreeMap<String, String>,
    /// Deletion was asked: acknowledged (true) or unknown (false).
    deleted: BTreeMap<String, bool>,
    /// Session id to agent id.
    sessions: BTreeMap<String, String>,
    /// Session id to the acknowledged label; a label whose answer was lost takes it out again.
    labels: BTreeMap<String, String>,
    /// Message text to the session it was acknowledged in.
    answered: BTreeMap<String, String>,
    /// Messages that were sent and got no answer: they may be there, with an answer, or not at all.
    unknown: BTreeSet<String>,
}

/// Everything the loaders share.
struct Load {
    ledger: Mutex<Ledger>,
    speakers: Vec<(String, Vec<String>)>,
    stop: AtomicBool,
    serial: AtomicU64,
}

impl Load {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no loader panics")
    }

    /// Acts at random until told to stop or until the daemon is gone.
    fn run(&self, client: &Client, mut rng: Rng) {
        while !self.stop.load(Ordering::Relaxed) {
            let serial = self.serial.fetch_add(1, Ordering::Relaxed);
            let alive = match rng.below(10) {
                0 => self.create(client, serial),
                1 => self.delete(client, &mut rng),
                2 => self.new_session(client, &mut rng),
                3 => self.label(client, &mut rng, serial),
                _ => self.message(client, &mut rng, serial),
            };
            if alive.is_none() {
                return;
            }
        }
    }

    fn create(&self, client: &Client, serial: u64) -> Option<()> {
        let name = format!("made-{serial}");
        let body = json!({ "manifest_toml": format!("name = \"{name}\"\n[model]\nprovider = \"builtin\"\n") });
        let made = call(client, "POST", "/api/agents", Some(&body))?;
        if made.status == 201 {
            self.ledger().agents.insert(made.expect(201)["agent_id"].as_str()?.to_owned(), name);
        }
        Some(())
    }

    fn delete(&self, client: &Client, rng: &mut Rng) -> Option<()> {
        let victim = {
            let mut ledger = self.ledger();
            let nth = rng.below(ledger.agents.len());
            let id = ledger.agents.keys().nth(nth).cloned();
            let Some(id) = id.filter(|id| !self.speakers.iter().any(|(speaker, _)| speaker == id)) else {
                return Some(());
            };
            ledger.agents.remove(&id);
            ledger.deleted.insert(id.clone(), false);
            id
        };
        let reply = call(client, "DELETE", &format!("/api/agents/{victim}"), None)?;
        if reply.status == 200 {
            self.ledger().deleted.insert(victim, true);
        }
        Some(())
    }

    fn new_session(&self, client: &Client, rng: &mut Rng) -> Option<()> {
        let (agent, _) = &self.speakers[rng.below(SPEAKERS)];
        let made = call(client, "POST", &format!("/api/agents/{agent}/sessions"), Some(&json!({})))?;
        if made.status == 201 {
            let id = made.expect(201)["session_id"].as_str()?.to_owned();
            self.ledger().sessions.insert(id, agent.clone());
        }
        Some(())
    }

    fn label(&self, client: &Client, rng: &mut Rng, serial: u64) -> Option<()> {
        // One loader at a time labels a session, or the last label would not be known.
        let session = {
            let mut ledger = self.ledger();
            let nth = rng.below(ledger.sessions.len());
            let session = ledger.sessions.keys().nth(nth).cloned()?;
            if ledger.labels.contains_key(&session) {
                return Some(());
            }
            ledger.labels.insert(session.clone(), String::new());
            session
        };
        let label = format!("label-{serial}");
        let reply = call(client, "PUT", &format!("/api/sessions/{session}/label"), Some(&json!({ "label": label })))?;
        if reply.status == 200 {
            self.ledger().labels.insert(session, label);
        }
        Some(())
    }

    fn message(&self, client: &Client, rng: &mut Rng, serial: u64) -> Option<()> {
        let (agent, sessions) = &self.speakers[rng.below(SPEAKERS)];
        let session = &sessions[rng.below(sessions.len())];
        let text = format!("message {serial} end");
        self.ledger().unknown.insert(text.clone());
        let body = json!({ "message": text, "session_id": session });
        let reply = call(client, "POST", &format!("/api/agents/{agent}/message"), Some(&body))?;
        match reply.status {
            200 => {
                let answer = reply.expect(200);
                assert!(answer["response"].is_string(), "{answer}");
                let mut ledger = self.ledger();
                ledger.unknown.remove(&text);
                ledger.answered.insert(text, session.clone());
            }
            429 | 503 => {
                self.ledger().unknown.remove(&text);
            }
            other => panic!("message: {other} {}", reply.text()),
        }
        Some(())
    }
}

/// `None` when the daemon went away before it answered.
fn call(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Option<Reply> {
    let text = body.map(Value::to_string);
    client.try_send(method, path, &[], text.as_ref().map(|text| text.as_bytes())).ok()
}

/// Sessions of one speaker: the current one and some under ids of the client's own.
fn speakers(daemon: &Daemon) -> Vec<(String, Vec<String>)> {
    let make = |n: usize| {
        let rest = if n.is_multiple_of(2) { "" } else { "[model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n" };
        let agent = daemon.agent_with(&format!("speaker-{n}"), rest);
        let current = daemon.detail(&agent)["session_id"].as_str().expect("a session").to_owned();
        let mine = (0..4).map(|m| Uuid::from_u128(0xc4a5_0000_0000 + (n * 16 + m) as u128).to_string());
        let sessions: Vec<_> = std::iter::once(current).chain(mine).collect();
        (agent, sessions)
    };
    (0..SPEAKERS).map(make).collect()
}

/// Compares the world after a restart with the ledger, and settles in the ledger what was unknown.
fn audit(daemon: &Daemon, load: &Load) {
    let ledger = &mut *load.ledger();
    audit_agents(daemon, ledger);
    for (session, agent) in &ledger.sessions {
        let found = daemon.get(&format!("/api/sessions/{session}")).expect(200);
        assert_eq!(found["agent_id"], agent.as_str());
        match (ledger.labels.get(session).map(String::as_str), found["label"].as_str()) {
            (None, there) => assert_eq!(there, None, "a label nobody gave to {session}"),
            // Asked for, the answer lost: what is there now must stay.
            (Some(""), Some(there)) => drop(ledger.labels.insert(session.clone(), there.to_owned())),
            (Some(""), None) => drop(ledger.labels.remove(session)),
            (Some(label), there) => assert_eq!(there, Some(label), "session {session} lost its label"),
        }
    }
    let texts = audit_messages(daemon, load, ledger);
    for (text, session) in &ledger.answered {
        assert_eq!(texts.get(text), Some(session), "'{text}' was acknowledged and is lost");
    }
    // What is settled now stays: it is as good as acknowledged from here on.
    for text in std::mem::take(&mut ledger.unknown) {
        if let Some(session) = texts.get(&text) {
            ledger.answered.insert(text, session.clone());
        }
    }
}

fn audit_agents(daemon: &Daemon, ledger: &mut Ledger) {
    let list = daemon.get("/api/agents").expect(200);
    let mut live = BTreeMap::new();
    let mut names = BTreeSet::new();
    for agent in list.as_array().expect("an array") {
        let (id, name) = (agent["id"].as_str().expect("an id"), agent["name"].as_str().expect("a name"));
        assert!(names.insert(name.to_owned()), "two agents are named {name}");
        assert!(live.insert(id.to_owned(), name.to_owned()).is_none(), "agent {id} is listed twice");
    }
    for (id, name) in &ledger.agents {
        assert_eq!(live.get(id), Some(name), "agent {name} was acknowledged and is lost");
    }
    for (id, certain) in &ledger.deleted {
        assert!(!certain || !live.contains_key(id), "agent {id} was deleted and is back");
    }
    ledger.deleted.retain(|_, certain| *certain);
    // An agent whose creation was never answered may be there; from here on it must stay.
    ledger.agents.extend(live);
}

/// Waits until every session rests (each message has its answer) and gives message text to session.
fn audit_messages(daemon: &Daemon, load: &Load, ledger: &Ledger) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let places =
        load.speakers.iter().flat_map(|(agent, sessions)| sessions.iter().map(move |session| (agent, session)));
    for (agent, session) in places {
        if daemon.get(&format!("/api/sessions/{session}")).status == 404 {
            assert!(!ledger.answered.values().any(|s| s == session), "session {session} is lost");
            continue;
        }
        let transcript = until("every interrupted turn finishes", || {
            let transcript = daemon.trail(agent, session);
            let count = |role: &str| transcript.iter().filter(|(r, _)| r == role).count();
            (count("User") == count("Assistant") && resting(daemon, session)).then_some(transcript)
        });
        for pair in transcript.chunks(2) {
            let [(asker, text), (answerer, answer)] = pair else { panic!("a message without an answer: {pair:?}") };
            assert_eq!((asker.as_str(), answerer.as_str()), ("User", "Assistant"));
            assert!(
                !answer.is_empty() && (!answer.starts_with("echo: ") || answer[6..] == **text),
                "'{text}': '{answer}'"
            );
            let known = ledger.answered.contains_key(text) || ledger.unknown.contains(text);
            assert!(known, "a message nobody sent: {text}");
            assert!(texts.insert(text.clone(), session.clone()).is_none(), "'{text}' is there twice");
        }
    }
    texts
}

/// True when the transcript has everything that the session counts.
fn resting(daemon: &Daemon, session: &str) -> bool {
    let body = daemon.get(&format!("/api/sessions/{session}")).expect(200);
    body["message_count"].as_u64() == body["messages"].as_array().map(|m| m.len() as u64)
}

#[test]
fn everything_acknowledged_survives_every_kill() {
    let kills = number("AGENTSVC_CRASH_KILLS").unwrap_or(20);
    let seed = seed_of_run(&format!("{kills} kills"));
    let mut rng = Rng(seed);

    let model = Model::start();
    model.slow(Duration::from_millis(20));
    let mut daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let speakers = speakers(&daemon);
    let mut ledger = Ledger::default();
    for (n, (agent, sessions)) in speakers.iter().enumerate() {
        ledger.agents.insert(agent.clone(), format!("speaker-{n}"));
        ledger.sessions.insert(sessions[0].clone(), agent.clone());
    }
    let load = Arc::new(Load {
        ledger: Mutex::new(ledger),
        speakers,
        stop: AtomicBool::new(false),
        serial: AtomicU64::new(0),
    });
    for kill in 1..=kills {
        let loaders: Vec<_> = (0..LOADERS)
            .map(|_| {
                let (load, client, rng) = (load.clone(), daemon.client(), Rng(rng.roll()));
                thread::spawn(move || load.run(&client, rng))
            })
            .collect();
        // The moment itself is the subject: a random time under load, not a wait for anything.
        thread::sleep(Duration::from_micros(5_000 + rng.below(400_000) as u64));
        daemon.kill();
        load.stop.store(true, Ordering::Relaxed);
        for loader in loaders {
            loader.join().unwrap_or_else(|_| panic!("a loader failed (seed {seed}, kill {kill})"));
        }
        load.stop.store(false, Ordering::Relaxed);
        daemon.restart();
        audit(&daemon, &load);
    }
    let ledger = load.ledger();
    println!(
        "{} agents, {} sessions, {} labels, {} messages acknowledged and found after {kills} kills",
        ledger.agents.len(),
        ledger.sessions.len(),
        ledger.labels.len(),
        ledger.answered.len()
    );
}

#[test]
fn the_configuration_is_the_old_one_or_the_new_one_after_every_kill() {
    let kills = number("AGENTSVC_CRASH_KILLS").unwrap_or(6);
    let seed = seed_of_run(&format!("{kills} kills while the configuration is written"));
    let mut rng = Rng(seed);
    // So long that a file of which only a part was written would show it.
    let by_hand = format!("{}# the end\n", "# by hand\n".repeat(2_000));
    let mut settled = 1_000;
    let mut daemon =
        Daemon::with(&format!("rate_limit_per_second = 1000000\n[web.fetch]\nmax_chars = {settled}\n{by_hand}"));
    for kill in 1..=kills {
        let client = daemon.client();
        let writer = thread::spawn(move || {
            let (mut said, mut asked) = (settled, settled);
            loop {
                // From the lowest value on again: what is set must be allowed, and another than before.
                asked = if asked == 250_000 { 100 } else { asked + 1 };
                let body = json!({ "path": "web.fetch.max_chars", "value": asked });
                let Some(reply) = call(&client, "POST", "/api/config/set", Some(&body)) else {
                    return (said, asked);
                };
                assert_eq!(reply.status, 200, "{}", reply.text());
                said = asked;
            }
        });
        // As above: the moment itself is the subject.
        some_time(&mut rng, Duration::from_millis(200));
        daemon.kill();
        let (said, asked) = writer.join().unwrap_or_else(|_| panic!("the writer failed (seed {seed}, kill {kill})"));
        let text = fs::read_to_string(daemon.home().join("config.toml")).expect("it is there");
        let file: toml::Table = text.parse().unwrap_or_else(|error| panic!("seed {seed}, kill {kill}: {error}"));
        let value = file["web"]["fetch"]["max_chars"].as_integer().expect("a number");
        assert!([said, asked].contains(&value), "{value} is neither {said} nor {asked} (seed {seed}, kill {kill})");
        assert!(text.ends_with(&by_hand), "the rest of the file is not as it was (seed {seed}, kill {kill})");
        daemon.restart();
        let shown = daemon.get("/api/config").expect(200);
        assert_eq!(shown["web"]["fetch"]["max_chars"], value, "seed {seed}, kill {kill}");
        settled = value;
    }
}
