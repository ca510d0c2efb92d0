//! Outbound webhooks and their deliveries (spec 3, Webhooks).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::uuid_id;
use crate::kernel::record::stored;
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "webhook", uses: &[] };

uuid_id! {
    /// Names one outbound webhook.
    WebhookId
}
uuid_id! {
    /// Names one delivery; its job has the same UUID.
    DeliveryId
}

/// Under which routes a webhook is managed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mount {
    /// `/api/webhooks`
    #[default]
    Webhooks,
    /// `/api/webhooks/events`
    Events,
}

/// The state of one webhook.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Its name, on one line.
    pub name: Box<str>,
    /// Where events are posted.
    pub url: Box<str>,
    /// The events that it wants, as the client spelled them.
    pub events: Vec<Box<str>>,
    /// The secret that signs deliveries, sealed by the vault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Box<str>>,
    /// Are events delivered?
    pub enabled: bool,
    /// Under which routes it is managed.
    #[serde(default)]
    pub mount: Mount,
    /// When it was made.
    pub created_at: Timestamp,
    /// When a client last changed it.
    pub updated_at: Timestamp,
    /// Since when every try has failed, one after the other; `None` when the last one succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// When a try failed last, of those since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failed_at: Option<Timestamp>,
    /// Why the daemon switched it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<Box<str>>,
    /// Events that were not delivered because too many deliveries were open.
    #[serde(default)]
    pub dropped: u64,
}

stored!(Webhook: b'u', WebhookId);

impl Webhook {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(|event| event.len()).sum();
        self.name.len() + self.url.len() + events + self.secret.as_deref().map_or(0, str::len)
    }
}

enum_words! {
    /// How far a delivery is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DeliveryState [as_str] {
        /// It waits for its first or another try, or is being tried.
        #[default]
        Pending = "pending",
        /// The receiver took it.
        Delivered = "delivered",
        /// It was given up.
        Failed = "failed",
        /// The webhook was switched off before it was delivered.
        Cancelled = "cancelled",
    }
}

/// How one try of a delivery ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryTry {
    /// When it ended.
    pub at: Timestamp,
    /// The status of the receiver's answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Milliseconds that it took, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u32>,
    /// Why it failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
}

/// The state of one delivery.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Of which webhook.
    pub webhook: WebhookId,
    /// The event's word.
    pub event_type: Box<str>,
    /// When the event happened.
    pub created_at: Timestamp,
    /// How far it is.
    pub state: DeliveryState,
    /// Its newest tries, oldest first.
    #[serde(default)]
    pub tries: Vec<DeliveryTry>,
    /// How many tries there were.
    pub tried: u32,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

stored!(Delivery: b'r', DeliveryId);

impl Delivery {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let error = |a_try: &DeliveryTry| a_try.error.as_deref().map_or(0, str::len);
        self.event_type.len() + self.tries.iter().map(error).sum::<usize>()
    }
}
