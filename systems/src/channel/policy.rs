//! Which messages are answered: pairing, the policies of chats of two and of groups, rates, loops and roles.

use agentsvc_components::channel::ConversationId;
use agentsvc_components::channel::conversation::{Conversation, Notice, SenderRate};
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::channel::rules::{ChannelInstance, ChatRole, InstanceRules};
use agentsvc_components::channel::send::{SendCause, SendContent};
use agentsvc_components::manifest::channel::{ChannelOverrides, DmPolicy, GroupPolicy};
use bevy_ecs::prelude::World;

use super::index::Instances;
use super::post::{Outgoing, notify, post_or_refuse};
use super::receive::{Received, Why, hash};
use super::{limits, pair, rules, talk};
use crate::kernel::clock::Now;
use crate::kernel::entities::change;

/// What the rules say of a message.
pub(super) enum Verdict {
    /// It is answered.
    Pass,
    /// It gets no answer.
    Silent(Why),
    /// It gets none, and the chat is told why, once in a while.
    Tell(Notice, Why, String),
    /// The daemon answers it.
    Answer(String),
}

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;
/// Commands that only those who may decide approvals can give.
const DECISIONS: [&str; 2] = ["approve", "reject"];

/// Asks all rules, in their order.
pub(super) fn judge(
    world: &mut World,
    of: &InstanceRules,
    merged: &ChannelOverrides,
    conversation: &Conversation,
    id: ConversationId,
    event: &ChatEvent,
) -> Verdict {
    let role = rules::role(world, of, &event.chat, &event.sender);
    let is_known = is_known(world, of, event);
    if !is_known && let Some(code) = start_code(event) {
        return pair::try_code(world, of, conversation, id, event, code);
    }
    if let Some(verdict) = by_chat(world, of, merged, event, is_known) {
        return verdict;
    }
    let is_suppressed = || of.auto_reply.as_ref().is_some_and(|limits| limits.suppresses(&event.text));
    if event.command.is_none() && is_suppressed() {
        return Verdict::Silent(Why::Policy);
    }
    if let Some(verdict) = by_rate(world, of, merged, id, event) {
        return verdict;
    }
    by_role(world, of, role, event)
}

/// Does the operator know who wrote a message, or its chat?
fn is_known(world: &World, of: &InstanceRules, event: &ChatEvent) -> bool {
    rules::role(world, of, &event.chat, &event.sender).is_some()
        || (!event.is_group && rules::is_recipient(of, &event.sender))
        || pair::paired_at(world, &of.name, &event.chat).is_some()
}

/// Anybody else is a stranger, unless the adapter lets in only those whom the operator lists.
pub(super) fn is_by_stranger(world: &World, of: &InstanceRules, event: &ChatEvent) -> bool {
    !of.has_allow_list && !is_known(world, of, event)
}

/// The code of `/start <code>`.
fn start_code(event: &ChatEvent) -> Option<&str> {
    let mut words = event.text.split_whitespace();
    let command = words.next().filter(|word| word.split('@').next() == Some("/start"));
    command.and_then(|_| words.next())
}

/// Is the chat, or the message in a group, one that is answered?
fn by_chat(
    world: &mut World,
    of: &InstanceRules,
    merged: &ChannelOverrides,
    event: &ChatEvent,
    is_known: bool,
) -> Option<Verdict> {
    let is_open = of.has_allow_list && of.users.is_empty();
    let dm_policy = merged.dm_policy.unwrap_or(if is_open { DmPolicy::Respond } else { DmPolicy::AllowedOnly });
    let needs_to_be_known = match event.is_group {
        false => match dm_policy {
            DmPolicy::Respond => false,
            DmPolicy::AllowedOnly => true,
            DmPolicy::Ignore => return Some(Verdict::Silent(Why::Policy)),
        },
        true => {
            let passes = match merged.group_policy() {
                GroupPolicy::All => true,
                GroupPolicy::MentionOnly => event.command.is_some() || rules::is_addressed(world, of, merged, event),
                GroupPolicy::CommandsOnly => event.command.is_some(),
                GroupPolicy::Ignore => false,
            };
            if !passes {
                return Some(Verdict::Silent(Why::Policy));
            }
            merged.group_policy.is_none() && dm_policy != DmPolicy::Respond
        }
    };
    if is_known || !needs_to_be_known {
        return None;
    }
    // A group is not told of each message that is not meant for the bot.
    let is_meant = !event.is_group || event.command.is_some() || event.was_mentioned;
    if !is_meant || event.sender.is_bot {
        return Some(Verdict::Silent(Why::Stranger));
    }
    let text = match of.users.is_empty() {
        true => "This chat is not paired. Ask the operator for a code, and send /start followed by it.",
        false => "Access denied: you are not among the users of this channel.",
    };
    Some(Verdict::Tell(Notice::Pairing, Why::Stranger, text.to_owned()))
}

/// Are there too many messages? One that is let through counts.
fn by_rate(
    world: &mut World,
    of: &InstanceRules,
    merged: &ChannelOverrides,
    id: ConversationId,
    event: &ChatEvent,
) -> Option<Verdict> {
    let minute = world.resource::<Now>().0.0.div_euclid(MINUTE_MS);
    let its = crate::kernel::entities::state::<Conversation>(world, id)?;
    let of_now = |(at, count): (i64, u32)| if at == minute { count } else { 0 };
    let most = merged.bot_replies_max.unwrap_or(limits::BOT_REPLIES_MAX);
    if (event.sender.is_bot && its.bot_replies >= most)
        || of_now(its.turns) >= limits::CONVERSATION_TURNS_PER_MINUTE_MAX
    {
        return Some(Verdict::Silent(Why::Loop));
    }
    let sender = hash(&event.sender.id);
    let by_sender = its.rates.iter().find(|rate| rate.sender == sender).map_or(0, |it| of_now((it.minute, it.count)));
    let per_user = merged.rate_limit_per_user.unwrap_or(0);
    let per_minute = merged.rate_limit_per_minute.unwrap_or(0);
    let instance = world.resource::<Instances>().named(&of.name);
    let by_instance = instance.and_then(|id| crate::kernel::entities::state::<ChannelInstance>(world, id));
    let by_instance = by_instance.map_or(0, |it| of_now(it.minute));
    if (per_user > 0 && by_sender >= per_user) || (per_minute > 0 && by_instance >= per_minute) {
        let text = "Too many messages. Wait a minute, please.";
        return Some(Verdict::Tell(Notice::Rate, Why::Rate, text.to_owned()));
    }
    if per_user > 0 {
        talk::update(world, id, |its| {
            its.rates.retain(|rate| rate.sender != sender && rate.minute == minute);
            if its.rates.len() >= limits::CONVERSATION_SENDERS_MAX {
                its.rates.remove(0);
            }
            its.rates.push(SenderRate { sender, minute, count: by_sender + 1 });
        });
    }
    if per_minute > 0
        && let Some(entity) = instance.and_then(|id| world.resource::<Instances>().get(id))
    {
        change(world, entity, |it: &mut ChannelInstance| it.minute = (minute, by_instance + 1));
    }
    None
}

/// A turn of a conversation begins, or a command. Messages that are joined are one turn.
pub(super) fn count_turn(world: &mut World, id: ConversationId) {
    let minute = world.resource::<Now>().0.0.div_euclid(MINUTE_MS);
    talk::update(world, id, |its| {
        let before = if its.turns.0 == minute { its.turns.1 } else { 0 };
        its.turns = (minute, before.saturating_add(1));
    });
}

/// May the sender chat, and give this command?
fn by_role(world: &World, of: &InstanceRules, role: Option<ChatRole>, event: &ChatEvent) -> Verdict {
    let decides = event.command.as_ref().is_some_and(|command| DECISIONS.contains(&&*command.name));
    if decides && !rules::may_approve(world, of, &event.chat, &event.sender) {
        let text = "Only an administrator or a configured recipient may decide approvals.";
        return Verdict::Tell(Notice::Denied, Why::Denied, text.to_owned());
    }
    if role == Some(ChatRole::Viewer) {
        return Verdict::Tell(Notice::Denied, Why::Denied, "You may read here, but not chat.".to_owned());
    }
    Verdict::Pass
}

/// The chat is told something, once in a while.
pub(super) fn tell(
    world: &mut World,
    id: ConversationId,
    notice: Notice,
    why: Why,
    event: &ChatEvent,
    text: String,
) -> Received {
    let span_ms = if notice == Notice::Rate { MINUTE_MS } else { limits::CHAT_NOTICE_MS };
    match notify(world, id, notice, span_ms, to(event, text)) {
        Some((send, text)) => Received::Answered { send, text },
        None => Received::Ignored(why),
    }
}

/// No agent is set.
pub(super) fn no_agent(world: &mut World, of: &InstanceRules, id: ConversationId, event: &ChatEvent) -> Received {
    match of.suppress_errors {
        true => Received::Ignored(Why::NoAgent),
        false => {
            let text = "No agent is set for this channel.".to_owned();
            tell(world, id, Notice::NoAgent, Why::NoAgent, event, text)
        }
    }
}

/// The daemon answers a message.
pub(super) fn answer(world: &mut World, id: ConversationId, event: &ChatEvent, text: String) -> Received {
    let send = post_or_refuse(world, id, to(event, text.clone()));
    Received::Answered { send, text }
}

/// Goes where the message came from.
fn to(event: &ChatEvent, text: String) -> Outgoing {
    Outgoing {
        cause: SendCause::Notice,
        what: SendContent { text, content: None },
        thread: event.thread.clone(),
        reply_token: event.reply_token.clone(),
        answers: event.message_id.clone(),
        ..Outgoing::default()
    }
}
