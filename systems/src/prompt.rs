//! The prompt: a projection of a session's log under a token budget. It always fits, and the log stays whole.
//!
//! | rule | why |
//! |---|---|
//! | the newest messages win | the model must see what it is asked |
//! | the last user message is always there, shortened only when it alone is too long | it is the question |
//! | a tool call and its results are one unit: both or neither | providers refuse one without the other |
//! | a call without a result gets one that says it did not run | the same; a stop leaves such calls |
//! | the first message is a user's | providers refuse other beginnings |
//! | the system text depends on the agent alone, never on time or history | providers cache equal beginnings |
//! | a history too long begins at a mark, about every eighth turn, if half of it stays | the same: it seldom moves |
//!
//! Tokens are estimated, not counted, by [`text_tokens`]: tokenizers differ per model, and the estimate must cost
//! nothing. Callers leave a margin (see `src/effects/model`).

use agentsvc_components::limit;
use agentsvc_components::manifest::Manifest;
use agentsvc_components::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_components::record::MessageRecord;

use crate::said;

/// Tokens that a message costs beside its text.
pub const MESSAGE_TOKENS: u64 = 4;
/// Tokens that a tool call or a tool result costs beside its text.
pub const TOOL_BLOCK_TOKENS: u64 = 8;
/// Bytes that an image counts as: about 1,000 tokens, whatever its size.
pub const IMAGE_BYTES: usize = 4_000;
/// One turn of so many is a mark, on average.
const MARK_EVERY: u8 = 8;
/// What the model reads as the result of a call that never ran.
pub const NOT_RUN: &str = "This call did not run: the turn was stopped before its result came.";

/// What a model is asked, before any provider's wire format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The system text; may be empty.
    pub system: String,
    /// The conversation, oldest first; begins with a user message unless it is empty.
    pub messages: Vec<ChatMessage>,
    /// The estimate for both, at most the budget given.
    pub estimated_tokens: u64,
}

/// The token estimate of a text of `bytes` UTF-8 bytes: one token per four bytes, rounded up.
///
/// English and code come out a little high, dense scripts (three bytes a character) a little low.
#[must_use]
pub const fn text_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// The token estimate of one message: its texts together, plus [`MESSAGE_TOKENS`], plus [`TOOL_BLOCK_TOKENS`] for
/// every tool call and result.
#[must_use]
pub fn message_tokens(message: &ChatMessage) -> u64 {
    blocks_tokens(&message.blocks)
}

/// The token estimate of an answer: the same rule as [`message_tokens`] without the message's own overhead.
#[must_use]
pub fn answer_tokens(blocks: &[Block]) -> u64 {
    blocks_tokens(blocks) - MESSAGE_TOKENS
}

fn blocks_tokens(blocks: &[Block]) -> u64 {
    let tool_blocks =
        blocks.iter().filter(|block| matches!(block, Block::ToolCall(_) | Block::ToolResult { .. })).count() as u64;
    let bytes = blocks.iter().map(block_bytes).sum();
    MESSAGE_TOKENS + tool_blocks * TOOL_BLOCK_TOKENS + text_tokens(bytes)
}

fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.name.len() + call.input.len(),
        Block::ToolResult { content, .. } => content.len(),
        Block::Image { .. } => IMAGE_BYTES,
    }
}

/// The system text of an agent: its own, or one sentence that names it, then how it presents itself.
#[must_use]
pub fn system_text(manifest: &Manifest, agent_name: &str) -> String {
    let mut text = if manifest.system_prompt.trim().is_empty() {
        let mut text = format!("You are {agent_name}, a helpful assistant.");
        if !manifest.description.is_empty() {
            text.push(' ');
            text.push_str(&manifest.description);
        }
        text
    } else {
        manifest.system_prompt.to_string()
    };
    if !manifest.identity.persona.is_empty() {
        text.push_str("\n\nHow you present yourself: ");
        text.push_str(&manifest.identity.persona);
    }
    text
}

/// Projects the newest part of a log (`records`, oldest first) into a prompt of at most `tokens_max` tokens.
///
/// At most half the budget goes to the system text; what is longer is cut. `manifest.max_history_messages` bounds
/// the messages before the last user message. What does not fit is left out from the oldest side.
#[must_use]
pub fn project(manifest: &Manifest, agent_name: &str, records: Vec<MessageRecord>, tokens_max: u64) -> Prompt {
    let system = fitted_system(manifest, agent_name, tokens_max);
    let mut budget = Budget { left: tokens_max - system_tokens(&system) };
    let has_more = records.len() >= limit::PROMPT_MESSAGES_MAX;
    let mut head = units(records);
    let mut newest_first = Vec::with_capacity(head.len() * 2);
    if let Some(anchor) = head.iter().rposition(Unit::is_user) {
        let tail = head.split_off(anchor + 1);
        if let Some(question) = head.pop().and_then(|unit| budget.question(unit, !tail.is_empty())) {
            let all_fit = budget.tail(tail, &mut newest_first);
            newest_first.push(question);
            if all_fit {
                budget.history(head, manifest.max_history_messages, has_more, &mut newest_first);
            }
        }
    }
    while newest_first.last().is_some_and(|message| message.role != Role::User) {
        let dropped = newest_first.pop();
        budget.left += dropped.as_ref().map_or(0, message_tokens);
    }
    newest_first.reverse();
    Prompt { system, messages: newest_first, estimated_tokens: tokens_max - budget.left }
}

fn system_tokens(system: &str) -> u64 {
    if system.is_empty() { 0 } else { MESSAGE_TOKENS + text_tokens(system.len()) }
}

fn fitted_system(manifest: &Manifest, agent_name: &str, tokens_max: u64) -> String {
    let mut system = system_text(manifest, agent_name);
    let half = tokens_max / 2;
    if system_tokens(&system) > half {
        shorten(&mut system, bytes_of_tokens(half.saturating_sub(MESSAGE_TOKENS)));
    }
    system
}

/// What is kept or left out as one: a message, or an answer's tool calls with all their results.
struct Unit {
    message: ChatMessage,
    /// The results of the tool calls in `message`.
    results: Option<ChatMessage>,
    tokens: u64,
    /// A good place to begin a history that is cut. A user message is one by chance, decided by its turn's id (whose
    /// last bits are random), so that it stays one and the place moves only once in several turns.
    is_mark: bool,
}

impl Unit {
    fn is_user(&self) -> bool {
        self.message.role == Role::User
    }

    fn rows(&self) -> usize {
        1 + self.results.as_ref().map_or(0, |results| results.blocks.len())
    }

    fn push_newest_first(self, out: &mut Vec<ChatMessage>) {
        out.extend(self.results);
        out.push(self.message);
    }
}

/// Groups rows into units. Results without their call (its row lies beyond the rows read) and empty messages drop out.
fn units(records: Vec<MessageRecord>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(records.len());
    for record in records {
        match record.role {
            Role::Tool => {
                if let Some(unit) = units.last_mut() {
                    record.blocks.into_iter().for_each(|block| accept_result(unit, block));
                }
            }
            Role::User | Role::Assistant => {
                let is_user = record.role == Role::User;
                let blocks = if is_user { said::merged(record.blocks) } else { record.blocks };
                let message = ChatMessage { role: record.role, blocks };
                if message.blocks.iter().any(|block| block_bytes(block) > 0) {
                    let is_mark = is_user && record.turn.0.as_bytes()[15] % MARK_EVERY == 0;
                    units.push(Unit { message, results: None, tokens: 0, is_mark });
                }
            }
        }
    }
    units.iter_mut().for_each(close);
    units
}

fn calls(message: &ChatMessage) -> impl Iterator<Item = &ToolCall> {
    message.blocks.iter().filter_map(|block| if let Block::ToolCall(call) = block { Some(call) } else { None })
}

fn results_of(unit: &Unit, id: &str) -> usize {
    let results = unit.results.iter().flat_map(|results| &results.blocks);
    results.filter(|block| matches!(block, Block::ToolResult { call_id, .. } if call_id == id)).count()
}

/// Adds a result to the unit whose call it answers; a stray or second result is left out.
fn accept_result(unit: &mut Unit, block: Block) {
    let Block::ToolResult { call_id, .. } = &block else { return };
    let asked = calls(&unit.message).filter(|call| call.id == *call_id).count();
    if results_of(unit, call_id) < asked {
        let results = unit.results.get_or_insert_with(|| ChatMessage { role: Role::Tool, blocks: Vec::new() });
        results.blocks.push(block);
    }
}

/// Answers every call that has no result, and counts the unit.
fn close(unit: &mut Unit) {
    let missing: Vec<Block> = calls(&unit.message)
        .filter(|call| results_of(unit, &call.id) == 0)
        .map(|call| Block::ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: NOT_RUN.to_owned(),
            is_error: true,
        })
        .collect();
    for block in missing {
        accept_result(unit, block);
    }
    unit.tokens = message_tokens(&unit.message) + unit.results.as_ref().map_or(0, message_tokens);
}

/// The tokens not yet given out.
struct Budget {
    left: u64,
}

impl Budget {
    /// Takes the last user message; shortened when it is too long for its share, `None` when nothing of it fits.
    fn question(&mut self, unit: Unit, shares: bool) -> Option<ChatMessage> {
        let share = if shares { self.left / 2 } else { self.left };
        let mut message = unit.message;
        let mut tokens = unit.tokens;
        if tokens > share {
            message.blocks = said::fitted(message.blocks, share.checked_sub(MESSAGE_TOKENS)?);
            tokens = message_tokens(&message);
        }
        self.left = self.left.checked_sub(tokens)?;
        Some(message)
    }

    /// Takes what the turn did since the question, newest first; false when some of it had to be left out.
    fn tail(&mut self, tail: Vec<Unit>, out: &mut Vec<ChatMessage>) -> bool {
        for (age, mut unit) in tail.into_iter().rev().enumerate() {
            if unit.tokens > self.left && age == 0 {
                shorten_results(&mut unit, self.left);
            }
            if unit.tokens > self.left {
                return false;
            }
            self.left -= unit.tokens;
            unit.push_newest_first(out);
        }
        true
    }

    /// Takes what was said before the question, newest first, at most `rows_max` rows. `has_more` says that the log
    /// began before `head`.
    fn history(&mut self, mut head: Vec<Unit>, rows_max: Option<u32>, has_more: bool, out: &mut Vec<ChatMessage>) {
        let (mut start, mut left) = (head.len(), self.left);
        let mut rows_left = rows_max.map_or(usize::MAX, |rows| rows as usize);
        let mut is_cut = has_more;
        while let Some(unit) = start.checked_sub(1).map(|older| &head[older]) {
            if unit.rows() > rows_left {
                // So many were asked for: no fewer for the sake of a mark.
                is_cut = false;
                break;
            }
            let Some(rest) = left.checked_sub(unit.tokens) else {
                is_cut = true;
                break;
            };
            (start, left, rows_left) = (start - 1, rest, rows_left - unit.rows());
        }
        if is_cut {
            start += steps_to_mark(&head[start..]);
        }
        for unit in head.drain(start..).rev() {
            self.left -= unit.tokens;
            unit.push_newest_first(out);
        }
    }
}

/// How many of the oldest units to leave out so that the rest begins at a mark; 0 when that would cost more than half.
fn steps_to_mark(units: &[Unit]) -> usize {
    let total: u64 = units.iter().map(|unit| unit.tokens).sum();
    let mut left = total;
    for (at, unit) in units.iter().enumerate() {
        if left < total / 2 {
            break;
        }
        if unit.is_mark {
            return at;
        }
        left -= unit.tokens;
    }
    0
}

/// Shortens the longest results of a unit so that it costs at most `tokens_max`, where its calls leave room for that.
fn shorten_results(unit: &mut Unit, tokens_max: u64) {
    let Some(results) = &mut unit.results else { return };
    let count = results.blocks.len();
    let fixed = message_tokens(&unit.message) + MESSAGE_TOKENS + count as u64 * TOOL_BLOCK_TOKENS;
    let Some(spare) = tokens_max.checked_sub(fixed) else { return };
    let share = bytes_of_tokens(spare) / count;
    for block in &mut results.blocks {
        if let Block::ToolResult { content, .. } = block {
            shorten(content, share);
        }
    }
    unit.tokens = message_tokens(&unit.message) + message_tokens(results);
}

const fn bytes_of_tokens(tokens: u64) -> usize {
    tokens.saturating_mul(4) as usize
}

/// Cuts the middle out of `text` so that at most `bytes_max` bytes remain, and says so where there is room to.
///
/// Both ends stay: instructions stand at either end of a long text.
pub fn shorten(text: &mut String, bytes_max: usize) {
    if text.len() <= bytes_max {
        return;
    }
    let note = format!("\n[... {} bytes left out ...]\n", text.len() - bytes_max);
    let Some(kept) = bytes_max.checked_sub(note.len()) else {
        text.truncate(text.floor_char_boundary(bytes_max));
        return;
    };
    let head = text.floor_char_boundary(kept / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - (kept - kept / 3 * 2));
    text.replace_range(head..tail, &note);
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
