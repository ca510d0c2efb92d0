//! What others of the daemon send into channels.

use std::sync::Arc;

use agentsvc_api::delivery::channel_out::{ChannelOut, ChannelText, NotSent};
use agentsvc_components::RefusalKind;
use agentsvc_systems::channel::{DeliverToChat, SendTo, may_send_to};
use futures_util::future::BoxFuture;

use super::registry::Registry;
use super::rules;

impl ChannelOut for Registry {
    fn has(&self, channel: &str) -> bool {
        self.instance(channel).is_some()
    }

    fn may_reach(&self, channel: &str, recipient: &str) -> bool {
        let rules = rules::of(self).into_iter().find(|rules| *rules.name == *channel);
        rules.is_some_and(|rules| may_send_to(&rules, recipient))
    }

    fn deliver(self: Arc<Self>, it: ChannelText) -> BoxFuture<'static, Result<(), NotSent>> {
        Box::pin(async move {
            let to = SendTo::Chat { instance: it.channel, chat: it.recipient, thread: None };
            let asked = DeliverToChat { key: it.id, to, text: it.text, agent: it.agent, is_callers: true };
            self.api.bridge.ask(asked).await.map(|_| ()).map_err(|refusal| match refusal.kind {
                RefusalKind::BadRequest | RefusalKind::Forbidden | RefusalKind::NotFound | RefusalKind::Conflict => {
                    NotSent::Refused(refusal.to_string())
                }
                RefusalKind::TooMany | RefusalKind::Busy | RefusalKind::Failed | RefusalKind::NoRoom => {
                    NotSent::Later(refusal.to_string())
                }
            })
        })
    }
}
