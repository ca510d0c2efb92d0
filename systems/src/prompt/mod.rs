//! The prompt: a projection of a session's log under a token budget. It always fits, and the log stays whole.
//!
//! | rule | why |
//! |---|---|
//! | the newest messages win | the model must see what it is asked |
//! | the last user message is always there, shortened only when it alone is too long | it is the question |
//! | a tool call and its results are one unit: both or neither | providers refuse one without the other |
//! | a call without a result gets one that says it did not run | the same; a stop leaves such calls |
//! | the first message is a user's | providers refuse other beginnings |
//! | user messages that follow each other are one | some providers refuse two in a row |
//! | the summary of a compacted history is the first message, with at most a quarter of the budget | it stands for all before |
//! | the system text depends on the agent alone, never on time or history | providers cache equal beginnings |
//! | a history too long begins at a mark, about every eighth turn, if half of it stays | the same: it seldom moves |
//!
//! Which system prompt an agent has is the other half: its versions, and experiments that give sessions one of several.
//!
//! | rule | why |
//! |---|---|
//! | a version never changes; to activate one is to give the agent its text | whatever shows or copies an agent shows the prompt that it has |
//! | the variant of a session follows from a hash of both ids and the shares | nothing is kept for a session, and it is the same after a restart |
//! | a turn chooses at its first model call, and stores the choice | what happens to the experiment meanwhile changes no turn halfway |
//! | a turn counts in the step in which it ends | it counts once, whatever happens to the process |
//! | the newest turns of an experiment are kept, those alone | feedback on a turn counts once, and memory is bounded |
//!
//! How tokens are counted is the caller's business ([`Tokens`]). Nothing is counted while even one token for each byte
//! would fit, which is how most prompts are made; beyond that, no more is counted than the budget holds.

mod assign;
pub mod audit_kinds;
pub mod error_codes;
mod experiment;
mod impression;
mod index;
pub mod limits;
mod list;
mod merge;
mod metrics;
#[cfg(test)]
mod share_tests;
pub mod significance;
mod tokens;
mod unit;
mod version;
#[cfg(test)]
mod version_tests;

pub(crate) use assign::for_call;
pub use experiment::{
    CompletePromptExperiment, CreatePromptExperiment, DeletePromptExperiment, NewVariant, PausePromptExperiment,
    StartPromptExperiment,
};
pub(crate) use impression::turn_ended;
pub use impression::{GivePromptFeedback, PromptImpressionView};
pub use list::{PromptExperimentView, PromptVersionView};
pub use version::{ActivatePromptVersion, DeletePromptVersion, SavePromptVersion};

pub use merge::{SEPARATOR, merged};
pub use tokens::{
    Dense, Estimate, IMAGE_TOKENS, MESSAGE_TOKENS, TOOL_BLOCK_TOKENS, Tokens, answer_tokens, cost as message_cost,
    message_tokens, shorten, shorten_to, text_tokens,
};
pub use unit::NOT_RUN;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::Manifest;
use agentsvc_components::prompt::{
    PromptExperiment, PromptExperimentId, PromptImpression, PromptImpressionId, PromptVersion, PromptVersionId,
};
use agentsvc_components::session::message::{Block, ChatMessage, Role, text_of};
use agentsvc_components::session::message_record::MessageRecord;

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Kind, restore_components};
use unit::{Unit, units};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "config", "manifest", "session", "turn"],
    kinds: &[
        Kind::component::<PromptVersion>(),
        Kind::component::<PromptExperiment>(),
        Kind::component::<PromptImpression>(),
    ],
    restore: &[
        (Phase::Owned, restore_components::<PromptVersion>),
        (Phase::Owned, restore_components::<PromptExperiment>),
        (Phase::Owned, restore_components::<PromptImpression>),
    ],
    install: |world| {
        entities::install::<PromptVersion>(world);
        entities::install::<PromptExperiment>(world);
        entities::install::<PromptImpression>(world);
        on(world, |world, gone: &Removed<AgentId>| experiment::agent_removed(world, gone.id));
    },
    measures: &[
        Measure::of::<PromptVersionId>("prompt_versions", |w, at| of(w, at, PromptVersion::bytes), entries(32, 2)),
        Measure::of::<PromptExperimentId>(
            "prompt_experiments",
            |w, at| of(w, at, PromptExperiment::bytes),
            entries(32, 3),
        ),
        Measure::of::<PromptImpressionId>(
            "prompt_impressions",
            |w, at| of(w, at, PromptImpression::bytes),
            entries(32, 3),
        ),
    ],
    check: index::check,
    commands: &[
        CommandDef::of::<ActivatePromptVersion>(),
        CommandDef::of::<CompletePromptExperiment>(),
        CommandDef::of::<CreatePromptExperiment>(),
        CommandDef::of::<DeletePromptExperiment>(),
        CommandDef::of::<DeletePromptVersion>(),
        CommandDef::of::<GivePromptFeedback>(),
        CommandDef::of::<PausePromptExperiment>(),
        CommandDef::of::<SavePromptVersion>(),
        CommandDef::of::<StartPromptExperiment>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("prompt")
};

/// How a summary begins, in a prompt and where a session is shown.
pub const SUMMARY_TITLE: &str = "[Summary of the earlier conversation]";

/// What a model is asked, before any provider's wire format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The system text; may be empty.
    pub system: String,
    /// The conversation, oldest first; begins with a user message unless it is empty.
    pub messages: Vec<ChatMessage>,
    /// The estimate for both, by [`message_tokens`].
    pub estimated_tokens: u64,
    /// Earlier messages were left out for want of room.
    pub is_cut: bool,
}

/// What a prompt is made of.
pub struct Source<'a> {
    /// The agent's manifest: the system text, and how many messages it wants at most.
    pub manifest: &'a Manifest,
    /// The agent's name.
    pub agent_name: &'a str,
    /// What stands for the messages before `records`.
    pub summary: Option<&'a str>,
    /// The newest part of the log, oldest first.
    pub records: Vec<MessageRecord>,
    /// Tokens that the prompt may have.
    pub tokens_max: u64,
    /// Counts them.
    pub tokens: &'a dyn Tokens,
}

/// A summary as a message shows it.
#[must_use]
pub fn summary_text(summary: &str) -> String {
    format!("{SUMMARY_TITLE}\n{summary}")
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

/// Projects a log into a prompt that fits.
///
/// At most half the budget goes to the system text; what is longer is cut. `manifest.max_history_messages` bounds
/// the messages before the last user message; 0 leaves the summary out too. What does not fit is left out from the
/// oldest side.
#[must_use]
pub fn project(source: Source<'_>) -> Prompt {
    let Source { manifest, agent_name, summary, records, tokens_max, tokens } = source;
    let mut system = system_text(manifest, agent_name);
    let has_more = records.len() >= limit::PROMPT_MESSAGES_MAX;
    let mut head = units(records);
    let summary = summary.filter(|_| manifest.max_history_messages != Some(0));
    let summary_ceiling = summary.map_or(0, |text| MESSAGE_TOKENS + (SUMMARY_TITLE.len() + 1 + text.len()) as u64);
    let ceiling = MESSAGE_TOKENS
        + system.len() as u64
        + summary_ceiling
        + head.iter().map(Unit::ceiling).fold(0, u64::saturating_add);
    let mut budget = if ceiling <= tokens_max { Budget::ample() } else { Budget { left: tokens_max, tokens } };
    budget.system(&mut system);
    let summary = summary.and_then(|text| budget.summary(text));

    let mut newest_first = Vec::with_capacity(head.len() * 2);
    let mut is_cut = false;
    if let Some(anchor) = head.iter().rposition(Unit::is_user) {
        let tail = head.split_off(anchor + 1);
        if let Some(question) = head.pop().and_then(|unit| budget.question(unit, !tail.is_empty())) {
            let tail_fits = budget.tail(tail, &mut newest_first);
            newest_first.push(question);
            is_cut = if tail_fits {
                budget.history(head, manifest.max_history_messages, has_more, &mut newest_first)
            } else {
                !head.is_empty()
            };
        }
    }
    while newest_first.last().is_some_and(|message| message.role != Role::User) {
        newest_first.pop();
    }
    let summary = summary.filter(|_| !newest_first.is_empty());
    let has_summary = summary.is_some();
    newest_first.extend(summary);
    let messages = merge::opened(newest_first.into_iter().rev(), has_summary);
    let estimated_tokens = system_tokens(&system) + messages.iter().map(message_tokens).sum::<u64>();
    Prompt { system, messages, estimated_tokens, is_cut }
}

fn system_tokens(system: &str) -> u64 {
    if system.is_empty() { 0 } else { MESSAGE_TOKENS + text_tokens(system.len()) }
}

/// Counts nothing: everything fits.
struct Ample;

impl Tokens for Ample {
    fn count(&self, _: &str, _: u64) -> Option<u64> {
        Some(0)
    }
}

/// The tokens not yet given out.
struct Budget<'a> {
    left: u64,
    tokens: &'a dyn Tokens,
}

impl Budget<'_> {
    /// A budget that has room for everything.
    const fn ample() -> Self {
        Budget { left: u64::MAX, tokens: &Ample }
    }

    /// Takes the system text, cut to half of all tokens.
    fn system(&mut self, system: &mut String) {
        if system.is_empty() {
            return;
        }
        let share = (self.left / 2).saturating_sub(MESSAGE_TOKENS);
        shorten_to(self.tokens, system, share);
        let text = self.tokens.count(system, share).unwrap_or(share);
        if !system.is_empty() {
            self.left = self.left.saturating_sub(MESSAGE_TOKENS + text);
        }
    }

    /// Takes the summary as a message, cut to a quarter of what is left; `None` when there is no room even for its
    /// title.
    fn summary(&mut self, summary: &str) -> Option<ChatMessage> {
        let share = (self.left / 4).checked_sub(MESSAGE_TOKENS)?;
        let title = self.tokens.count(&summary_text(""), share)?;
        let mut summary = summary.to_owned();
        // A tokenizer may count the whole a little dearer than its parts.
        shorten_to(self.tokens, &mut summary, (share - title).saturating_sub(2));
        let text = summary_text(&summary);
        let tokens = self.tokens.count(&text, share)?;
        self.left -= MESSAGE_TOKENS + tokens;
        Some(ChatMessage::text(Role::User, text))
    }

    /// Takes the last user message; shortened when it is too long for its share, `None` when nothing of it fits.
    fn question(&mut self, unit: Unit, shares: bool) -> Option<ChatMessage> {
        let share = if shares { self.left / 2 } else { self.left };
        let mut message = unit.message;
        let cost = tokens::cost(self.tokens, &message, share);
        let cost = match cost {
            Some(cost) => cost,
            None => {
                message = fitted(self.tokens, &message, share)?;
                tokens::cost(self.tokens, &message, share)?
            }
        };
        self.left -= cost;
        Some(message)
    }

    /// Takes what the turn did since the question, newest first; false when some of it had to be left out.
    fn tail(&mut self, tail: Vec<Unit>, out: &mut Vec<ChatMessage>) -> bool {
        for (age, mut unit) in tail.into_iter().rev().enumerate() {
            let mut cost = unit.cost(self.tokens, self.left);
            if cost.is_none() && age == 0 {
                unit.shorten_results(self.tokens, self.left);
                cost = unit.cost(self.tokens, self.left);
            }
            let Some(cost) = cost else { return false };
            self.left -= cost;
            unit.push_newest_first(out);
        }
        true
    }

    /// Takes what was said before the question, newest first, at most `rows_max` rows. `has_more` says that the log
    /// began before `head`. True when the tokens, not the rows, set the end.
    fn history(
        &mut self,
        mut head: Vec<Unit>,
        rows_max: Option<u32>,
        has_more: bool,
        out: &mut Vec<ChatMessage>,
    ) -> bool {
        let (mut start, mut left) = (head.len(), self.left);
        let mut rows_left = rows_max.map_or(usize::MAX, |rows| rows as usize);
        let mut is_cut = has_more;
        while let Some(unit) = start.checked_sub(1).map(|older| &mut head[older]) {
            if unit.rows() > rows_left {
                // So many were asked for: no fewer for the sake of a mark.
                is_cut = false;
                break;
            }
            let Some(cost) = unit.cost(self.tokens, left) else {
                is_cut = true;
                break;
            };
            unit.tokens = cost;
            rows_left -= unit.rows();
            (start, left) = (start - 1, left - cost);
        }
        if is_cut {
            start += steps_to_mark(&head[start..]);
        }
        for unit in head.drain(start..).rev() {
            self.left -= unit.tokens;
            unit.push_newest_first(out);
        }
        is_cut
    }
}

/// The message cut to at most `tokens_max`: one text, shortened in its middle, and behind it the first images, as many
/// as half of the tokens have room for.
fn fitted(tokens: &dyn Tokens, message: &ChatMessage, tokens_max: u64) -> Option<ChatMessage> {
    let left = tokens_max.checked_sub(MESSAGE_TOKENS)?;
    let images: Vec<Block> =
        message.blocks.iter().filter(|block| matches!(block, Block::Image { .. })).cloned().collect();
    let kept = images.len().min(usize::try_from(left / 2 / IMAGE_TOKENS).unwrap_or(usize::MAX));
    let mut text = text_of(&message.blocks);
    shorten_to(tokens, &mut text, left - kept as u64 * IMAGE_TOKENS);
    let mut blocks = vec![Block::Text { text }];
    blocks.extend(images.into_iter().take(kept));
    Some(ChatMessage { role: message.role, blocks })
}

/// How many of the oldest units to leave out so that the rest begins at a mark; 0 when that would cost more than half.
fn steps_to_mark(units: &[Unit]) -> usize {
    let total: u64 = units.iter().map(Unit::ceiling).sum();
    let mut left = total;
    for (at, unit) in units.iter().enumerate() {
        if left < total / 2 {
            break;
        }
        if unit.is_mark {
            return at;
        }
        left -= unit.ceiling();
    }
    0
}

#[cfg(test)]
mod tests;
