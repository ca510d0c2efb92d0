//! The bodies of prompt versions and experiments.

use agentsvc_components::prompt::{
    Feedback, PromptExperimentId, PromptVariant, PromptVariantId, PromptVersionId, SuccessCriteria,
};
use agentsvc_components::{AgentId, SessionId, TurnId};
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::prompt::{
    CompletePromptExperiment, CreatePromptExperiment, GivePromptFeedback, NewVariant, PromptExperimentView,
    PromptImpressionView, PromptVersionView, SavePromptVersion,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::crud::shown;
use crate::http::error::Error;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

shape! {
    /// A version of a system prompt.
    pub(super) struct PromptVersionItem from view: PromptVersionView {
        let version = view.version;
    } {
        id: Uuid = view.id.0,
        agent_id: Uuid = version.agent.0,
        /// Number of the version, counted for each agent from 1.
        version: u32 = version.version,
        /// SHA-256 of the system prompt.
        content_hash: String = hex(&version.content_hash),
        system_prompt: Box<str> = version.system_prompt,
        /// Tools that it was written for; a note for people.
        tools: Vec<Box<str>> = version.tools,
        /// Names of what people fill in before they use it; a note for people.
        variables: Vec<Box<str>> = version.variables,
        created_at: Moment = Moment(version.created_at),
        /// Who saved it, as in the audit log.
        created_by: Box<str> = version.created_by,
        /// Whether the agent has this system prompt because this version was activated.
        is_active: bool = view.is_active,
        /// What changed.
        description: Box<str> = version.description,
    }
}

shown!(PromptVersionItem: PromptVersionView, "the version"; "versions", |call| call.id("agent_id"));

/// A version to save.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct VersionBody {
    /// System prompt, at most 64 KiB. Default: the one that the agent has.
    system_prompt: Option<String>,
    /// What changed, at most 1 KiB.
    description: Option<String>,
    /// Tools that it was written for; a note for people.
    tools: Vec<String>,
    /// Names of what people fill in before they use it; a note for people.
    variables: Vec<String>,
}

impl VersionBody {
    pub(super) fn command(self, agent: AgentId) -> SavePromptVersion {
        let Self { system_prompt, description, tools, variables } = self;
        let description = description.unwrap_or_default();
        SavePromptVersion { agent, system_prompt, description, tools, variables }
    }
}

/// Which agent is meant.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ActivateBody {
    /// The agent of the version; if given, another one is refused.
    pub(super) agent_id: Option<Uuid>,
}

/// With which version to compare.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct DiffQuery {
    /// The version to compare with, of the same agent. Default: the one before.
    pub(super) with: Option<Uuid>,
}

/// What changed between two versions.
#[derive(Serialize, JsonSchema)]
pub(super) struct DiffItem {
    /// The version to compare with; null if there is none before.
    pub(super) from_id: Option<Uuid>,
    pub(super) from_version: Option<u32>,
    pub(super) to_id: Uuid,
    pub(super) to_version: u32,
    /// Lines that were added.
    pub(super) added: usize,
    /// Lines that were removed.
    pub(super) removed: usize,
    /// The changes in unified form; empty if there are none.
    pub(super) diff: String,
}

/// When a turn counts as a win. It has to be done, not failed or stopped.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(super) struct Criteria {
    /// Only with feedback that it helped. Default: false.
    require_user_helpful: bool,
    /// Only without failed tool calls. Default: true.
    require_no_tool_errors: bool,
    /// Only with an answer that has text. Default: true.
    require_non_empty: bool,
    /// Only with feedback of at least this score, 0 to 1. Default: none.
    custom_min_score: Option<f32>,
}

impl From<SuccessCriteria> for Criteria {
    fn from(of: SuccessCriteria) -> Self {
        Self {
            require_user_helpful: of.require_user_helpful,
            require_no_tool_errors: of.require_no_tool_errors,
            require_non_empty: of.require_non_empty,
            custom_min_score: of.custom_min_score,
        }
    }
}

impl From<Criteria> for SuccessCriteria {
    fn from(of: Criteria) -> Self {
        Self {
            require_user_helpful: of.require_user_helpful,
            require_no_tool_errors: of.require_no_tool_errors,
            require_non_empty: of.require_non_empty,
            custom_min_score: of.custom_min_score,
        }
    }
}

impl Default for Criteria {
    fn default() -> Self {
        SuccessCriteria::default().into()
    }
}

/// One prompt of an experiment.
#[derive(Serialize, JsonSchema)]
pub(super) struct VariantItem {
    id: Uuid,
    name: Box<str>,
    prompt_version_id: Uuid,
    description: Box<str>,
}

impl From<PromptVariant> for VariantItem {
    fn from(of: PromptVariant) -> Self {
        let PromptVariant { id, name, description, version, .. } = of;
        Self { id: id.0, name, prompt_version_id: version.0, description }
    }
}

shape! {
    /// An experiment.
    pub(super) struct PromptExperimentItem from view: PromptExperimentView {
        let of = view.experiment;
    } {
        id: Uuid = view.id.0,
        name: Box<str> = of.name,
        agent_id: Uuid = of.agent.0,
        /// `draft`, `running`, `paused` or `completed`.
        status: &'static str = of.status.as_str(),
        /// Percent of the sessions, for each variant.
        traffic_split: Vec<u8> = of.variants.iter().map(|variant| variant.share).collect(),
        success_criteria: Criteria = of.criteria.into(),
        /// What is compared; the others are compared with the first.
        variants: Vec<VariantItem> = of.variants.into_iter().map(VariantItem::from).collect(),
        created_at: Moment = Moment(of.created_at),
        /// When it was first started.
        started_at: Option<Moment> = of.started_at.map(Moment),
        /// When it was completed.
        ended_at: Option<Moment> = of.ended_at.map(Moment),
        /// The variant that won; null before the end, and if none did.
        winner_variant_id: Option<Uuid> = of.winner.map(|id| id.0),
    }
}

shown!(PromptExperimentItem: PromptExperimentView, "the experiment"; "experiments", |call| call.id("agent_id"));

/// A prompt to compare.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct VariantBody {
    /// Name. Default: a letter.
    name: Option<String>,
    /// Required: a version of the agent's prompt.
    prompt_version_id: Option<Uuid>,
    /// More about it, at most 1 KiB.
    description: Option<String>,
}

/// An experiment to create.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ExperimentBody {
    /// Required: one line of at most 128 bytes.
    name: String,
    /// Required: 2 to 10 prompts to compare. The others are compared with the first.
    variants: Vec<VariantBody>,
    /// Percent of the sessions for each variant, 100 in all. Default: even.
    traffic_split: Vec<u8>,
    /// When a turn counts as a win.
    success_criteria: Criteria,
}

impl ExperimentBody {
    pub(super) fn command(self, agent: AgentId) -> CreatePromptExperiment {
        let variant = |of: VariantBody| NewVariant {
            name: of.name,
            description: of.description.unwrap_or_default(),
            version: of.prompt_version_id.map(PromptVersionId),
        };
        CreatePromptExperiment {
            agent,
            name: self.name,
            variants: self.variants.into_iter().map(variant).collect(),
            shares: self.traffic_split,
            criteria: self.success_criteria.into(),
        }
    }
}

/// How an experiment ends.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct CompleteBody {
    /// The variant that won. Default: the one that the figures show, if they show one.
    winner_variant_id: Option<Uuid>,
    /// Activate the version of the winner. Default: false.
    activate: bool,
}

impl CompleteBody {
    pub(super) fn command(self, experiment: PromptExperimentId) -> CompletePromptExperiment {
        let winner = self.winner_variant_id.map(PromptVariantId);
        CompletePromptExperiment { experiment, winner, activate: self.activate }
    }
}

/// What someone says of a turn. `turn_id` or `session_id` is required.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct FeedbackBody {
    /// The turn.
    turn_id: Option<Uuid>,
    /// The session; its newest turn in the experiment is meant.
    session_id: Option<Uuid>,
    /// Required: whether it helped.
    helpful: Option<bool>,
    /// How well, 0 to 1.
    score: Option<f32>,
}

impl FeedbackBody {
    pub(super) fn command(self, experiment: PromptExperimentId) -> Result<GivePromptFeedback, Error> {
        let Some(helpful) = self.helpful else { return Err(Error::bad_field("helpful", "helpful is missing")) };
        Ok(GivePromptFeedback {
            experiment,
            turn: self.turn_id.map(TurnId),
            session: self.session_id.map(SessionId),
            feedback: Feedback { helpful, score: self.score },
        })
    }
}

shape! {
    /// A turn with what was said of it.
    pub(super) struct ImpressionItem from view: PromptImpressionView {
        let of = view.impression;
    } {
        turn_id: Uuid = view.turn.0,
        session_id: Uuid = of.session.0,
        variant_id: Uuid = of.variant.0,
        /// Whether it counts as a win now.
        won: bool = of.won,
        helpful: Option<bool> = of.feedback.map(|feedback| feedback.helpful),
        score: Option<f32> = of.feedback.and_then(|feedback| feedback.score),
    }
}
