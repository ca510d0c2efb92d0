//! A hook is called: its message becomes a turn of its agent in the same step, or waits for the agent's next heartbeat.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::agent::{Agent, AgentMode};
use agentsvc_components::hook::{HookCall, HookCallId, HookKind, HookState, HookTarget};
use agentsvc_components::kernel::taint::{InjectionFound, Taint};
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::{ModelName, Origin, TurnRequest};
use agentsvc_components::{AgentId, Refusal, SessionId};

use super::index::Calls;
use super::list::HookCallView;
use super::metrics::HookTotals;
use super::{audit_kinds, end, error_codes, limits};
use crate::agent::error_codes::AGENT_STABLE;
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::turn::{NewMessage, take};

/// Calls a hook of an agent. A call that was sent before under the same key is given as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendHookCall {
    /// Its id, should it be a new one.
    pub id: HookCallId,
    /// Whose hook.
    pub agent: AgentId,
    /// What is called.
    pub kind: HookKind,
    /// It waits for the next time that a schedule wakes the agent.
    pub waits: bool,
    /// The session of its turn, made when there is none; `None` is the current one.
    pub session: Option<SessionId>,
    /// What a repetition is known by; empty for what is never one.
    pub key: String,
    /// The digest of what was sent.
    pub digest: String,
    /// What the agent reads.
    pub message: String,
    /// Untrusted content in it.
    pub taint: Taint,
    /// What the scanner found in it.
    pub found: Vec<InjectionFound>,
    /// Milliseconds that its turn may take.
    pub timeout_ms: u32,
    /// The model that answers instead of the agent's own.
    pub model: Option<ModelName>,
    /// Where the answer goes beside the caller.
    pub target: Option<HookTarget>,
    /// It is kept until it is [released](super::ReleaseHookCall).
    pub held: bool,
    /// The W3C `traceparent` of the request.
    pub trace: Option<Box<str>>,
}

command! {
    write "send_hook_call" SendHookCall => HookCallView, Id(|it| it.agent.0), |it, world| Answer::stored(send(world, it))
}

fn send(world: &mut World, it: SendHookCall) -> Result<HookCallView, Refusal> {
    if let Some(known) = world.resource::<Calls>().by_key(&it.key).filter(|_| !it.key.is_empty()) {
        let view = HookCallView::seen(world, known)?;
        if *view.call.digest != *it.digest {
            let text = "the idempotency key belongs to another call; use a new key for a new message";
            return Err(Refusal::of(error_codes::HOOK_KEY_REUSED, text));
        }
        world.resource_mut::<HookTotals>().repeated += 1;
        return Ok(HookCallView { is_repeated: true, ..view });
    }
    admit(world, &it)?;
    let call = HookCall {
        agent: it.agent,
        kind: it.kind,
        state: HookState::Running,
        key: it.key.into(),
        digest: it.digest.into(),
        message: Box::default(),
        taint: it.taint,
        session: None,
        turn: None,
        result: None,
        code: None,
        input_tokens: 0,
        output_tokens: 0,
        target: it.target,
        created_at: world.resource::<Now>().0,
        timeout_ms: it.timeout_ms,
        ended_at: None,
        held: it.held,
    };
    let call = if it.waits {
        // What the scanner found is a label of what is said.
        let found = if it.found.is_empty() { Taint::NONE } else { Taint::INJECTION };
        let timeout_ms = limits::HOOK_HEARTBEAT_MS_MAX;
        HookCall {
            state: HookState::Waiting,
            message: it.message.into(),
            taint: it.taint.with(found),
            timeout_ms,
            ..call
        }
    } else {
        let request = (it.trace.is_some() || it.model.is_some()).then(|| {
            Box::new(TurnRequest { trace: it.trace, model: it.model.map(Box::new), ..TurnRequest::default() })
        });
        let message = NewMessage {
            blocks: vec![Block::Text { text: it.message }],
            origin: Origin::Hook { call: it.id },
            request,
            taint: it.taint,
            found: it.found,
            repeats: None,
        };
        let (_, taken) = take(world, it.agent, it.session, message, false, None)?;
        HookCall { session: Some(taken.session), turn: Some(taken.turn), ..call }
    };
    let details = json!({ "kind": call.kind.as_str(), "turn": call.turn, "session": call.session });
    let entity = world.spawn((it.id, call)).id();
    world.mark(entity);
    world.audit(audit_kinds::HOOK_CALLED, it.agent, details);
    end::trim(world);
    HookCallView::seen(world, it.id)
}

/// Refuses a call for which there is no room, or that its agent does not take.
fn admit(world: &World, it: &SendHookCall) -> Result<(), Refusal> {
    let owner = index::agent(world, it.agent)?;
    let full = |text: &str| {
        let refusal = Refusal::of(error_codes::HOOK_CALLS_FULL, text.to_owned());
        Err(Refusal { retry_after_secs: Some(5), ..refusal })
    };
    let calls = world.resource::<Calls>();
    if it.waits {
        if calls.waiting_count() >= limits::HOOK_WAITING_MAX {
            return full("too many wakes wait for heartbeats; try again later");
        }
        if calls.waiting(it.agent).len() >= limits::HOOK_AGENT_WAITING_MAX {
            return full("too many wakes wait for the agent's next heartbeat; use mode `now`, or try again later");
        }
    } else if calls.running_count() >= limits::HOOK_CALLS_RUNNING_MAX {
        return full("too many hook calls are open; try again later");
    } else if it.kind == HookKind::Inbox && calls.inbox_count() >= limits::HOOK_INBOX_RUNNING_MAX {
        return full("too many files of the file inbox are open; they wait");
    }
    if it.model.is_some() && world.get::<Agent>(owner).is_some_and(|agent| agent.mode == AgentMode::Stable) {
        let text = "model is pinned while the agent's mode is Stable; leave it out, or set the mode to Normal";
        let refusal = Refusal { field: Some("model".to_owned()), ..Refusal::conflict(text) };
        return Err(refusal.with_code(AGENT_STABLE));
    }
    Ok(())
}
