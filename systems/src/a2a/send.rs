//! A task comes: it becomes a turn of its agent in the same step.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::a2a::{A2aState, A2aTask, A2aTaskId, PushTarget, is_stranger};
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
    /// Who sends it: a user or a key, or an address behind [`STRANGER`](agentsvc_components::a2a::STRANGER).
    #[serde(default)]
    pub client: String,
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

/// Refuses one more where the client, or all that show a key or none as it does, have as many open as they may.
fn check_open(tasks: &Tasks, client: &str) -> Result<(), Refusal> {
    let full = |text: String| Refusal {
        retry_after_secs: Some(5),
        ..Refusal::of(error_codes::A2A_TASKS_FULL, format!("{text}; try again later"))
    };
    let ((own, together), most) = (tasks.open_beside(client), limits::A2A_CLIENT_TASKS_OPEN_MAX);
    // Where it is not known who sends, nothing is told apart.
    if own >= most && !client.is_empty() {
        return Err(full(format!("this client has {most} open A2A tasks, which is the limit")));
    }
    let most = if is_stranger(client) { limits::A2A_TASKS_OPEN_MAX } else { limits::A2A_KNOWN_TASKS_OPEN_MAX };
    if together >= most { Err(full("too many A2A tasks are open".to_owned())) } else { Ok(()) }
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
    check_open(world.resource::<Tasks>(), &it.client)?;
    let known = Some(&*it.client).filter(|client| !is_stranger(client));
    if let Err(refusal) = spending::admit(world, known, it.daily_limit) {
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
        repeats: None,
    };
    let (_, taken) = take(world, it.agent, Some(it.session), message, false, None)?;
    let now = world.resource::<Now>().0;
    let task = A2aTask {
        agent: it.agent,
        agent_name: it.agent_name.into(),
        session: taken.session,
        turn: taken.turn,
        client: it.client.into(),
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
