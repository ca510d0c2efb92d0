//! Versions of system prompts, and experiments that compare them (spec 3, Remaining routes).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, SessionId, uuid_id};
use crate::kernel::money::Micros;
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "prompt", uses: &[] };

uuid_id! {
    /// Names one version of a system prompt.
    PromptVersionId
}
uuid_id! {
    /// Names one experiment.
    PromptExperimentId
}
uuid_id! {
    /// Names one variant of an experiment.
    PromptVariantId
}
uuid_id! {
    /// Names one impression: the id of its turn.
    PromptImpressionId
}

/// A system prompt of an agent, as it was saved. It never changes.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptVersion {
    /// Whose.
    pub agent: AgentId,
    /// Its number, counted for each agent from 1.
    pub version: u32,
    /// The text.
    pub system_prompt: Box<str>,
    /// SHA-256 of the text.
    pub content_hash: [u8; 32],
    /// What changed, for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Box<str>,
    /// The tools that it was written for, for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: Vec<Box<str>>,
    /// The names of what people fill in before they use it, for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub variables: Vec<Box<str>>,
    /// When it was saved.
    pub created_at: Timestamp,
    /// Who saved it.
    pub created_by: Box<str>,
    /// It was activated, and no other one of the agent since then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_active: bool,
    /// Whose share of the versions it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(PromptVersion: b'V', PromptVersionId);

impl PromptVersion {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let lists = self.tools.iter().chain(&self.variables).map(|word| word.len());
        self.system_prompt.len() + self.description.len() + self.created_by.len() + lists.sum::<usize>()
    }
}

enum_words! {
    /// How far an experiment is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ExperimentStatus [ALL, as_str] {
        /// It was not started yet.
        #[default]
        Draft = "draft",
        /// Each session of the agent has one of its variants.
        Running = "running",
        /// Sessions have the agent's own prompt; started again, each has the same variant as before.
        Paused = "paused",
        /// It is over.
        Completed = "completed",
    }
}

/// When a turn counts as a win.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuccessCriteria {
    /// Only with feedback that says that it helped.
    pub require_user_helpful: bool,
    /// Only without failed tool calls.
    pub require_no_tool_errors: bool,
    /// Only with an answer that has text.
    pub require_non_empty: bool,
    /// Only with feedback of at least this score, 0 to 1.
    pub custom_min_score: Option<f32>,
}

impl Default for SuccessCriteria {
    fn default() -> Self {
        Self {
            require_user_helpful: false,
            require_no_tool_errors: true,
            require_non_empty: true,
            custom_min_score: None,
        }
    }
}

impl SuccessCriteria {
    /// Does a win need feedback?
    #[must_use]
    pub const fn needs_feedback(&self) -> bool {
        self.require_user_helpful || self.custom_min_score.is_some()
    }

    /// Is a turn a win that `met` what is judged at its end, with this feedback? Feedback that it did not help counts always.
    #[must_use]
    pub fn is_win(&self, met: bool, feedback: Option<Feedback>) -> bool {
        met && match feedback {
            None => !self.needs_feedback(),
            Some(Feedback { helpful, score }) => {
                helpful && self.custom_min_score.is_none_or(|least| score.is_some_and(|score| score >= least))
            }
        }
    }
}

/// What someone says of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// It helped.
    pub helpful: bool,
    /// How well, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
}

/// What is known of the turns of a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VariantTotals {
    /// Turns that ended.
    pub impressions: u64,
    /// Those that count as wins.
    pub wins: u64,
    /// Those that ended with an answer.
    pub succeeded: u64,
    /// Those that failed; the others were stopped.
    pub failed: u64,
    /// Those with feedback.
    pub rated: u64,
    /// What all of them cost.
    pub cost: Micros,
    /// Milliseconds from the first model call to the end, of all of them.
    pub latency_ms: u64,
}

/// One of the prompts that an experiment compares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptVariant {
    /// Names it.
    pub id: PromptVariantId,
    /// Its name within the experiment.
    pub name: Box<str>,
    /// More about it, for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Box<str>,
    /// Its prompt. The version of an experiment that is over may be deleted.
    pub version: PromptVersionId,
    /// Percent of the sessions; those of all variants are 100.
    pub share: u8,
    /// What is known of its turns.
    #[serde(default, skip_serializing_if = "is_default")]
    pub totals: VariantTotals,
}

/// Prompts of an agent that are compared.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptExperiment {
    /// Whose.
    pub agent: AgentId,
    /// Its name.
    pub name: Box<str>,
    /// Progress.
    pub status: ExperimentStatus,
    /// When a turn counts as a win.
    pub criteria: SuccessCriteria,
    /// What is compared; the others are compared with the first.
    pub variants: Vec<PromptVariant>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was first started.
    #[serde(default, skip_serializing_if = "is_default")]
    pub started_at: Option<Timestamp>,
    /// When it was completed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended_at: Option<Timestamp>,
    /// The variant that won, where one did.
    #[serde(default, skip_serializing_if = "is_default")]
    pub winner: Option<PromptVariantId>,
    /// Whose share of the experiments it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(PromptExperiment: b'Z', PromptExperimentId);

impl PromptExperiment {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let variants = self.variants.iter().map(|variant| variant.name.len() + variant.description.len());
        self.name.len() + variants.sum::<usize>()
    }

    /// The variant of this id.
    #[must_use]
    pub fn variant(&self, id: PromptVariantId) -> Option<&PromptVariant> {
        self.variants.iter().find(|variant| variant.id == id)
    }
}

/// A turn that ended in an experiment, as long as feedback can be given.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptImpression {
    /// In which experiment.
    pub experiment: PromptExperimentId,
    /// With which variant.
    pub variant: PromptVariantId,
    /// In which session.
    pub session: SessionId,
    /// When it ended.
    pub at: Timestamp,
    /// It met what is judged at the end of a turn.
    pub met: bool,
    /// It counts as a win.
    pub won: bool,
    /// What someone said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    /// Whose share of the impressions it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(PromptImpression: b'I', PromptImpressionId);

impl PromptImpression {
    /// It has no texts.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        0
    }
}

/// The variant that a turn has. It is chosen at the first model call of the turn and stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnVariant {
    /// Of which experiment.
    pub experiment: PromptExperimentId,
    /// Which.
    pub variant: PromptVariantId,
}
