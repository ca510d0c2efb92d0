//! A call comes to its end, exactly once: with its turn, or when it took too long. What is over is let go.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::Refusal;
use agentsvc_components::hook::{HookCall, HookCallId, HookState};
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::TurnEnd;

use super::index::Calls;
use super::list::HookCallView;
use super::metrics::HookTotals;
use super::{deliver, limits};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find, state};
use crate::kernel::waiters;
use crate::turn::Ended;

/// Waits for the end of a call. Answered at once when it has ended, and when too many wait for it.
#[derive(Clone, Copy, Debug)]
pub struct AwaitHookCall(pub HookCallId);

command! {
    read "await_hook_call" AwaitHookCall => HookCallView, Id(|it| it.0.0), |it, world| wait(world, it.0)
}

fn wait(world: &mut World, id: HookCallId) -> Answer<HookCallView> {
    match HookCallView::seen(world, id) {
        Ok(view) => {
            let is_open = view.call.state.is_open();
            waiters::wait(world, id, view, is_open, limits::HOOK_CALL_WAITERS_MAX)
        }
        Err(refusal) => Answer::Now(Err(refusal)),
    }
}

/// What a held call came from is gone: it is kept no longer than others, and its key is free.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReleaseHookCall(pub HookCallId);

command! {
    write "release_hook_call" ReleaseHookCall => (), Id(|it| it.0.0), |it, world| Answer::stored(release(world, it.0))
}

fn release(world: &mut World, id: HookCallId) -> Result<(), Refusal> {
    let entity = find::<HookCall>(world, id)?;
    change(world, entity, |call: &mut HookCall| (call.held, call.key) = (false, Box::default()));
    trim(world);
    Ok(())
}

/// A turn that hooks began has ended.
pub(super) fn turn_ended(world: &mut World, ended: &Ended) {
    let (state, text) = match ended.end {
        TurnEnd::Done => (HookState::Completed, &*ended.text),
        TurnEnd::Stopped | TurnEnd::Interrupted => (HookState::Stopped, "the turn was stopped"),
        TurnEnd::Failed => (HookState::Failed, &*ended.text),
    };
    for id in world.resource::<Calls>().of_turn(ended.turn) {
        settle(world, id, state, End { text, code: ended.code.as_deref(), usage: ended.usage });
    }
}

/// What is known of an end.
pub(super) struct End<'a> {
    /// The answer, or why there is none.
    pub(super) text: &'a str,
    /// The code of the failure.
    pub(super) code: Option<&'a str>,
    /// Tokens of the turn.
    pub(super) usage: Usage,
}

impl<'a> End<'a> {
    /// An end without a turn's.
    pub(super) fn bare(text: &'a str) -> Self {
        Self { text, code: None, usage: Usage::default() }
    }
}

/// Ends a call that is open, and tells those who wait for it.
pub(super) fn settle(world: &mut World, id: HookCallId, how: HookState, end: End<'_>) {
    let is_open = state::<HookCall>(world, id).is_some_and(|call| call.state.is_open());
    let Ok(entity) = find::<HookCall>(world, id) else { return };
    if !is_open {
        return;
    }
    let now = world.resource::<Now>().0;
    change(world, entity, |call: &mut HookCall| {
        (call.state, call.ended_at, call.message) = (how, Some(now), Box::default());
        (call.result, call.code) = (Some(cut(end.text)), end.code.map(Into::into));
        (call.input_tokens, call.output_tokens) = (end.usage.input_tokens, end.usage.output_tokens);
    });
    world.resource_mut::<HookTotals>().ended(how);
    if how == HookState::Completed {
        deliver::answer(world, id);
    }
    waiters::tell::<HookCallView>(world, id);
    trim(world);
}

/// A text of at most so many bytes; of a longer one the beginning, and a note that says so.
fn cut(text: &str) -> Box<str> {
    let most = limits::HOOK_RESULT_BYTES_MAX;
    if text.len() <= most {
        return text.into();
    }
    let note = format!("\n[... truncated: the full text is {} bytes ...]", text.len());
    format!("{}{note}", &text[..text.floor_char_boundary(most - note.len())]).into()
}

/// Lets the calls that ended first go while there are more, or more bytes of them, than may be.
pub(super) fn trim(world: &mut World) {
    loop {
        let calls = world.resource::<Calls>();
        let is_over = calls.used.count > limits::HOOK_CALLS_MAX || calls.used.bytes > limits::HOOK_CALLS_BYTES_MAX;
        let Some((_, id)) = calls.ended().next().filter(|_| is_over) else { return };
        forget(world, id);
    }
}

/// Takes an ended call out of the world. An answer that is on its way to a channel goes on.
pub(super) fn forget(world: &mut World, id: HookCallId) {
    if let Ok(entity) = find::<HookCall>(world, id) {
        world.despawn(entity);
    }
}
