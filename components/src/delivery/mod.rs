//! Where the answers of schedules, cron jobs, triggers and workflows go beside their sessions, and what became of them.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::channel::send::SendState;
use crate::kernel::domain::Domain;
use crate::kernel::id::{AgentId, uuid_id};
use crate::kernel::record::{is_default, stored};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "delivery", uses: &["channel"] };

uuid_id! {
    /// Names the targets of one source: the UUID of its schedule, cron job, trigger or workflow.
    TargetsId
}
uuid_id! {
    /// Names one delivery to one target.
    ReceiptId
}

enum_words! {
    /// What has targets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SourceKind [as_str] {
        /// A schedule.
        Schedule = "schedule",
        /// A cron job.
        Cron = "cron",
        /// A trigger.
        Trigger = "trigger",
        /// A workflow; what its runs give is delivered.
        Workflow = "workflow",
    }
}

impl SourceKind {
    /// What a refusal calls one.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Cron => "cron job",
            Self::Trigger => "trigger",
            Self::Workflow => "workflow",
        }
    }
}

enum_words! {
    /// What kind of place a target is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TargetKind [ALL, as_str, parse] {
        /// A chat of a channel.
        Channel = "channel",
        /// The chat in which the agent was active last.
        LastChannel = "last_channel",
        /// An address that is posted to.
        Webhook = "webhook",
        /// A file of the agent's workspace.
        LocalFile = "local_file",
        /// A person, by a channel for mail.
        Email = "email",
    }
}

/// One place where answers go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A chat.
    Channel {
        /// The name of the instance.
        instance: Box<str>,
        /// The chat; `None` is the one that the instance has for messages without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recipient: Option<Box<str>>,
        /// The thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<Box<str>>,
    },
    /// The chat in which the agent was active last.
    LastChannel,
    /// An address.
    Webhook {
        /// Where answers are posted.
        url: Box<str>,
        /// The secret that signs them, sealed by the vault.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<Box<str>>,
        /// The `Authorization` header, sealed by the vault.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        auth_header: Option<Box<str>>,
    },
    /// A file of the agent's workspace.
    LocalFile {
        /// Relative to the workspace.
        path: Box<str>,
        /// Is it added to, or replaced?
        append: bool,
    },
    /// A person.
    Email {
        /// The name of the instance that sends mail.
        instance: Box<str>,
        /// The address.
        to: Box<str>,
        /// The first line; `{name}` is the name of the source.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject_template: Option<Box<str>>,
    },
}

impl Target {
    /// What kind it is.
    #[must_use]
    pub const fn kind(&self) -> TargetKind {
        match self {
            Self::Channel { .. } => TargetKind::Channel,
            Self::LastChannel => TargetKind::LastChannel,
            Self::Webhook { .. } => TargetKind::Webhook,
            Self::LocalFile { .. } => TargetKind::LocalFile,
            Self::Email { .. } => TargetKind::Email,
        }
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        match self {
            Self::Channel { instance, recipient, thread } => instance.len() + of(recipient) + of(thread),
            Self::LastChannel => 0,
            Self::Webhook { url, secret, auth_header } => url.len() + of(secret) + of(auth_header),
            Self::LocalFile { path, .. } => path.len(),
            Self::Email { instance, to, subject_template } => instance.len() + to.len() + of(subject_template),
        }
    }
}

/// The targets of one source.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets {
    /// What it is.
    pub kind: SourceKind,
    /// Where its answers go, each of them.
    pub targets: Vec<Target>,
    /// When a client last changed them.
    pub updated_at: Timestamp,
}

stored!(Targets: b'T', TargetsId);

impl Targets {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.targets.iter().map(Target::bytes).sum()
    }
}

/// What is known of one delivery to one target.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// What it came of: the UUID of the schedule, cron job, trigger or workflow.
    pub source: Uuid,
    /// What that is.
    pub source_kind: SourceKind,
    /// The agent that wrote it; `None` for what the run of a workflow gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The turn, or the run of the workflow.
    pub of: Uuid,
    /// What kind of place it went to.
    pub target: TargetKind,
    /// The name of the channel, the host of the address, or empty.
    #[serde(default, skip_serializing_if = "is_default")]
    pub channel: Box<str>,
    /// The chat, the person or the path; empty where the place has one of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recipient: Box<str>,
    /// What is known of it. A webhook that took it is `acknowledged`, a file that was written likewise.
    pub state: SendState,
    /// Why it is so, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<str>>,
    /// Tries so far, where this domain makes them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tries: u32,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it ended; `None` while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

stored!(Receipt: b'R', ReceiptId);

impl Receipt {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.channel.len() + self.recipient.len() + self.reason.as_deref().map_or(0, str::len)
    }
}

/// All that a performer needs of a delivery: the input of its job, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryOrder {
    /// Where it goes: an address or a file.
    pub target: Target,
    /// What it came of.
    pub source: Uuid,
    /// What that is.
    pub source_kind: SourceKind,
    /// What that is called.
    pub name: Box<str>,
    /// The agent that wrote it.
    pub agent: Option<AgentId>,
    /// The turn, or the run of the workflow.
    pub of: Uuid,
    /// When it was written.
    pub at: Timestamp,
    /// What is delivered.
    pub text: Box<str>,
    /// Untrusted content behind it.
    #[serde(default)]
    pub taint: Taint,
}
