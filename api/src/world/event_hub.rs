//! The world's events on their way to `GET /api/world/events`: the last ones for those who come later, which `GET /api/events` lists,
//! and each new one for those who watch. Whoever is slow is told how many were missed; nobody is waited for.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::limit;
use agentsvc_systems::kernel::page::Page;
use bytes::Bytes;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

use crate::http::sse;
use crate::http::timestamp::Moment;

/// One event, shared by all that get it. Its wire form is written once, by the first that wants it.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Counts events since the start.
    pub(crate) number: u64,
    /// Of which start.
    start: u64,
    /// An event.
    pub(crate) happened: EventEnvelope,
    wire: OnceLock<Bytes>,
}

/// The last events, and those who watch.
pub struct WorldEvents {
    /// Tells this start of the daemon from those before, whose events were numbered from 1, too: the moment in milliseconds.
    start: u64,
    ring: Mutex<Ring>,
    watchers: broadcast::Sender<Arc<Kept>>,
}

#[derive(Default)]
struct Ring {
    /// The number of the newest event.
    newest: u64,
    kept: VecDeque<Arc<Kept>>,
}

impl Default for WorldEvents {
    fn default() -> Self {
        let start = crate::http::timestamp::timestamp_now().0.unsigned_abs();
        Self { start, ring: Mutex::default(), watchers: broadcast::Sender::new(limit::STREAM_BACKLOG_MAX) }
    }
}

/// The event as clients get it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WorldEvent")]
pub(crate) struct Wire<'a> {
    /// Counts events since the start of the daemon.
    number: u64,
    at: Moment,
    /// Turns of triggers and of messages of agents between the event and its first cause.
    depth: u8,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<Uuid>,
    /// The event with its `kind` and fields.
    #[schemars(with = "serde_json::Value")]
    event: &'a Event,
}

/// An event that writes itself as clients get it.
pub(crate) struct KeptItem(Arc<Kept>);

impl Serialize for KeptItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.shape().serialize(serializer)
    }
}

/// The place behind an event of a list, as a cursor. It holds until the daemon restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventCursor {
    start: u64,
    number: u64,
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.start, self.number)
    }
}

impl FromStr for EventCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (start, number) = text.split_once('-').ok_or(())?;
        Ok(Self { start: u64::from_str_radix(start, 16).map_err(drop)?, number: number.parse().map_err(drop)? })
    }
}

impl Kept {
    fn shape(&self) -> Wire<'_> {
        let EventEnvelope { event, at, depth, .. } = &self.happened;
        Wire {
            number: self.number,
            at: Moment(*at),
            depth: *depth,
            kind: event.kind().as_str(),
            agent_id: event.agent().map(|id| id.0),
            turn_id: event.turn().map(|id| id.0),
            event,
        }
    }

    /// The event in the wire form of server-sent events.
    pub(crate) fn wire(&self) -> Bytes {
        let write = || {
            let mut bytes = format!("id: {}\n", self.place()).into_bytes();
            bytes.extend_from_slice(&sse::event("event", &self.shape()));
            bytes.into()
        };
        self.wire.get_or_init(write).clone()
    }

    /// Also what a client that comes back says it has seen.
    const fn place(&self) -> EventCursor {
        EventCursor { start: self.start, number: self.number }
    }
}

impl WorldEvents {
    /// Something happened and is durable.
    pub fn note(&self, happened: EventEnvelope) {
        let mut ring = self.ring.lock();
        ring.newest += 1;
        let kept = Arc::new(Kept { number: ring.newest, start: self.start, happened, wire: OnceLock::new() });
        let oldest = if ring.kept.len() == limit::WORLD_EVENTS_KEPT { ring.kept.pop_front() } else { None };
        ring.kept.push_back(Arc::clone(&kept));
        // Under the lock, so that a new watcher misses none and gets none twice. An error says that nobody watches.
        let _ = self.watchers.send(kept);
        drop(ring);
        // Its text goes once nobody waits for the lock.
        drop(oldest);
    }

    /// The kept events that are newer than the one with the id `seen`, at most `last` of them, and all that come. Whoever comes
    /// back is told how many between are not kept any more, or that the daemon was started anew since.
    pub(crate) fn watch(&self, seen: Option<&str>, last: usize) -> EventWatch {
        let ring = self.ring.lock();
        let gone = ring.newest - ring.kept.len() as u64;
        let (after, gap) = match seen.map(|id| self.number_of(id)) {
            None => (0, None),
            Some(None) => (0, Some(Told::Restarted(gone))),
            Some(Some(after)) => {
                (after, Some(gone.saturating_sub(after)).filter(|missed| *missed > 0).map(Told::Lagged))
            }
        };
        let newer = ring.kept.iter().filter(|kept| kept.number > after);
        let first = newer.clone().count().saturating_sub(last);
        EventWatch { gap, kept: newer.skip(first).cloned().collect(), receiver: self.watchers.subscribe() }
    }

    /// A page of the kept events that `wants` lets through, the newest first: at most `limit` behind the place `after`, and the number of
    /// all. `None` when the place is of another start.
    pub(crate) fn recent(
        &self,
        after: Option<EventCursor>,
        limit: usize,
        wants: impl Fn(&Event) -> bool,
    ) -> Option<Page<KeptItem, EventCursor, Option<u64>>> {
        if after.is_some_and(|place| place.start != self.start) {
            return None;
        }
        let kept: Vec<_> = self.ring.lock().kept.iter().filter(|kept| wants(&kept.happened.event)).cloned().collect();
        let total = Some(kept.len() as u64);
        let mut older = kept.into_iter().rev().filter(|kept| after.is_none_or(|place| kept.number < place.number));
        let items: Vec<_> = older.by_ref().take(limit).collect();
        let next = items.last().map(|last| last.place()).filter(|_| older.next().is_some());
        Some(Page { items: items.into_iter().map(KeptItem).collect(), next, total })
    }

    /// The number in an id; `None` when it is none of this start's.
    fn number_of(&self, id: &str) -> Option<u64> {
        id.parse().ok().filter(|place: &EventCursor| place.start == self.start).map(|place| place.number)
    }
}

/// A watch on the world's events.
pub(crate) struct EventWatch {
    /// What is gone, which is told first.
    gap: Option<Told>,
    kept: VecDeque<Arc<Kept>>,
    receiver: broadcast::Receiver<Arc<Kept>>,
}

/// What a watcher gets next.
#[derive(Debug)]
pub(crate) enum Told {
    /// An event.
    Event(Arc<Kept>),
    /// This watcher was too slow, or came back too late: so many events are lost to it.
    Lagged(u64),
    /// This watcher comes back from a start before: how many of that one it missed nobody knows, and so many of this one are
    /// not kept any more.
    Restarted(u64),
}

impl EventWatch {
    /// What comes next; `None` when the daemon ends.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        if let Some(gap) = self.gap.take() {
            return Some(gap);
        }
        if let Some(kept) = self.kept.pop_front() {
            return Some(Told::Event(kept));
        }
        match self.receiver.recv().await {
            Ok(kept) => Some(Told::Event(kept)),
            Err(RecvError::Lagged(missed)) => Some(Told::Lagged(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::taint::Taint;
    use agentsvc_components::{AgentId, Timestamp};

    use super::*;

    fn happened(n: u128) -> EventEnvelope {
        let event = Event::AgentStarted { agent: AgentId(Uuid::from_u128(n)) };
        EventEnvelope { event, at: Timestamp(n as i64), depth: 1, taint: Taint::NONE, began_in: None, holder: None }
    }

    async fn number(watch: &mut EventWatch) -> u64 {
        let Some(Told::Event(kept)) = watch.next().await else { panic!("an event") };
        kept.number
    }

    #[tokio::test]
    async fn the_last_events_come_first_then_the_new_ones() {
        let events = WorldEvents::default();
        for n in 1..=limit::WORLD_EVENTS_KEPT as u128 + 10 {
            events.note(happened(n));
        }
        let id = |number| EventCursor { start: events.start, number }.to_string();
        let mut all = events.watch(None, usize::MAX);
        assert_eq!((all.kept.len(), number(&mut all).await), (limit::WORLD_EVENTS_KEPT, 11));
        let mut some = events.watch(None, 2);
        events.note(happened(999));
        for expected in [209, 210, 211] {
            assert_eq!(number(&mut some).await, expected);
        }
        let mut again = events.watch(Some(&id(210)), usize::MAX);
        assert_eq!(number(&mut again).await, 211);
        let text = events.watch(Some(&id(210)), 1).kept[0].wire();
        let text = std::str::from_utf8(&text).unwrap();
        let rest = text.strip_prefix(&format!("id: {}\n", id(211))).unwrap_or_default();
        assert!(rest.starts_with("event: event\ndata: {\"number\":211,\"at\":\"1970-01-01T00:00:00.999Z\""), "{text}");
        assert!(
            text.contains("\"depth\":1,\"kind\":\"agent_started\",\"agent_id\":\"") && text.ends_with("\n\n"),
            "{text}"
        );
        assert!(text.contains("\"event\":{\"kind\":\"agent_started\",\"agent_id\":"), "{text}");
    }

    #[tokio::test]
    async fn whoever_comes_back_is_told_what_is_gone() {
        let events = WorldEvents::default();
        for n in 1..=limit::WORLD_EVENTS_KEPT as u128 + 10 {
            events.note(happened(n));
        }
        let id = |number| EventCursor { start: events.start, number }.to_string();
        let mut late = events.watch(Some(&id(4)), usize::MAX);
        assert!(matches!(late.next().await, Some(Told::Lagged(6))));
        assert_eq!(number(&mut late).await, 11);
        let mut just_in_time = events.watch(Some(&id(10)), usize::MAX);
        assert_eq!(number(&mut just_in_time).await, 11);
    }

    #[tokio::test]
    async fn whoever_comes_back_over_a_restart_is_told() {
        let events = WorldEvents::default();
        for n in 1..=limit::WORLD_EVENTS_KEPT as u128 + 10 {
            events.note(happened(n));
        }
        let id = |number| EventCursor { start: events.start - 1, number }.to_string();
        // Whether it was counted further or less far there: all that is kept is new to it.
        for seen in [id(5_000), id(150), "150".to_owned(), "-".to_owned()] {
            let mut of_before = events.watch(Some(&seen), usize::MAX);
            assert!(matches!(of_before.next().await, Some(Told::Restarted(10))), "{seen}");
            assert_eq!(number(&mut of_before).await, 11);
        }
    }

    #[test]
    fn the_last_events_are_listed_in_pages() {
        let events = WorldEvents::default();
        for n in 1..=limit::WORLD_EVENTS_KEPT as u128 + 10 {
            events.note(happened(n));
        }
        let odd = |event: &Event| event.agent().is_some_and(|agent| agent.0.as_u128() % 2 == 1);
        let (mut numbers, mut after) = (Vec::new(), None);
        loop {
            let page = events.recent(after, 30, odd).unwrap();
            assert_eq!(page.total, Some(limit::WORLD_EVENTS_KEPT as u64 / 2));
            numbers.extend(page.items.iter().map(|item| item.0.number));
            let Some(next) = page.next else { break };
            after = Some(next.to_string().parse().unwrap());
        }
        let expected: Vec<u64> = (11..=209).rev().step_by(2).collect();
        assert_eq!(numbers, expected);
        let whole = events.recent(None, limit::WORLD_EVENTS_KEPT, |_| true).unwrap();
        assert_eq!((whole.items.len(), whole.next), (limit::WORLD_EVENTS_KEPT, None));
        let of_before = EventCursor { start: events.start - 1, number: 150 };
        assert!(events.recent(Some(of_before), 1, |_| true).is_none());
    }

    #[tokio::test]
    async fn whoever_is_slow_is_told() {
        let events = WorldEvents::default();
        let mut watch = events.watch(None, 0);
        for n in 0..limit::STREAM_BACKLOG_MAX as u128 + 3 {
            events.note(happened(n));
        }
        assert!(matches!(watch.next().await, Some(Told::Lagged(3))));
        assert_eq!(number(&mut watch).await, 4);
    }
}
