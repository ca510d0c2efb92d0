//! Media are asked for: a task and the job that asks the provider begin in one step. What the request may cost is reserved when
//! the provider is asked.

use std::sync::Arc;

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::media::{MediaRequest, MediaState, MediaTask, MediaTaskId};
use agentsvc_components::turn::Turn;
use agentsvc_components::{AgentId, Micros, Refusal, RefusalKind, SessionId, TurnId};

use super::index::{MediaTasks, owner};
use super::list::MediaTaskView;
use super::settle::{MAKE, MakeOrder, cut};
use super::{audit_kinds, error_codes, keep, limits, request};
use crate::agent::error_codes::AGENT_NOT_RUNNING;
use crate::agent::{acting_holder, holder_of};
use crate::audit::Audit;
use crate::budget::{FixedCall, may_begin, reserve_fixed};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find};
use crate::kernel::id_generator::{mint, mint_beside};
use crate::kernel::index::{self, id_of};
use crate::kernel::job::{self, NewJob};
use crate::kernel::outbox::Emit;
use crate::taint;

/// What the usage events of media name as their channel.
pub const CHANNEL: &str = "media";
/// What to do where a budget is in force and a price is not known.
const REMEDY: &str = "set its price in `[media] prices`";

/// Asks for media. A request that was made before under the same key is given as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateMedia {
    /// The agent that asks; `None` is a client of the API.
    pub agent: Option<AgentId>,
    /// The turn in which it asks.
    pub turn: Option<TurnId>,
    /// What a repetition is known by; empty for what is never one.
    pub key: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What is asked for.
    pub request: MediaRequest,
    /// The most that it can cost.
    pub most: Micros,
    /// Is its price known?
    pub is_priced: bool,
}

command! {
    write "create_media" CreateMedia => MediaTaskView, IdOrRoot(|it| it.agent.map(|agent| agent.0)), |it, world|
        Answer::stored(create(world, it))
}

fn create(world: &mut World, it: CreateMedia) -> Result<MediaTaskView, Refusal> {
    if let Some(known) = world.resource::<MediaTasks>().by_key(&it.key).filter(|_| !it.key.is_empty()) {
        return MediaTaskView::seen(world, known);
    }
    request::check(&it.request)?;
    request::name("provider", Some(&it.provider))?;
    request::name("model", Some(&it.model))?;
    it.agent.map_or(Ok(()), |agent| running(world, agent))?;
    let task = task_of(world, &it);
    may_begin(world, &call_of(&task))?;
    let tasks = world.resource::<MediaTasks>();
    let of_holder = !tasks.shares.has_place(limits::MEDIA_OPEN_MAX, task.holder);
    let is_full =
        tasks.open_count() >= limits::MEDIA_OPEN_MAX || tasks.open_of(it.agent) >= limits::MEDIA_AGENT_OPEN_MAX;
    if is_full || of_holder {
        let text = if of_holder {
            "too many media tasks of this user or family of agents are open; try again later"
        } else {
            "too many media tasks are open; try again later"
        };
        return Err(Refusal { retry_after_secs: Some(5), ..Refusal::of(error_codes::MEDIA_TASKS_FULL, text) });
    }
    let id: MediaTaskId = match it.agent {
        Some(agent) => mint_beside(world, agent.0),
        None => mint(world, Slot::ROOT),
    };
    let input = serde_json::to_string(&MakeOrder { task: id, request: it.request })
        .map_err(|error| Refusal::new(RefusalKind::BadRequest, error.to_string()))?;
    job::add(
        world,
        MAKE,
        NewJob { subject: owner(it.agent).0, owner: it.agent, holder: task.holder, input: Arc::from(input) },
    )?;
    let details = json!({ "task": id, "kind": task.kind.as_str(), "provider": task.provider, "model": task.model });
    let entity = world.spawn((id, task)).id();
    world.mark(entity);
    world.audit(audit_kinds::MEDIA_REQUESTED, it.agent, details);
    keep::trim(world);
    MediaTaskView::seen(world, id)
}

fn running(world: &World, agent: AgentId) -> Result<(), Refusal> {
    let entity = index::agent(world, agent)?;
    let is_running = world.get::<Agent>(entity).is_some_and(|agent| agent.state == AgentState::Running);
    if is_running { Ok(()) } else { Err(Refusal::of(AGENT_NOT_RUNNING, "the agent is not running")) }
}

fn task_of(world: &World, it: &CreateMedia) -> MediaTask {
    let turn = it.turn.and_then(|turn| index::turn(world, turn));
    let of_agent = || it.agent.and_then(|agent| index::agent(world, agent).ok()).map(|agent| holder_of(world, agent));
    let holder = acting_holder(world).or_else(of_agent);
    let session = turn.and_then(|turn| world.get::<Turn>(turn)).map(|turn| id_of::<SessionId>(world, turn.session));
    MediaTask {
        kind: it.request.kind(),
        agent: it.agent,
        session,
        key: it.key.as_str().into(),
        provider: it.provider.as_str().into(),
        model: it.model.as_str().into(),
        prompt: cut(it.request.words(), limits::MEDIA_PROMPT_KEPT_BYTES_MAX),
        state: MediaState::Pending,
        most: it.most,
        is_priced: it.is_priced,
        strangers: turn.map(|turn| taint::of(world, turn).of_strangers()).unwrap_or_default(),
        began_in: turn.and_then(|turn| taint::began_in(world, turn)),
        created_at: world.resource::<Now>().0,
        holder,
        ..MediaTask::default()
    }
}

/// The call that a task makes.
fn call_of(task: &MediaTask) -> FixedCall {
    FixedCall {
        agent: task.agent,
        session: task.session,
        channel: CHANNEL,
        provider: task.provider.clone(),
        model: task.model.clone(),
        most: task.most,
        is_priced: task.is_priced,
        strangers: task.strangers,
        began_in: task.began_in,
        remedy: REMEDY,
    }
}

/// Reserves the most that a task can cost, before its provider is asked. Its end is the end of the try. A start settles one
/// whose end never came.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReserveMedia {
    /// The task.
    pub task: MediaTaskId,
    /// The try that asks. One that is over reserves nothing.
    pub attempt: Attempt,
}

command! {
    /// Sent when the reservation is on disk.
    write "reserve_media" ReserveMedia => (), Id(|it| it.task.0), |it, world| Answer::stored(reserve(world, it))
}

/// Is this a try of the job that asks for the result of this task? Only its end settles the reservation.
fn is_of(world: &World, attempt: Attempt, task: MediaTaskId) -> bool {
    let order = |job: &Job| serde_json::from_str::<MakeOrder>(&job.input).ok();
    let made = job::out(world, attempt).filter(|job| &*job.kind == MAKE);
    made.and_then(order).is_some_and(|order| order.task == task)
}

fn reserve(world: &mut World, it: ReserveMedia) -> Result<(), Refusal> {
    let entity = find::<MediaTask>(world, it.task)?;
    let task = MediaTaskView::seen(world, it.task)?.task;
    if !is_of(world, it.attempt, it.task) || task.grant.is_some() {
        return Err(Refusal::conflict("the request is over"));
    }
    let grant = reserve_fixed(world, &call_of(&task))?;
    change(world, entity, |task: &mut MediaTask| task.grant = Some(grant));
    Ok(())
}
