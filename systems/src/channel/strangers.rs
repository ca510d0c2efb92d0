//! Conversations of strangers, such as visitors of a site, and their sessions: they go when they are old, and where strangers have
//! taken their share those go that were idle for longest. What the operator's own people have written stays.

use agentsvc_components::channel::ConversationId;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::{AgentId, Refusal, Timestamp};
use bevy_ecs::prelude::World;

use super::index::Conversations;
use super::{limits, post, talk};
use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::kernel::entities::state;
use crate::kernel::index;
use crate::session::strangers::{self, Whose};

/// Conversations of an agent of which one look takes the first that is idle.
const LOOKED_AT_MAX: usize = 256;
/// Sessions that go for one message at most; others go for those that follow.
const GOING_MAX: usize = 16;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Only strangers have written in the conversation, or not only they. Its sessions are of their share of the store, or not.
pub(super) fn set(world: &mut World, id: ConversationId, is_strangers: bool) {
    let Some(its) = state::<Conversation>(world, id).filter(|its| its.is_strangers != is_strangers) else { return };
    let sessions = its.sessions.clone();
    talk::update(world, id, |its| its.is_strangers = is_strangers);
    for its in sessions {
        strangers::set(world, its.session, is_strangers);
    }
}

/// Makes room in the share of strangers for what an agent writes and reads in one of their conversations.
///
/// # Errors
/// Turns of strangers take all of it (429).
pub(super) fn make_room(world: &mut World, agent: AgentId) -> Result<(), Refusal> {
    let Ok(at) = index::agent(world, agent) else { return Ok(()) };
    // Those of a family are others than those of a user; each is looked for once.
    let mut sharing: Option<(Whose, Vec<AgentId>)> = None;
    for _ in 0..GOING_MAX {
        let Some((whose, _)) = strangers::full_share(world, at) else { return Ok(()) };
        let agents = match sharing.take().filter(|(of, _)| *of == whose) {
            Some((_, agents)) => agents,
            None => sharing_with(world, whose),
        };
        if !end_oldest(world, &agents) {
            break;
        }
        sharing = Some((whose, agents));
    }
    strangers::full_share(world, at).map_or(Ok(()), |(_, refusal)| Err(refusal))
}

/// The agents that share with strangers what is full; what was removed of their oldest sessions is forgotten.
fn sharing_with(world: &mut World, whose: Whose) -> Vec<AgentId> {
    let is_whose = |agent: &AgentId| index::agent(world, *agent).is_ok_and(|at| whose.has(world, at));
    let agents: Vec<AgentId> = world.resource::<Conversations>().agents_of_strangers().filter(is_whose).collect();
    for agent in &agents {
        forget_removed(world, *agent);
    }
    agents
}

/// The session of strangers goes that was idle for longest. False where none is idle.
fn end_oldest(world: &mut World, agents: &[AgentId]) -> bool {
    let all = world.resource::<Conversations>();
    let idle_of = |agent: AgentId| {
        let oldest = all.strangers_of(agent).take(LOOKED_AT_MAX);
        let mut with_session = oldest.filter_map(|(at, id)| {
            let session = state::<Conversation>(world, id)?.session_with(agent)?;
            Some((at, id, session, agent))
        });
        with_session.find(|(_, _, session, _)| strangers::is_idle(world, *session))
    };
    let oldest = agents.iter().copied().filter_map(idle_of).min_by_key(|(at, id, ..)| (*at, *id));
    let Some((_, id, session, agent)) = oldest else { return false };
    talk::update(world, id, |its| its.sessions.retain(|known| known.agent != agent));
    strangers::forget(world, session);
    true
}

/// What was removed of the oldest sessions of strangers with an agent is forgotten: only those count that are there.
fn forget_removed(world: &mut World, agent: AgentId) {
    let is_gone = |id: &ConversationId| {
        let session = state::<Conversation>(world, *id).and_then(|its| its.session_with(agent));
        session.is_some_and(|session| index::session(world, session).is_none())
    };
    let oldest = world.resource::<Conversations>().strangers_of(agent).map(|(_, id)| id);
    let gone: Vec<ConversationId> = oldest.take_while(is_gone).take(LOOKED_AT_MAX).collect();
    for id in gone {
        talk::update(world, id, |its| its.sessions.retain(|known| known.agent != agent));
    }
}

/// There are as many conversations as there may be: that of strangers goes in which nothing happened for longest.
pub(super) fn forget_oldest(world: &mut World) {
    let oldest = world.resource::<Conversations>().oldest_of_strangers().take(LOOKED_AT_MAX);
    for (_, id) in oldest.collect::<Vec<_>>() {
        if post::forget(world, id) {
            return;
        }
    }
}

/// Milliseconds after which a conversation of strangers is old; `None` where none ever is.
fn age_ms(world: &World) -> Option<i64> {
    let days = world.resource::<Settings>().strangers_idle_days;
    (days > 0).then(|| i64::from(days) * DAY_MS)
}

/// When the next conversation of strangers is old.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    let (at, _) = world.resource::<Conversations>().oldest_of_strangers().next()?;
    age_ms(world).map(|age_ms| at.plus_ms(age_ms))
}

/// Conversations of strangers that are old go; a bounded number. What is still open in one counts as something that happens.
pub(super) fn sweep(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::CHAT_BEAT_MAX {
        if next_due(world).is_none_or(|due| due > now) {
            return;
        }
        let Some((_, id)) = world.resource::<Conversations>().oldest_of_strangers().next() else { return };
        if !post::forget(world, id) {
            talk::update(world, id, |its| its.last_at = now);
        }
    }
}

/// The clock was set back: nothing of strangers stays for longer than if it had happened now.
pub(super) fn not_ahead(world: &mut World) {
    let now = world.resource::<Now>().0;
    let newest = world.resource::<Conversations>().oldest_of_strangers().rev();
    let ahead: Vec<ConversationId> = newest.take_while(|(at, _)| *at > now).map(|(_, id)| id).collect();
    for id in ahead {
        talk::update(world, id, |its| its.last_at = now);
    }
}
