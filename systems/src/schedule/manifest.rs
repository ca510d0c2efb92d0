//! The schedules that manifests ask for: made with their agents.

use bevy_ecs::prelude::{Entity, World};
use chrono_tz::Tz;

use agentsvc_components::Refusal;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Schedule, ScheduleKind, WakeRules};

use super::create::{check_future, place};
use super::rule::Rule;
use super::times::{QUOTA, Schedules, Timing};
use crate::kernel::clock::Now;
use crate::manifest::ManifestWake;
use crate::taint;

/// The zone of their rules: a manifest names none.
const ZONE: Tz = Tz::UTC;

/// Refuses the schedules of manifests whose rules cannot be read or never fire, or for which there is no room.
pub(super) fn check(world: &World, wakes: &[ManifestWake]) -> Result<(), Refusal> {
    if wakes.is_empty() {
        return Ok(());
    }
    taint::check_lasting(world)?;
    let now = world.resource::<Now>().0;
    for wake in wakes {
        let field = wake.field;
        let bad = |why: String| Refusal::bad_field(field, format!("`{field}`: {why}"));
        let rule = Rule::parse(&wake.rule).map_err(|error| bad(error.to_string()))?;
        check_future(ScheduleKind::Schedule, &rule, now).map_err(|refusal| bad(refusal.message))?;
        let timing = Timing { rule: Some(rule), zone: ZONE, quiet: wake.quiet, visit: None, open: 0 };
        if timing.next(now, now).is_none() {
            return Err(bad("it never fires; look at `autonomous.quiet_hours`".to_owned()));
        }
    }
    let bytes =
        wakes.iter().map(|wake| wake.name.len() + wake.rule.len() + ZONE.name().len() + wake.prompt.len()).sum();
    QUOTA.admit(world.resource::<Schedules>().used, wakes.len(), bytes)
}

/// Makes the schedules of an agent's manifest; [`check`] must hold.
pub(super) fn register(world: &mut World, agent: Entity, wakes: &[ManifestWake]) {
    let now = world.resource::<Now>().0;
    for wake in wakes {
        // It was found to be one before the agent was spawned.
        let Ok(rule) = Rule::parse(&wake.rule) else { continue };
        let rules = WakeRules { quiet: wake.quiet, failures_max: wake.failures_max };
        let schedule = Schedule {
            agent,
            kind: ScheduleKind::Schedule,
            name: Some(wake.name.into()),
            rule: wake.rule.clone(),
            timezone: ZONE.name().into(),
            prompt: wake.prompt.into(),
            missed: if wake.catches_up { MissedPolicy::One } else { MissedPolicy::Skip },
            overlap: OverlapPolicy::Skip,
            session_mode: None,
            created_at: now,
            updated_at: now,
            anchored_at: now,
            enabled: true,
            cursor: now,
            past: None,
            taint: taint::acting(world),
            user: None,
            wake: (rules != WakeRules::default()).then(|| Box::new(rules)),
        };
        place(world, schedule, rule, ZONE);
    }
}
