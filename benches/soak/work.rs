//! What one client does, by chance, one thing after the other at its pace.

use std::collections::VecDeque;
use std::io::Read;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::agents::Agents;
use super::tally::Tally;
use crate::support::Rng;
use crate::support::daemon::text;
use crate::support::http::{Body, Client};
use crate::support::socket::Socket;

/// What a message says that shall be answered with tools.
pub(crate) const TOOLS_PLEASE: &str = "use your tools";
/// A call that begins later than this is counted.
const LATE: Duration = Duration::from_secs(1);
/// Triggers of one client beside those of manifests.
const TRIGGERS: usize = 4;
/// Schedules of one client.
const SCHEDULES: usize = 2;
/// Keys of each agent's memory.
const KEYS: usize = 32;
/// Bytes that are read of a stream that is left.
const TASTE_BYTES: usize = 64;

/// One client.
pub(crate) struct Worker {
    client: Client,
    tally: Arc<Tally>,
    number: usize,
    rng: Rng,
    agents: Agents,
    triggers: VecDeque<String>,
    schedules: VecDeque<String>,
}

/// One of the things that a client does.
type Deed = fn(&mut Worker);

/// What is done in a hundred steps of chance.
const MIX: [(usize, &str, Deed); 12] = [
    (36, "read", Worker::read),
    (20, "message", Worker::message),
    (6, "stream", Worker::stream),
    (4, "attach", Worker::attach),
    (4, "chat", Worker::chat),
    (6, "come and go", Worker::come_and_go),
    (5, "trigger", Worker::trigger),
    (1, "event for all", Worker::event_for_all),
    (2, "schedule", Worker::schedule),
    (11, "memory", Worker::memory),
    (2, "session", Worker::session),
    (3, "watch", Worker::watch),
];

impl Worker {
    pub(crate) fn new(client: Client, tally: Arc<Tally>, number: usize, seed: u64) -> Self {
        let agents = Agents::new(&client, &tally, number);
        let rng = Rng(seed << 16 | number as u64);
        Self { client, tally, number, rng, agents, triggers: VecDeque::new(), schedules: VecDeque::new() }
    }

    /// Does one thing at `first` and at each step of the pace behind it, until the time is over. What is so late that it
    /// would come behind that is left out: a daemon that does not answer must not keep the run for days.
    pub(crate) fn run(mut self, first: Instant, pace: Duration, until: Instant) {
        let mut due = first;
        while due < until && Instant::now() < until {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if due.elapsed() > LATE {
                self.tally.was_late();
            }
            due += pace;
            let mut left = self.rng.below(MIX.iter().map(|(weight, ..)| weight).sum());
            let chosen = MIX.iter().find(|(weight, ..)| {
                let is_it = left < *weight;
                left = left.saturating_sub(*weight);
                is_it
            });
            let (_, kind, act) = chosen.expect("the weights add up");
            // What cannot be connected, or breaks off, panics in the client; here it is a failure of the run.
            if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| act(&mut self))) {
                let how = panic.downcast_ref::<String>().map_or("it panicked", String::as_str);
                self.tally.broke(kind, how);
            }
        }
    }

    /// One of the agents.
    fn any(&mut self) -> (usize, String) {
        let at = self.rng.below(self.agents.kept.len());
        (at, self.agents.kept[at].id.clone())
    }

    fn told(&mut self, at: usize) {
        self.agents.told(&self.client, &self.tally, at);
    }

    fn read(&mut self) {
        let (_, agent) = self.any();
        let path = match self.rng.below(12) {
            0..4 => format!("/api/agents/{agent}"),
            4 => "/api/agents?limit=50".to_owned(),
            5 => format!("/api/agents/{agent}/session"),
            6 => format!("/api/agents/{agent}/traces?limit=20"),
            7 => format!("/api/memory/agents/{agent}/kv"),
            8 => format!("/api/triggers?agent_id={agent}"),
            9 => "/api/world".to_owned(),
            10 => "/api/usage/summary".to_owned(),
            _ => "/api/audit/recent?limit=20".to_owned(),
        };
        self.tally.count("read", &self.client.get(&path), &[200]);
    }

    /// A message; each third one is answered with tools.
    fn message(&mut self) {
        let (at, agent) = self.any();
        let says = if self.rng.below(3) == 0 { TOOLS_PLEASE } else { "What is there to be seen?" };
        let said = self.client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": says }));
        self.tally.count("message", &said, &[200]);
        self.told(at);
    }

    /// An answer as a stream; each third one is left in the middle.
    fn stream(&mut self) {
        let (at, agent) = self.any();
        let body = json!({ "message": "Tell me." }).to_string();
        let path = format!("/api/agents/{agent}/message/stream");
        let (head, stream) = self.client.open("POST", &path, &[], Some(body.as_bytes())).expect("the daemon answers");
        self.tally.count("stream", &head, &[200]);
        self.follow(stream, b"event: done");
        self.told(at);
    }

    /// Somebody watches a session in which somebody else speaks.
    fn attach(&mut self) {
        let (at, agent) = self.any();
        let path = format!("/api/agents/{agent}/attach");
        let (head, stream) = self.client.open("GET", &path, &[], None).expect("the daemon answers");
        self.tally.count("attach", &head, &[200]);
        let said = self.client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "Go on." }));
        self.tally.count("message", &said, &[200]);
        self.follow(stream, b"event: done");
        self.told(at);
    }

    /// Reads up to `mark`, or leaves.
    fn follow(&mut self, mut stream: Body, mark: &[u8]) {
        let most = if self.rng.below(3) == 0 { TASTE_BYTES } else { usize::MAX };
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        while bytes.len() < most && !bytes.windows(mark.len()).any(|window| window == mark) {
            let count = stream.read(&mut piece).expect("the stream goes on");
            assert!(count > 0, "the stream ended early: {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&piece[..count]);
        }
    }

    /// A WebSocket chat of up to three messages; each third one is left before its answer.
    fn chat(&mut self) {
        let (at, agent) = self.any();
        let mut socket = Socket::open(&self.client, &agent);
        self.tally.well("chat");
        for _ in 0..=self.rng.below(3) {
            self.told(at);
            if self.agents.kept[at].id != agent {
                return;
            }
            if self.rng.below(3) == 0 {
                socket.say("Never mind.");
                return;
            }
            socket.answer("And what else?");
            self.tally.well("chat message");
        }
    }

    /// An agent that is made, told something and killed.
    fn come_and_go(&mut self) {
        let Some(agent) = self.agents.make(&self.client, &self.tally) else { return };
        let said = self.client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": TOOLS_PLEASE }));
        self.tally.count("message", &said, &[200]);
        self.tally.count("kill", &self.client.delete(&format!("/api/agents/{agent}")), &[200]);
    }

    /// A new trigger in the place of an old one, and an event for it.
    fn trigger(&mut self) {
        let (_, agent) = self.any();
        let event = format!("sign-{}-{}", self.number, self.rng.below(1_000));
        let new = json!({
            "agent_id": agent, "pattern": { "custom": { "event_type": event } }, "prompt_template": "Look: {{event}}",
            "cooldown_secs": 0
        });
        let made = self.client.post("/api/triggers", &new);
        self.tally.count("trigger", &made, &[201]);
        if made.status == 201 {
            self.triggers.push_back(text(&made.expect(201)["trigger_id"]));
        }
        if self.triggers.len() > TRIGGERS
            && let Some(old) = self.triggers.pop_front()
        {
            // It has gone with its agent, if that was killed.
            self.tally.count("trigger", &self.client.delete(&format!("/api/triggers/{old}")), &[200, 404]);
        }
        self.publish(&event);
    }

    /// An event that the manifests of all agents of this client wait for.
    fn event_for_all(&mut self) {
        self.publish(&format!("soak-{}", self.number));
    }

    fn publish(&mut self, event: &str) {
        let told =
            self.client.post("/api/events", &json!({ "event_type": event, "payload": { "n": self.rng.below(9) } }));
        self.tally.count("event", &told, &[200]);
    }

    /// A new schedule in the place of an old one.
    fn schedule(&mut self) {
        let (_, agent) = self.any();
        let new = json!({ "agent_id": agent, "cron": "every 7s", "prompt": "What is there to do?" });
        let made = self.client.post("/api/schedules", &new);
        self.tally.count("schedule", &made, &[201]);
        if made.status == 201 {
            self.schedules.push_back(text(&made.expect(201)["schedule_id"]));
        }
        if self.schedules.len() > SCHEDULES
            && let Some(old) = self.schedules.pop_front()
        {
            self.tally.count("schedule", &self.client.delete(&format!("/api/schedules/{old}")), &[200, 404]);
        }
    }

    fn memory(&mut self) {
        let (_, agent) = self.any();
        let path = format!("/api/memory/agents/{agent}/kv/key-{}", self.rng.below(KEYS));
        let (reply, expected): (_, &[u16]) = match self.rng.below(10) {
            0..6 => {
                let value = "v".repeat(16 << self.rng.below(8));
                (self.client.put(&path, &json!({ "value": { "text": value } })), &[200])
            }
            6 | 7 => (self.client.delete(&path), &[200, 404]),
            _ => (self.client.get(&path), &[200, 404]),
        };
        self.tally.count("memory", &reply, expected);
    }

    /// A session of its own: made, spoken in, deleted.
    fn session(&mut self) {
        let (_, agent) = self.any();
        let made = self.client.post(&format!("/api/agents/{agent}/sessions"), &json!({ "label": "aside" }));
        self.tally.count("session", &made, &[201]);
        if made.status != 201 {
            return;
        }
        let session = text(&made.expect(201)["session_id"]);
        let body = json!({ "message": "Between us.", "session_id": session });
        let said = self.client.post(&format!("/api/agents/{agent}/message"), &body);
        self.tally.count("message", &said, &[200]);
        self.tally.count("session", &self.client.delete(&format!("/api/sessions/{session}")), &[200]);
    }

    /// A look at the world: its events for a moment, or a query.
    fn watch(&mut self) {
        if self.rng.below(2) == 0 {
            let (head, stream) = self.client.open("GET", "/api/world/events", &[], None).expect("the daemon answers");
            self.tally.count("watch", &head, &[200]);
            self.follow(stream, b"id:");
        } else {
            let query = self.client.get("/api/world/query?q=agents%20where%20state%20%3D%20%22Running%22%20limit%2020");
            self.tally.count("query", &query, &[200]);
        }
    }
}
