//! The answer while it is written. It outlives the driver's future, so that an aborted call still has its text.

use std::collections::HashSet;
use std::sync::Arc;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Block, Reasoning, ToolCall, Usage};
use agentsvc_components::turn::outcome::{ModelAnswer, StopReason};
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::usage::TokensMax;
use agentsvc_components::{SessionId, TurnId};
use agentsvc_systems::prompt::answer_tokens;

use super::provider::Target;
use crate::turn::stream::Publish;

/// Tool calls that one answer is read for; beyond it the answer is cut. More than the world runs, so that those over
/// its own bound are still answered with an error, but bounded.
const CALLS_MAX: usize = 4 * limit::TOOL_CALLS_PER_ANSWER_MAX;
/// Bytes of the id of a tool call. Some gateways hide what a model has thought in it; a longer one is replaced.
const CALL_ID_BYTES_MAX: usize = 4 << 10;
/// Bytes of the name of a tool in a call; no tool has a longer one. The rest of it is left out.
const CALL_NAME_BYTES_MAX: usize = 128;
/// Bytes that a piece of the answer counts beside its text.
const PIECE_BYTES: usize = 64;

/// Where the pieces of an answer go while it is written.
pub struct Outlet {
    /// The door of the stream hub.
    pub publish: Publish,
    /// The session that is watched.
    pub session: SessionId,
    /// The turn that speaks.
    pub turn: TurnId,
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

/// A piece of the answer, in the order in which they began.
#[derive(Debug)]
enum Piece {
    Text(String),
    Call(OpenCall),
    Thought(Thought),
}

/// What the model thinks.
#[derive(Debug, Default)]
struct Thought {
    text: String,
    /// The provider's own block.
    raw: String,
    /// It is whole; what comes belongs to another.
    is_closed: bool,
}

/// What bounds the tokens of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// The most that the prompt can have.
    pub(crate) prompt: u64,
    /// The bound of the answer that went with it.
    pub(crate) answer: Option<u32>,
    /// The model's context.
    pub(crate) context: u32,
}

/// The answer while it is written.
#[derive(Default)]
pub struct Draft {
    outlet: Option<Arc<Outlet>>,
    pieces: Vec<Piece>,
    calls: usize,
    usage: Option<Usage>,
    sent: Option<Sent>,
    /// The provider has counted the prompt only.
    is_uncounted: bool,
    stop: Option<StopReason>,
    /// Bytes of text and calls so far; at most [`limit::ANSWER_BYTES_MAX`].
    bytes: usize,
    /// Bytes beside them that a reader keeps of a thought that is not whole.
    kept: usize,
    full: bool,
    given_out: bool,
    /// Bytes that came and could not be read.
    unread: usize,
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
    pub fn new(outlet: Option<Arc<Outlet>>) -> Self {
        Self { outlet, ..Self::default() }
    }

    /// Adds text, and gives it out. What exceeds [`limit::ANSWER_BYTES_MAX`] is cut.
    pub fn push_text(&mut self, piece: &str) {
        let piece = self.admit(piece);
        if piece.is_empty() {
            return;
        }
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.push_str(piece);
        } else {
            // A text between other pieces counts little, and there are no more such than of those.
            self.pieces.push(Piece::Text(piece.to_owned()));
        }
        if let Some(outlet) = &self.outlet {
            outlet.chunk(piece.to_owned());
            self.given_out = true;
        }
    }

    /// Adds a piece of a tool call. A piece begins a new call when its index is new, or, from providers without
    /// indexes, when it has an id or a name of its own.
    pub fn push_call(&mut self, piece: CallPiece<'_>) {
        let goes_on = piece.index.is_some() || piece.id.is_empty() && piece.name.is_empty();
        let open =
            |open: &Piece| matches!(open, Piece::Call(call) if piece.index.is_none() || call.index == piece.index);
        let position = match self.pieces.iter().rposition(open).filter(|_| goes_on) {
            Some(position) => position,
            None if self.calls >= CALLS_MAX || !self.admit_piece() => {
                self.full = true;
                return;
            }
            None => {
                self.calls += 1;
                let id = if piece.id.len() <= CALL_ID_BYTES_MAX { piece.id } else { "" };
                let id = self.admit(id).to_owned();
                let call = ToolCall { id, name: String::new(), input: String::new() };
                self.pieces.push(Piece::Call(OpenCall { index: piece.index, call }));
                self.pieces.len() - 1
            }
        };
        let Piece::Call(OpenCall { call, .. }) = &self.pieces[position] else { return };
        let room = CALL_NAME_BYTES_MAX - call.name.len();
        let name = &piece.name[..piece.name.floor_char_boundary(room)];
        let (name, arguments) = (self.admit(name), self.admit(piece.arguments));
        if let Piece::Call(OpenCall { call, .. }) = &mut self.pieces[position] {
            call.name.push_str(name);
            call.input.push_str(arguments);
        }
    }

    /// Adds to what the model thinks. It is kept with the answer and not given out.
    pub fn push_thought(&mut self, piece: &str) {
        let piece = self.admit(piece);
        if !piece.is_empty()
            && let Some(thought) = self.open_thought()
        {
            thought.text.push_str(piece);
        }
    }

    /// May a reader keep so many more bytes of the thought that is being written, till [`Self::close_thought`]? Where there is
    /// no room for them the answer is cut.
    pub(crate) const fn keep(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes + self.kept + bytes <= limit::ANSWER_BYTES_MAX;
        if has_room {
            self.kept += bytes;
        } else {
            self.full = true;
        }
        has_room
    }

    /// The thought is whole, and `raw` is the provider's own block of it, as JSON text; empty where it has none. Without
    /// an open thought it is one whose text is not told. A block that there is no room for is left out.
    pub fn close_thought(&mut self, raw: &str) {
        self.kept = 0;
        let has_room = self.bytes + raw.len() <= limit::ANSWER_BYTES_MAX;
        self.full |= !has_room;
        let raw = if has_room { raw } else { "" };
        let is_open = matches!(self.pieces.last(), Some(Piece::Thought(thought)) if !thought.is_closed);
        if raw.is_empty() && !is_open {
            return;
        }
        self.bytes += raw.len();
        if let Some(thought) = self.open_thought() {
            raw.clone_into(&mut thought.raw);
            thought.is_closed = true;
        }
    }

    /// The thought that is being written; begins one when there is none. `None` when there is no room for it.
    fn open_thought(&mut self) -> Option<&mut Thought> {
        if !matches!(self.pieces.last(), Some(Piece::Thought(thought)) if !thought.is_closed) {
            if !self.admit_piece() {
                self.full = true;
                return None;
            }
            self.pieces.push(Piece::Thought(Thought::default()));
        }
        if let Some(Piece::Thought(thought)) = self.pieces.last_mut() { Some(thought) } else { None }
    }

    /// Is there room for one more piece?
    const fn admit_piece(&mut self) -> bool {
        let has_room = self.bytes + PIECE_BYTES <= limit::ANSWER_BYTES_MAX;
        if has_room {
            self.bytes += PIECE_BYTES;
        }
        has_room
    }

    /// The part of `piece` that there is room for.
    fn admit<'a>(&mut self, piece: &'a str) -> &'a str {
        let room = limit::ANSWER_BYTES_MAX - self.bytes;
        let taken = if piece.len() > room { &piece[..piece.floor_char_boundary(room)] } else { piece };
        self.full |= taken.len() < piece.len();
        self.bytes += taken.len();
        taken
    }

    /// Gives the calls of the tool `from` the name `to`.
    pub(crate) fn rename_calls(&mut self, from: &str, to: &str) {
        for piece in &mut self.pieces {
            if let Piece::Call(OpenCall { call, .. }) = piece
                && call.name == from
            {
                to.clone_into(&mut call.name);
            }
        }
    }

    /// Notes what went out.
    pub(crate) const fn note_sent(&mut self, sent: Sent) {
        self.sent = Some(sent);
    }

    /// The most tokens that the call can have had: no text has more than bytes. A provider that does not keep to the bound of
    /// the answer may count what it wrote.
    pub fn tokens_max(&self) -> Option<TokensMax> {
        let Sent { prompt, answer, context } = self.sent?;
        let written = (self.bytes.saturating_add(self.unread) as u64).min(context.into());
        Some(TokensMax { input: prompt, output: answer.map(|bound| u64::from(bound).max(written)) })
    }

    /// Notes the provider's own token counts.
    pub fn set_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
        self.is_uncounted = false;
    }

    /// Notes the provider's own counts of the prompt, before the answer. Until [`Self::set_usage`] the answer's tokens are
    /// estimated, for it may break off.
    pub fn set_prompt_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
        self.is_uncounted = true;
    }

    /// Notes so many bytes that could not be read: whoever sent them bills them.
    pub fn note_unread(&mut self, bytes: usize) {
        self.unread = self.unread.saturating_add(bytes);
    }

    /// The counts, with `prompt_tokens` and `output_tokens` where the provider's are not known or nothing: nothing is free
    /// because it was not counted.
    fn counted(&self, prompt_tokens: u64, output_tokens: u64) -> Usage {
        let told = self.usage.unwrap_or_default();
        Usage {
            input_tokens: if told.input_tokens == 0 { prompt_tokens } else { told.input_tokens },
            output_tokens: match told.output_tokens {
                tokens if self.is_uncounted => tokens.max(output_tokens),
                0 => output_tokens,
                tokens => tokens,
            },
            ..told
        }
    }

    /// Notes why the model stopped; the first reason counts.
    pub fn set_stop(&mut self, stop: StopReason) {
        self.stop.get_or_insert(stop);
    }

    /// True once the model has said why it stopped.
    pub const fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// True once the answer is cut: whatever else comes is not wanted.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes of the answer so far, and of what a reader keeps of it.
    pub(crate) const fn written(&self) -> usize {
        self.bytes + self.kept
    }

    /// True once a reader has seen a piece of it, so that it cannot be begun anew.
    pub const fn is_given_out(&self) -> bool {
        self.given_out
    }

    /// Forgets everything, for another try. Not to be called once pieces are given out.
    pub fn clear(&mut self) {
        *self = Self { outlet: self.outlet.take(), ..Self::default() };
    }

    /// True once anything of an answer has come: it will be billed, whether the rest comes or not.
    pub const fn has_begun(&self) -> bool {
        self.bytes > 0 || self.usage.is_some() || self.unread > 0
    }

    /// The tokens of what has come so far: the provider's own counts, or an estimate with `prompt_tokens` as the prompt's
    /// share. Nothing before anything has come.
    pub fn usage_so_far(&self, prompt_tokens: u64) -> Usage {
        let bytes = u64::try_from(self.bytes.saturating_add(self.unread)).unwrap_or(u64::MAX);
        if self.has_begun() { self.counted(prompt_tokens, bytes.div_ceil(4)) } else { Usage::default() }
    }

    /// The answer, or the call, has ended without the provider's own counts, and money is reserved for it: a provider may bill
    /// all of it, however little was seen. It counts as the bound of the answer that was sent, so that calls that are
    /// stopped again and again pass no limit. Nothing where nothing was sent.
    pub(crate) fn assume_all(&mut self, prompt_tokens: u64) {
        let Some(Sent { answer, context, .. }) = self.sent else { return };
        if self.usage.is_some() && !self.is_uncounted {
            return;
        }
        let seen = self.usage_so_far(prompt_tokens);
        let told = self.usage.unwrap_or_default();
        let input_tokens = if told.input_tokens == 0 { prompt_tokens } else { told.input_tokens };
        let output_tokens = seen.output_tokens.max(answer.unwrap_or(context).into());
        self.set_usage(Usage { input_tokens, output_tokens, ..told });
    }

    /// The answer as written so far. Usage that the provider did not give is estimated by the rule of
    /// [`agentsvc_systems::prompt::text_tokens`], with `prompt_tokens` as the prompt's share.
    pub fn into_answer(mut self, attempt: Attempt, prompt_tokens: u64, target: &Target) -> ModelAnswer {
        let Target { provider, model, .. } = target;
        if self.usage.is_none() {
            tracing::info!(%provider, %model, "the provider told no token counts; they are estimated");
        }
        make_ids_unique(&mut self.pieces, attempt);
        let has_calls = self.calls > 0;
        let stop = match self.stop.unwrap_or_default() {
            _ if self.full => StopReason::Length,
            // Some providers say `stop` beside tool calls, some say `tool_calls` without any.
            StopReason::End if has_calls => StopReason::ToolUse,
            StopReason::ToolUse if !has_calls => StopReason::End,
            stop => stop,
        };
        let pieces = std::mem::take(&mut self.pieces);
        let blocks: Vec<Block> = pieces.into_iter().map(|piece| block(piece, target)).collect();
        let usage = self.counted(prompt_tokens, answer_tokens(&blocks));
        ModelAnswer {
            usage,
            tokens_max: self.tokens_max(),
            provider: provider.to_string(),
            model: model.to_string(),
            stop,
            blocks,
            pressed: false,
            before: Vec::new(),
        }
    }
}

fn block(piece: Piece, target: &Target) -> Block {
    match piece {
        Piece::Text(text) => Block::Text { text },
        Piece::Call(open) => Block::ToolCall(open.call),
        Piece::Thought(Thought { text, raw, .. }) => {
            let wire = target.driver.as_str().to_owned();
            Block::Reasoning(Reasoning { wire, model: target.model.to_string(), text, raw })
        }
    }
}

/// Gives an id of its own to every call that has none or another's: results are matched by it.
fn make_ids_unique(pieces: &mut [Piece], attempt: Attempt) {
    let calls = pieces.iter_mut().filter_map(|piece| if let Piece::Call(open) = piece { Some(open) } else { None });
    let mut seen = HashSet::new();
    for (at, OpenCall { call, .. }) in calls.enumerate() {
        if call.id.is_empty() || seen.contains(&call.id) {
            call.id = format!("call_{}_{at}", attempt.number);
        }
        seen.insert(call.id.clone());
    }
}

#[cfg(test)]
#[path = "draft_tests.rs"]
mod tests;
