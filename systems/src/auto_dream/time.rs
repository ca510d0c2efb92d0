//! When agents dream: what is due is looked at, and runs that take too long are stopped.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::auto_dream::{Dream, DreamId, DreamOutcome};
use agentsvc_components::{AgentId, Timestamp};

use super::begin::{begin, change_dream, has_place};
use super::index::Dreams;
use super::{end, limits};
use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::kernel::entities::state;
use crate::kernel::index::{self, Index, id_of};
use crate::proactive_memory;

const HOUR_MS: i64 = 3_600_000;

/// What counts for an agent: its manifest's numbers, or those of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) min_hours: u32,
    pub(super) min_sessions: u32,
}

impl Terms {
    pub(super) fn of(world: &World, id: DreamId) -> Self {
        let settings = world.resource::<Settings>().auto_dream;
        let owner = index::agent(world, AgentId(id.0)).ok().and_then(|owner| world.get::<Agent>(owner));
        let own = owner.map(|owner| owner.manifest.manifest.auto_dream).unwrap_or_default();
        Self {
            // At least one: what is due again at once would never stop.
            min_hours: own.min_hours.unwrap_or(settings.min_hours).max(1),
            min_sessions: own.min_sessions.unwrap_or(settings.min_sessions),
        }
    }

    /// When enough hours have passed.
    pub(super) fn eligible_at(self, dream: &Dream) -> Timestamp {
        dream.last_consolidated_at.unwrap_or(dream.since).plus_ms(i64::from(self.min_hours) * HOUR_MS)
    }
}

/// The latest moment at which an agent that does not run is looked at again.
fn latest(world: &World) -> Timestamp {
    let interval = world.resource::<Settings>().auto_dream.check_interval_secs;
    world.resource::<Now>().0.plus_ms(i64::from(interval) * 1_000)
}

/// When the agent is to be looked at: once its hours have passed where enough sessions have started, else after the check
/// interval. The start of a session brings it forward.
pub(super) fn next_check(world: &World, id: DreamId) -> Timestamp {
    let latest = latest(world);
    let Some(dream) = state::<Dream>(world, id) else { return latest };
    let terms = Terms::of(world, id);
    if dream.sessions < terms.min_sessions { latest } else { terms.eligible_at(dream).min(latest) }
}

/// When the agent is to be looked at after a run. The next may be due by its hours; a failed one, which was paid too, is not
/// repeated before them, nor before the check interval.
pub(super) fn after_run(world: &World, id: DreamId, succeeded: bool) -> Timestamp {
    let (now, latest) = (world.resource::<Now>().0, latest(world));
    let hours = i64::from(Terms::of(world, id).min_hours);
    let by_hours = now.plus_ms(hours * HOUR_MS);
    if succeeded { by_hours.min(latest) } else { by_hours.max(latest) }
}

/// A session of an agent has started.
pub(super) fn session_started(world: &mut World, owner: Entity) {
    let id = DreamId::from(id_of::<AgentId>(world, owner));
    if state::<Dream>(world, id).is_none() {
        return;
    }
    change_dream(world, id, |dream| dream.sessions = dream.sessions.saturating_add(1));
    let (terms, check_at) = (Terms::of(world, id), next_check(world, id));
    // Only the session that was missing: what a later look has put off stays so.
    change_dream(world, id, |dream| {
        if dream.sessions == terms.min_sessions {
            dream.check_at = dream.check_at.min(check_at);
        }
    });
}

/// When the next agent is looked at, or the next run stopped.
pub(super) fn next_due(world: &World) -> Option<Timestamp> {
    let dreams = world.resource::<Dreams>();
    let may_begin = world.resource::<Settings>().auto_dream.enabled && has_place(world);
    let due = dreams.due().next().filter(|_| may_begin);
    due.into_iter().chain(dreams.deadlines().next()).map(|(at, _)| at).min()
}

/// Stops runs that take too long. There are few.
pub(super) fn stop_late(world: &mut World) {
    let now = world.resource::<Now>().0;
    let late: Vec<DreamId> =
        world.resource::<Dreams>().deadlines().take_while(|(at, _)| *at <= now).map(|(_, id)| id).collect();
    late.into_iter().for_each(|id| end::stop(world, id, DreamOutcome::TimedOut));
}

/// Looks at the agents that are due; a bounded number.
pub(super) fn look_at_due(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::DREAMS_CHECKED_MAX {
        if !world.resource::<Settings>().auto_dream.enabled || !has_place(world) {
            return;
        }
        let first = world.resource::<Dreams>().due().next();
        let Some((_, id)) = first.filter(|(at, _)| *at <= now) else { return };
        look(world, id, now);
    }
}

/// Looks at one agent: it runs, or it is looked at later.
fn look(world: &mut World, id: DreamId, now: Timestamp) {
    let Some(dream) = state::<Dream>(world, id).cloned() else { return };
    let (terms, agent, later) = (Terms::of(world, id), AgentId(id.0), latest(world));
    let eligible_at = terms.eligible_at(&dream);
    let is_eligible = dream.sessions >= terms.min_sessions && eligible_at <= now;
    let check_at = if !is_eligible {
        // Never now again: a clock or a setting may have changed.
        next_check(world, id).max(now.plus_ms(limits::DREAM_BUSY_MS)).min(later)
    } else if !runs(world, agent) || !proactive_memory::has_entries(world, agent) {
        later
    } else if is_busy(world, agent) {
        now.plus_ms(limits::DREAM_BUSY_MS)
    } else {
        match begin(world, id, false) {
            Ok(()) => return,
            // Its budget is used up, or the daemon is full.
            Err(_) => later,
        }
    };
    change_dream(world, id, |dream| dream.check_at = check_at);
}

fn runs(world: &World, agent: AgentId) -> bool {
    let owner = index::agent(world, agent).ok().and_then(|owner| world.get::<Agent>(owner));
    owner.is_some_and(|owner| owner.state == AgentState::Running)
}

/// Is a turn of the agent open?
fn is_busy(world: &World, agent: AgentId) -> bool {
    index::agent(world, agent).is_ok_and(|owner| world.resource::<Index>().turns_of(owner).next().is_some())
}

/// The clock was set back: no agent waits longer for it than it would have without.
pub(super) fn due_set_back(world: &mut World) {
    let (now, latest) = (world.resource::<Now>().0, latest(world));
    let due = world.resource::<Dreams>().due().rev().take_while(|(at, _)| *at > latest);
    for id in due.map(|(_, id)| id).collect::<Vec<_>>() {
        change_dream(world, id, |dream| {
            dream.since = dream.since.min(now);
            dream.last_consolidated_at = dream.last_consolidated_at.map(|at| at.min(now));
            dream.check_at = latest;
        });
    }
}

/// The clock was set back: no run takes longer for it.
pub(super) fn runs_set_back(world: &mut World) {
    let now = world.resource::<Now>().0;
    let last = now.plus_ms(i64::from(world.resource::<Settings>().auto_dream.timeout_secs) * 1_000);
    let runs = world.resource::<Dreams>().deadlines().rev().take_while(|(at, _)| *at > last);
    for id in runs.map(|(_, id)| id).collect::<Vec<_>>() {
        change_dream(world, id, |dream| {
            if let Some(run) = &mut dream.run {
                (run.started_at, run.deadline) = (run.started_at.min(now), last);
            }
        });
    }
}
