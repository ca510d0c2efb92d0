//! What has matched is delivered: every match ends in one outcome.

use std::sync::Arc;

use bevy_ecs::prelude::{DetectChangesMut, Entity, Mut, World};

use agentsvc_components::agent::{Agent, AgentState, OwnedBy};
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::trigger::{Fire, FireLog, FireOutcome, Trigger, TriggerState};
use agentsvc_components::turn::Origin;
use agentsvc_components::{AgentId, SessionId, Timestamp, TriggerId, TurnId};

use super::burst::{Bursts, FireIds};
use super::index::{Line, Subject, Triggers};
use super::meet::{may_see, show};
use super::waves::{FIRE, Lane, Occurrence, Wave, Waves};
use super::{TriggerTotals, rows};
use crate::agent::limit_of;
use crate::budget;
use crate::config::Settings;
use crate::kernel::fires::Fires;
use crate::kernel::index::{Index, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::rehearsal::{self, Note};
use crate::turn::{Ended, Fired, Place, Said, begin_fired};

/// What stands for the event in a template.
const PLACEHOLDER: &str = "{{event}}";
/// The time in which fires of cascades are counted.
const MINUTE_MS: u64 = 60_000;

/// Fires what has matched, as far as the step's budget goes, one line after the other.
pub(crate) fn deliver(world: &mut World) {
    if !super::has_waiting(world) {
        return;
    }
    world.resource_scope(|world, mut waves: Mut<'_, Waves>| {
        if waves.waiting() > limit::FIRES_PER_STEP_MAX {
            world.resource_mut::<Index>().expect_turns(waves.waiting());
        }
        while let Some((line, mut lane, most)) = waves.next_turn() {
            let (spent, may_go_on) = serve(world, &mut waves, (line, &mut lane), most);
            waves.end_turn(line, lane, spent);
            if !may_go_on {
                return;
            }
        }
    });
}

/// Brings matches of a line to their ends until it has had so much; says how much that was, and whether the step has fires left.
fn serve(world: &mut World, waves: &mut Waves, (line, lane): (Line, &mut Lane), most: usize) -> (usize, bool) {
    let mut spent = 0;
    while spent < most
        && let Some(mut wave) = lane.queue.pop_front()
    {
        let before = wave.waiting();
        let end = deliver_wave(world, &mut waves.allowance, (line, &mut wave), (&mut spent, most));
        waves.delivered(before, &wave);
        if end != End::Whole {
            lane.queue.push_front(wave);
            return (spent, end == End::Turn);
        }
        // That none is left has to be found out, too.
        spent += usize::from(wave.is_unsifted());
        waves.gone(line, &wave);
        if let Some(number) = wave.stored_as() {
            world.op(rows::remove_wave(number));
        }
    }
    (spent, true)
}

/// Why no more matches of a wave are delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// All are.
    Whole,
    /// It is the turn of the next line.
    Turn,
    /// The step has no fire left for the next one: it waits.
    Step,
}

/// Brings the matches of a wave to their ends, until so much is spent.
fn deliver_wave(
    world: &mut World,
    allowance: &mut u32,
    (line, wave): (Line, &mut Wave),
    (spent, most): (&mut usize, usize),
) -> End {
    let (what, mut message) = (Arc::clone(&wave.what), None);
    let asked = what.asked.as_deref().filter(|_| wave.is_unsifted());
    let asked = asked.map(|asked| (Subject::of(&asked.event, asked.name.as_deref()), asked.owner));
    while let Some(next) = wave.next(world, line) {
        if *spent >= most {
            return End::Turn;
        }
        let Some(cost) = deliver_one(world, allowance, (&what, asked.as_ref()), &mut message, next) else {
            return End::Step;
        };
        wave.pass();
        *spent = spent.saturating_add(cost);
    }
    End::Whole
}

/// What the triggers of a wave say: the last message with its template, for the next trigger often has the same.
type Message = Option<(Box<str>, Arc<Said>)>;

/// Brings one match to its end; says what it counts for. `None` when the step has no fire left for it: it waits.
fn deliver_one(
    world: &mut World,
    allowance: &mut u32,
    (what, asked): (&Arc<Occurrence>, Option<&(Subject<'_>, Option<UserId>)>),
    message: &mut Message,
    (id, entity): (TriggerId, Entity),
) -> Option<usize> {
    // A trigger that was deleted meanwhile has nothing to count on.
    let Some(trigger) = world.get::<Trigger>(entity) else { return Some(1) };
    let wants =
        |(subject, owner): &(Subject<'_>, _)| may_see(world, entity, *owner) && subject.is_wanted(&trigger.pattern);
    let is_hidden = asked.is_some_and(|asked| !wants(asked));
    let judged = if is_hidden { Err(None) } else { judge(world, trigger, entity, what).map_err(Some) };
    let outcome = match judged {
        Ok(shot) => {
            if !world.resource_mut::<Fires>().take() {
                return None;
            }
            match begin(world, (id, entity), shot, what, message) {
                Ok(fire) => {
                    note(world, entity, what, FireOutcome::Fired, Some(fire));
                    return Some(FIRE);
                }
                Err(outcome) => Some(outcome),
            }
        }
        Err(outcome) => {
            if *allowance == 0 {
                if !world.resource_mut::<Fires>().take() {
                    return None;
                }
                *allowance = limit::MATCHES_PER_FIRE;
            }
            *allowance -= 1;
            outcome
        }
    };
    if let Some(outcome) = outcome {
        note(world, entity, what, outcome, None);
    }
    Some(1)
}

/// A fire that nothing speaks against.
struct Shot {
    agent: Entity,
    place: Place,
}

/// Decides whether a match fires; the order of the questions stands at the head of [`super`]. What its message says is
/// asked last, by [`begin`].
fn judge(world: &World, trigger: &Trigger, entity: Entity, what: &Occurrence) -> Result<Shot, FireOutcome> {
    let settings = world.resource::<Settings>().triggers;
    let log = world.get::<TriggerState>(entity).and_then(|state| state.0.as_deref());
    if !trigger.enabled {
        return Err(FireOutcome::Disabled);
    }
    if trigger.max_fires > 0 && log.is_some_and(|log| log.begun() >= trigger.max_fires) {
        return Err(FireOutcome::Exhausted);
    }
    if what.depth >= settings.max_depth {
        return Err(FireOutcome::TooDeep);
    }
    let cooldown_ms = u64::from(trigger.cooldown_secs.unwrap_or(settings.default_cooldown_secs)) * 1_000;
    if log.and_then(|log| log.last_fired_at).is_some_and(|last| is_within(what.at, last, cooldown_ms)) {
        return Err(FireOutcome::CoolingDown);
    }
    let in_minute = |log: &FireLog| log.cascade_from.is_some_and(|from| is_within(what.at, from, MINUTE_MS));
    if what.depth > 0 && log.is_some_and(|log| in_minute(log) && log.cascade_fires >= settings.cascade_per_minute) {
        return Err(FireOutcome::RateLimited);
    }
    let agent = trigger.target.unwrap_or(trigger.agent);
    // The owner of one of them, or the role of the owner, may be another since the trigger was made.
    if limit_of(world, trigger.agent).is_some_and(|user| world.get::<OwnedBy>(agent) != Some(&OwnedBy(user))) {
        return Err(FireOutcome::Refused);
    }
    let receiver = world.get::<Agent>(agent).ok_or(FireOutcome::Refused)?;
    if receiver.state != AgentState::Running {
        return Err(FireOutcome::AgentStopped);
    }
    let mode = trigger.session_mode.or(receiver.manifest.manifest.session_mode);
    let place = if mode == Some(SessionMode::New) { Place::New } else { Place::Current };
    Ok(Shot { agent, place })
}

/// Does `at` lie in the `ms` from `from` on? A clock that was set back ends what was counted by it.
fn is_within(at: Timestamp, from: Timestamp, ms: u64) -> bool {
    from <= at && at.ms_since(from) < ms
}

/// The template with the event in place of each placeholder; what is put in is not looked at again. `None` when that
/// would be longer than a message may be.
fn fill(template: &str, event: &str) -> Option<String> {
    let mut text = String::with_capacity((template.len() + event.len()).min(limit::MESSAGE_BYTES_MAX));
    for (at, part) in template.split(PLACEHOLDER).enumerate() {
        let put_in = if at > 0 { event } else { "" };
        if text.len() + put_in.len() + part.len() > limit::MESSAGE_BYTES_MAX {
            return None;
        }
        text.push_str(put_in);
        text.push_str(part);
    }
    Some(text)
}

/// A turn that was begun.
struct Begun {
    trigger: TriggerId,
    entity: Entity,
    turn: TurnId,
    session: SessionId,
    agent: AgentId,
}

/// Begins the turn of a fire.
fn begin(
    world: &mut World,
    (trigger, entity): (TriggerId, Entity),
    Shot { agent, place }: Shot,
    what: &Occurrence,
    message: &mut Message,
) -> Result<Begun, FireOutcome> {
    let shown = show(world, what);
    let template = world.get::<Trigger>(entity).map_or("", |trigger| &trigger.prompt_template);
    let said = match message {
        Some((said_before, said)) if **said_before == *template => Arc::clone(said),
        _ => {
            let text = fill(template, &shown.event).ok_or(FireOutcome::Refused)?;
            Arc::clone(&message.insert((template.into(), Said::new(world, text))).1)
        }
    };
    let (origin, depth, taint) = (Origin::Trigger { trigger }, what.depth.saturating_add(1), shown.taint);
    let began_in = what.began_in;
    let fired = Fired { agent, place, said, origin, depth, taint, began_in, user: None, profile: None };
    let (entity, taken) = begin_fired(world, fired).map_err(|refusal| {
        let over_budget = budget::is_exceeded(refusal.code);
        if over_budget { FireOutcome::OverBudget } else { FireOutcome::Refused }
    })?;
    Ok(Begun { trigger, entity, turn: taken.turn, session: taken.session, agent: id_of(world, agent) })
}

/// A trigger has begun a turn. Others [react](crate::kernel::reaction) to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TriggerFired {
    /// Which trigger.
    pub(crate) trigger: TriggerId,
    /// Whose turn.
    pub(crate) agent: AgentId,
    /// Which turn.
    pub(crate) turn: TurnId,
    /// When the event happened.
    pub(crate) at: Timestamp,
}

/// Counts how a match ended.
fn note(world: &mut World, entity: Entity, what: &Arc<Occurrence>, outcome: FireOutcome, fired: Option<Begun>) {
    world.resource_mut::<TriggerTotals>().outcomes.add(outcome, 1);
    rehearsal::note(world, |world| Note::Match { trigger: id_of(world, entity), outcome, at: what.at, on: what.kind });
    if let Some(mut state) = world.get_mut::<TriggerState>(entity) {
        let log = state.0.get_or_insert_default();
        match &fired {
            Some(Begun { turn, session, agent, .. }) => {
                let (turn, agent, session) = (*turn, *agent, *session);
                let fire = Fire { at: what.at, on: what.kind, turn, agent, session, end: None };
                add_fire(log, what.depth, fire);
            }
            None => add(log, what.at, outcome),
        }
    }
    match fired {
        // Whether its log and its turn are stored in a burst or by themselves is seen at the end of the step.
        Some(Begun { trigger, entity: turn, turn: id, agent, session }) => {
            react(world, &TriggerFired { trigger, agent, turn: id, at: what.at });
            let ids = FireIds { trigger, turn: id, agent, session };
            world.resource_mut::<Bursts>().fired((entity, turn), ids, what);
        }
        None => world.mark(entity),
    }
}

/// What a match that came to this end adds to the log of its trigger.
fn add(log: &mut FireLog, at: Timestamp, outcome: FireOutcome) {
    log.outcomes.add(outcome, 1);
    log.last_matched_at = Some(at);
    log.last_outcome = Some(outcome);
}

/// What a fire adds to the log of its trigger; `depth` is that of the event.
pub(super) fn add_fire(log: &mut FireLog, depth: u8, fire: Fire) {
    add(log, fire.at, FireOutcome::Fired);
    log.last_fired_at = Some(fire.at);
    if depth > 0 {
        if !log.cascade_from.is_some_and(|from| is_within(fire.at, from, MINUTE_MS)) {
            (log.cascade_from, log.cascade_fires) = (Some(fire.at), 0);
        }
        log.cascade_fires += 1;
    }
    while log.fires.len() >= limit::TRIGGER_FIRES_KEPT {
        log.fires.pop_front();
    }
    if log.fires.is_empty() {
        // Most triggers of a crowd fire once; room for more comes with the second fire.
        log.fires.reserve_exact(1);
    }
    log.fires.push_back(fire);
}

/// A turn that a trigger fired has ended; noted as long as the fire is remembered. One for which there was no budget
/// changes how its match ended, remembered or not.
pub(crate) fn turn_ended(world: &mut World, trigger: TriggerId, ended: &Ended) {
    let Some(entity) = world.resource::<Triggers>().get(trigger) else { return };
    let Some(mut state) = world.get_mut::<TriggerState>(entity) else { return };
    let over_budget = ended.is_over_budget();
    let Some(log) = state.bypass_change_detection().0.as_mut() else { return };
    let fire = log.fires.iter_mut().rev().find(|fire| fire.turn == ended.turn);
    if fire.is_none() && !over_budget {
        return;
    }
    if let Some(fire) = fire {
        fire.end = Some(ended.end);
    }
    if over_budget {
        log.ran_out_of_budget();
        let is_last = log.fires.back().is_some_and(|fire| fire.turn == ended.turn);
        if is_last && log.last_outcome == Some(FireOutcome::Fired) {
            log.last_outcome = Some(FireOutcome::OverBudget);
        }
    }
    state.set_changed();
    world.mark(entity);
    if over_budget {
        world.resource_mut::<TriggerTotals>().turns_over_budget += 1;
    }
}
