//! How long Claude may answer, and whether it thinks before, on Anthropic's API and on Bedrock.

use serde_json::{Map, Value};

use super::Request;
use super::alternate::{Part, Said};
use super::asked::{self, AnswerForm, ToolChoice};
use super::claude::Claude;

/// Tokens of an answer where neither the request nor the catalog bounds it; the protocol wants a bound.
const ANSWER_TOKENS_DEFAULT: u32 = 8_192;
/// Tokens that an answer is always given, however long the prompt is.
const ANSWER_TOKENS_MIN: u64 = 1_024;
/// The least that thinking may have; below it the protocol refuses.
const BUDGET_MIN: u32 = 1_024;
/// The most that thinking gets; beyond it answers take minutes.
const BUDGET_MAX: u32 = 16_384;

/// How the model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Still open.
    Off,
    /// As much as it wants.
    Adaptive,
    /// At most so many tokens, less than the answer's.
    Budget(u32),
}

/// The bound of an answer: the request's, else what the model can write and the prompt leaves room for.
pub(crate) fn answer_tokens(request: &Request<'_>) -> u32 {
    let target = request.target;
    let most = target.answer_tokens_max;
    if let Some(asked) = request.max_tokens {
        return asked.min(most.unwrap_or(u32::MAX)).max(1);
    }
    let tools: u64 = request.tools.iter().map(crate::tool::toolset::ToolSpec::tokens).sum();
    // The prompt is estimated, so a tenth stays free.
    let context = u64::from(target.context_tokens) / 10 * 9;
    let room = context.saturating_sub(request.prompt.estimated_tokens + tools).max(ANSWER_TOKENS_MIN);
    most.unwrap_or(ANSWER_TOKENS_DEFAULT).min(u32::try_from(room).unwrap_or(u32::MAX))
}

/// Whether and how the model thinks in an answer of `max_tokens` to `messages`.
pub(crate) fn thinking(
    request: &Request<'_>,
    parameters: &Map<String, Value>,
    messages: &[Said<'_>],
    max_tokens: u32,
) -> Thinking {
    let claude = Claude::of(&request.target.model);
    let can = claude.map_or(request.target.reasons, Claude::thinks);
    // A call that is forced leaves no room for thoughts.
    let is_forced = matches!(asked::tool_choice(request), Some(ToolChoice::Required | ToolChoice::Function(_)));
    if !can || is_forced || asked::effort(request, parameters).is_none() {
        return Thinking::Off;
    }
    if claude.is_some_and(Claude::thinks_adaptively) {
        return Thinking::Adaptive;
    }
    if max_tokens <= BUDGET_MIN || !begins_with_thoughts(messages) {
        return Thinking::Off;
    }
    Thinking::Budget((max_tokens / 2).clamp(BUDGET_MIN, BUDGET_MAX))
}

/// An answer whose calls are being run must begin with a thought; without, as when another model wrote it, thinking
/// begins with the next turn.
fn begins_with_thoughts(messages: &[Said<'_>]) -> bool {
    let Some([.., answer, results]) = messages.last_chunk::<2>() else { return true };
    let is_running = matches!(results.parts.first(), Some(Part::Result { .. }));
    !is_running || matches!(answer.parts.first(), Some(Part::Thought(_)))
}

/// What a model is told that cannot be held to a form.
pub(crate) fn instruction(form: &AnswerForm) -> String {
    match form {
        AnswerForm::Json => "Answer with one JSON object and nothing else.".to_owned(),
        AnswerForm::Schema { schema, .. } => {
            format!("Answer with one JSON value that fits this JSON schema, and with nothing else:\n{schema}")
        }
    }
}
