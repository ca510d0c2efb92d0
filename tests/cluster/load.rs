//! Clients that append to lists and read them, over every node, and what they saw.
//!
//! A list is a session: a value is appended as a message of its own, and the list is read as the messages of the session.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::history::{Anomaly, Append, History, Outcome, Read};
use crate::support::Rng;
use crate::support::http::{Client, Reply};

/// How old what a read shows may be: an owner that is cut off answers for two seconds more.
const STALENESS: Duration = Duration::from_millis(2_500);

/// The lists, and what became of them.
pub(crate) struct Load {
    /// Agent and session.
    lists: Vec<(String, String)>,
    clients: Vec<Client>,
    began: Instant,
    next: AtomicU64,
    stop: AtomicBool,
    history: Mutex<History>,
    /// The status of every answer that was neither done nor refused, for people.
    odd: Mutex<Vec<String>>,
}

impl Load {
    pub(crate) fn new(lists: Vec<(String, String)>, clients: Vec<Client>) -> Self {
        let history = History { staleness: STALENESS, ..History::default() };
        Self {
            lists,
            clients,
            began: Instant::now(),
            next: AtomicU64::new(1),
            stop: AtomicBool::new(false),
            history: Mutex::new(history),
            odd: Mutex::default(),
        }
    }

    /// Agent and session of each list.
    pub(crate) fn lists(&self) -> &[(String, String)] {
        &self.lists
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts until told to stop.
    pub(crate) fn run(&self, mut rng: Rng) {
        while !self.stop.load(Ordering::Relaxed) {
            let client = &self.clients[rng.below(self.clients.len())];
            let list = rng.below(self.lists.len());
            if rng.below(5) == 0 {
                self.read(client, list);
            } else {
                self.append(client, list);
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Appends a value of its own to a list.
    pub(crate) fn append(&self, client: &Client, list: usize) -> Outcome {
        let value = self.next.fetch_add(1, Ordering::Relaxed);
        let (agent, session) = &self.lists[list];
        let body = json!({ "message": format!("value {value}"), "session_id": session }).to_string();
        let began = self.began.elapsed();
        let reply = client.try_send("POST", &format!("/api/agents/{agent}/message"), &[], Some(body.as_bytes()));
        let outcome = match &reply {
            Ok(reply) if reply.status == 200 => Outcome::Done,
            Ok(reply) if is_refused(reply) => Outcome::Refused,
            Ok(_) | Err(_) => Outcome::Unknown,
        };
        if let (Outcome::Unknown, Ok(reply)) = (outcome, &reply) {
            let mut odd = self.odd.lock().unwrap_or_else(PoisonError::into_inner);
            odd.push(format!("{} {}", reply.status, reply.text()));
        }
        let ended = self.began.elapsed();
        self.history().appends.push(Append { list, value, began, ended, outcome });
        outcome
    }

    fn read(&self, client: &Client, list: usize) {
        let began = self.began.elapsed();
        let Some(values) = self.values(client, list) else { return };
        let ended = self.began.elapsed();
        self.history().reads.push(Read { list, values, began, ended });
    }

    /// What a node says is in a list.
    fn values(&self, client: &Client, list: usize) -> Option<Vec<u64>> {
        let (agent, session) = &self.lists[list];
        let path = format!("/api/agents/{agent}/sessions/{session}/trajectory");
        let reply = client.try_send("GET", &path, &[], None).ok().filter(|reply| reply.status == 200)?;
        let trail: Value = serde_json::from_slice(&reply.body).ok()?;
        let said = trail["messages"].as_array()?.iter().filter(|message| message["role"] == "User");
        said.map(|message| message["content"].as_str()?.strip_prefix("value ")?.parse().ok()).collect()
    }

    /// Reads every list once, through each node; false when one does not answer.
    pub(crate) fn read_all(&self) -> bool {
        let reads = self.history().reads.len();
        for list in 0..self.lists.len() {
            self.clients.iter().for_each(|client| self.read(client, list));
        }
        self.history().reads.len() == reads + self.lists.len() * self.clients.len()
    }

    /// What is wrong with all of it.
    pub(crate) fn anomalies(&self) -> Vec<Anomaly> {
        self.history().anomalies()
    }

    /// The longest time up to now in which nothing that began behind `since` was acknowledged.
    pub(crate) fn gap_since(&self, since: Instant) -> Option<Duration> {
        let since = since.duration_since(self.began);
        let history = self.history();
        let done = history.appends.iter().filter(|it| it.outcome == Outcome::Done && it.began > since);
        done.map(|it| it.ended).min().map(|first| first - since)
    }

    /// Answers that are neither done nor refused, each once.
    pub(crate) fn odd(&self) -> Vec<String> {
        let mut odd = self.odd.lock().unwrap_or_else(PoisonError::into_inner).clone();
        odd.sort();
        odd.dedup();
        odd
    }

    /// One line of how much there was.
    pub(crate) fn sum(&self) -> String {
        let history = self.history();
        let count = |outcome| history.appends.iter().filter(|it| it.outcome == outcome).count();
        let mut odd = self.odd();
        odd.truncate(10);
        format!(
            "{} appends acknowledged, {} refused, {} unknown; {} reads; odd answers: {odd:?}",
            count(Outcome::Done),
            count(Outcome::Refused),
            count(Outcome::Unknown),
            history.reads.len(),
        )
    }
}

/// Does the answer say that nothing was done?
fn is_refused(reply: &Reply) -> bool {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    reply.status == 429 || reply.status == 503 && body["code"] == "moving"
}
