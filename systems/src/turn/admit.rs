//! Admission: turns and compactions get the slots of providers that they stand in line for.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::compaction::Compaction;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::session::Session;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::error_codes;
use agentsvc_components::turn::{Origin, Turn, TurnState};
use agentsvc_components::usage::Scope;
use agentsvc_components::{Refusal, RefusalKind, TurnId};

use super::finish::{End, finish};
use super::{drain, profile, stop, stopping};
use crate::budget::{Denial, Need, Verdict};
use crate::config::Settings;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::fires::Fires;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::model::admission::{Admission, stand_in_line};
use crate::{agent, budget, compaction, goal, proactive_memory, prompt, session};

/// Puts a turn that is first in its session in line for its provider.
pub(super) fn enqueue(world: &mut World, turn: Entity) {
    let Some(mut component) = world.get_mut::<Turn>(turn) else { return };
    let was = std::mem::replace(&mut component.state, TurnState::Reserving);
    let (agent, burst, request) = (component.agent, component.burst, component.request.clone());
    // After a restart it stands in line anew without having changed: it may stay in its burst.
    if burst.is_none() || was != TurnState::Reserving {
        world.mark(turn);
    }
    stand_in_line(world, agent, turn, request.as_ref().and_then(|request| request.provider()));
}

/// Gives free slots to the turns that wait, until slots or turns run out. What a call may cost is reserved before it
/// goes out; a turn that no budget has room for ends here.
pub(crate) fn admit(world: &mut World) {
    if !world.resource::<Fires>().calls_may() {
        return;
    }
    let (mut interrupted, mut refused, mut exceeded) = (Vec::new(), Vec::new(), Vec::new());
    world.resource_scope(|world, mut admission: bevy_ecs::prelude::Mut<'_, Admission>| {
        while let Some((slot, turn)) = admission.next(world.resource::<Settings>()) {
            if drain::is_left(world, &admission, turn) || stop::is_going(world, turn) {
                continue;
            }
            if !may_start(world, turn) {
                interrupted.push(turn);
                continue;
            }
            if let Some(why) = profile::exceeded(world, turn) {
                exceeded.push((turn, why));
                continue;
            }
            if let Err(full) = has_room(world, turn) {
                refused.push((turn, Denial::Refused(Box::new(full))));
                continue;
            }
            let Some(need) = budget::need(world, turn) else { continue };
            match budget::judge(world, &need) {
                Verdict::Over(over) => refused.push((turn, Denial::Over(over))),
                Verdict::Unpriced(model) => refused.push((turn, Denial::Unpriced(model))),
                Verdict::Refused(refusal) if refusal.kind == RefusalKind::Busy => {
                    budget::wait(world, Scope::Global, turn, &need);
                }
                Verdict::Refused(refusal) => refused.push((turn, Denial::Refused(refusal))),
                Verdict::Wait(over) => budget::wait(world, over.scope(), turn, &need),
                Verdict::Fits => {
                    let sent = call(world, turn, &need).or_else(|| compaction::call(world, turn, need.calls_max));
                    if let Some(attempt) = sent {
                        budget::reserve(world, attempt, need);
                        admission.take(attempt, slot);
                    }
                }
            }
        }
        admission.end_round();
    });
    for turn in interrupted {
        let is_stopped = stopping::is_stopping(world, turn);
        finish(world, turn, if is_stopped { End::Stopped(None) } else { End::Interrupted });
    }
    for (turn, why) in exceeded {
        finish(world, turn, End::Failed(error_codes::TURN_LIMIT_REACHED, why));
    }
    for (entity, denial) in refused {
        let refusal = budget::refused(world, &denial);
        let owner = world.get::<Turn>(entity).map(|turn| turn.agent);
        let owner = owner.or_else(|| world.get::<Compaction>(entity).map(|job| job.agent));
        if world.get::<Turn>(entity).is_some() {
            finish(world, entity, End::OverBudget(Box::new(refusal)));
        } else {
            compaction::refuse(world, entity, &refusal);
        }
        // What it was promised is free for those behind it.
        if let Some(owner) = owner {
            budget::promise_left(world, owner);
        }
    }
}

/// Refuses the next call of a turn whose answer there is no room for in the store. A summary of what is there is small.
fn has_room(world: &World, entity: Entity) -> Result<(), Refusal> {
    world.get::<Turn>(entity).map_or(Ok(()), |turn| session::has_room(world, turn.agent))
}

/// False for a turn that an interrupt ends before its first call (spec 1, Interrupting a turn): one that was cancelled
/// while it waited, or one that starts without a new message while the session's flag is set. A turn that a new
/// message began clears the flag.
fn may_start(world: &mut World, entity: Entity) -> bool {
    let Some(turn) = world.get::<Turn>(entity).filter(|turn| turn.state == TurnState::Reserving) else { return true };
    let is_message = turn.origin.is_message() || matches!(turn.origin, Origin::Channel { .. });
    let (session, is_first, is_cancelled) = (turn.session, turn.iteration == 0, turn.cancelled);
    if is_cancelled {
        return false;
    }
    if !is_first || !world.get::<Session>(session).is_some_and(|home| home.interrupted) {
        return true;
    }
    if is_message && let Some(mut home) = world.get_mut::<Session>(session) {
        home.interrupted = false;
        world.mark(session);
    }
    is_message
}

/// Sends a turn's next model call out. `None` when the turn has ended, or its agent was stopped, meanwhile.
fn call(world: &mut World, entity: Entity, need: &Need) -> Option<Attempt> {
    let mut turn = world.get_mut::<Turn>(entity)?;
    if turn.state != TurnState::Reserving {
        return None;
    }
    let (agent, session) = (turn.agent, turn.session);
    let owner = world.get::<Agent>(agent)?;
    if owner.state != AgentState::Running {
        return None;
    }
    let request = world.get::<Turn>(entity)?.request.clone();
    let (name, manifest) = (owner.name.clone(), profile::manifest(owner, request.as_deref()));
    let is_whole = request.as_ref().is_none_or(|request| request.profile.is_none());
    let manifest = if is_whole { prompt::for_call(world, entity, manifest) } else { manifest };
    let goals = if is_whole { goal::in_prompt(world, id_of(world, agent)) } else { Default::default() };
    let now = world.resource::<Now>().0;
    turn = world.get_mut::<Turn>(entity)?;
    turn.state = TurnState::Calling;
    turn.attempt += 1;
    turn.iteration += 1;
    let (number, first) = (turn.attempt, turn.iteration == 1);
    turn.called_at = now;
    let (ordinal, streaming) = (turn.ordinal, turn.streaming);
    let Session { log, compacted, .. } = *world.get::<Session>(session)?;
    let attempt = Attempt::of(id_of::<TurnId>(world, entity), number);
    let model = world.resource::<Settings>().resolve(&manifest.manifest.model);
    let recall = if is_whole { proactive_memory::for_call(world, entity) } else { None };
    let effect = ModelCall {
        attempt,
        agent: id_of(world, agent),
        holder: agent::holder_of(world, agent),
        agent_name: name,
        session: id_of(world, session),
        log,
        ordinal,
        manifest,
        model,
        compacted,
        goals,
        recall,
        request,
        streaming,
        answer_tokens_max: need.answer_tokens_max,
    };
    if first {
        world.event(Event::TurnStarted { agent: effect.agent, turn: effect.turn() });
    }
    world.mark(entity);
    world.effect(effect);
    Some(attempt)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use agentsvc_components::compaction::CompactionState;

    use super::*;
    use crate::agent::{RemoveAgents, StartAgents, StopAgents};
    use crate::session::{ClearHistory, CreateSession};
    use crate::testing::{Asked, TestWorld};
    use crate::turn::{InterruptSession, NewMessage, SendMessage, StopTurns, TurnReply};

    /// A world whose provider takes one call, and that one is out.
    fn stalled() -> (TestWorld, Asked<TurnReply>) {
        let mut world = TestWorld::with(Settings { provider_calls: 1, ..Settings::default() });
        let agent = world.spawn("stalled");
        let asked = send(&mut world, agent);
        (world, asked)
    }

    fn send(world: &mut TestWorld, agent: AgentId) -> Asked<TurnReply> {
        let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("go") });
        world.step();
        asked
    }

    fn waiting(world: &TestWorld) -> usize {
        let admission = world.engine.world().resource::<Admission>();
        assert_eq!(admission.in_line().count(), admission.waiting());
        admission.waiting()
    }

    #[test]
    fn a_turn_that_ends_in_line_leaves_it() {
        let (mut world, _stalled) = stalled();
        let (hasty, patient) = (world.spawn("hasty"), world.spawn("patient"));
        let asked = send(&mut world, patient);
        for _ in 0..10 {
            let _gave_up = send(&mut world, hasty);
            assert_eq!(waiting(&world), 2);
            assert_eq!(world.ask(StopTurns { agent: hasty, session: None }).unwrap(), 1);
            assert_eq!((waiting(&world), world.engine.stats().turns_waiting), (1, 1));
        }
        let session = world.ask(CreateSession { agent: hasty, label: None }).unwrap();
        let message = NewMessage::text("go");
        let _interrupted = world.begin(SendMessage { agent: hasty, session: Some(session), message });
        world.step();
        world.ask(InterruptSession { agent: hasty, session }).unwrap();
        assert_eq!(waiting(&world), 1);
        let _cleared = send(&mut world, hasty);
        world.ask(RemoveAgents(vec![hasty])).unwrap();
        assert_eq!(waiting(&world), 1);
        let call = world.next_call();
        world.answer(call.attempt, "at last");
        let call = world.next_call();
        world.answer(call.attempt, "for you");
        assert_eq!(asked.take().unwrap().unwrap().response, "for you");
        assert_eq!((waiting(&world), world.calls.len()), (0, 0));
    }

    #[test]
    fn a_turn_stands_in_line_once_however_often_its_agent_is_stopped_and_started() {
        let (mut world, _stalled) = stalled();
        let agent = world.spawn("toggled");
        let _asked: Vec<_> = (0..6).map(|_| send(&mut world, agent)).collect();
        for _ in 0..5 {
            // The first of its turns ends, and the next takes its place.
            world.ask(StopAgents(vec![agent])).unwrap();
            assert_eq!(waiting(&world), 1);
            world.ask(StartAgents(vec![agent])).unwrap();
            assert_eq!(waiting(&world), 1);
        }
        let call = world.next_call();
        world.answer(call.attempt, "at last");
        assert_eq!((world.next_call().ordinal, waiting(&world)), (5, 0));
    }

    #[test]
    fn a_compaction_that_loses_its_history_leaves_its_line() {
        let (mut world, _stalled) = stalled();
        let agent = world.spawn("talker");
        let (owner, session) = {
            let world = world.engine.world();
            let owner = crate::kernel::index::agent(world, agent).unwrap();
            (owner, world.get::<Agent>(owner).unwrap().current)
        };
        let world_mut = world.engine.world_mut();
        let log = world_mut.get::<Session>(session).unwrap().log;
        let state = CompactionState::Reserving;
        let job = Compaction { agent: owner, session, log, from: 0, upto: 1, attempt: 0, state };
        let id = agentsvc_components::CompactionId(uuid::Uuid::from_u128(7));
        let entity = world_mut.spawn((id, job)).id();
        world_mut.mark(entity);
        stand_in_line(world_mut, owner, entity, None);
        world.step();
        assert_eq!(waiting(&world), 1);
        world.ask(ClearHistory { agent }).unwrap();
        assert_eq!((waiting(&world), world.engine.stats().compactions_open), (0, 0));
    }
}
