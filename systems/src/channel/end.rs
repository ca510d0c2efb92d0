//! The turn of a message ends: its answer is sent in the same step, once, and the message is gone.

use agentsvc_components::channel::ChatMessageId;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::{ChatMessage, ChatMessageState};
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::channel::send::SendCause;
use agentsvc_components::channel::signal::Shown;
use agentsvc_components::manifest::channel::{AgentPrefix, AutoRoute, UsageFooter};
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::{AgentId, ErrorCode, SessionId, Timestamp, TurnId};
use bevy_ecs::prelude::World;

use super::post::{Outgoing, post_or_refuse};
use super::{begin, precheck, rules, strangers, talk};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, find, state};
use crate::turn::{Ended, stop_turn};

/// Seconds that an agent keeps a conversation that it answered, where nothing else is set.
const HOLD_SECS: u32 = 600;

/// The turn of a message has ended.
pub(super) fn turn_ended(world: &mut World, id: ChatMessageId, ended: &Ended) {
    settle(world, id, ended.end, &ended.text, ended.code, ended.usage);
}

/// Answers a message with how its turn ended.
pub(super) fn settle(
    world: &mut World,
    id: ChatMessageId,
    end: TurnEnd,
    text: &str,
    code: Option<ErrorCode>,
    usage: Usage,
) {
    let Some(message) = state::<ChatMessage>(world, id).cloned() else { return };
    let ChatMessageState::Answering { agent, session, turn, .. } = message.state else {
        return precheck::ended(world, id, end, text);
    };
    let Some(conversation) = state::<Conversation>(world, message.conversation) else { return };
    let is_group = conversation.is_group;
    let of = rules::of(world, &conversation.instance).unwrap_or_default();
    begin::signal(world, id, Shown::Ended { has_failed: end != TurnEnd::Done });
    if let Some(text) = answer(world, &of, agent, end, text, code) {
        let footer = if end == TurnEnd::Done { footer(world, &of, agent, usage) } else { String::new() };
        send(world, &message, agent, (session, turn), text + &footer);
    }
    if end == TurnEnd::Done {
        hold(world, &message, &of, agent, is_group);
    }
    begin::remove(world, id);
    if state::<Conversation>(world, message.conversation).is_some_and(|its| its.is_strangers) {
        // Where nothing is idle, the next one that ends makes room.
        let _ = strangers::make_room(world, agent);
    }
}

/// The turn of a message takes too long: it is stopped, and the chat is told.
pub(super) fn stop_late(world: &mut World, id: ChatMessageId) {
    set_deadline(world, id, None);
    let Some(message) = state::<ChatMessage>(world, id).cloned() else { return };
    let (agent, turn) = match message.state {
        ChatMessageState::Checking { turn, .. } => return stop_turn(world, turn),
        ChatMessageState::Answering { agent, turn, .. } => (agent, turn),
        ChatMessageState::Waiting { .. } | ChatMessageState::Command(_) => return,
    };
    let of = state::<Conversation>(world, message.conversation).and_then(|its| rules::of(world, &its.instance));
    if of.is_some_and(|of| !of.suppress_errors) {
        let text = "The agent did not answer in time.";
        let out = Outgoing { agent: Some(agent), ..Outgoing::to(&message, SendCause::Notice, text) };
        post_or_refuse(world, message.conversation, out);
    }
    stop_turn(world, turn);
}

/// Sets when the turn of a message is stopped.
pub(super) fn set_deadline(world: &mut World, id: ChatMessageId, to: Option<Timestamp>) {
    let Ok(entity) = find::<ChatMessage>(world, id) else { return };
    change(world, entity, |message: &mut ChatMessage| {
        if let ChatMessageState::Checking { deadline, .. } | ChatMessageState::Answering { deadline, .. } =
            &mut message.state
        {
            *deadline = to;
        }
    });
}

fn send(world: &mut World, message: &ChatMessage, agent: AgentId, turn: (SessionId, TurnId), text: String) {
    let out = Outgoing { agent: Some(agent), turn: Some(turn), ..Outgoing::to(message, SendCause::Answer, text) };
    post_or_refuse(world, message.conversation, out);
    let is_bot = message.sender.is_bot;
    talk::update(world, message.conversation, |its| its.bot_replies += u32::from(is_bot));
}

/// What a chat reads of a turn's end; `None` is silence.
fn answer(
    world: &World,
    of: &InstanceRules,
    agent: AgentId,
    end: TurnEnd,
    text: &str,
    code: Option<ErrorCode>,
) -> Option<String> {
    match end {
        TurnEnd::Done if is_silent(text) => None,
        TurnEnd::Done => Some(prefixed(world, of, agent, text)),
        // A person stopped it, and knows.
        TurnEnd::Stopped | TurnEnd::Interrupted => None,
        TurnEnd::Failed if of.suppress_errors => None,
        TurnEnd::Failed => {
            let code = code.map_or_else(String::new, |code| format!(" ({code})"));
            Some(format!("The agent could not answer{code}."))
        }
    }
}

/// Does an answer say that there is none?
#[must_use]
pub fn is_silent(text: &str) -> bool {
    let last = text.trim_end().lines().next_back().unwrap_or_default().trim();
    last.is_empty() || last.eq_ignore_ascii_case("NO_REPLY") || last.eq_ignore_ascii_case("[no reply needed]")
}

fn prefixed(world: &World, of: &InstanceRules, agent: AgentId, text: &str) -> String {
    let prefix = rules::merged(world, of, Some(agent)).prefix_agent_name.unwrap_or_default();
    let name = begin::name_of(world, agent).unwrap_or_default();
    match prefix {
        AgentPrefix::Off => text.to_owned(),
        AgentPrefix::Bracket => format!("[{name}] {text}"),
        AgentPrefix::BoldBracket => format!("**[{name}]** {text}"),
    }
}

/// What stands below an answer about what it took.
fn footer(world: &World, of: &InstanceRules, agent: AgentId, usage: Usage) -> String {
    let (tokens, cost) = (format!("{} tokens", usage.tokens()), format!("${}", usage.cost));
    match rules::merged(world, of, Some(agent)).usage_footer.unwrap_or_default() {
        UsageFooter::Off => String::new(),
        UsageFooter::Tokens => format!("\n\n[{tokens}]"),
        UsageFooter::Cost => format!("\n\n[{cost}]"),
        UsageFooter::Full => format!("\n\n[{tokens}, {cost}]"),
    }
}

/// The agent that answered keeps the conversation for a while.
fn hold(world: &mut World, message: &ChatMessage, of: &InstanceRules, agent: AgentId, is_group: bool) {
    let merged = rules::merged(world, of, Some(agent));
    let is_sticky = merged.auto_route.is_some_and(AutoRoute::is_sticky);
    let is_kept = merged.thread_ownership_enabled.unwrap_or(true)
        && (is_group || is_sticky || merged.conversation_ownership_include_dms.unwrap_or(false));
    let sticky_secs = merged.auto_route_ttl_minutes.filter(|_| is_sticky).map(|minutes| minutes.saturating_mul(60));
    let secs = sticky_secs.or(merged.conversation_ownership_ttl_seconds).unwrap_or(HOLD_SECS);
    if is_kept && secs > 0 {
        let until = world.resource::<Now>().0.plus_ms(i64::from(secs) * 1_000);
        talk::update(world, message.conversation, |its| its.holder = Some((agent, until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_last_line_that_says_so() {
        for text in ["NO_REPLY", "  no_reply\n", "[no reply needed]", "Nothing to add.\nNO_REPLY", "", " \n"] {
            assert!(is_silent(text), "{text:?}");
        }
        for text in ["NO_REPLY is a word of the protocol", "yes", "NO_REPLY\nbut this"] {
            assert!(!is_silent(text), "{text:?}");
        }
    }
}
