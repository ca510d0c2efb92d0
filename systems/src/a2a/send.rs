//! A task comes: it becomes a turn of its agent in the same step.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::a2a::{A2aState, A2aTask, A2aTaskId, PushTarget};
use agentsvc_components::kernel::taint::{InjectionFound, Taint};
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::{Origin, TurnRequest};
use agentsvc_components::{AgentId, Micros, Refusal, SessionId};

use super::end;
use super::index::Tasks;
use super::list::A2aTaskView;
use super::metrics::A2aTotals;
use super::{audit_kinds, error_codes, limits, spending};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;
use crate::kernel::outbox::Emit;
use crate::turn::{NewMessage, take};

/// Sends a task to an agent. One that was sent before under the same key is given as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendA2aTask {
    /// Its id, should it be a new one.
    pub id: A2aTaskId,
    /// To whom.
    pub agent: AgentId,
    /// The name of that agent.
    pub agent_name: String,
    /// The conversation, as the client knows it.
    pub context: String,
    /// The session that holds it; made when there is none.
    pub session: SessionId,
    /// The id that the client gave it.
    pub client_id: Option<String>,
    /// What a repetition is known by; empty for what is never one.
    pub key: String,
    /// The digest of what was sent.
    pub digest: String,
    /// The id of the client's message.
    pub message_id: String,
    /// What the client said.
    pub message: String,
    /// The same as the agent reads it, where the scanner changed it.
    pub shielded: Option<String>,
    /// What the scanner found in it.
    pub found: Vec<InjectionFound>,
    /// Who is told of its end.
    pub push: Option<PushTarget>,
    /// What tasks may cost in a UTC day; nothing means no limit.
    pub daily_limit: Micros,
    /// The W3C `traceparent` of the request.
    pub trace: Option<Box<str>>,
}

command! {
    write "send_a2a_task" SendA2aTask => A2aTaskView, Id(|it| it.agent.0), |it, world| Answer::stored(send(world, it))
}

fn send(world: &mut World, it: SendA2aTask) -> Result<A2aTaskView, Refusal> {
    if let Some(known) = world.resource::<Tasks>().by_key(&it.key).filter(|_| !it.key.is_empty()) {
        let view = A2aTaskView::seen(world, known)?;
        if *view.task.digest != *it.digest {
            let text = "a task with this id and another message exists; choose another id";
            return Err(Refusal::of(error_codes::A2A_TASK_EXISTS, text));
        }
        world.resource_mut::<A2aTotals>().repeated += 1;
        return Ok(view);
    }
    if world.resource::<Tasks>().get(it.id).is_some() {
        return Err(Refusal::of(error_codes::A2A_TASK_EXISTS, "a task with this id exists"));
    }
    if world.resource::<Tasks>().open_count() >= limits::A2A_TASKS_OPEN_MAX {
        let text = "too many A2A tasks are open; try again later";
        return Err(Refusal { retry_after_secs: Some(5), ..Refusal::of(error_codes::A2A_TASKS_FULL, text) });
    }
    if let Err(refusal) = spending::check(world, it.daily_limit) {
        world.resource_mut::<A2aTotals>().over_budget += 1;
        return Err(refusal);
    }
    let text = it.shielded.unwrap_or_else(|| it.message.clone());
    let request = it.trace.map(|trace| Box::new(TurnRequest { trace: Some(trace), ..TurnRequest::default() }));
    let message = NewMessage {
        blocks: vec![Block::Text { text }],
        origin: Origin::A2a { task: it.id },
        request,
        taint: Taint::GUEST,
        found: it.found,
    };
    let (_, taken) = take(world, it.agent, Some(it.session), message, false, None)?;
    let now = world.resource::<Now>().0;
    let task = A2aTask {
        agent: it.agent,
        agent_name: it.agent_name.into(),
        session: taken.session,
        turn: taken.turn,
        context: it.context.into(),
        client_id: it.client_id.map(Into::into),
        key: it.key.into(),
        digest: it.digest.into(),
        message_id: it.message_id.into(),
        message: it.message.into(),
        state: A2aState::Working,
        result: None,
        created_at: now,
        updated_at: now,
        ended_at: None,
        push: it.push.into_iter().collect(),
    };
    let entity = world.spawn((it.id, task)).id();
    world.mark(entity);
    // The id is all that it takes to read the task: the log names its turn instead.
    world.audit(audit_kinds::A2A_TASK_SENT, it.agent, json!({ "turn": taken.turn, "session": taken.session }));
    end::trim(world);
    A2aTaskView::seen(world, it.id)
}
