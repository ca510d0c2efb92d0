//! The bodies of webhooks.

use agentsvc_components::webhook::{DeliveryTry, Mount, Webhook};
use agentsvc_systems::webhook::{DeliveryView, WebhookFields, WebhookView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::crud::{Listed, Shown, shown};
use crate::http::error::Error;
use crate::http::json::given;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

shape! {
    /// What webhooks and event subscriptions say of themselves.
    struct Receiver from webhook: Webhook {
        url: Box<str> = webhook.url,
        /// The events that it gets; `all` for every event.
        events: Vec<Box<str>> = webhook.events,
        enabled: bool = webhook.enabled,
        /// Whether deliveries are signed.
        has_secret: bool = webhook.secret.is_some(),
        /// Since when every attempt has failed; null if the last one succeeded.
        failing_since: Option<Moment> = webhook.failing_since.map(Moment),
        /// Why the daemon disabled it; null otherwise.
        disabled_reason: Option<Box<str>> = webhook.disabled_reason,
        /// Events not delivered because too many deliveries were open.
        dropped: u64 = webhook.dropped,
        created_at: Moment = Moment(webhook.created_at),
        updated_at: Moment = Moment(webhook.updated_at),
    }
}

shape! {
    /// A webhook.
    pub(crate) struct WebhookItem from view: WebhookView {
        id: Uuid = view.id.0,
        name: Box<str> = view.webhook.name.clone(),
        #[serde(flatten)]
        receiver: Receiver = Receiver::from(view.webhook),
    }
}

impl Shown for WebhookItem {
    type View = WebhookView;
    const NOUN: &'static str = "the webhook";

    fn is_here(view: &WebhookView) -> bool {
        view.webhook.mount == Mount::Webhooks
    }
}

impl Listed for WebhookItem {
    const PLURAL: &'static str = "webhooks";

    fn filter(_: &Call) -> Result<Option<Mount>, Error> {
        Ok(Some(Mount::Webhooks))
    }
}

shape! {
    /// An event subscription.
    pub(crate) struct SubscriptionItem from view: WebhookView {
        id: Uuid = view.id.0,
        /// The first of `events`.
        event_type: Option<Box<str>> = view.webhook.events.first().cloned(),
        #[serde(flatten)]
        receiver: Receiver = Receiver::from(view.webhook),
    }
}

impl Shown for SubscriptionItem {
    type View = WebhookView;
    const NOUN: &'static str = "the subscription";

    fn is_here(view: &WebhookView) -> bool {
        view.webhook.mount == Mount::Events
    }
}

impl Listed for SubscriptionItem {
    const PLURAL: &'static str = "webhooks";

    fn filter(_: &Call) -> Result<Option<Mount>, Error> {
        Ok(Some(Mount::Events))
    }
}

shape! {
    /// One attempt of a delivery.
    pub(crate) struct AttemptItem from given: DeliveryTry {
        /// When it ended.
        at: Moment = Moment(given.at),
        /// Status of the receiver's response; null if there was none.
        status: Option<u16> = given.status,
        took_ms: Option<u32> = given.took_ms,
        /// Why it failed.
        error: Option<Box<str>> = given.error,
    }
}

shape! {
    /// A delivery of an event.
    pub(crate) struct DeliveryItem from view: DeliveryView {
        let delivery = view.delivery;
    } {
        /// `X-Webhook-Id` of every attempt.
        id: Uuid = view.id.0,
        event_type: Box<str> = delivery.event_type,
        /// `pending`, `delivered`, `failed` or `cancelled`.
        state: &'static str = delivery.state.as_str(),
        /// When the event happened.
        created_at: Moment = Moment(delivery.created_at),
        ended_at: Option<Moment> = delivery.ended_at.map(Moment),
        /// When the next attempt is due.
        next_attempt_at: Option<Moment> = view.next_try_at.map(Moment),
        /// Number of attempts that have ended.
        attempt_count: u32 = delivery.tried,
        /// The last 10 attempts, oldest first.
        attempts: Vec<AttemptItem> = delivery.tries.into_iter().map(AttemptItem::from).collect(),
    }
}

shown!(DeliveryItem: DeliveryView, "the delivery"; "deliveries", |call| call.id("id"));

/// Fields of a webhook. Omitted fields have their defaults when it is created, and stay unchanged when it is updated.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct WebhookBody {
    /// Name: one line of at most 128 bytes. Default: the host of the URL.
    name: Option<String>,
    /// Where events are posted; required for a new webhook. Private hosts must be listed in `[web.fetch] ssrf_allowed_hosts`.
    pub(crate) url: Option<String>,
    /// Events, such as `agent_spawned` or `agent.spawned`. Default: `["all"]`.
    events: Option<Vec<String>>,
    /// One event, as `events` with one item.
    event_type: Option<String>,
    /// Signs deliveries; at most 256 bytes. Null removes it. Never returned.
    #[serde(deserialize_with = "given")]
    pub(crate) secret: Option<Option<String>>,
    /// Default: true. False cancels open deliveries.
    enabled: Option<bool>,
}

impl WebhookBody {
    /// As the world takes it, with the secret that was sealed meanwhile.
    pub(crate) fn fields(self, sealed: Option<Option<String>>) -> WebhookFields {
        let Self { name, url, events, event_type, enabled, .. } = self;
        let events = match (event_type, events) {
            (None, events) => events,
            (Some(one), events) => Some(std::iter::once(one).chain(events.unwrap_or_default()).collect()),
        };
        WebhookFields { name, url, events, secret: sealed, enabled }
    }
}

/// The receiver answered.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tested {
    /// `sent`
    pub(crate) status: &'static str,
    /// Status of the receiver's response.
    pub(crate) response_status: u16,
    pub(crate) webhook_id: Uuid,
}
