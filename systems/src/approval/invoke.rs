//! A client calls a tool without a turn (spec 2, Direct tool invocation): judged and put on record here, run outside.
//!
//! A call that needs a person waits here until its approval ends, in memory only: when the daemon dies nobody waits any
//! more, and the approval expires with the restart. So an approval of a client's call lets exactly that call run, once.

use crate::agent::{error_codes as agent_codes, holder_of};
use crate::approval;
use crate::approval::error_codes;
use crate::audit::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::approval::{ApprovalState, GatedCall};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SharedManifest;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::{AgentId, ApprovalId, LogId, Refusal, SessionId, TurnId};

use super::ask::{Texts, begin, check_room, hash, is_gated, on_record};
use super::parked::{self, Ended, Waiting};
use crate::audit::Audit;
use crate::config::Settings;
use crate::kernel::command::{Answer, ReplySlot, command};
use crate::kernel::glob;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Outbox;
use crate::kernel::record::hex;
use crate::kernel::text::check_length;

/// A client calls a tool. Answered when the call may run and stands on the audit trail: at once, or, when a person must
/// approve it, after that.
///
/// Refused when the agent does not live (404) or does not run (409); when the call needs a person and names no agent
/// (400); when it was rejected or not approved in time (403, codes `approval_rejected` and `approval_expired`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvokeTool {
    /// The call's own id, by which it can be withdrawn.
    pub id: Uuid,
    /// On whose behalf; `None` is on nobody's.
    pub agent: Option<AgentId>,
    /// The tool.
    pub tool: Box<str>,
    /// Its input, JSON text.
    pub input: Box<str>,
}

/// The agent on whose behalf a tool runs, as it is when the call may run.
#[derive(Clone, Debug)]
pub struct Invoker {
    /// Which.
    pub agent: AgentId,
    /// Whose share of places, and of the workspaces, it takes.
    pub holder: Holder,
    /// Its name, which also names its workspace.
    pub name: Box<str>,
    /// Its current session.
    pub session: SessionId,
    /// The log of that session.
    pub log: LogId,
    /// Its manifest.
    pub manifest: SharedManifest,
}

command! {
    /// The agent as it is now; `None` when the call is on nobody's behalf.
    write "invoke_tool" InvokeTool => Option<Invoker>, IdOrRoot(|it| it.agent.map(|id| id.0)), |it, world| {
        match judge(world, &it) {
            Err(refusal) => Answer::Now(Err(refusal)),
            Ok(false) => Answer::stored(clear(world, &it)),
            Ok(true) => Answer::Later(Box::new(move |world, slot| park(world, it, slot))),
        }
    }
}

/// Asks whether a tool may be called on nobody's behalf. Unlike [`InvokeTool`] it leaves no audit entry: who asks puts calls of
/// many clients on record together.
#[derive(Clone, Debug)]
pub struct CheckInvocation {
    /// The tool.
    pub tool: Box<str>,
}

command! {
    read "check_invocation" CheckInvocation => (), All, |it, world| Answer::Now(check_nobody(world, &it.tool))
}

/// Refuses a call on nobody's behalf that a person would have to approve.
fn check_nobody(world: &World, tool: &str) -> Result<(), Refusal> {
    if !glob::any(&world.resource::<Settings>().require_approval, tool) {
        return Ok(());
    }
    let text = format!("agent_id is required: each call of {tool} needs approval");
    Err(Refusal::bad_field("agent_id", text).with_code(error_codes::APPROVAL_NEEDS_AGENT))
}

/// Must a person approve the call?
fn judge(world: &World, command: &InvokeTool) -> Result<bool, Refusal> {
    let Some(agent) = command.agent else {
        return check_nobody(world, &command.tool).map(|()| false);
    };
    let entity = running(world, agent)?;
    if !is_gated(world, entity, &command.tool) {
        return Ok(false);
    }
    check_length("input", &command.input, limit::APPROVAL_PAYLOAD_BYTES_MAX)?;
    check_room(world, agent, false)?;
    Ok(true)
}

pub(super) fn running(world: &World, agent: AgentId) -> Result<bevy_ecs::prelude::Entity, Refusal> {
    let entity = index::agent(world, agent)?;
    let state = world.get::<Agent>(entity).map_or(AgentState::Terminated, |agent| agent.state);
    if state == AgentState::Running {
        return Ok(entity);
    }
    let text = format!("the agent is not running (state {}); start it first", state.as_str());
    Err(Refusal::of(agent_codes::AGENT_NOT_RUNNING, text))
}

/// The call may run: it goes on record, in the commit that lets it go.
fn clear(world: &mut World, command: &InvokeTool) -> Result<Option<Invoker>, Refusal> {
    let invoker = command.agent.map(|agent| invoker(world, agent)).transpose()?;
    let input = hex(&Sha256::digest(command.input.as_bytes()));
    let details = json!({ "tool": command.tool, "input_sha256": input, "direct": true });
    world.audit(audit_kinds::TOOL_CALLED, command.agent, details);
    Ok(invoker)
}

fn invoker(world: &World, agent: AgentId) -> Result<Invoker, Refusal> {
    let missing = || Refusal::not_found("agent", agent);
    let entity = running(world, agent)?;
    let found = world.get::<Agent>(entity).ok_or_else(missing)?;
    let log = world.get::<Session>(found.current).map(|session| session.log).ok_or_else(missing)?;
    let (name, manifest, session) = (found.name.clone(), found.manifest.clone(), id_of(world, found.current));
    let holder = holder_of(world, entity);
    Ok(Invoker { agent, holder, name, session, log, manifest })
}

/// Asks a person, and keeps who waits for the answer.
fn park(world: &mut World, command: InvokeTool, slot: ReplySlot<Option<Invoker>>) {
    let Some(agent) = command.agent else { return };
    let call = ToolCall { id: String::new(), name: command.tool.to_string(), input: command.input.to_string() };
    let gated = GatedCall { turn: TurnId(command.id), index: GatedCall::CLIENT_CALL, hash: hash(&call) };
    let description = format!("A client requests to call the tool {} on behalf of the agent.", command.tool);
    let texts = Texts {
        action: command.tool.clone(),
        description: description.into(),
        payload: command.input.clone(),
        answer_schema: None,
    };
    let entity = begin(world, agent, texts, (Some(gated), false));
    let id = id_of::<ApprovalId>(world, entity);
    world.audit(approval::audit_kinds::APPROVAL_REQUESTED, agent, on_record(id, &command.tool));
    parked::wait(world, id, command.id, Waiting::Call(command, slot));
}

/// The approval of a call has ended.
pub(super) fn ended(world: &mut World, command: &InvokeTool, slot: ReplySlot<Option<Invoker>>, ended: &Ended<'_>) {
    let because = ended.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let reply = match ended.state {
        ApprovalState::Approved => clear(world, command),
        ApprovalState::Rejected => {
            let text = format!("a person rejected this call{because}");
            Err(Refusal::of(error_codes::APPROVAL_REJECTED, text))
        }
        ApprovalState::Expired | ApprovalState::Pending => {
            let text = format!("this call was not approved{because}");
            Err(Refusal::of(error_codes::APPROVAL_EXPIRED, text))
        }
    };
    world.resource_mut::<Outbox>().reply(slot, reply);
}
