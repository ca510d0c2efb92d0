//! What went out of an agent: sends of channels, and deliveries to other targets.

use std::collections::BTreeSet;

use agentsvc_components::AgentId;
use agentsvc_components::channel::send::SendState;
use agentsvc_systems::channel::{SendFilter, SendView};
use agentsvc_systems::delivery::{ReceiptFilter, ReceiptView};
use agentsvc_systems::kernel::entities::List;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::timestamp::Moment;

/// Receipts that are shown.
const RECEIPTS_MAX: usize = 50;

/// What is known of something that went out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ReceiptShape {
    /// Its id.
    message_id: Uuid,
    /// The name of the channel, `local_file`, or the host of a webhook.
    channel: Box<str>,
    /// The chat, the person or the path.
    recipient: Box<str>,
    /// `queued`, `sent`, `acknowledged`, `failed` or `unknown`.
    status: &'static str,
    /// When it was created.
    timestamp: Moment,
    /// Why it is so.
    error: Option<Box<str>>,
}

const fn word(state: SendState) -> &'static str {
    match state {
        SendState::Refused => "failed",
        other => other.as_str(),
    }
}

/// The newest of an agent, newest first.
pub(super) async fn newest(call: &Call, agent: AgentId) -> Result<Vec<ReceiptShape>, Error> {
    let sends = List::<SendView> { filter: SendFilter::Agent(agent), after: None, limit: RECEIPTS_MAX };
    let sends = call.ask(sends).await?.items;
    let others = List::<ReceiptView> { filter: ReceiptFilter::Agent(agent), after: None, limit: RECEIPTS_MAX };
    let others = call.ask(others).await?.items;
    // A delivery to a chat is shown as its send.
    let keys: BTreeSet<Uuid> = sends.iter().filter_map(|view| view.send.key).collect();
    let others =
        others.into_iter().filter(|view| !keys.contains(&view.id.0)).map(|ReceiptView { id, receipt, .. }| {
            let channel = if receipt.channel.is_empty() { receipt.target.as_str().into() } else { receipt.channel };
            let of = (receipt.created_at, id.0);
            let (status, error) = (word(receipt.state), receipt.reason);
            let (recipient, timestamp) = (receipt.recipient, Moment(receipt.created_at));
            (of, ReceiptShape { message_id: id.0, channel, recipient, status, timestamp, error })
        });
    let sends = sends.into_iter().map(|SendView { id, send, chat, .. }| {
        let (status, timestamp) = (word(send.state), Moment(send.created_at));
        let (channel, error) = (send.instance, send.reason);
        ((send.created_at, id.0), ReceiptShape { message_id: id.0, channel, recipient: chat, status, timestamp, error })
    });
    let mut all: Vec<_> = sends.chain(others).collect();
    all.sort_unstable_by_key(|(of, _)| std::cmp::Reverse(*of));
    all.truncate(RECEIPTS_MAX);
    Ok(all.into_iter().map(|(_, shape)| shape).collect())
}
