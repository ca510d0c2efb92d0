//! A task is put in the queue.

use crate::kernel::text::{check_length, check_line, check_name};
use crate::task::audit_kinds;
use crate::task::metrics::TaskTotals;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, OwnedBy};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::{AgentId, Refusal, TaskId, TurnId};
use serde_json::json;

use super::index::has_room;
use super::{TaskView, Tasks, remove};
use crate::agent::{acting_holder, acting_limit, agent_named, is_limited, is_shared, reached, reached_as};
use crate::audit::Audit;
use crate::event::event_text;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;
use crate::kernel::id_generator::mint;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::taint;

/// Puts a task in the queue (spec 2, Task queue).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PostTask {
    /// What is to be done, on one line.
    pub title: String,
    /// More about it; may be empty.
    pub description: String,
    /// Who is to do it: an agent's id or name. `None` and the empty text mean whoever comes first.
    pub assignee: Option<String>,
    /// The agent that posts it; `None` is a person.
    pub posted_by: Option<AgentId>,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

command!(write "post_task" PostTask => TaskView, Root, |it, world| Answer::stored(post(world, it)));

fn post(world: &mut World, command: PostTask) -> Result<TaskView, Refusal> {
    let PostTask { title, description, assignee, posted_by, by } = command;
    let title = title.trim();
    check_name("title", title, limit::TASK_TITLE_BYTES_MAX)?;
    check_text("description", &description)?;
    check_line("assignee", assignee.as_deref().unwrap_or_default(), limit::NAME_BYTES_MAX)?;
    if let Some(to) = assignee.as_deref().filter(|to| !to.is_empty() && is_limited(world)) {
        check_assignee(world, to)?;
    }
    let now = world.resource::<Now>().0;
    let task = Task {
        title: title.into(),
        description: description.into(),
        assigned: assignee.as_deref().and_then(|to| named_now(world, to)),
        assignee: assignee.map(Into::into),
        posted_by,
        claimed_by: None,
        claimed_at: None,
        attempts: 0,
        result: None,
        state: TaskState::Pending,
        created_at: now,
        updated_at: now,
        ended_at: None,
        taint: taint::handed_on(world),
        user: acting_limit(world),
        holder: acting_holder(world),
    };
    has_room(world.resource::<Tasks>(), &task)?;
    let holder = task.holder;
    let id: TaskId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, task)).id();
    world.mark(entity);
    world.resource_mut::<TaskTotals>().posted += 1;
    posted(world, entity, by);
    world.audit(audit_kinds::TASK_POSTED, posted_by, json!({ "task": id }));
    remove::forget_ended(world, holder);
    TaskView::seen(world, id)
}

/// Tells that a task waits in the queue.
pub(super) fn posted(world: &mut World, entity: Entity, by: Option<TurnId>) {
    let Some(task) = world.get::<Task>(entity) else { return };
    let event = Event::TaskPosted {
        task: id_of(world, entity),
        title: task.title.to_string(),
        description: event_text(&task.description),
        assignee: task.assignee.as_deref().map(ToOwned::to_owned),
        assignee_id: assignee_of(world, task).map(|agent| id_of(world, agent)),
        by,
    };
    world.event(event);
}

/// The agent that has this name now.
fn named_now(world: &World, name: &str) -> Option<AgentId> {
    agent_named(world, name).map(|agent| id_of(world, agent))
}

/// The live agent that is to do a task, if it names one.
pub(super) fn assignee_of(world: &World, task: &Task) -> Option<Entity> {
    let agent = crate::agent::named(world, task.owner()?).ok()?;
    is_assigned(world, task, agent).then_some(agent)
}

/// Does the task name this agent? By its id, or by its name: then it is the agent that had the name when the task was posted,
/// one that a person made for all, or for a task of a user one of that user. Any other may have taken a name that was free.
pub(super) fn is_assigned(world: &World, task: &Task, agent: Entity) -> bool {
    let (Some(to), id) = (task.owner(), id_of::<AgentId>(world, agent)) else { return false };
    if let Ok(named) = to.parse::<AgentId>() {
        return named == id;
    }
    let is_name = world.get::<Agent>(agent).is_some_and(|agent| *agent.name == *to);
    let is_of = |user| world.get::<OwnedBy>(agent) == Some(&OwnedBy(user));
    is_name && (task.assigned == Some(id) || task.user.map_or_else(|| is_shared(world, agent), is_of))
}

/// Refuses a text that is too long for a task.
pub(super) fn check_text(field: &str, text: &str) -> Result<(), Refusal> {
    check_length(field, text, limit::TASK_TEXT_BYTES_MAX)
}

/// Refuses whom whoever acts must not know of: tasks of a user with a limited role are for agents of the user.
fn check_assignee(world: &World, assignee: &str) -> Result<(), Refusal> {
    let missing = |refusal| Refusal { field: Some("assignee".to_owned()), ..refusal };
    reached_as(world, assignee).map(|_| ()).map_err(missing)
}

/// Refuses an agent that does not live, or is not for whoever acts.
pub(super) fn check_agent(world: &World, agent: AgentId) -> Result<Entity, Refusal> {
    reached(world, agent).map_err(|refusal| Refusal { field: Some("agent_id".to_owned()), ..refusal })
}
