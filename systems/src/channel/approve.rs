//! Approvals in chats: the people whom the configuration names are told of those of agents that answer in their channel, and
//! decide them there. Other agents' approvals are not seen in a channel.

use agentsvc_components::approval::{Approval, ApprovalState};
use agentsvc_components::channel::rules::{ChannelInstance, InstanceRules};
use agentsvc_components::channel::send::{SendCause, SendContent};
use agentsvc_components::channel::{ChannelId, ChatMessageId};
use agentsvc_components::kernel::limit;
use agentsvc_components::{ApprovalId, Refusal};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::index::{Conversations, Instances};
use super::post::{Outgoing, admit, post};
use super::receive::no_instance;
use super::talk::{Place, enter};
use super::{audit_kinds, begin, command, error_codes, limits, rules};
use crate::approval::{ApprovalAsked, ApprovalView, Approvals, DecideApprovals, Decision, decide};
use crate::audit::Audit;
use crate::injection::is_unseen;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, state};

/// What is said of an approval that a chat does not show whole.
pub const TOO_LONG: &str = "What it would do is too long to be shown here. Read it on the page to approve it.";

/// A person decides an approval in a chat: with the command that the message is, by its sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecideInChat {
    /// The message.
    pub message: ChatMessageId,
    /// The approval.
    pub approval: ApprovalId,
    /// The decision.
    pub decision: Decision,
}

command! {
    write "decide_in_chat" DecideInChat => ApprovalView, All, |it, world| Answer::stored(decide_in_chat(world, it))
}

/// The approvals that wait and that can be decided in an instance, the oldest of each agent first; at most
/// [`PAGE_ITEMS_MAX`](limit::PAGE_ITEMS_MAX).
#[derive(Clone, Debug)]
pub struct ApprovalsInChannel {
    /// The name of the instance.
    pub instance: Box<str>,
}

command! {
    read "approvals_in_channel" ApprovalsInChannel => Vec<ApprovalView>, All, |it, world|
        Answer::Now(in_channel(world, &it.instance))
}

fn in_channel(world: &World, instance: &str) -> Result<Vec<ApprovalView>, Refusal> {
    let of = rules::of(world, instance).ok_or_else(|| no_instance(instance))?;
    let agents = rules::answering(world, &of);
    let ids = agents.into_iter().flat_map(|agent| world.resource::<Approvals>().pending_of(agent));
    Ok(ids.take(limit::PAGE_ITEMS_MAX).filter_map(|id| ApprovalView::seen(world, id).ok()).collect())
}

fn decide_in_chat(world: &mut World, it: DecideInChat) -> Result<ApprovalView, Refusal> {
    let DecideInChat { message, approval: id, decision } = it;
    let Some(asked) = command::view(world, message) else {
        return Err(Refusal::not_found("command of a chat", message));
    };
    let of = rules::of(world, &asked.instance).ok_or_else(|| no_instance(&asked.instance))?;
    let agent = state::<Approval>(world, id).map(|approval| approval.agent);
    let answers = agent.is_some_and(|agent| rules::answering(world, &of).contains(&agent));
    if !asked.may_approve || !answers {
        let text = "the sender may not decide this approval in this channel";
        return Err(Refusal::of(error_codes::CHANNEL_APPROVAL_DENIED, text));
    }
    let is_whole = state::<Approval>(world, id).is_none_or(|approval| exactly(approval).is_some());
    if decision == Decision::Approve && !is_whole {
        return Err(Refusal::of(error_codes::CHANNEL_APPROVAL_UNSEEN, TOO_LONG));
    }
    let reason = format!("decided in the channel {} by {}", asked.instance, asked.sender);
    let reason = reason[..reason.floor_char_boundary(limit::APPROVAL_TEXT_BYTES_MAX)].into();
    let decided = decide(world, DecideApprovals { ids: vec![id], decision, reason: Some(reason), answer: None })?;
    let view = decided.into_iter().next().ok_or_else(|| Refusal::not_found("approval", id))?;
    let details = json!({
        "channel": asked.instance, "conversation": asked.conversation, "sender": asked.sender, "approval": id,
        "decision": view.approval.state.as_str(),
    });
    world.audit(audit_kinds::CHAT_APPROVAL_DECIDED, view.approval.agent, details);
    Ok(view)
}

/// An approval is asked for: those who may decide it in a channel are told. What there is no room for is not told; the
/// approval waits all the same.
pub(super) fn asked(world: &mut World, event: &ApprovalAsked) {
    let Some(approval) = state::<Approval>(world, event.0).cloned() else { return };
    if approval.state != ApprovalState::Pending {
        return;
    }
    let all: Vec<ChannelId> = world.resource::<Instances>().after(None).map(|(id, _)| id).collect();
    for id in all {
        let is_told = |rules: &InstanceRules| !rules.notification_recipients.is_empty();
        let of = state::<ChannelInstance>(world, id).map(|it| &it.rules).filter(|rules| is_told(rules)).cloned();
        if let Some(of) = of.filter(|of| rules::answering(world, of).contains(&approval.agent)) {
            tell(world, &of, event.0, &approval);
        }
    }
}

fn tell(world: &mut World, of: &InstanceRules, id: ApprovalId, approval: &Approval) {
    let what = question(id, approval, begin::name_of(world, approval.agent).as_deref().unwrap_or_default());
    for chat in of.notification_recipients.iter().take(limits::CHANNEL_RECIPIENTS_MAX) {
        let known = world.resource::<Conversations>().find(&of.name, chat, None);
        if admit(world, known, &what).is_err() {
            continue;
        }
        let Some(to) = enter(world, &Place { instance: of, chat, thread: None }, None) else { continue };
        let out = Outgoing {
            cause: SendCause::Approval,
            agent: Some(approval.agent),
            what: what.clone(),
            ..Outgoing::default()
        };
        // Admitted above; the approval can be decided elsewhere, too.
        let _no_room = post(world, to, out);
    }
}

/// What is to be done exactly, and for whom, as lines of their own. `None` where it is too long for a chat: what a person has not
/// seen whole is not approved there.
pub fn exactly(approval: &Approval) -> Option<String> {
    let payload = match &*approval.payload {
        "" | "null" | "{}" => String::new(),
        payload => {
            // As it is read: an escape can stand for any letter.
            let read = serde_json::from_str::<Value>(payload).map_or_else(|_| payload.to_owned(), |it| it.to_string());
            format!("\n{}", plainly(&read))
        }
    };
    if payload.len() > limits::APPROVAL_PAYLOAD_BYTES_MAX {
        return None;
    }
    let strangers = if approval.is_strangers { "\nA stranger began this turn." } else { "" };
    Some(format!("{payload}{strangers}"))
}

/// A text on one line in which everything can be seen: what is not seen, turns the direction or breaks the line is escaped.
pub fn plainly(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let is_seen = c == ' ' || !(c.is_control() || c.is_whitespace() || is_unseen(c) || is_turning(c));
        if is_seen { plain.push(c) } else { plain.extend(c.escape_unicode()) }
    }
    plain
}

/// Characters that turn the direction of a text, or carry a text that is not shown.
const fn is_turning(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// What the recipients read, with buttons where a yes or a no is all that is asked for.
fn question(id: ApprovalId, approval: &Approval, agent: &str) -> SendContent {
    let cut = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    let key = id.0.simple();
    let description = cut(&plainly(&approval.description), limits::APPROVAL_NOTE_BYTES_MAX);
    let action = cut(&plainly(&approval.action), limits::APPROVAL_NOTE_BYTES_MAX);
    let head = format!("{agent} asks for a decision about {action}: {description}");
    let Some(exactly) = exactly(approval) else {
        let text = format!("{head}\n{TOO_LONG}\n/reject {key}");
        return SendContent { text, content: None };
    };
    let head = format!("{head}{exactly}");
    if approval.answer_schema.is_some() {
        let text = format!("{head}\nIt has a form to fill in; decide it on the page.");
        return SendContent { text, content: None };
    }
    let text = format!("{head}\n/approve {key}\n/reject {key}");
    let content = json!({ "Interactive": { "text": text, "buttons": [[
        { "label": "Approve", "action": format!("/approve {key}"), "style": "primary" },
        { "label": "Reject", "action": format!("/reject {key}"), "style": "danger" },
    ]] } });
    SendContent { text, content: Some(content.to_string().into()) }
}
