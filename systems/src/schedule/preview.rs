//! The next slots of a rule that need not belong to any schedule.

use bevy_ecs::prelude::World;

use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{Refusal, Timestamp};

use super::create::{check_future, read_rule, zone};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};

/// Reads the next slots of a rule. Refused with 400 as a create with that rule would be.
#[derive(Clone, Debug)]
pub struct PreviewRule {
    /// The family whose field is named by a refusal.
    pub kind: ScheduleKind,
    /// The rule: cron or interval syntax; intervals are counted from now.
    pub rule: Box<str>,
    /// The IANA zone of a cron expression; UTC when left out.
    pub timezone: Option<Box<str>>,
    /// At most this many; cut to [`limit::SCHEDULE_PREVIEW_MAX`].
    pub count: usize,
}

command! {
    /// The slots, and the name of the zone.
    read "preview_rule" PreviewRule => (Vec<Timestamp>, Box<str>), Any, |it, world| Answer::Now(preview(world, &it))
}

fn preview(world: &World, command: &PreviewRule) -> Result<(Vec<Timestamp>, Box<str>), Refusal> {
    let now = world.resource::<Now>().0;
    let (rule, zone) = (read_rule(command.kind, &command.rule)?, zone(command.timezone.as_deref())?);
    check_future(command.kind, &rule, now)?;
    let count = command.count.clamp(1, limit::SCHEDULE_PREVIEW_MAX);
    Ok((rule.preview(zone, now, now, count), zone.name().into()))
}
