//! What model calls sent lately, and what becomes of them: for traces, and for whoever waits for an answer. In memory only;
//! the oldest go when the prompts take too much.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::turn::sent::{SentCall, SentCalls, SentContent, SentTool, SentTry, Waiting};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::limit::{SENT_CALLS_BYTES_MAX, SENT_CALLS_MAX};
use agentsvc_components::session::message::{Block, ChatMessage};
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_components::{Timestamp, TurnId};
use parking_lot::Mutex;

use super::call::Prepared;
use super::error::CallError;
use super::pace::Pace;
use crate::tool::toolset::ToolSpec;

/// Bytes that a call takes beside what it sent.
const CALL_BYTES: usize = 512;

/// The calls.
pub(crate) struct SentLog {
    kept: Mutex<Kept>,
    pace: Arc<Pace>,
}

#[derive(Default)]
struct Kept {
    /// Oldest first.
    calls: VecDeque<Entry>,
    bytes: usize,
    /// The id of the newest.
    last: u64,
    /// The open call of each turn, by its id.
    open: HashMap<TurnId, u64>,
}

struct Entry {
    call: SentCall,
    bytes: usize,
    phase: Phase,
}

/// What a call does.
enum Phase {
    /// It waits until its provider may be asked.
    Waits,
    /// A try is out.
    Tries,
    /// It waits for the next try, since this failed.
    Pauses { until: Timestamp, code: FailureCode, message: Box<str> },
}

fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis())
}

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl SentLog {
    pub(crate) fn new(pace: Arc<Pace>) -> Self {
        Self { kept: Mutex::default(), pace }
    }

    /// A call is ready to go out.
    pub(super) fn begin(&self, call: &ModelCall, prepared: &Prepared) {
        let content =
            SentContent { prompt: prepared.prompt.clone(), tools: prepared.tools.iter().map(sent_tool).collect() };
        let bytes = bytes_of(&content);
        self.kept.lock().push(SentCall {
            id: 0,
            attempt: call.attempt,
            agent: call.agent,
            session: call.session,
            log: call.log,
            sent_at: now(),
            provider: prepared.target.provider.clone(),
            model: prepared.target.model.clone(),
            context_tokens: prepared.target.context_tokens,
            temperature: prepared.temperature,
            max_tokens: prepared.max_tokens,
            content: (bytes <= SENT_CALLS_BYTES_MAX / 8).then(|| Arc::new(content)),
            tries: Vec::new(),
        });
    }

    /// It waits for its provider.
    pub(super) fn waits(&self, attempt: Attempt) {
        self.kept.lock().change(attempt, |entry| entry.phase = Phase::Waits);
    }

    /// A try goes out.
    pub(super) fn tries(&self, attempt: Attempt) {
        self.kept.lock().change(attempt, |entry| entry.phase = Phase::Tries);
    }

    /// A try that took so long is over.
    pub(super) fn tried(&self, attempt: Attempt, took: Duration, error: Option<&CallError>) {
        let fault = error.map(|error| (error.code, error.message.as_str().into()));
        let one = SentTry { started_at: now().plus_ms(-ms(took)), duration_ms: ms(took).unsigned_abs(), fault };
        self.kept.lock().change(attempt, |entry| entry.call.tries.push(one));
    }

    /// It waits so long before the next try, because of `error`.
    pub(super) fn pauses(&self, attempt: Attempt, wait: Duration, error: &CallError) {
        let (until, code, message) = (now().plus_ms(ms(wait)), error.code, error.message.as_str().into());
        self.kept.lock().change(attempt, |entry| entry.phase = Phase::Pauses { until, code, message });
    }

    /// It has ended, whichever way.
    pub(super) fn over(&self, attempt: Attempt) {
        self.kept.lock().open.remove(&TurnId(attempt.job.0));
    }
}

impl SentCalls for SentLog {
    fn of_turn(&self, turn: TurnId) -> Vec<SentCall> {
        let kept = self.kept.lock();
        let of_turn = kept.calls.iter().filter(|entry| entry.call.attempt.job.0 == turn.0);
        of_turn.map(|entry| entry.call.clone()).collect()
    }

    fn waiting(&self, turn: TurnId) -> Option<Waiting> {
        let mut kept = self.kept.lock();
        let id = *kept.open.get(&turn)?;
        let entry = kept.find(id)?;
        let (provider, tries) = (entry.call.provider.clone(), entry.call.tries.len());
        let (until, code, message) = match &entry.phase {
            Phase::Tries => return None,
            Phase::Pauses { until, code, message } => (Some(*until), *code, message.clone()),
            Phase::Waits => {
                drop(kept);
                let held = self.pace.held_up(&provider)?;
                let until = held.wait.map(|wait| now().plus_ms(ms(wait)));
                return Some(Waiting { provider, code: held.code, message: held.message, until, tries });
            }
        };
        Some(Waiting { provider, code, message, until, tries })
    }
}

impl Kept {
    fn push(&mut self, call: SentCall) {
        self.last += 1;
        let bytes = CALL_BYTES + call.content.as_deref().map_or(0, bytes_of);
        self.bytes += bytes;
        self.open.insert(TurnId(call.attempt.job.0), self.last);
        self.calls.push_back(Entry { call: SentCall { id: self.last, ..call }, bytes, phase: Phase::Waits });
        while self.bytes > SENT_CALLS_BYTES_MAX || self.calls.len() > SENT_CALLS_MAX {
            let Some(oldest) = self.calls.pop_front() else { break };
            self.bytes -= oldest.bytes;
            let turn = TurnId(oldest.call.attempt.job.0);
            if self.open.get(&turn) == Some(&oldest.call.id) {
                self.open.remove(&turn);
            }
        }
    }

    /// Ids follow each other.
    fn find(&mut self, id: u64) -> Option<&mut Entry> {
        let first = self.calls.front()?.call.id;
        self.calls.get_mut(usize::try_from(id.checked_sub(first)?).ok()?)
    }

    fn change(&mut self, attempt: Attempt, change: impl FnOnce(&mut Entry)) {
        let id = self.open.get(&TurnId(attempt.job.0)).copied();
        if let Some(entry) = id.and_then(|id| self.find(id)).filter(|entry| entry.call.attempt == attempt) {
            change(entry);
        }
    }
}

fn sent_tool(tool: &ToolSpec) -> SentTool {
    SentTool {
        name: (*tool.name).into(),
        description: (*tool.description).into(),
        input_schema: Arc::clone(&tool.input_schema),
    }
}

/// About how much memory it takes.
fn bytes_of(content: &SentContent) -> usize {
    let block = |block: &Block| match block {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.name.len() + call.input.len(),
        Block::ToolResult { content, .. } => content.len(),
        Block::Reasoning(thought) => thought.text.len() + thought.raw.len(),
        Block::Image { .. } => 0,
    };
    let message = |message: &ChatMessage| 64 + message.blocks.iter().map(|one| 64 + block(one)).sum::<usize>();
    let tool = |tool: &SentTool| 64 + tool.name.len() + tool.description.len() + tool.input_schema.get().len();
    content.prompt.system.len()
        + content.prompt.messages.iter().map(message).sum::<usize>()
        + content.tools.iter().map(tool).sum::<usize>()
}

#[cfg(test)]
#[path = "sent_tests.rs"]
mod tests;
