//! The answer while it is written. It outlives the driver's future, so that an aborted call still has its text.

use std::sync::Arc;

use agentsvc_components::effect::Attempt;
use agentsvc_components::limit;
use agentsvc_components::message::{Block, ToolCall, Usage};
use agentsvc_components::outcome::{ModelAnswer, StopReason};
use agentsvc_components::stream::{StreamEvent, StreamItem};
use agentsvc_components::{SessionId, TurnId};
use agentsvc_systems::prompt::answer_tokens;

use crate::effects::Publish;

/// Tool calls that one answer is read for; beyond it the answer is cut. More than the world runs, so that those over
/// its own bound are still answered with an error, but bounded.
const CALLS_MAX: usize = 4 * limit::TOOL_CALLS_PER_ANSWER_MAX;
/// Bytes that a tool call counts beside its text.
const CALL_BYTES: usize = 64;

/// Where the pieces of an answer go while it is written.
pub(crate) struct Outlet {
    /// The door of the stream hub.
    pub(crate) publish: Publish,
    /// The session that is watched.
    pub(crate) session: SessionId,
    /// The turn that speaks.
    pub(crate) turn: TurnId,
}

impl Outlet {
    /// Publishes one piece of text.
    pub(crate) fn chunk(&self, content: String) {
        (self.publish)(StreamItem { session: self.session, turn: self.turn, event: StreamEvent::Chunk { content } });
    }
}

/// A tool call of which pieces may still come.
#[derive(Debug)]
struct OpenCall {
    /// The provider's index of the call in its answer, where it gives one.
    index: Option<u32>,
    call: ToolCall,
}

/// The answer while it is written.
#[derive(Default)]
pub struct Draft {
    outlet: Option<Arc<Outlet>>,
    text: String,
    calls: Vec<OpenCall>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    /// Bytes of text and calls so far; at most [`limit::ANSWER_BYTES_MAX`].
    bytes: usize,
    full: bool,
    given_out: bool,
}

/// One piece of a tool call, as it comes over the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallPiece<'a> {
    /// Which call of the answer, where the provider says so.
    pub index: Option<u32>,
    /// The provider's id; in the first piece.
    pub id: &'a str,
    /// The tool's name; in the first piece.
    pub name: &'a str,
    /// More of the arguments.
    pub arguments: &'a str,
}

impl Draft {
    /// An empty draft whose text goes to `outlet` as it comes, where there is one.
    pub(crate) fn new(outlet: Option<Arc<Outlet>>) -> Self {
        Self { outlet, ..Self::default() }
    }

    /// Adds text, and gives it out. What exceeds [`limit::ANSWER_BYTES_MAX`] is cut.
    pub fn push_text(&mut self, piece: &str) {
        let piece = self.admit(piece);
        if piece.is_empty() {
            return;
        }
        self.text.push_str(piece);
        if let Some(outlet) = &self.outlet {
            outlet.chunk(piece.to_owned());
            self.given_out = true;
        }
    }

    /// Adds a piece of a tool call. A piece begins a new call when its index is new, or, from providers without
    /// indexes, when it has an id or a name of its own.
    pub fn push_call(&mut self, piece: CallPiece<'_>) {
        let position = match piece.index {
            Some(_) => self.calls.iter().rposition(|open| open.index == piece.index),
            None if piece.id.is_empty() && piece.name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let position = match position {
            Some(position) => position,
            None if self.calls.len() >= CALLS_MAX || self.bytes + CALL_BYTES > limit::ANSWER_BYTES_MAX => {
                self.full = true;
                return;
            }
            None => {
                self.bytes += CALL_BYTES;
                let call = ToolCall { id: piece.id.to_owned(), name: String::new(), input: String::new() };
                self.calls.push(OpenCall { index: piece.index, call });
                self.calls.len() - 1
            }
        };
        let (name, arguments) = (self.admit(piece.name), self.admit(piece.arguments));
        let call = &mut self.calls[position].call;
        call.name.push_str(name);
        call.input.push_str(arguments);
    }

    /// The part of `piece` that there is room for.
    fn admit<'a>(&mut self, piece: &'a str) -> &'a str {
        let room = limit::ANSWER_BYTES_MAX - self.bytes;
        let taken = if piece.len() > room { &piece[..piece.floor_char_boundary(room)] } else { piece };
        self.full |= taken.len() < piece.len();
        self.bytes += taken.len();
        taken
    }

    /// Notes the provider's own token counts.
    pub fn set_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Notes why the model stopped; the first reason counts.
    pub fn set_stop(&mut self, stop: StopReason) {
        self.stop.get_or_insert(stop);
    }

    /// True once the model has said why it stopped.
    #[must_use]
    pub const fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// True once the answer is cut: whatever else comes is not wanted.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// True once a reader has seen a piece of it, so that it cannot be begun anew.
    #[must_use]
    pub const fn is_given_out(&self) -> bool {
        self.given_out
    }

    /// Forgets everything, for another try. Not to be called once pieces are given out.
    pub fn clear(&mut self) {
        *self = Self { outlet: self.outlet.take(), ..Self::default() };
    }

    /// True once anything of an answer has come: it will be billed, whether the rest comes or not.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.bytes > 0 || self.usage.is_some()
    }

    /// The tokens of what has come so far: the provider's own counts, or an estimate with `prompt_tokens` as the prompt's
    /// share. Nothing before anything has come.
    #[must_use]
    pub fn usage_so_far(&self, prompt_tokens: u64) -> Usage {
        let bytes = u64::try_from(self.bytes).unwrap_or(u64::MAX);
        let estimate = || Usage::of(prompt_tokens, bytes.div_ceil(4));
        if self.has_begun() { self.usage.unwrap_or_else(estimate) } else { Usage::default() }
    }

    /// The answer as written so far. Usage that the provider did not give is estimated by the rule of
    /// [`agentsvc_systems::prompt::text_tokens`], with `prompt_tokens` as the prompt's share.
    #[must_use]
    pub fn into_answer(self, attempt: Attempt, prompt_tokens: u64, provider: &str, model: &str) -> ModelAnswer {
        let mut calls: Vec<ToolCall> = self.calls.into_iter().map(|open| open.call).collect();
        make_ids_unique(&mut calls, attempt);
        let stop = match self.stop.unwrap_or_default() {
            _ if self.full => StopReason::Length,
            // Some providers say `stop` beside tool calls, some say `tool_calls` without any.
            StopReason::End if !calls.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if calls.is_empty() => StopReason::End,
            stop => stop,
        };
        let mut blocks = Vec::with_capacity(calls.len() + 1);
        if !self.text.is_empty() {
            blocks.push(Block::Text { text: self.text });
        }
        blocks.extend(calls.into_iter().map(Block::ToolCall));
        let estimate = || Usage::of(prompt_tokens, answer_tokens(&blocks));
        let usage = self.usage.unwrap_or_else(estimate);
        ModelAnswer {
            usage,
            provider: provider.to_owned(),
            model: model.to_owned(),
            stop,
            blocks,
            pressed: false,
            before: Vec::new(),
        }
    }
}

/// Gives an id of its own to every call that has none or another's: results are matched by it.
fn make_ids_unique(calls: &mut [ToolCall], attempt: Attempt) {
    for at in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(at);
        let call = &mut rest[0];
        if call.id.is_empty() || before.iter().any(|other| other.id == call.id) {
            call.id = format!("call_{}_{at}", attempt.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::TurnId;
    use agentsvc_components::effect::Attempt;
    use agentsvc_components::limit;
    use agentsvc_components::message::{Block, Usage, text_of};
    use agentsvc_components::outcome::{ModelAnswer, StopReason};

    use super::{CallPiece, Draft};

    fn answer(draft: Draft) -> ModelAnswer {
        draft.into_answer(Attempt { turn: TurnId(uuid::Uuid::nil()), number: 7 }, 11, "p", "m")
    }

    fn calls(answer: &ModelAnswer) -> Vec<(&str, &str, &str)> {
        let calls = answer.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some((call.id.as_str(), call.name.as_str(), call.input.as_str())),
            _ => None,
        });
        calls.collect()
    }

    fn piece<'a>(index: Option<u32>, id: &'a str, name: &'a str, arguments: &'a str) -> CallPiece<'a> {
        CallPiece { index, id, name, arguments }
    }

    #[test]
    fn pieces_of_parallel_calls_find_their_call() {
        let mut draft = Draft::default();
        draft.push_call(piece(Some(0), "a", "one", ""));
        draft.push_call(piece(Some(1), "b", "two", "{\"x\""));
        draft.push_call(piece(Some(0), "", "", "{}"));
        draft.push_call(piece(Some(1), "", "", ":1}"));
        let answer = answer(draft);
        assert_eq!(calls(&answer), [("a", "one", "{}"), ("b", "two", "{\"x\":1}")]);
        assert_eq!(answer.stop, StopReason::ToolUse);
    }

    #[test]
    fn calls_without_indexes_or_ids_are_told_apart() {
        let mut draft = Draft::default();
        draft.push_call(piece(None, "same", "one", "{"));
        draft.push_call(piece(None, "", "", "}"));
        draft.push_call(piece(None, "same", "two", "{}"));
        draft.push_call(piece(None, "", "three", "{}"));
        let ids = [("same", "one", "{}"), ("call_7_1", "two", "{}"), ("call_7_2", "three", "{}")];
        assert_eq!(calls(&answer(draft)), ids);
    }

    #[test]
    fn usage_is_the_providers_or_estimated() {
        let mut draft = Draft::default();
        draft.push_text("12345678");
        assert_eq!(answer(draft).usage, Usage::of(11, 2));
        let mut draft = Draft::default();
        draft.set_usage(Usage::of(1, 2));
        assert_eq!(answer(draft).usage, Usage::of(1, 2));
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        let mut draft = Draft::default();
        draft.push_text(&"x".repeat(limit::ANSWER_BYTES_MAX - 1));
        assert!(!draft.is_full());
        draft.push_text("\u{e9}more");
        assert!(draft.is_full());
        draft.set_stop(StopReason::End);
        let answer = answer(draft);
        assert_eq!((answer.stop, text_of(&answer.blocks).len()), (StopReason::Length, limit::ANSWER_BYTES_MAX - 1));
    }

    #[test]
    fn calls_are_bounded() {
        let mut draft = Draft::default();
        (0..10_000).for_each(|index| draft.push_call(piece(Some(index), "", "t", "{}")));
        assert!(draft.is_full());
        assert!(calls(&answer(draft)).len() <= super::CALLS_MAX);
    }
}
