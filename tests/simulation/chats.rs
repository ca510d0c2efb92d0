//! People write in chats, adapters bring messages twice, and sends succeed, fail and get lost. No message is answered twice,
//! and none is left open.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::channel::message::{ChatCommand, ChatEvent, ChatMessageState, Sender};
use agentsvc_components::channel::pairing::Pairing;
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::channel::send::{SendCause, SendContent, SendOrder};
use agentsvc_components::channel::{ConversationId, PairingId, SendId};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::manifest::channel::{AutoRoute, ChannelOverrides, DmPolicy};
use agentsvc_systems::channel::{
    ChatMessageView, ChooseAgent, CompleteCommand, OfferPairing, PairChat, PendingCommands, ReceiveMessage, Received,
    RenewConversation, SendBy, SendTo, SendToChat, SendView, SetInstances, SetThinking,
};
use agentsvc_systems::kernel::entities::{Get, List, Remove};
use agentsvc_systems::widget::{ListWebMessages, PostWebMessage};

use super::action::What;
use super::harness::Harness;
use super::hooks;

/// What is known of chats.
#[derive(Debug, Default)]
pub(crate) struct Chats {
    conversations: Vec<ConversationId>,
    pairings: Vec<PairingId>,
    /// The newest messages, which may come again.
    past: Vec<ReceiveMessage>,
    /// The newest messages of visitors, which may come again.
    posted: Vec<PostWebMessage>,
    /// The jobs that answer each message: one.
    answers: BTreeMap<String, JobId>,
}

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::SetChannels => set(harness),
        What::ReceiveChat => {
            let message = message(harness);
            receive(harness, message);
        }
        What::RepeatChat => {
            let past = harness.known.chats.past.clone();
            if let Some(message) = harness.rng.any(&past) {
                receive(harness, message);
            }
        }
        What::CompleteChat => {
            let Ok(pending) = harness.read(PendingCommands::default()) else { return };
            for command in pending {
                let text = harness.text("done");
                let reply = harness.rng.chance(80).then_some(SendContent { text, content: None });
                harness.ask(CompleteCommand { message: command.message, reply }, |_, _| {});
            }
        }
        What::PairChat => pair(harness),
        What::PostWeb => post_web(harness),
        What::SendToChat => {
            let (chat, text) = (harness.rng.pick(&["c0", "c1", "room"]), harness.text("news"));
            let to = SendTo::Chat { instance: "open".into(), chat: Some(chat.into()), thread: None };
            let what = SendContent { text, content: None };
            harness.ask(SendToChat { to, what, by: SendBy::Operator }, |_, _| {});
        }
        What::ChooseChat => {
            let known = harness.known.chats.conversations.clone();
            let Some(conversation) = harness.rng.any(&known) else { return };
            if harness.rng.chance(20) {
                let thinking = harness.rng.chance(50);
                return harness.ask(SetThinking { conversation, thinking }, |_, _| {});
            }
            if harness.rng.chance(50) {
                return harness.ask(RenewConversation(conversation), |_, _| {});
            }
            let agent = harness.rng.pick(&[None, Some("agent-0"), Some("agent-1")]).map(Into::into);
            harness.ask(ChooseAgent { conversation, agent }, |_, _| {});
        }
        _ => {}
    }
}

fn set(harness: &mut Harness) {
    let agent = harness.known.agents.clone();
    let agent = harness.rng.any(&agent).map(|agent| agent.to_string().into());
    let auto_route = harness.rng.pick(&[AutoRoute::StickyTtl, AutoRoute::StickyHeuristic]);
    let auto_reply = hooks::limits(harness);
    let precheck = harness.rng.pick(&[None, Some("small")]);
    let rules = |name: &str, dm_policy: Option<DmPolicy>, message_debounce_ms: Option<u32>| InstanceRules {
        name: name.into(),
        channel_type: "telegram".into(),
        agent: agent.clone(),
        available_agents: vec!["agent-0".into(), "agent-1".into()],
        overrides: ChannelOverrides {
            dm_policy,
            message_debounce_ms,
            auto_route: Some(auto_route),
            reply_precheck: Some(true),
            reply_precheck_model: precheck.map(Into::into),
            ..ChannelOverrides::default()
        },
        auto_reply: auto_reply.clone(),
        ..InstanceRules::default()
    };
    let open = rules("open", Some(DmPolicy::Respond), None);
    let slow = rules("slow", Some(DmPolicy::Respond), Some(2_000));
    let site = rules("site", Some(DmPolicy::Respond), None);
    let site = InstanceRules { keeps_messages: true, suppress_errors: true, ..site };
    let mut all = vec![open, slow, site, rules("closed", None, None)];
    if harness.rng.chance(20) {
        all.pop();
    }
    harness.ask(SetInstances(all), |_, ()| {});
}

fn message(harness: &mut Harness) -> ReceiveMessage {
    let text = harness.text("a person says");
    let chat = format!("c{}", harness.rng.below(3));
    let is_group = harness.rng.chance(20);
    let command = harness.rng.chance(15).then(|| ChatCommand { name: "status".into(), ..ChatCommand::default() });
    let is_person = !is_group || harness.rng.chance(50);
    let sender = Sender { id: chat.as_str().into(), name: "Ann".into(), is_person, ..Sender::default() };
    let event = ChatEvent {
        chat: chat.into(),
        is_group,
        sender,
        message_id: Some(text.as_str().into()),
        reply_token: Some(format!("for {text}").into()),
        text: text.into(),
        command,
        ..ChatEvent::default()
    };
    let instance = harness.rng.pick(&["open", "open", "slow", "closed"]).into();
    ReceiveMessage { instance, event }
}

fn receive(harness: &mut Harness, message: ReceiveMessage) {
    let past = &mut harness.known.chats.past;
    if past.len() == 8 {
        past.remove(0);
    }
    past.push(message.clone());
    harness.ask(message, |harness, received| {
        if let Received::Turn { conversation, .. } = received
            && !harness.known.chats.conversations.contains(&conversation)
        {
            harness.known.chats.conversations.push(conversation);
        }
    });
}

fn post_web(harness: &mut Harness) {
    let past = harness.known.chats.posted.clone();
    let again = harness.rng.any(&past).filter(|_| harness.rng.chance(30));
    let post = again.unwrap_or_else(|| {
        let ReceiveMessage { event, .. } = message(harness);
        PostWebMessage { site: "site".into(), event: ChatEvent { is_group: false, command: None, ..event } }
    });
    let posted = &mut harness.known.chats.posted;
    if posted.len() == 4 {
        posted.remove(0);
    }
    posted.push(post.clone());
    harness.ask(post, |_, _| {});
}

fn pair(harness: &mut Harness) {
    let known = harness.known.chats.pairings.clone();
    match (harness.rng.below(3), harness.rng.any(&known)) {
        (0, Some(id)) => {
            harness.known.chats.pairings.retain(|known| *known != id);
            harness.ask(Remove::<Pairing>(id), |_, ()| {});
        }
        (1, _) => {
            let chat = format!("c{}", harness.rng.below(3)).into();
            let pair = PairChat { instance: "closed".into(), chat, name: "Ann".into() };
            harness.ask(pair, |harness, view| harness.known.chats.pairings.push(view.id));
        }
        _ => {
            let offer = OfferPairing { instance: "closed".into(), valid_secs: Some(60) };
            harness.ask(offer, |harness, offer| harness.known.chats.pairings.push(offer.id));
        }
    }
}

/// What becomes of a try.
pub(crate) fn answer(harness: &mut Harness) -> TryEnd {
    match harness.rng.below(10) {
        0 => TryEnd::Failed("no such chat".to_owned()),
        1 => TryEnd::Lost("it took too long".to_owned()),
        2 | 3 => TryEnd::Retry { after_ms: None, reason: "the adapter is down".to_owned() },
        4 => TryEnd::Done("{\"state\":\"refused\",\"reason\":\"403\"}".to_owned()),
        _ => TryEnd::Done("{\"state\":\"sent\"}".to_owned()),
    }
}

/// A send goes out: no message has two answers, and each answer has the token of its message.
pub(crate) fn goes_out(harness: &mut Harness, run: &RunJob) -> Result<(), String> {
    let order: SendOrder = serde_json::from_str(&run.input).map_err(|error| error.to_string())?;
    let Some(answers) = &order.answers else { return Ok(()) };
    let token = format!("for {answers}");
    if order.reply_token.as_deref() != Some(&*token) {
        return Err(format!("the answer to {answers:?} has the token {:?}", order.reply_token));
    }
    let job = run.attempt.job;
    let before = *harness.known.chats.answers.entry(answers.to_string()).or_insert(job);
    if before == job { Ok(()) } else { Err(format!("{answers:?} has two answers, {before} and {job}")) }
}

/// At the end of a run no turn of a message is open, and what answered one says so.
pub(crate) fn at_end(harness: &mut Harness) -> Result<(), String> {
    let wrong = |refusal: agentsvc_components::Refusal| refusal.message;
    let open = harness.read(List::<ChatMessageView> { limit: 100, ..List::default() }).map_err(wrong)?.items;
    let stuck = open.iter().find(|view| {
        matches!(view.message.state, ChatMessageState::Checking { .. } | ChatMessageState::Answering { .. })
    });
    if let Some(stuck) = stuck {
        return Err(format!("message {} of a chat is still open", stuck.id));
    }
    for visitor in ["c0", "c1", "c2"] {
        let list = ListWebMessages { site: "site".into(), visitor: visitor.into(), after: None };
        let all = harness.read(list).map_err(wrong)?;
        let names: BTreeSet<_> = all.iter().map(|view| &view.message.name).collect();
        if names.len() != all.len() {
            return Err(format!("a page of {visitor} shows a message twice"));
        }
    }
    let answers: Vec<JobId> = harness.known.chats.answers.values().copied().collect();
    for job in answers {
        // One that was kept long enough is gone.
        if let Ok(view) = harness.read(Get::<SendView>(SendId(job.0))) {
            let is_answer = matches!(view.send.cause, SendCause::Answer | SendCause::Notice | SendCause::Command);
            if !is_answer {
                return Err(format!("{job} answers a message as {:?}", view.send.cause));
            }
        }
    }
    Ok(())
}
