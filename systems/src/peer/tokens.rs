//! Tokens of model calls that peers began, directly or through the messages that agents then sent to each other, by the session in
//! which a peer began them. Like the other limits of peers they are counted since the start.

use std::collections::VecDeque;

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{SessionId, Timestamp};
use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use super::limits::PEER_SESSIONS_COUNTED_MAX;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::usage::SpentByStrangers;

const MINUTE_MS: i64 = 60_000;
/// Minutes of the hour that the limit is about.
const MINUTES: i64 = 60;

/// See the head of the file.
#[derive(Resource, Debug, Default)]
pub(super) struct PeerTokens(HashMap<SessionId, VecDeque<(i64, u64)>>);

fn minute(at: Timestamp) -> i64 {
    at.0.div_euclid(MINUTE_MS)
}

impl PeerTokens {
    fn add(&mut self, session: SessionId, minute: i64, tokens: u64) {
        if self.0.len() >= PEER_SESSIONS_COUNTED_MAX && !self.0.contains_key(&session) {
            self.make_room(minute);
        }
        let of = self.0.entry(session).or_default();
        of.retain(|(at, _)| *at > minute - MINUTES);
        match of.back_mut().filter(|(at, _)| *at >= minute) {
            Some((_, sum)) => *sum = sum.saturating_add(tokens),
            None => of.push_back((minute, tokens)),
        }
    }

    /// Forgets the sessions that an hour has passed for, else the one that used tokens longest ago.
    fn make_room(&mut self, minute: i64) {
        let last = |of: &VecDeque<(i64, u64)>| of.back().map_or(i64::MIN, |(at, _)| *at);
        self.0.retain(|_, of| last(of) > minute - MINUTES);
        if self.0.len() >= PEER_SESSIONS_COUNTED_MAX
            && let Some(oldest) = self.0.iter().min_by_key(|(id, of)| (last(of), **id)).map(|(id, _)| *id)
        {
            self.0.remove(&oldest);
        }
    }

    fn of(&self, session: SessionId, minute: i64) -> u64 {
        let all = self.0.get(&session).into_iter().flatten();
        let recent = all.filter(|(at, _)| *at > minute - MINUTES);
        recent.fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens))
    }
}

/// A call that strangers began has used tokens.
pub(super) fn spent(world: &mut World, spent: &SpentByStrangers) {
    if let Some(session) = spent.began_in.filter(|_| spent.strangers.holds(Taint::PEER) && spent.tokens > 0) {
        world.resource_mut::<PeerTokens>().add(session, minute(spent.at), spent.tokens);
    }
}

/// Adds up the tokens of the last hour that were used for what a peer began in these sessions.
#[derive(Clone, Debug)]
pub struct CountPeerTokens(
    /// The sessions that the peer has with agents.
    pub Vec<SessionId>,
);

command! {
    read "count_peer_tokens" CountPeerTokens => u64, All, |it, world| Answer::read({
        let (tokens, now) = (world.resource::<PeerTokens>(), minute(world.resource::<Now>().0));
        it.0.iter().fold(0_u64, |sum, session| sum.saturating_add(tokens.of(*session, now)))
    })
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::{Block, ToolCall};
    use agentsvc_components::turn::effect::ToolRun;
    use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
    use agentsvc_components::{AgentId, TurnId};
    use uuid::Uuid;

    use super::*;
    use crate::testing::{TestWorld, answer};
    use crate::turn::{NewMessage, PostMessage, SendToAgent};

    /// Tokens of an answer of these tests.
    const TOKENS: u64 = 15;

    fn session(n: u128) -> SessionId {
        SessionId(Uuid::from_u128(n))
    }

    fn used(world: &mut TestWorld, sessions: &[u128]) -> u64 {
        world.ask(CountPeerTokens(sessions.iter().map(|n| session(*n)).collect())).unwrap()
    }

    fn begin(world: &mut TestWorld, agent: AgentId, session: SessionId, taint: Taint) {
        let message = NewMessage { taint, ..NewMessage::text("go") };
        world.ask(PostMessage { agent, session: Some(session), message }).unwrap();
    }

    fn answered(world: &mut TestWorld) {
        let attempt = world.next_call().attempt;
        world.answer(attempt, "done");
    }

    /// The model of the next call sends a message to an agent.
    fn sends(world: &mut TestWorld, to: &str, wait: bool) -> TurnId {
        let attempt = world.next_call().attempt;
        let call = ToolCall { id: "c".into(), name: "agent_send".into(), input: "{}".into() };
        world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
        let effects = std::mem::take(&mut world.effects);
        let run = effects.into_iter().find_map(|effect| effect.take::<ToolRun>().ok()).expect("the tool runs");
        let (from, index) = (run.attempt, run.index);
        let send = SendToAgent { from, index, to: to.into(), session: None, text: "m".into(), wait, found: None };
        world.ask(send).unwrap().turn
    }

    #[test]
    fn what_the_turn_of_a_peer_sets_off_counts_where_the_peer_began_it() {
        let mut world = TestWorld::new();
        let agent = world.spawn("a");
        world.spawn("b");
        begin(&mut world, agent, session(1), Taint::PEER);
        begin(&mut world, agent, session(2), Taint::PEER);
        begin(&mut world, agent, session(3), Taint::GUEST);
        for _ in 0..3 {
            answered(&mut world);
        }
        assert_eq!((used(&mut world, &[1]), used(&mut world, &[2]), used(&mut world, &[3])), (TOKENS, TOKENS, 0));
        // A chain that is not awaited: its first turn has ended, and the daemon was restarted, when its last one runs.
        begin(&mut world, agent, session(1), Taint::PEER);
        let second = sends(&mut world, "b", false);
        world.restart();
        let at = world.calls.iter().position(|call| call.turn() != second).expect("the first turn goes on");
        let attempt = world.calls.remove(at).attempt;
        world.answer(attempt, "done");
        sends(&mut world, "a", true);
        while !world.calls.is_empty() {
            answered(&mut world);
        }
        // The answer of the first turn, the two calls of the second, and the one of the third.
        assert_eq!(used(&mut world, &[1]), 4 * TOKENS);
        assert_eq!(used(&mut world, &[2, 3]), 0, "a restart forgets, and another peer does not pay");
        world.now = world.now.plus_ms(MINUTES * MINUTE_MS);
        world.engine.set_now(world.now);
        assert_eq!(used(&mut world, &[1]), 0, "an hour later");
        assert_eq!(world.engine.check(), Vec::<String>::new());
    }

    #[test]
    fn sessions_that_are_counted_are_bounded() {
        let mut tokens = PeerTokens::default();
        for n in 0..PEER_SESSIONS_COUNTED_MAX as i64 + 10 {
            tokens.add(session(n as u128), n / 100, 1);
        }
        assert_eq!(tokens.0.len(), PEER_SESSIONS_COUNTED_MAX);
        assert_eq!((tokens.of(session(0), 40), tokens.of(session(PEER_SESSIONS_COUNTED_MAX as u128), 40)), (0, 1));
        tokens.add(session(u128::MAX), 10_000, 1);
        assert_eq!(tokens.0.len(), 1, "those of another hour are not kept");
    }
}
