//! What waits to be sent to one WebSocket client. Bounded: pieces of an answer are left out first and counted; what a
//! client must see is kept, and the socket is not read while too much of that waits.

use std::collections::VecDeque;

use agentsvc_components::kernel::limit;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// The messages that wait, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Waiting>,
    /// Bytes of what waits.
    bytes: usize,
    /// Messages that are no deltas.
    whole: usize,
    /// Deltas left out since the last note of that.
    missed: u64,
    /// The newest list of agents; an older one that was not sent yet has no worth.
    agents: Option<Utf8Bytes>,
}

struct Waiting {
    text: Utf8Bytes,
    delta: bool,
}

impl Outbox {
    /// A message that the client must see.
    pub(crate) fn push(&mut self, text: Utf8Bytes) {
        self.tell_missed();
        self.whole += 1;
        self.add(text, false);
    }

    /// A piece of an answer; left out while too much waits.
    pub(crate) fn push_delta(&mut self, text: Utf8Bytes) {
        if self.bytes + text.len() > limit::SOCKET_OUTBOX_BYTES_MAX {
            self.missed += 1;
            return;
        }
        self.tell_missed();
        self.add(text, true);
    }

    /// Pieces were lost on the way here.
    pub(crate) fn note_missed(&mut self, missed: u64) {
        self.missed += missed;
    }

    /// The list of agents, in place of an older one.
    pub(crate) fn set_agents(&mut self, text: Utf8Bytes) {
        self.agents = Some(text);
    }

    /// What is sent next.
    pub(crate) fn pop(&mut self) -> Option<Utf8Bytes> {
        let Some(next) = self.queue.pop_front() else { return self.agents.take() };
        self.bytes -= next.text.len();
        self.whole -= usize::from(!next.delta);
        Some(next.text)
    }

    /// So much waits that nothing more should be asked for.
    pub(crate) fn is_full(&self) -> bool {
        // Deltas alone never bring it to twice their bound.
        self.whole >= limit::SOCKET_OUTBOX_MAX || self.bytes >= 2 * limit::SOCKET_OUTBOX_BYTES_MAX
    }

    /// The gap is named where it is.
    fn tell_missed(&mut self) {
        if self.missed > 0 {
            let missed = std::mem::take(&mut self.missed);
            self.whole += 1;
            self.add(format!(r#"{{"type":"lagged","missed":{missed}}}"#).into(), false);
        }
    }

    fn add(&mut self, text: Utf8Bytes, delta: bool) {
        self.bytes += text.len();
        self.queue.push_back(Waiting { text, delta });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(outbox: &mut Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.pop()).map(|text| text.to_string()).collect()
    }

    #[test]
    fn it_keeps_the_order_and_only_the_newest_list() {
        let mut outbox = Outbox::default();
        outbox.set_agents("agents 1".into());
        outbox.push("a".into());
        outbox.push_delta("b".into());
        outbox.set_agents("agents 2".into());
        assert_eq!(all(&mut outbox), ["a", "b", "agents 2"]);
        assert_eq!((outbox.bytes, outbox.whole), (0, 0));
    }

    #[test]
    fn deltas_beyond_the_bound_are_left_out_and_counted_where_they_were() {
        let mut outbox = Outbox::default();
        let big = "x".repeat(limit::SOCKET_OUTBOX_BYTES_MAX);
        outbox.push_delta(big.clone().into());
        outbox.push_delta("lost".into());
        outbox.push_delta("lost".into());
        outbox.note_missed(3);
        outbox.push("response".into());
        outbox.push_delta("lost".into());
        assert_eq!(all(&mut outbox), [big.as_str(), r#"{"type":"lagged","missed":5}"#, "response"]);
        outbox.push_delta("next".into());
        assert_eq!(all(&mut outbox), [r#"{"type":"lagged","missed":1}"#, "next"]);
    }

    #[test]
    fn it_is_full_of_what_must_be_seen_only() {
        let mut outbox = Outbox::default();
        for _ in 0..limit::SOCKET_OUTBOX_MAX * 2 {
            outbox.push_delta("x".into());
        }
        assert!(!outbox.is_full());
        for _ in 0..limit::SOCKET_OUTBOX_MAX {
            outbox.push("x".into());
        }
        assert!(outbox.is_full());
        let mut outbox = Outbox::default();
        outbox.push("x".repeat(2 * limit::SOCKET_OUTBOX_BYTES_MAX).into());
        assert!(outbox.is_full(), "few but long ones count as well");
    }
}
