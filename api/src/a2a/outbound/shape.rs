//! The bodies of external agents and of the tasks that were sent to them.

use std::collections::BTreeMap;

use agentsvc_components::a2a::outbound::{A2aAgent, A2aSent, A2aSkill};
use agentsvc_systems::a2a::outbound::{A2aAgentView, A2aSentView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::crud::shown;
use crate::http::json::given;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

shape! {
    /// A skill on the card of an external agent.
    pub(crate) struct ExternalSkillItem from skill: A2aSkill {
        id: Box<str> = skill.id,
        name: Box<str> = skill.name,
        description: Box<str> = skill.description,
    }
}

/// What an external agent says that it does of the protocol.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExternalCapabilities {
    streaming: bool,
    push_notifications: bool,
}

shape! {
    /// An external agent. Its card is text of others.
    pub(crate) struct ExternalAgentItem from view: A2aAgentView {
        let A2aAgent { name, url, card, secret, created_at, updated_at, changed_at } = view.agent;
    } {
        id: Uuid = view.id.0,
        /// Name by which it is known here.
        name: Box<str> = name,
        /// URL that was discovered.
        url: Box<str> = url,
        /// URL that requests go to.
        endpoint: Box<str> = card.endpoint,
        /// `approved`
        status: &'static str = "approved",
        /// Name on its card.
        card_name: Box<str> = card.name,
        description: Box<str> = card.description,
        version: Box<str> = card.version,
        /// Protocol of requests: `1.0`, `0.3`, `0.1` (`tasks/send`) or `rest`.
        protocol_version: &'static str = card.dialect.as_str(),
        capabilities: ExternalCapabilities =
            ExternalCapabilities { streaming: card.streaming, push_notifications: card.push_notifications },
        skills: Vec<ExternalSkillItem> = card.skills.into_iter().map(Into::into).collect(),
        /// Name of the header that requests carry; null if there is none. Its value is never shown.
        header: Option<Box<str>> = secret.as_ref().map(|secret| secret.header.clone()),
        /// Origin that the header is sent to, and no other.
        header_origin: Option<Box<str>> = secret.map(|secret| secret.origin),
        /// When it was discovered first.
        created_at: Moment = Moment(created_at),
        /// When its card was read last.
        discovered_at: Moment = Moment(updated_at),
        /// When its card was found changed last; null if never.
        card_changed_at: Option<Moment> = changed_at.map(Moment),
    }
}

shown!(ExternalAgentItem: A2aAgentView, "the external agent"; "agents", |_| Ok(()));

/// A part of an answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SentPart {
    text: Box<str>,
}

/// What an external agent answered. Text of others.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SentResult {
    /// `agent`
    role: &'static str,
    parts: Vec<SentPart>,
}

shape! {
    /// A task that was sent to an external agent.
    pub(crate) struct SentTaskItem from view: A2aSentView {
        let A2aSent {
            to, to_name, from, message, context, remote, state, result, error, created_at, updated_at, ended_at, ..
        } = view.task;
    } {
        /// Id of the task here, and of its message.
        task_id: Uuid = view.id.0,
        /// The same.
        id: Uuid = view.id.0,
        /// External agent.
        agent_id: Uuid = to.0,
        agent_name: Box<str> = to_name,
        /// Agent here that sent it; null for a client.
        from: Option<Uuid> = from.map(|from| from.0),
        /// `submitted`, `working`, `completed`, `failed`, `rejected`, `cancelled`, `input-required`, `auth-required`, or
        /// `unknown`: it may have been received, and its end is not known.
        status: &'static str = state.as_str(),
        message: Box<str> = message,
        /// Answer; null if there is none.
        result: Option<SentResult> =
            result.map(|text| SentResult { role: "agent", parts: vec![SentPart { text }] }),
        /// Why there is no answer; null otherwise.
        error: Option<Box<str>> = error,
        /// Conversation, as the external agent knows it.
        context_id: Option<Box<str>> = context,
        /// Task, as the external agent knows it.
        remote_task_id: Option<Box<str>> = remote,
        created_at: Moment = Moment(created_at),
        updated_at: Moment = Moment(updated_at),
        ended_at: Option<Moment> = ended_at.map(Moment),
    }
}

shown!(SentTaskItem: A2aSentView, "the task"; "tasks", |_| Ok(None));

/// An external agent to discover.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct DiscoverBody {
    /// URL of the agent; its card is read at `/.well-known/agent.json` or `/.well-known/agent-card.json` below it. Private hosts
    /// must be listed in `[web.fetch] ssrf_allowed_hosts`.
    pub(crate) url: String,
    /// Name by which it is known here, of at most 128 bytes. Default: the name on its card.
    pub(crate) name: Option<String>,
    /// A header that requests to the origin of `url` carry, such as `{"Authorization": "Bearer ..."}`; at most one. Null
    /// removes it. Never returned.
    #[serde(deserialize_with = "given")]
    pub(crate) headers: Option<Option<BTreeMap<String, String>>>,
}

/// A message to an external agent.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SendBody {
    /// Id or name of the external agent.
    pub(crate) agent_id: Option<String>,
    /// Its URL, in place of `agent_id`.
    pub(crate) url: Option<String>,
    /// What it is told; at most 64 KiB.
    pub(crate) message: String,
    /// Conversation to continue. Default: a new one.
    pub(crate) context_id: Option<String>,
    /// The same, as older clients call it.
    pub(crate) session_id: Option<String>,
    /// Task to continue: one that waits for input, or whose conversation goes on.
    pub(crate) task_id: Option<Uuid>,
    /// Wait for the end of the task, at most 10 minutes. Default: true.
    pub(crate) blocking: Option<bool>,
}
