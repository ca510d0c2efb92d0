//! Targets and deliveries as JSON.

use agentsvc_components::delivery::{Target, TargetKind};
use agentsvc_systems::delivery::{ReceiptView, TargetsView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// Where answers go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TargetsBody {
    /// All targets, at most 16; an empty list delivers nothing.
    pub(crate) delivery_targets: Option<Vec<TargetBody>>,
}

/// One target. Which fields it has depends on `type`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TargetBody {
    /// `channel`, `last_channel` (the known chat in which the agent was active last), `webhook`, `local_file` or `email`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// `channel`: the name of a channel, or its type if only one channel has it.
    pub(crate) channel_type: Option<String>,
    /// `channel`: the chat. Default: `default_conversation` of the channel.
    pub(crate) recipient: Option<String>,
    /// `channel`: the thread.
    pub(crate) thread_id: Option<String>,
    /// `channel`, `email`: the name of the channel, required if several channels have the type.
    pub(crate) account_id: Option<String>,
    /// `webhook`: the address.
    pub(crate) url: Option<String>,
    /// `webhook`: signs deliveries as those of `/api/webhooks`; at most 256 bytes. Left out, a target of the same `url` keeps
    /// its secret. Never returned.
    pub(crate) secret: Option<String>,
    /// `webhook`: the `Authorization` header; otherwise as `secret`.
    pub(crate) auth_header: Option<String>,
    /// `local_file`: a path in the agent's workspace.
    pub(crate) path: Option<String>,
    /// `local_file`: adds to the file instead of replacing it.
    pub(crate) append: bool,
    /// `email`: the address.
    pub(crate) to: Option<String>,
    /// `email`: the first line; `{name}` is the name of the schedule, trigger or workflow.
    pub(crate) subject_template: Option<String>,
}

/// One target.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct TargetItem {
    /// `channel`, `last_channel`, `webhook`, `local_file` or `email`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The name of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_type: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<Box<str>>,
    /// The name of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Box<str>>,
    /// Whether deliveries are signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_secret: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_auth_header: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject_template: Option<Box<str>>,
}

impl From<Target> for TargetItem {
    fn from(target: Target) -> Self {
        let kind = target.kind().as_str();
        match target {
            Target::Channel { instance, recipient, thread } => Self {
                kind,
                channel_type: Some(instance.clone()),
                account_id: Some(instance),
                recipient,
                thread_id: thread,
                ..Self::default()
            },
            Target::LastChannel => Self { kind, ..Self::default() },
            Target::Webhook { url, secret, auth_header } => Self {
                kind,
                url: Some(url),
                has_secret: Some(secret.is_some()),
                has_auth_header: Some(auth_header.is_some()),
                ..Self::default()
            },
            Target::LocalFile { path, append } => {
                Self { kind, path: Some(path), append: Some(append), ..Self::default() }
            }
            Target::Email { instance, to, subject_template } => {
                Self { kind, account_id: Some(instance), to: Some(to), subject_template, ..Self::default() }
            }
        }
    }
}

shape! {
    /// A delivery to a target.
    pub(crate) struct OutcomeItem from view: ReceiptView {
        let receipt = view.receipt;
    } {
        /// `X-Webhook-Id` of every attempt to a webhook.
        id: Uuid = view.id.0,
        /// The turn, or the run of the workflow.
        run_id: Uuid = receipt.of,
        /// `channel`, `last_channel`, `webhook`, `local_file` or `email`.
        #[serde(rename = "type")]
        target: &'static str = receipt.target.as_str(),
        /// The name of the channel, or the host of the address.
        channel: Box<str> = receipt.channel,
        /// The chat, the person or the path.
        recipient: Box<str> = receipt.recipient,
        /// `queued`, `sent`, `acknowledged`, `refused` or `unknown`.
        status: &'static str = receipt.state.as_str(),
        /// Why it is so.
        reason: Option<Box<str>> = receipt.reason,
        /// Attempts so far, if it goes to a webhook or a file.
        tries: u32 = receipt.tries,
        created_at: Moment = Moment(receipt.created_at),
        ended_at: Option<Moment> = receipt.ended_at.map(Moment),
        /// Time of the next attempt; null if it has ended, or if its channel sends it.
        next_try_at: Option<Moment> = view.next_try_at.map(Moment),
    }
}

shape! {
    /// The targets of a schedule, cron job, trigger or workflow.
    pub(crate) struct TargetsItem from view: TargetsView {
        delivery_targets: Vec<TargetItem> = view.targets.into_iter().map(TargetItem::from).collect(),
        /// The newest deliveries, newest first.
        deliveries: Vec<OutcomeItem> = view.deliveries.into_iter().map(OutcomeItem::from).collect(),
    }
}

/// The words of `type`.
pub(crate) fn kinds() -> String {
    TargetKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
}
