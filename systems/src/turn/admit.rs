//! Admission: slots of providers are given out fairly over agents, so that one agent with ten thousand
//! messages delays the others by one call, not by ten thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;

use agentsvc_components::TurnId;
use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::compaction::Compaction;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::Session;
use agentsvc_components::turn::effect::{Effect, ModelCall};
use agentsvc_components::turn::{Turn, TurnState};

use super::finish::{End, finish};
use super::lane::{Lane, Place};
use crate::budget::{Need, Verdict};
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::clock::Now;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::{budget, compaction, goal};

/// The lanes of all providers, and which attempt holds a slot of which lane.
#[derive(Resource, Default)]
pub(crate) struct Admission {
    /// In order of names, so that the same inputs admit the same turns.
    lanes: BTreeMap<Arc<str>, ProviderLane>,
    /// Who waits, and where. Nobody stands in line twice.
    places: HashMap<Entity, (Arc<str>, Place)>,
    out: HashMap<Attempt, Arc<str>>,
    free: bool,
}

/// One provider's turns: those that wait, and how many calls are out.
#[derive(Default)]
struct ProviderLane {
    out: u32,
    turns: Lane<Entity>,
}

impl Admission {
    /// Turns that wait for a slot.
    pub(crate) fn waiting(&self) -> usize {
        self.places.len()
    }

    /// Model calls that are out.
    pub(crate) fn out(&self) -> usize {
        self.out.len()
    }

    /// May a further round admit someone?
    pub(crate) fn can_admit(&self) -> bool {
        self.free && !self.places.is_empty()
    }

    /// The providers that are asked now, or that turns wait for.
    pub(crate) fn providers(&self) -> impl Iterator<Item = &str> + '_ {
        self.lanes.keys().map(|name| &**name)
    }

    /// Calls that are out at a provider, and agents whose turns wait for a place there.
    pub(crate) fn lane_of(&self, provider: &str) -> (u32, usize) {
        self.lanes.get(provider).map_or((0, 0), |lane| (lane.out, lane.turns.agents()))
    }

    /// The bounds of the lanes may have changed: whoever waits is looked at again.
    pub(crate) const fn look_again(&mut self) {
        self.free = true;
    }

    /// Puts a turn in line at its provider. One that stands in line keeps its place.
    fn push(&mut self, provider: &str, agent: Entity, turn: Entity) {
        self.free = true;
        if self.places.contains_key(&turn) {
            return;
        }
        let known = self.lanes.get_key_value(provider).map(|(name, _)| Arc::clone(name));
        let provider = known.unwrap_or_else(|| provider.into());
        let place = self.lane(&provider).turns.push(agent, turn);
        self.places.insert(turn, (provider, place));
    }

    /// Takes a turn out of its line, if it stands in one.
    fn leave(&mut self, turn: Entity) {
        let Some((provider, place)) = self.places.remove(&turn) else { return };
        if let Some(lane) = self.lanes.get_mut(&provider) {
            lane.turns.take_out(place);
        }
    }

    fn lane(&mut self, provider: &Arc<str>) -> &mut ProviderLane {
        self.lanes.entry(Arc::clone(provider)).or_default()
    }

    /// Who waits for a slot.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = Entity> {
        self.lanes.values().flat_map(|lane| lane.turns.items().copied())
    }

    /// Does `attempt` hold a slot?
    pub(crate) fn is_out(&self, attempt: Attempt) -> bool {
        self.out.contains_key(&attempt)
    }

    /// The attempts that hold a slot.
    pub(crate) fn attempts(&self) -> BTreeSet<(TurnId, u32)> {
        self.out.keys().map(|attempt| (attempt.turn, attempt.number)).collect()
    }

    /// Says where the counts are not what they count.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let waiting = self.in_line().filter(|turn| self.places.contains_key(turn)).count();
        let counted = (self.in_line().count(), self.places.len());
        faults.same("turns that wait for a slot", &counted, &(waiting, waiting));
        for (provider, lane) in &self.lanes {
            let out = self.out.values().filter(|of| *of == provider).count();
            faults.that(lane.out as usize == out, || format!("{provider}: {out} calls are out, counted {}", lane.out));
        }
        let lost = self.out.values().filter(|provider| !self.lanes.contains_key(*provider)).count();
        faults.that(lost == 0, || format!("{lost} calls are out at providers without a lane"));
    }

    /// The slot that `attempt` held is free again, whatever became of the turn.
    pub(super) fn give_back(&mut self, attempt: Attempt) {
        let Some(provider) = self.out.remove(&attempt) else { return };
        if let Some(lane) = self.lanes.get_mut(&provider) {
            lane.out -= 1;
            self.free = true;
        }
    }

    /// The next turn that may call, if any lane has both a turn and a slot.
    fn next(&mut self, settings: &Settings) -> Option<(Arc<str>, Entity)> {
        if self.out.len() >= limit::EFFECTS_OUT_MAX {
            return None;
        }
        for (provider, lane) in &mut self.lanes {
            if lane.out < settings.calls_max(provider)
                && let Some(turn) = lane.turns.pop()
            {
                self.places.remove(&turn);
                return Some((Arc::clone(provider), turn));
            }
        }
        None
    }
}

/// Puts a turn that is first in its session in line for its provider.
pub(super) fn enqueue(world: &mut World, turn: Entity) {
    let Some(mut component) = world.get_mut::<Turn>(turn) else { return };
    let was = std::mem::replace(&mut component.state, TurnState::Reserving);
    let (agent, burst) = (component.agent, component.burst);
    // After a restart it stands in line anew without having changed: it may stay in its burst.
    if burst.is_none() || was != TurnState::Reserving {
        world.mark(turn);
    }
    let Some(owner) = world.get::<Agent>(agent) else { return };
    let provider = world.resource::<Settings>().provider_of(&owner.manifest.manifest.model).to_owned();
    world.resource_mut::<Admission>().push(&provider, agent, turn);
}

/// Takes a turn or compaction that ends out of the line in which it may stand, for a slot or for money.
pub(crate) fn leave_line(world: &mut World, entity: Entity) {
    world.resource_mut::<Admission>().leave(entity);
    budget::leave(world, entity);
}

/// Puts a compaction in line like a turn of its agent: a summary is a model call too.
pub(crate) fn stand_in_line(world: &mut World, agent: Entity, compaction: Entity) {
    world.mark(compaction);
    let Some(owner) = world.get::<Agent>(agent) else { return };
    let provider = world.resource::<Settings>().provider_of(&owner.manifest.manifest.model).to_owned();
    world.resource_mut::<Admission>().push(&provider, agent, compaction);
}

/// Puts a turn or compaction that waited for money in line again. False when it has ended or gone on meanwhile.
pub(crate) fn stand_again(world: &mut World, entity: Entity) -> bool {
    let turn = world.get::<Turn>(entity).filter(|turn| turn.state == TurnState::Reserving).map(|turn| turn.agent);
    let Some(agent) = turn.or_else(|| world.get::<Compaction>(entity).map(|job| job.agent)) else { return false };
    let Some(owner) = world.get::<Agent>(agent) else { return false };
    let provider = world.resource::<Settings>().provider_of(&owner.manifest.manifest.model).to_owned();
    world.resource_mut::<Admission>().push(&provider, agent, entity);
    true
}

/// Gives free slots to the turns that wait, until slots or turns run out. What a call may cost is reserved before it
/// goes out; a turn that no budget has room for ends here.
pub(crate) fn admit(world: &mut World) {
    let (mut interrupted, mut refused) = (Vec::new(), Vec::new());
    world.resource_scope(|world, mut admission: bevy_ecs::prelude::Mut<'_, Admission>| {
        while let Some((provider, turn)) = admission.next(world.resource::<Settings>()) {
            if !may_start(world, turn) {
                interrupted.push(turn);
                continue;
            }
            let Some(need) = budget::need(world, turn) else { continue };
            match budget::judge(world, &need) {
                Verdict::Over(over) => refused.push((turn, over)),
                Verdict::Wait(over) => budget::wait(world, over.scope(), turn, &need),
                Verdict::Fits => {
                    let sent = call(world, turn, &need).or_else(|| compaction::call(world, turn, need.calls_max));
                    if let Some(attempt) = sent {
                        budget::reserve(world, attempt, need);
                        admission.lane(&provider).out += 1;
                        admission.out.insert(attempt, provider);
                    }
                }
            }
        }
        admission.free = false;
        // A lane goes with its last call, and with the last who stood in it without a call coming of it.
        admission.lanes.retain(|_, lane| lane.out > 0 || !lane.turns.is_empty());
    });
    for turn in interrupted {
        finish(world, turn, End::Interrupted);
    }
    for (entity, over) in refused {
        let refusal = budget::refused(world, &over);
        let owner = world.get::<Turn>(entity).map(|turn| turn.agent);
        let owner = owner.or_else(|| world.get::<Compaction>(entity).map(|job| job.agent));
        if world.get::<Turn>(entity).is_some() {
            finish(world, entity, End::OverBudget(Box::new(refusal)));
        } else {
            compaction::refuse(world, entity, &refusal);
        }
        // What it was promised is free for those behind it.
        if let Some(owner) = owner {
            budget::released(world, id_of(world, owner));
        }
    }
}

/// False for a turn that an interrupt ends before its first call (spec 1, Interrupting a turn): one that was cancelled
/// while it waited, or one that starts without a new message while the session's flag is set. A turn that a new
/// message began clears the flag.
fn may_start(world: &mut World, entity: Entity) -> bool {
    let Some(turn) = world.get::<Turn>(entity).filter(|turn| turn.state == TurnState::Reserving) else { return true };
    let (session, is_message, is_first, is_cancelled) =
        (turn.session, turn.origin.is_message(), turn.iteration == 0, turn.cancelled);
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
    let (name, manifest) = (owner.name.clone(), owner.manifest.clone());
    let now = world.resource::<Now>().0;
    turn = world.get_mut::<Turn>(entity)?;
    turn.state = TurnState::Calling;
    turn.attempt += 1;
    turn.iteration += 1;
    let (number, first) = (turn.attempt, turn.iteration == 1);
    turn.called_at = now;
    let (ordinal, streaming, request) = (turn.ordinal, turn.streaming, turn.request.clone());
    let Session { log, compacted, .. } = *world.get::<Session>(session)?;
    let attempt = Attempt { turn: id_of::<TurnId>(world, entity), number };
    let model = world.resource::<Settings>().resolve(&manifest.manifest.model);
    let effect = ModelCall {
        attempt,
        agent: id_of(world, agent),
        agent_name: name,
        session: id_of(world, session),
        log,
        ordinal,
        manifest,
        model,
        compacted,
        goals: goal::in_prompt(world, id_of(world, agent)),
        request,
        streaming,
        answer_tokens_max: need.answer_tokens_max,
    };
    if first {
        world.event(Event::TurnStarted { agent: effect.agent, turn: attempt.turn });
    }
    world.mark(entity);
    world.effect(Effect::CallModel(Box::new(effect)));
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
        stand_in_line(world_mut, owner, entity);
        world.step();
        assert_eq!(waiting(&world), 1);
        world.ask(ClearHistory { agent }).unwrap();
        assert_eq!((waiting(&world), world.engine.stats().compactions_open), (0, 0));
    }
}
