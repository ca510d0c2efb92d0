//! Someone asks for an approval: a turn whose tool needs one, or a client.

use crate::approval::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use agentsvc_components::agent::Agent;
use agentsvc_components::approval::{Approval, ApprovalState, GatedCall};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::turn::{PendingState, Turn};
use agentsvc_components::{Actor, AgentId, ApprovalId, Refusal, RefusalKind, TurnId};
use serde_json::{Value, json};

use super::{ApprovalView, Approvals};
use crate::agent::{holder_of, kin};
use crate::audit::{Audit, append};
use crate::config::Settings;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;
use crate::kernel::glob;
use crate::kernel::id_generator::mint_beside;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::kernel::text::check_length;
use crate::taint;

/// An approval is asked for; it is there already.
pub(crate) struct ApprovalAsked(pub(crate) ApprovalId);

/// A client asks for an approval (spec 3, POST /api/approvals). Nothing in the world waits for it: the client looks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestApproval {
    /// Agent.
    pub agent: AgentId,
    /// Action.
    pub action: Box<str>,
    /// Description.
    pub description: Box<str>,
    /// The particulars, as compact JSON.
    pub payload: Box<str>,
}

command! {
    write "request_approval" RequestApproval => ApprovalView, Id(|it| it.agent.0), |it, world|
        Answer::stored(request(world, it))
}

fn request(world: &mut World, command: RequestApproval) -> Result<ApprovalView, Refusal> {
    let RequestApproval { agent, action, description, payload } = command;
    index::agent(world, agent)?;
    check_length("action", &action, limit::APPROVAL_ACTION_BYTES_MAX)?;
    check_length("description", &description, limit::APPROVAL_TEXT_BYTES_MAX)?;
    check_length("payload", &payload, limit::APPROVAL_PAYLOAD_BYTES_MAX)?;
    if action.trim().is_empty() {
        return Err(Refusal::bad_field("action", "action must not be empty"));
    }
    check_room(world, agent, false)?;
    let texts = Texts { action, description, payload, answer_schema: None };
    let entity = begin(world, agent, texts, (None, false));
    let view = ApprovalView::seen(world, id_of(world, entity))?;
    world.audit(audit_kinds::APPROVAL_REQUESTED, agent, on_record(view.id, &view.approval.action));
    Ok(view)
}

/// What the audit trail says of an approval. Models make up names of tools of any length.
pub(super) fn on_record(id: ApprovalId, action: &str) -> Value {
    json!({ "approval": id, "action": action[..action.floor_char_boundary(limit::APPROVAL_ACTION_BYTES_MAX)] })
}

/// Refuses an approval when too many are pending, or too much text of them: of this agent, or of all.
pub(super) fn check_room(world: &World, agent: AgentId, is_strangers: bool) -> Result<(), Refusal> {
    let Some(full) = full(world, agent, is_strangers) else { return Ok(()) };
    let text = format!("{full}; decide some first");
    Err(Refusal { retry_after_secs: Some(60), ..Refusal::new(RefusalKind::TooMany, text) })
}

/// Why there is no room for another approval: of this agent, of its family or user, or of all.
fn full(world: &World, agent: AgentId, is_strangers: bool) -> Option<String> {
    let approvals = world.resource::<Approvals>();
    if let Some(full) = approvals.full(agent, is_strangers) {
        return Some(full);
    }
    let (most, most_bytes) = (limit::APPROVALS_PENDING_OF_FAMILY_MAX, limit::APPROVALS_PENDING_OF_FAMILY_BYTES_MAX);
    // While all of them together fit, those of some do.
    if is_strangers || (approvals.pending() < most && approvals.pending_bytes < most_bytes) {
        return None;
    }
    let kin = index::agent(world, agent).map(|agent| kin(world, agent)).unwrap_or_default();
    let (count, bytes) = approvals.known_of(kin.into_iter().map(|agent| id_of(world, agent)));
    let is_full = count >= most || bytes >= most_bytes;
    is_full.then(|| format!("too many calls of agents of the same user or family wait for approval ({count})"))
}

/// Does a call of `tool` by a turn of `agent` need a person?
pub(crate) fn is_gated(world: &World, agent: Entity, tool: &str) -> bool {
    let manifest = world.get::<Agent>(agent).map(|agent| &agent.manifest.manifest);
    glob::any(&world.resource::<Settings>().require_approval, tool)
        || manifest.is_some_and(|manifest| glob::any(&manifest.require_approval, tool))
}

/// Asks for the approval of the calls of a turn that need one, each with what a person should know of it. Gives those
/// for which none can be asked for now, and why.
pub(crate) fn gate(world: &mut World, turn: Entity, calls: &[(u32, Option<String>)]) -> Vec<(u32, String)> {
    let mut refused = Vec::new();
    let is_strangers = began_by_strangers(world, turn);
    for (index, because) in calls {
        let Some(component) = world.get::<Turn>(turn) else { break };
        let agent = component.agent;
        let pending = component.pending.iter().find(|pending| pending.index == *index);
        let Some(call) = pending.map(|pending| pending.call.clone()) else { continue };
        let agent = id_of::<AgentId>(world, agent);
        if let Some(full) = full(world, agent, is_strangers) {
            refused.push((*index, full));
            continue;
        }
        let gated = GatedCall { turn: id_of::<TurnId>(world, turn), index: *index, hash: hash(&call) };
        let tool = call.name.clone();
        let mut description = format!("The agent requests to call the tool {tool}.");
        if let Some(because) = because {
            description.push_str(&format!(" {because}"));
        }
        let texts = Texts {
            action: call.name.into(),
            description: description.into(),
            payload: call.input.into(),
            answer_schema: None,
        };
        let entity = begin(world, agent, texts, (Some(gated), is_strangers));
        let id = id_of::<ApprovalId>(world, entity);
        let actor = Actor::Agent { agent, turn: gated.turn };
        append(world, actor, audit_kinds::APPROVAL_REQUESTED, Some(agent), &on_record(id, &tool));
        let now = world.resource::<Now>().0;
        if let Some(mut turn) = world.get_mut::<Turn>(turn)
            && let Some(pending) = turn.pending.iter_mut().find(|pending| pending.index == *index)
        {
            (pending.state, pending.sent_at) = (PendingState::Gated(id), now);
        }
    }
    world.mark(turn);
    refused
}

/// Did a client without a key or another node begin the turn, directly or not?
pub(super) fn began_by_strangers(world: &World, turn: Entity) -> bool {
    !taint::of(world, turn).of_strangers().is_none()
}

/// What an approval of a call is bound to.
pub(super) fn hash(call: &ToolCall) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(call.name.as_bytes());
    hasher.update([0]);
    hasher.update(call.input.as_bytes());
    hasher.finalize().into()
}

/// What a person reads of an approval.
pub(super) struct Texts {
    pub(super) action: Box<str>,
    pub(super) description: Box<str>,
    pub(super) payload: Box<str>,
    pub(super) answer_schema: Option<Box<str>>,
}

/// Asks for an approval: of which call, and whether strangers began its turn.
pub(super) fn begin(
    world: &mut World,
    agent: AgentId,
    texts: Texts,
    (call, is_strangers): (Option<GatedCall>, bool),
) -> Entity {
    let Texts { action, description, payload, answer_schema } = texts;
    let now = world.resource::<Now>().0;
    let deadline = now.plus_ms(world.resource::<Settings>().approval_timeout_ms);
    let id: ApprovalId = mint_beside(world, agent.0);
    let tool = action.to_string();
    let holder = index::agent(world, agent).ok().map(|agent| holder_of(world, agent));
    let approval = Approval {
        agent,
        action,
        description,
        payload,
        state: ApprovalState::Pending,
        created_at: now,
        deadline,
        decided_at: None,
        reason: None,
        call,
        answer_schema,
        is_strangers,
        holder,
    };
    let entity = world.spawn((id, approval)).id();
    world.mark(entity);
    world.event(Event::ApprovalRequested {
        approval: id.0,
        agent,
        turn: call.and_then(|call| call.waiting_turn()),
        tool,
    });
    react(world, &ApprovalAsked(id));
    entity
}
