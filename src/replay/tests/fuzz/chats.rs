//! What adapters and operators ask of channels, sound and unsound.

use agentsvc_components::channel::message::{ChatCommand, ChatEvent, Sender};
use agentsvc_components::channel::pairing::Pairing;
use agentsvc_components::channel::rules::{ChatBinding, ChatRole, InstanceRules};
use agentsvc_components::channel::send::SendContent;
use agentsvc_components::channel::{ChatMessageId, ConversationId, PairingId};
use agentsvc_components::manifest::channel::{AutoRoute, ChannelOverrides, DmPolicy, UsageFooter};
use agentsvc_components::session::message::Block;
use agentsvc_components::{Actor, ApprovalId};
use agentsvc_systems::approval::Decision;
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::{Engine, channel};

use super::{Fuzz, ask};

impl Fuzz {
    pub(super) fn of_chats(&mut self, engine: &mut Engine) {
        let (instance, api) = (Box::from(self.random.of(&["bot", "bot", "shut", "no"])), Actor::Api);
        match self.random.below(12) {
            0 => self.channels(engine),
            1..=5 => {
                let event = self.event();
                ask(engine, Actor::System, channel::ReceiveMessage { instance, event });
            }
            6 => {
                let what = SendContent { text: self.text(), content: None };
                let chat = Some(self.random.of(&["", "c1", "c2"]).into());
                let to = channel::SendTo::Chat { instance, chat, thread: None };
                ask(engine, api, channel::SendToChat { to, what, by: channel::SendBy::Operator });
            }
            7 => {
                let valid_secs = self.random.of(&[None, Some(0), Some(30)]);
                ask(engine, api, channel::OfferPairing { instance, valid_secs });
            }
            8 => {
                let (chat, name) = (self.random.of(&["c1", "c2", ""]).into(), self.text().into());
                ask(engine, api, channel::PairChat { instance, chat, name });
            }
            9 => ask(engine, api, Remove::<Pairing>(PairingId(self.some(b'L')))),
            10 => {
                let message = ChatMessageId(self.some(b'N'));
                let reply = self.random.one_in(2).then(|| SendContent { text: self.text(), content: None });
                ask(engine, Actor::System, channel::CompleteCommand { message, reply });
                let blocks = vec![Block::Text { text: self.text() }];
                let missing = self.random.one_in(2).then(|| self.text().into());
                ask(engine, Actor::System, channel::AttachFiles { message, blocks, found: Vec::new(), missing });
                let approval = ApprovalId(self.some(b'i'));
                let decision = self.random.of(&[Decision::Approve, Decision::Reject]);
                ask(engine, Actor::System, channel::DecideInChat { message, approval, decision });
            }
            _ => {
                let conversation = ConversationId(self.some(b'J'));
                let agent = self.random.one_in(2).then(|| self.agent().to_string().into());
                ask(engine, Actor::System, channel::ChooseAgent { conversation, agent });
                ask(engine, Actor::System, channel::RenewConversation(conversation));
                let thinking = self.random.one_in(2);
                ask(engine, Actor::System, channel::SetThinking { conversation, thinking });
            }
        }
    }

    fn channels(&mut self, engine: &mut Engine) {
        let (binding, other) = (self.agent().to_string().into(), self.agent().to_string().into());
        let bindings = vec![ChatBinding { agent: binding, peer_id: Some("c1".into()), ..ChatBinding::default() }];
        let broadcast = vec![("c2".into(), vec![other])];
        let overrides = ChannelOverrides {
            model: self.random.of(&[None, Some("p/m"), Some("quick")]).map(Into::into),
            auto_route: self.random.of(&[None, Some(AutoRoute::ExplicitOnly), Some(AutoRoute::StickyHeuristic)]),
            usage_footer: self.random.of(&[None, Some(UsageFooter::Full)]),
            reply_precheck: self.random.of(&[None, Some(true)]),
            reply_precheck_model: self.random.of(&[None, Some("quick")]).map(Into::into),
            ..ChannelOverrides::default()
        };
        let role_mapping = vec![("member".into(), self.random.of(&[ChatRole::Viewer, ChatRole::Admin]))];
        let rules = |name: &str, agent: String, dm_policy, message_debounce_ms| InstanceRules {
            name: name.into(),
            channel_type: "telegram".into(),
            agent: Some(agent.into()),
            overrides: ChannelOverrides { dm_policy, message_debounce_ms, ..overrides.clone() },
            bindings: bindings.clone(),
            broadcast: broadcast.clone(),
            role_mapping: role_mapping.clone(),
            notification_recipients: vec!["c1".into()],
            ..InstanceRules::default()
        };
        let debounce = self.random.of(&[None, Some(0), Some(1_500), Some(u32::MAX)]);
        let mut all = vec![rules("bot", self.agent().to_string(), Some(DmPolicy::Respond), debounce)];
        if self.random.one_in(2) {
            all.push(rules("shut", self.agent().to_string(), None, None));
        }
        if self.random.one_in(9) {
            all.push(rules("bot", String::new(), None, None));
        }
        ask(engine, Actor::System, channel::SetInstances(all));
    }

    fn event(&mut self) -> ChatEvent {
        let chat = self.random.of(&["c1", "c2", "c3", ""]);
        let sender = Sender { id: chat.into(), name: self.text().into(), ..Sender::default() };
        let sender = Sender { is_person: self.random.one_in(2), is_bot: self.random.one_in(5), ..sender };
        let roles = if self.random.one_in(4) { vec!["member".into()] } else { Vec::new() };
        let sender = Sender { roles, ..sender };
        let command = self.random.one_in(6).then(|| ChatCommand { name: "status".into(), ..ChatCommand::default() });
        ChatEvent {
            chat: chat.into(),
            thread: self.random.one_in(4).then(|| "t".into()),
            is_group: self.random.one_in(3),
            sender,
            text: self.text().into(),
            files: self.random.one_in(5).then(|| self.text().into()),
            message_id: self.random.one_in(2).then(|| self.random.below(40).to_string().into()),
            reply_token: self.random.one_in(2).then(|| self.text().into()),
            deliver_to: self.random.one_in(12).then(Box::default),
            command,
            ..ChatEvent::default()
        }
    }
}
