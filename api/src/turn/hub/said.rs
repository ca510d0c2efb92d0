//! What a running turn has said, kept for those who come later (spec 1, Attach).

use std::collections::BTreeSet;

use agentsvc_components::TurnId;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::stream::StreamEvent;

use super::Frame;

/// What the running turn of a session has said since it was first watched, for one who comes later. Begins anew, and
/// counts what is gone, beyond [`limit::STREAM_SAID_BYTES_MAX`] and [`limit::STREAM_SAID_EVENTS_MAX`].
#[derive(Default)]
pub(super) struct Said {
    /// Who speaks; `None` between turns.
    turn: Option<TurnId>,
    /// Watchers who are about to post a message.
    posting: usize,
    /// Turns that were posted and have not said anything yet; at most [`limit::STREAM_TURNS_EXPECTED_MAX`].
    expected: BTreeSet<TurnId>,
    events: Vec<StreamEvent>,
    bytes: usize,
    /// Events that are gone.
    missed: u64,
}

impl Said {
    /// Keeps what a turn says; forgets it all with its last event. A turn that ends without a word, such as one that was
    /// stopped while it waited, takes nothing from the one that speaks.
    pub(super) fn add(&mut self, turn: TurnId, event: &StreamEvent) {
        self.expected.remove(&turn);
        if event.is_last() {
            if self.turn == Some(turn) {
                self.forget_words();
            }
            return;
        }
        if self.turn != Some(turn) {
            self.forget_words();
            self.turn = Some(turn);
        }
        let bytes = match event {
            StreamEvent::Chunk { content } | StreamEvent::OwnerNotice { text: content } => content.len(),
            StreamEvent::ToolResult { input, .. } => input.len(),
            StreamEvent::ToolUse { .. } | StreamEvent::Done { .. } | StreamEvent::Error { .. } => 0,
        };
        let is_full =
            self.bytes + bytes > limit::STREAM_SAID_BYTES_MAX || self.events.len() == limit::STREAM_SAID_EVENTS_MAX;
        if is_full {
            self.missed += self.events.len() as u64;
            self.events.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        match (self.events.last_mut(), event) {
            (Some(StreamEvent::Chunk { content: before }), StreamEvent::Chunk { content }) => before.push_str(content),
            _ => self.events.push(event.clone()),
        }
    }

    /// How many events are gone, and the others, oldest first.
    pub(super) fn told(&self) -> (u64, impl Iterator<Item = Frame> + '_) {
        let frame = |turn| self.events.iter().map(move |event| Frame::new(turn, event.clone()));
        (self.missed, self.turn.into_iter().flat_map(frame))
    }

    fn forget_words(&mut self) {
        let (posting, expected) = (self.posting, std::mem::take(&mut self.expected));
        *self = Self { posting, expected, ..Self::default() };
    }

    /// Forgets every turn: they speak no more. Who is about to post still says how that ended.
    pub(super) fn break_off(&mut self) {
        *self = Self { posting: self.posting, ..Self::default() };
    }

    /// Somebody is about to post a message.
    pub(super) const fn begin_post(&mut self) {
        self.posting += 1;
    }

    /// What came of that: a turn that has yet to say its first word, or none.
    pub(super) fn end_post(&mut self, expected: Option<TurnId>) {
        self.posting = self.posting.saturating_sub(1);
        let is_room = self.expected.len() < limit::STREAM_TURNS_EXPECTED_MAX;
        self.expected.extend(expected.filter(|turn| is_room && self.turn != Some(*turn)));
    }

    /// No turn speaks, nor is about to.
    pub(super) fn is_empty(&self) -> bool {
        self.turn.is_none() && self.posting == 0 && self.expected.is_empty()
    }
}
