//! One try of an answer to reach its channel.

use std::sync::Weak;

use agentsvc_api::Api;
use agentsvc_api::delivery::channel_out::{ChannelOut, ChannelText, NotSent};
use agentsvc_components::hook::HookTarget;
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use serde::Deserialize;

/// Where the channels are found. They are not there before the API is.
#[derive(Default)]
pub(super) struct ApiSlot(pub(super) Option<Weak<Api>>);

/// The input of a job.
#[derive(Deserialize)]
struct Input {
    target: HookTarget,
    text: String,
}

/// Tries an answer.
pub(super) async fn deliver(slot: &ApiSlot, job: RunJob) -> TryEnd {
    let Ok(Input { target, text }) = serde_json::from_str(&job.input) else {
        return TryEnd::Failed("the stored answer cannot be read".to_owned());
    };
    let api = slot.0.as_ref().and_then(Weak::upgrade);
    let Some(channels) = api.and_then(|api| api.services.get::<dyn ChannelOut>()) else {
        return TryEnd::Retry { after_ms: None, reason: "there are no channels".to_owned() };
    };
    let HookTarget { channel, recipient } = target;
    match channels.deliver(ChannelText { id: job.attempt.job.0, agent: job.owner, channel, recipient, text }).await {
        Ok(()) => TryEnd::Done(String::new()),
        Err(NotSent::Later(reason)) => TryEnd::Retry { after_ms: None, reason },
        Err(NotSent::Refused(reason)) => TryEnd::Failed(reason),
    }
}
