//! Media tasks are read, listed and waited for.

use agentsvc_components::agent::OwnedBy;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::media::{MediaKind, MediaState, MediaTask, MediaTaskId};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::{Entity, World};

use super::index::MediaTasks;
use super::limits;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{List, View, ViewPage};
use crate::kernel::index::{self, id_of};
use crate::kernel::waiters;

/// What the world knows of a media task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaTaskView {
    /// Its id.
    pub id: MediaTaskId,
    /// Its state.
    pub task: MediaTask,
    /// The user whom its agent belongs to.
    pub owner: Option<UserId>,
}

/// Which media tasks to list. Empty lists all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaFilter {
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only those of agents that belong to this user.
    pub owner: Option<UserId>,
    /// Only those of this kind.
    pub kind: Option<MediaKind>,
    /// Only those in this state.
    pub state: Option<MediaState>,
    /// The newest first, else in the order of creation.
    pub newest_first: bool,
}

impl View for MediaTaskView {
    type Kind = MediaTask;
    type Filter = MediaFilter;
    const NAMES: [&'static str; 2] = ["get_media_task", "list_media_tasks"];
    const PLACE: Place<List<Self>> = Place::IdOrAll(|list| list.filter.agent.map(|agent| agent.0));

    fn of(world: &World, at: Entity) -> Option<Self> {
        let task = world.get::<MediaTask>(at)?.clone();
        let agent = task.agent.and_then(|agent| index::agent(world, agent).ok());
        let owner = agent.and_then(|agent| world.get::<OwnedBy>(agent)).map(|by| by.0);
        Some(Self { id: id_of(world, at), task, owner })
    }

    fn passes(&self, filter: &MediaFilter) -> bool {
        (filter.agent.is_none() || self.task.agent == filter.agent)
            && (filter.owner.is_none() || self.owner == filter.owner)
            && filter.kind.is_none_or(|kind| self.task.kind == kind)
            && filter.state.is_none_or(|state| self.task.state == state)
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<MediaTasks>();
        let newest_first = list.filter.newest_first;
        let is_whole = list.filter == MediaFilter { newest_first, ..MediaFilter::default() };
        let total = is_whole.then(|| all.len());
        Ok(if newest_first {
            list.filled(world, total, all.before(list.after))
        } else {
            list.filled(world, total, all.after(list.after))
        })
    }
}

/// Waits for the end of a media task. Answered at once when it has ended, and when too many wait for it.
#[derive(Clone, Copy, Debug)]
pub struct AwaitMedia(pub MediaTaskId);

command! {
    read "await_media" AwaitMedia => MediaTaskView, Id(|it| it.0.0), |it, world| wait(world, it.0)
}

fn wait(world: &mut World, id: MediaTaskId) -> Answer<MediaTaskView> {
    match MediaTaskView::seen(world, id) {
        Ok(view) => {
            let is_open = view.task.state.is_open();
            waiters::wait(world, id, view, is_open, limits::MEDIA_WAITERS_MAX)
        }
        Err(refusal) => Answer::Now(Err(refusal)),
    }
}
