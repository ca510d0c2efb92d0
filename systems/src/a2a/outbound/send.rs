//! A message is sent to an external agent: it becomes a task here, and a job that sends it, in the same step.

use std::sync::Arc;

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::a2a::outbound::{A2aAgent, A2aAgentId, A2aSent, A2aSentId, A2aSentState};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::{AgentId, Refusal};

use super::index::SentTasks;
use super::list::A2aSentView;
use super::settle::SEND;
use super::{SentTotals, keep};
use crate::a2a::{audit_kinds, error_codes, limits};
use crate::agent::{acting_holder, holder_of};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, state};
use crate::kernel::id_generator::mint;
use crate::kernel::index;
use crate::kernel::job::{self, NewJob};
use crate::kernel::outbox::Emit;

const MINUTE_MS: i64 = 60_000;

/// Sends a message to an external agent. One that was sent before under the same key is given as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendToA2aAgent {
    /// To whom.
    pub to: A2aAgentId,
    /// The agent here that sends it.
    pub from: Option<AgentId>,
    /// What is said.
    pub message: String,
    /// The conversation, as the external agent knows it.
    pub context: Option<String>,
    /// The task here that it goes on with; the external agent waits for it, or the conversation goes on.
    pub continues: Option<A2aSentId>,
    /// What a repetition is known by; empty for what is never one.
    pub key: String,
    /// Messages in a minute.
    pub per_minute: u32,
}

command! {
    write "send_to_a2a_agent" SendToA2aAgent => A2aSentView, Root, |it, world| Answer::stored(send(world, it))
}

fn send(world: &mut World, it: SendToA2aAgent) -> Result<A2aSentView, Refusal> {
    if let Some(known) = world.resource::<SentTasks>().by_key(&it.key).filter(|_| !it.key.is_empty()) {
        return A2aSentView::seen(world, known);
    }
    let agent = state::<A2aAgent>(world, it.to).ok_or_else(|| Refusal::not_found("external A2A agent", it.to))?;
    let to_name = agent.name.clone();
    check_texts(&it)?;
    let (context, remote) = match it.continues {
        Some(before) => continued(world, &it, before)?,
        None => (it.context.map(Into::into), None),
    };
    let of_agent = || it.from.and_then(|agent| index::agent(world, agent).ok()).map(|agent| holder_of(world, agent));
    let holder = acting_holder(world).or_else(of_agent);
    let tasks = world.resource::<SentTasks>();
    let of_holder = !tasks.shares.has_place(limits::A2A_SENT_OPEN_MAX, holder);
    if of_holder || tasks.open_count() >= limits::A2A_SENT_OPEN_MAX || !job::has_room(world, SEND, it.to.0, holder) {
        let text = if of_holder {
            "too many tasks of external A2A agents of this user or family of agents are open; try again later"
        } else {
            "too many tasks of external A2A agents are open; try again later"
        };
        return Err(Refusal { retry_after_secs: Some(5), ..Refusal::of(error_codes::A2A_SENT_FULL, text) });
    }
    check_rate(world, it.per_minute)?;
    let id: A2aSentId = mint(world, Slot::ROOT);
    job::add(world, SEND, NewJob { subject: it.to.0, owner: None, holder, input: Arc::from(id.to_string()) })?;
    let now = world.resource::<Now>().0;
    let task = A2aSent {
        to: it.to,
        to_name,
        from: it.from,
        key: it.key.into(),
        message: it.message.into(),
        context,
        continues: remote.is_some(),
        remote,
        state: A2aSentState::Submitted,
        result: None,
        error: None,
        created_at: now,
        updated_at: now,
        ended_at: None,
        holder,
    };
    let details = json!({ "a2a_agent": task.to, "name": task.to_name, "task": id });
    let from = task.from;
    let entity = world.spawn((id, task)).id();
    world.mark(entity);
    world.audit(audit_kinds::A2A_MESSAGE_SENT, from, details);
    keep::trim(world);
    A2aSentView::seen(world, id)
}

fn check_texts(it: &SendToA2aAgent) -> Result<(), Refusal> {
    if it.message.trim().is_empty() {
        return Err(Refusal::bad_field("message", "message must not be empty"));
    }
    let most = limits::A2A_SENT_MESSAGE_BYTES_MAX;
    if it.message.len() > most {
        return Err(Refusal::bad_field("message", format!("message is longer than {most} bytes")));
    }
    let most = limits::A2A_REMOTE_ID_BYTES_MAX;
    if it.context.as_ref().is_some_and(|context| context.is_empty() || context.len() > most) {
        return Err(Refusal::bad_field("context_id", format!("context_id must have 1 to {most} bytes")));
    }
    Ok(())
}

/// The conversation and the task that a message goes on with, as the external agent knows them.
type Continued = (Option<Box<str>>, Option<Box<str>>);

/// An agent goes on with its own tasks only. One that has ended for good takes no message: its conversation goes on.
fn continued(world: &World, it: &SendToA2aAgent, before: A2aSentId) -> Result<Continued, Refusal> {
    let task = state::<A2aSent>(world, before).filter(|task| it.from.is_none() || task.from == it.from);
    let task = task.ok_or_else(|| Refusal::not_found("sent A2A task", before))?;
    if task.to != it.to {
        return Err(Refusal::bad_field("task_id", "the task was sent to another external agent"));
    }
    if task.state.is_open() {
        let text = "the task is still open; wait for its end";
        return Err(Refusal::of(error_codes::A2A_SENT_OPEN, text));
    }
    let remote = task.remote.clone().filter(|_| task.state.is_interrupted());
    if remote.is_none() && task.context.is_none() {
        let text = "the external agent gave the task no conversation; send the message without `task_id`";
        return Err(Refusal::bad_field("task_id", text));
    }
    Ok((task.context.clone(), remote))
}

/// Refuses a message when as many were sent in the last minute as may be. The tasks themselves are counted, so that a restart
/// forgives nothing.
fn check_rate(world: &mut World, most: u32) -> Result<(), Refusal> {
    let now = world.resource::<Now>().0;
    let tasks = world.resource::<SentTasks>();
    let mut recent = tasks.since(now.plus_ms(1 - MINUTE_MS), now);
    let (oldest, count) = (recent.next(), 1 + recent.count());
    let Some(oldest) = oldest.filter(|_| count >= most as usize) else { return Ok(()) };
    world.resource_mut::<SentTotals>().over_rate += 1;
    let left_ms = oldest.plus_ms(MINUTE_MS).0 - now.0;
    let text = format!("{count} messages were sent to external A2A agents in the last minute; the limit is {most}");
    let refusal = Refusal::of(error_codes::A2A_SENT_RATE_LIMITED, text);
    Err(Refusal { retry_after_secs: u32::try_from(left_ms / 1_000 + 1).ok(), ..refusal })
}
