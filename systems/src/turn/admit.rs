//! Admission: slots of providers are given out fairly over agents, so that one agent with ten thousand
//! messages delays the others by one call, not by ten thousand.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::compaction::Compaction;
use agentsvc_components::effect::{Attempt, Effect, ModelCall};
use agentsvc_components::event::Event;
use agentsvc_components::session::Session;
use agentsvc_components::turn::{Turn, TurnState};
use agentsvc_components::{TurnId, limit};

use super::finish::{End, finish};
use super::lane::Lane;
use crate::budget::{Need, Verdict};
use crate::check::Faults;
use crate::clock::Now;
use crate::index::id_of;
use crate::outbox::Emit;
use crate::settings::Settings;
use crate::{budget, compaction, goal};

/// The lanes of all providers, and which attempt holds a slot of which lane.
#[derive(Resource, Default)]
pub(crate) struct Admission {
    /// In order of names, so that the same inputs admit the same turns.
    lanes: BTreeMap<Box<str>, ProviderLane>,
    out: HashMap<Attempt, Box<str>>,
    waiting: usize,
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
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Model calls that are out.
    pub(crate) fn out(&self) -> usize {
        self.out.len()
    }

    /// May a further round admit someone?
    pub(crate) const fn can_admit(&self) -> bool {
        self.free && self.waiting > 0
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

    /// Puts a turn in line at its provider.
    fn push(&mut self, provider: &str, agent: Entity, turn: Entity) {
        self.lane(provider).turns.push(agent, turn);
        self.waiting += 1;
        self.free = true;
    }

    fn lane(&mut self, provider: &str) -> &mut ProviderLane {
        if !self.lanes.contains_key(provider) {
            self.lanes.insert(provider.into(), ProviderLane::default());
        }
        self.lanes.get_mut(provider).expect("just made")
    }

    /// Who waits for a slot, those included that will be passed over.
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
        let waiting = self.in_line().count();
        faults.same("turns that wait for a slot", &self.waiting, &waiting);
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
    fn next(&mut self, settings: &Settings) -> Option<(Box<str>, Entity)> {
        if self.out.len() >= limit::EFFECTS_OUT_MAX {
            return None;
        }
        for (provider, lane) in &mut self.lanes {
            if lane.out < settings.calls_max(provider)
                && let Some(turn) = lane.turns.pop()
            {
                self.waiting -= 1;
                return Some((provider.clone(), turn));
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
                Verdict::Wait(scope) => budget::wait(world, scope, turn, &need),
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
