//! Rows of a log as units: what a prompt keeps or leaves out as one.

use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_components::session::message_record::MessageRecord;

use super::merge;
use super::tokens::{self, Tokens};
use crate::kernel::id_generator::is_drawn;

/// One turn of so many is a mark, on average.
const MARK_EVERY: u128 = 8;
/// What the model reads as the result of a call that never ran.
pub const NOT_RUN: &str = "This call did not run: the turn was stopped before its result came.";

/// A message, or an answer's tool calls with all their results.
pub(super) struct Unit {
    pub(super) message: ChatMessage,
    /// The results of the tool calls in `message`.
    pub(super) results: Option<ChatMessage>,
    /// What it costs; known once it is taken.
    pub(super) tokens: u64,
    /// A good place to begin a history that is cut. A user message is one by chance, decided by its turn's id, so that it stays one and the place moves only once in several turns.
    pub(super) is_mark: bool,
}

impl Unit {
    pub(super) fn is_user(&self) -> bool {
        self.message.role == Role::User
    }

    pub(super) fn rows(&self) -> usize {
        1 + self.results.as_ref().map_or(0, |results| results.blocks.len())
    }

    /// More tokens than it can have, whatever the tokenizer.
    pub(super) fn ceiling(&self) -> u64 {
        tokens::message_ceiling(&self.message) + self.results.as_ref().map_or(0, tokens::message_ceiling)
    }

    /// Its tokens, or `None` when they are more than `tokens_max`.
    pub(super) fn cost(&self, tokens: &dyn Tokens, tokens_max: u64) -> Option<u64> {
        let message = tokens::cost(tokens, &self.message, tokens_max)?;
        let Some(results) = &self.results else { return Some(message) };
        tokens::cost(tokens, results, tokens_max - message).map(|results| message + results)
    }

    pub(super) fn push_newest_first(self, out: &mut Vec<ChatMessage>) {
        out.extend(self.results);
        out.push(self.message);
    }

    /// Shortens the results so that the unit costs at most `tokens_max`, where its calls leave room for that.
    pub(super) fn shorten_results(&mut self, tokens: &dyn Tokens, tokens_max: u64) {
        let Some(message) = tokens::cost(tokens, &self.message, tokens_max) else { return };
        let Some(results) = &mut self.results else { return };
        let count = results.blocks.len() as u64;
        let fixed = message + tokens::MESSAGE_TOKENS + count * tokens::TOOL_BLOCK_TOKENS;
        let Some(spare) = tokens_max.checked_sub(fixed) else { return };
        for block in &mut results.blocks {
            if let Block::ToolResult { content, .. } = block {
                tokens::shorten_to(tokens, content, spare / count.max(1));
            }
        }
    }
}

/// Groups rows into units. Results without their call (its row lies beyond the rows read) and empty messages drop out;
/// so does what the model thought in turns that have ended: no provider needs it, and it would be paid for again.
pub(super) fn units(records: Vec<MessageRecord>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(records.len());
    let last_asked = records.iter().rposition(|record| record.role == Role::User).unwrap_or(0);
    for (at, mut record) in records.into_iter().enumerate() {
        if at < last_asked {
            record.blocks.retain(|block| !matches!(block, Block::Reasoning(_)));
        }
        match record.role {
            Role::Tool => {
                if let Some(unit) = units.last_mut() {
                    record.blocks.into_iter().for_each(|block| accept_result(unit, block));
                }
            }
            Role::User | Role::Assistant => {
                let is_user = record.role == Role::User;
                let blocks = if is_user { merge::merged(record.blocks) } else { record.blocks };
                let message = ChatMessage { role: record.role, blocks };
                if !tokens::is_empty(&message) {
                    let is_mark = is_user && is_drawn(record.turn.0, MARK_EVERY);
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

/// Answers every call that has no result.
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
}
