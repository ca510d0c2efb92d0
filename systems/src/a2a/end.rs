//! A task comes to its end, exactly once: with its turn, by its client, or when it took too long. What is over is let go.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::a2a::{A2aState, A2aTask, A2aTaskId};
use agentsvc_components::agent::Agent;
use agentsvc_components::session::Session;
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::{Refusal, SessionId};

use super::index::Tasks;
use super::list::{A2aTaskView, not_found};
use super::metrics::A2aTotals;
use super::{audit_kinds, error_codes, limits, push};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;
use crate::kernel::entities::{change, state};
use crate::kernel::index;
use crate::kernel::waiters;
use crate::session;
use crate::turn::{Ended, stop_turn};

/// Waits for the end of a task. Answered at once when it has ended, and when too many wait for it.
#[derive(Clone, Copy, Debug)]
pub struct AwaitA2aTask(pub A2aTaskId);

command! {
    read "await_a2a_task" AwaitA2aTask => A2aTaskView, Id(|it| it.0.0), |it, world| wait(world, it.0)
}

fn wait(world: &mut World, id: A2aTaskId) -> Answer<A2aTaskView> {
    let Ok(view) = A2aTaskView::seen(world, id) else { return Answer::Now(Err(not_found())) };
    let is_open = view.task.state.is_open();
    waiters::wait(world, id, view, is_open, limits::A2A_TASK_WAITERS_MAX)
}

/// Cancels a task: it ends at once, and its turn is stopped. Refused (409) when it has ended otherwise.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CancelA2aTask(pub A2aTaskId);

command! {
    write "cancel_a2a_task" CancelA2aTask => A2aTaskView, Id(|it| it.0.0), |it, world|
        Answer::stored(cancel(world, it.0))
}

fn cancel(world: &mut World, id: A2aTaskId) -> Result<A2aTaskView, Refusal> {
    let (was, turn, agent) = match state::<A2aTask>(world, id) {
        Some(task) => (task.state, task.turn, task.agent),
        None => return Err(not_found()),
    };
    match was {
        A2aState::Cancelled => return A2aTaskView::seen(world, id),
        A2aState::Completed | A2aState::Failed => {
            let word = if was == A2aState::Completed { "completed" } else { "failed" };
            let text = format!("the task has {word}, so that it cannot be cancelled");
            return Err(Refusal::of(error_codes::A2A_TASK_ENDED, text));
        }
        A2aState::Working => {}
    }
    settle(world, id, A2aState::Cancelled, "the client cancelled the task".to_owned());
    stop_turn(world, turn);
    world.audit(audit_kinds::A2A_TASK_CANCELLED, agent, json!({ "turn": turn }));
    A2aTaskView::seen(world, id)
}

/// The turn of a task has ended. Why a turn failed is for the owner's eyes: the client reads a code.
pub(super) fn turn_ended(world: &mut World, id: A2aTaskId, ended: &Ended) {
    let (state, text) = match ended.end {
        TurnEnd::Done => (A2aState::Completed, ended.text.to_string()),
        TurnEnd::Stopped | TurnEnd::Interrupted => (A2aState::Cancelled, "the turn was stopped".to_owned()),
        TurnEnd::Failed => {
            let code = ended.code.map_or_else(String::new, |code| format!(" ({code})"));
            (A2aState::Failed, format!("the agent could not answer{code}"))
        }
    };
    settle(world, id, state, text);
}

/// Ends a task that is open, and tells those who wait for it.
pub(super) fn settle(world: &mut World, id: A2aTaskId, how: A2aState, text: String) {
    let Some(entity) = world.resource::<Tasks>().get(id) else { return };
    if !world.get::<A2aTask>(entity).is_some_and(|task| task.state.is_open()) {
        return;
    }
    let now = world.resource::<Now>().0;
    change(world, entity, |task: &mut A2aTask| {
        task.state = how;
        task.result = Some(cut(text).into());
        (task.updated_at, task.ended_at) = (now, Some(now));
    });
    let mut totals = world.resource_mut::<A2aTotals>();
    match how {
        A2aState::Completed => totals.completed += 1,
        A2aState::Cancelled => totals.cancelled += 1,
        A2aState::Failed | A2aState::Working => totals.failed += 1,
    }
    push::task_ended(world, id);
    waiters::tell::<A2aTaskView>(world, id);
    trim(world);
}

/// A text of at most so many bytes; of a longer one the beginning, and a note that says so.
fn cut(mut text: String) -> String {
    let most = limits::A2A_RESULT_BYTES_MAX;
    if text.len() > most {
        let note = format!("\n[... truncated: the full text is {} bytes ...]", text.len());
        text.truncate(text.floor_char_boundary(most - note.len()));
        text.push_str(&note);
    }
    text
}

/// Lets the tasks that ended first go while there are more, or more bytes of them, than may be: those of the client that has the
/// most, so that no flood drives out what others have not read yet.
pub(super) fn trim(world: &mut World) {
    loop {
        let tasks = world.resource::<Tasks>();
        let is_long = tasks.used.bytes > limits::A2A_TASKS_BYTES_MAX;
        let is_over = is_long || tasks.used.count > limits::A2A_TASKS_MAX;
        let Some(id) = tasks.dispensable(is_long).filter(|_| is_over) else { return };
        forget(world, id);
    }
}

/// Takes an ended task out of the world, and with the last one of a conversation its session.
pub(super) fn forget(world: &mut World, id: A2aTaskId) {
    let Some(entity) = world.resource::<Tasks>().get(id) else { return };
    let session = world.get::<A2aTask>(entity).map(|task| task.session);
    push::forget(world, id);
    world.despawn(entity);
    if let Some(session) = session.filter(|session| !world.resource::<Tasks>().knows(*session)) {
        forget_session(world, session);
    }
}

/// Removes the session of a conversation without tasks, unless the owner made it the current one.
fn forget_session(world: &mut World, id: SessionId) {
    let Some(entity) = index::session(world, id) else { return };
    let owner = world.get::<Session>(entity).and_then(|session| world.get::<Agent>(session.agent));
    if owner.is_some_and(|owner| owner.current != entity) {
        session::remove(world, entity, "the A2A conversation has ended");
    }
}
