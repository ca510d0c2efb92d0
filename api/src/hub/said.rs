//! What a running turn has said, kept for those who come later (spec 1, Attach).

use agentsvc_components::stream::StreamEvent;
use agentsvc_components::{TurnId, limit};

use super::Frame;

/// What the running turn of a session has said since it was first watched, for one who comes later. Begins anew, and
/// counts what is gone, beyond [`limit::STREAM_SAID_BYTES_MAX`] and [`limit::STREAM_SAID_EVENTS_MAX`].
#[derive(Default)]
pub(super) struct Said {
    /// Who speaks; `None` between turns.
    turn: Option<TurnId>,
    /// A turn is about to speak.
    pub(super) expected: bool,
    events: Vec<StreamEvent>,
    bytes: usize,
    /// Events that are gone.
    missed: u64,
}

impl Said {
    /// Keeps what a turn says; forgets it all with its last event.
    pub(super) fn add(&mut self, turn: TurnId, event: &StreamEvent) {
        if event.is_last() {
            *self = Self::default();
            return;
        }
        if self.turn != Some(turn) {
            *self = Self { turn: Some(turn), ..Self::default() };
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

    /// No turn speaks, nor is about to.
    pub(super) const fn is_empty(&self) -> bool {
        self.turn.is_none() && !self.expected
    }
}
