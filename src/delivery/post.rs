//! One try of an answer to reach the receiver of a webhook.

use agentsvc_components::delivery::DeliveryOrder;
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_components::webhook::Webhook;
use serde_json::json;
use uuid::Uuid;

use crate::webhook::sender::{Sender, ended};

/// Where an answer goes.
pub(super) struct To<'a> {
    pub(super) url: &'a str,
    /// Sealed.
    pub(super) secret: Option<&'a str>,
    /// Sealed.
    pub(super) auth_header: Option<&'a str>,
}

/// Posts an answer, signed as events are.
pub(super) async fn post(sender: &Sender, id: Uuid, to: &To<'_>, order: &DeliveryOrder) -> TryEnd {
    let body = json!({
        "id": id,
        "type": "delivery",
        "source": { "type": order.source_kind.as_str(), "id": order.source, "name": order.name },
        "agent_id": order.agent,
        "run_id": order.of,
        "timestamp": order.at.to_string(),
        "text": order.text,
    });
    let webhook = Webhook { url: to.url.into(), secret: to.secret.map(Into::into), ..Webhook::default() };
    let posted = sender.post_as(&webhook, to.auth_header, id, body.to_string()).await;
    ended(&posted)
}
