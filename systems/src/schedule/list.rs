//! Schedules and cron jobs are listed in bounded pages, in order of creation.

use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{AgentId, Refusal, ScheduleId};
use bevy_ecs::prelude::World;

use super::times::Schedules;
use super::view::ScheduleView;
use crate::kernel::command::{Answer, Command};
use crate::kernel::index;
use crate::kernel::page::Page;

/// Reads a page of schedules or cron jobs.
#[derive(Clone, Copy, Debug)]
pub struct ListSchedules {
    /// Which family.
    pub kind: ScheduleKind,
    /// Only this agent's; an unknown one is refused with 404.
    pub agent: Option<AgentId>,
    /// Go on after this one; it need not exist any more.
    pub after: Option<ScheduleId>,
    /// At most this many; cut to [`limit::PAGE_ITEMS_MAX`].
    pub limit: usize,
}

impl Command for ListSchedules {
    type Reply = Page<ScheduleView, ScheduleId>;
    const NAME: &'static str = "list_schedules";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Page<ScheduleView, ScheduleId>> {
        Answer::Now(page(world, self))
    }
}

fn page(world: &World, command: ListSchedules) -> Result<Page<ScheduleView, ScheduleId>, Refusal> {
    let ListSchedules { kind, agent, after, limit } = command;
    let most = limit.clamp(1, limit::PAGE_ITEMS_MAX);
    let schedules = world.resource::<Schedules>();
    let (mut ids, total): (Vec<ScheduleId>, usize) = match agent {
        None => (schedules.after(kind, after).take(most + 1).collect(), schedules.count(kind)),
        Some(agent) => {
            let agent = index::agent(world, agent)?;
            let total = schedules.of(agent, kind, None).count();
            (schedules.of(agent, kind, after).take(most + 1).collect(), total)
        }
    };
    let more = ids.len() > most;
    ids.truncate(most);
    let next = ids.last().copied().filter(|_| more);
    let views = ids.into_iter().filter_map(|id| ScheduleView::of(world, schedules.get(kind, id)?));
    Ok(Page { items: views.collect(), next, total })
}
