//! Schedules and cron jobs are listed in bounded pages, in order of creation.

use agentsvc_components::schedule::{Schedule, ScheduleKind};
use agentsvc_components::{AgentId, Refusal, ScheduleId};
use bevy_ecs::prelude::{Entity, World};

use super::times::Schedules;
use super::view::ScheduleView;
use crate::agent::{own_agents, reached};
use crate::kernel::command::{Answer, command};
use crate::kernel::page::Page;
use crate::taint;

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
        let Some(agents) = own_agents(world) else {
            let found = schedules.after(kind, after).map(|id| (id, id));
            return Ok(Page::of(found, limit, schedules.count(kind), view));
        };
        let mut own: Vec<_> = agents.into_iter().flat_map(|agent| schedules.of(agent, kind, None)).collect();
        own.sort_unstable();
        let total = own.len();
        let found = own.into_iter().filter(|id| after.is_none_or(|after| *id > after));
        return Ok(Page::of(found.map(|id| (id, id)), limit, total, view));
    };
    let agent = reached(world, agent)?;
    // One of several users lists what was set up for that user.
    if let Some(user) = taint::apart(world) {
        let is_own = |id: &ScheduleId| is_of(world, schedules.get(kind, *id), user.as_deref());
        let total = schedules.of(agent, kind, None).filter(is_own).count();
        let own = schedules.of(agent, kind, after).filter(is_own);
        return Ok(Page::of(own.map(|id| (id, id)), limit, total, view));
    }
    let total = schedules.of(agent, kind, None).count();
    Ok(Page::of(schedules.of(agent, kind, after).map(|id| (id, id)), limit, total, view))
}

/// Was it set up in a turn for this user?
pub(super) fn is_of(world: &World, schedule: Option<Entity>, user: Option<&str>) -> bool {
    let schedule = schedule.and_then(|entity| world.get::<Schedule>(entity));
    user.is_some() && schedule.is_some_and(|schedule| schedule.user.as_deref() == user)
}
