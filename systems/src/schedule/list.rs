//! Schedules and cron jobs are listed in bounded pages, in order of creation.

use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{AgentId, Refusal, ScheduleId};
use bevy_ecs::prelude::World;

use super::times::Schedules;
use super::view::ScheduleView;
use crate::kernel::command::{Answer, command};
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
    /// At most this many; cut to [`PAGE_ITEMS_MAX`](agentsvc_components::kernel::limit::PAGE_ITEMS_MAX).
    pub limit: usize,
}

command! {
    read "list_schedules" ListSchedules => Page<ScheduleView, ScheduleId>,
        IdOrAll(|it| it.agent.map(|id| id.0)), |it, world| Answer::Now(page(world, it))
}

fn page(world: &World, command: ListSchedules) -> Result<Page<ScheduleView, ScheduleId>, Refusal> {
    let ListSchedules { kind, agent, after, limit } = command;
    let schedules = world.resource::<Schedules>();
    let view = |id| ScheduleView::of(world, schedules.get(kind, id)?);
    let Some(agent) = agent else {
        let found = schedules.after(kind, after).map(|id| (id, id));
        return Ok(Page::of(found, limit, schedules.count(kind), view));
    };
    let agent = index::agent(world, agent)?;
    let total = schedules.of(agent, kind, None).count();
    Ok(Page::of(schedules.of(agent, kind, after).map(|id| (id, id)), limit, total, view))
}
