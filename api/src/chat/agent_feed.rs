//! The list of agents that every WebSocket shows (spec 1, Events, `agents_updated`): built once for all of them, by one
//! task that runs only while there is one, and only when something changed.
//!
//! With up to [`limit::AGENTS_PUSH_ALL_MAX`] agents everyone gets all of them. Above, a connection gets its own agent
//! and those that changed since the last time; a removed one is shown once more, as `Terminated`. Nothing here looks
//! at all agents of a large world: what changed is known from the world's events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentsvc_components::AgentId;
use agentsvc_components::agent::AgentState;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_systems::agent::{AgentFilter, AgentSummary, ListAgents, SummariseAgents};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use uuid::Uuid;

use crate::http::api::Api;
use crate::http::domain::Queue;
use crate::http::metrics::MetricsText;

/// Time between two lists (spec 1, Limits).
const PERIOD: Duration = Duration::from_secs(5);

/// Lists after which one is built although nothing changed, in case the configuration did.
const REBUILD_PERIODS: u32 = 12;

const HEAD: &str = "{\"type\":\"agents_updated\",\"agents\":[";
const TAIL: &str = "]}";

/// What changed, who is listening, and the newest list.
#[derive(Default)]
pub struct AgentFeed {
    /// Connections that get the list; read without the lock by [`note`](Self::note).
    subscribers: AtomicUsize,
    state: Mutex<State>,
    lists: watch::Sender<Arc<AgentList>>,
}

/// Agents that changed, with the name of those that are gone.
type Changes = BTreeMap<AgentId, Option<String>>;

#[derive(Default)]
struct State {
    /// Agents that changed since the last list.
    changed: Changes,
    /// The task runs.
    running: bool,
    /// Another world has taken the place of the one that the newest list shows.
    stale: bool,
}

/// One list as it is sent.
#[derive(Default)]
pub(crate) struct AgentList {
    /// The whole message.
    text: Utf8Bytes,
    /// Every agent is in it.
    complete: bool,
    /// Those that changed, as JSON.
    changed: BTreeMap<AgentId, Box<str>>,
}

impl AgentFeed {
    /// Something happened in the world. Costs one atomic load while nobody listens.
    pub fn note(&self, event: &Event) {
        if self.subscribers.load(Ordering::Acquire) == 0 {
            return;
        }
        let (agent, gone) = match event {
            Event::AgentSpawned { agent, .. }
            | Event::AgentStarted { agent }
            | Event::AgentStopped { agent }
            | Event::AgentUpdated { agent } => (*agent, None),
            Event::AgentTerminated { agent, name, .. } => (*agent, Some(name.clone())),
            _ => return,
        };
        let changed = &mut self.state.lock().changed;
        if changed.len() < limit::AGENTS_CHANGED_MAX || changed.contains_key(&agent) {
            changed.insert(agent, gone);
        }
    }

    /// Another world has taken the place of the one that was shown: what changed in that one is forgotten, and the next
    /// list is built anew.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.changed.clear();
        state.stale = true;
    }

    /// Connections that get the list.
    pub(crate) fn subscribers(&self) -> usize {
        self.subscribers.load(Ordering::Relaxed)
    }

    /// The next changes, at most one list's worth.
    fn take_changed(&self) -> Changes {
        let mut state = self.state.lock();
        match state.changed.keys().nth(limit::AGENTS_PUSH_CHANGED_MAX).copied() {
            Some(rest) => {
                let rest = state.changed.split_off(&rest);
                std::mem::replace(&mut state.changed, rest)
            }
            None => std::mem::take(&mut state.changed),
        }
    }

    /// Keeps changes that could not be told, unless the agent changed again.
    fn put_back(&self, changes: Changes) {
        let mut state = self.state.lock();
        for (agent, gone) in changes {
            state.changed.entry(agent).or_insert(gone);
        }
    }

    /// Ends the task if nobody listens any more.
    fn may_end(&self) -> bool {
        let mut state = self.state.lock();
        if self.subscribers.load(Ordering::Acquire) > 0 {
            return false;
        }
        *state = State::default();
        true
    }
}

/// A connection's subscription to the feed; dropped with it.
pub(crate) struct Seat {
    feed: Arc<AgentFeed>,
    lists: watch::Receiver<Arc<AgentList>>,
    agent: AgentId,
    /// The connection's own agent as JSON.
    own: Box<str>,
    /// The connection was given a list.
    has_list: bool,
    /// The client may know of agents of its user only: it gets its own.
    is_limited: bool,
}

impl Seat {
    /// Takes a place for a connection to `agent`, which looks like `own` now.
    pub(crate) fn take(api: &Arc<Api>, own: &AgentSummary) -> Self {
        let feed = api.state::<AgentFeed>();
        {
            let mut state = feed.state.lock();
            // Nothing was noted while nobody listened: what the last list shows may be gone.
            state.stale |= feed.subscribers.fetch_add(1, Ordering::AcqRel) == 0;
            if !std::mem::replace(&mut state.running, true) {
                tokio::spawn(run(Arc::clone(api)));
            }
        }
        Self {
            lists: feed.lists.subscribe(),
            feed,
            agent: own.id,
            own: item(own).into(),
            has_list: false,
            is_limited: false,
        }
    }

    /// The same; where the client knows of agents of its user only, it gets its own agent and no others.
    pub(crate) const fn limited(mut self, is_limited: bool) -> Self {
        self.is_limited = is_limited;
        self
    }

    /// The next list for this connection. May be cancelled without loss.
    pub(crate) async fn next(&mut self) -> Utf8Bytes {
        if self.lists.changed().await.is_err() {
            // The sender lives in the feed, which this subscriber holds.
            std::future::pending::<()>().await;
        }
        let list = Arc::clone(&self.lists.borrow_and_update());
        // The first list may have been asked for before the agent was made.
        let is_first = !std::mem::replace(&mut self.has_list, true);
        let changed = list.changed.get(&self.agent);
        if let Some(own) = changed {
            self.own.clone_from(own);
        }
        if self.is_limited {
            let is_gone = list.complete && !is_first && !list.text.contains(&self.agent.to_string());
            return message((!is_gone).then_some(&self.own).into_iter());
        }
        if changed.is_some() {
            return list.text.clone();
        }
        if !list.complete || is_first && !list.text.contains(&self.agent.to_string()) {
            return list.with_own(&self.own);
        }
        list.text.clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.feed.subscribers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AgentList {
    /// The same list with one more agent in front.
    fn with_own(&self, own: &str) -> Utf8Bytes {
        let rest = self.text.strip_prefix(HEAD).unwrap_or(TAIL);
        let comma = if rest == TAIL { "" } else { "," };
        [HEAD, own, comma, rest].concat().into()
    }
}

/// Builds a list every [`PERIOD`] until nobody listens any more or the daemon stops.
async fn run(api: Arc<Api>) {
    let feed = api.state::<AgentFeed>();
    let mut beats = interval_at(Instant::now() + PERIOD, PERIOD);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut builder = Builder::default();
    loop {
        tokio::select! {
            _ = beats.tick() => {}
            () = api.shutdown.wait() => return,
        }
        if feed.may_end() {
            return;
        }
        if let Some(list) = builder.next(&api, &feed).await {
            feed.lists.send_replace(list);
        }
    }
}

#[derive(Default)]
struct Builder {
    last: Option<Arc<AgentList>>,
    /// Lists since one was built.
    repeated: u32,
    /// There were too many agents for one list.
    crowded: bool,
}

impl Builder {
    /// The next list; `None` when the world cannot be asked now.
    async fn next(&mut self, api: &Api, feed: &AgentFeed) -> Option<Arc<AgentList>> {
        let changed = feed.take_changed();
        let is_stale = std::mem::take(&mut feed.state.lock().stale);
        if changed.is_empty() && !is_stale && self.repeated < REBUILD_PERIODS && self.last.is_some() {
            self.repeated += 1;
            return self.last.clone();
        }
        let list = self.build(api, &changed).await;
        if list.is_none() {
            feed.put_back(changed);
            feed.state.lock().stale |= is_stale;
        }
        list
    }

    async fn build(&mut self, api: &Api, changed: &Changes) -> Option<Arc<AgentList>> {
        let asked: Vec<AgentId> = changed.keys().copied().collect();
        let living = api.bridge.ask(SummariseAgents(asked)).await.ok()?;
        let mut items: BTreeMap<AgentId, Box<str>> =
            living.iter().map(|agent| (agent.id, item(agent).into())).collect();
        let all = self.all(api).await?;
        self.repeated = 0;
        let complete = all.is_some();
        let text = match all {
            Some(all) => message(all.iter().map(item)),
            None => {
                let gone = changed.iter().filter_map(|(id, name)| Some((*id, gone(*id, name.as_ref()?).into())));
                items.extend(gone);
                message(items.values())
            }
        };
        let list = Arc::new(AgentList { text, complete, changed: items });
        // Said once more it would hold no changes.
        self.last = Some(if complete { Arc::new(list.unchanged()) } else { Arc::new(AgentList::none_changed()) });
        Some(list)
    }

    /// All agents; `Some(None)` when they are too many.
    async fn all(&mut self, api: &Api) -> Option<Option<Vec<AgentSummary>>> {
        loop {
            let limit = if self.crowded { 1 } else { limit::AGENTS_PUSH_ALL_MAX };
            let page = ListAgents { filter: AgentFilter::default(), after: None, limit };
            let page = api.bridge.ask(page).await.ok()?;
            let crowded = page.total > limit::AGENTS_PUSH_ALL_MAX;
            if std::mem::replace(&mut self.crowded, crowded) && !crowded {
                continue;
            }
            return Some((!crowded).then_some(page.items));
        }
    }
}

impl AgentList {
    fn unchanged(&self) -> Self {
        Self { text: self.text.clone(), complete: self.complete, changed: BTreeMap::new() }
    }

    fn none_changed() -> Self {
        Self { text: message(std::iter::empty::<&str>()), ..Self::default() }
    }
}

fn message(items: impl Iterator<Item = impl AsRef<str>>) -> Utf8Bytes {
    let mut text = HEAD.to_owned();
    for (at, item) in items.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(item.as_ref());
    }
    text.push_str(TAIL);
    text.into()
}

/// An agent summary without `created_at` (spec 1, Agent summary).
#[derive(Serialize)]
struct Item<'a> {
    id: Uuid,
    name: &'a str,
    state: &'static str,
    model_provider: &'a str,
    model_name: &'a str,
}

fn item(agent: &AgentSummary) -> String {
    json(&Item {
        id: agent.id.0,
        name: &agent.name,
        state: agent.state.as_str(),
        model_provider: &agent.provider,
        model_name: &agent.model,
    })
}

fn gone(id: AgentId, name: &str) -> String {
    json(&Item { id: id.0, name, state: AgentState::Terminated.as_str(), model_provider: "", model_name: "" })
}

fn json(item: &Item<'_>) -> String {
    // Only a map with keys that are not text can fail, and there is none.
    serde_json::to_string(item).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests;

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    out.gauge("agentsvc_sockets", "Open WebSockets.", api.state::<AgentFeed>().subscribers());
}

/// Its queues.
pub(crate) fn queues(api: &Api) -> Vec<Queue> {
    vec![Queue::new("sockets", "connections", api.state::<AgentFeed>().subscribers(), None)]
}
