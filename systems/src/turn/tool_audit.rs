//! Tool calls on record: each before it goes out, in the commit that lets it go; those that were refused; and those of
//! which nobody knows whether they took effect. Their input is named by its hash only: it may hold what the record must
//! not keep.

use crate::audit;
use crate::taint;
use crate::turn;
use bevy_ecs::prelude::{Entity, World};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::{Actor, AgentId, TurnId};

use crate::audit::append;
use crate::kernel::index::id_of;
use crate::kernel::record::hex;
use crate::taint::Judgement;

/// Bytes of a tool's name that go on record: models make up names of any length.
const NAME_BYTES_MAX: usize = 128;

/// The call goes out.
pub(super) fn called(world: &mut World, run: &ToolRun) {
    let mut details = details(&run.call);
    if run.runs_before > 0 {
        details["resumed"] = json!(true);
    }
    note(world, audit::audit_kinds::TOOL_CALLED, run.agent, run.turn(), &details);
}

/// The call does not run; `why` is a word.
pub(super) fn refused(world: &mut World, agent: AgentId, turn: TurnId, call: &ToolCall, why: &str) {
    let mut details = details(call);
    details["reason"] = json!(why);
    note(world, turn::audit_kinds::TOOL_REFUSED, agent, turn, &details);
}

/// Nobody knows whether the call took effect.
pub(super) fn unknown(world: &mut World, agent: AgentId, turn: TurnId, call: &ToolCall) {
    note(world, turn::audit_kinds::TOOL_UNKNOWN, agent, turn, &details(call));
}

/// A turn that has read untrusted content makes a sensitive call; one that may simply run leaves no entry.
pub(super) fn tainted(world: &mut World, owner: Entity, turn: Entity, call: &ToolCall, judgement: &Judgement) {
    let (taint, decision) = match judgement {
        Judgement::Run => return,
        Judgement::Note(taint) => (taint, "noted"),
        Judgement::Approve(taint, _) => (taint, "approval"),
        Judgement::Deny(taint, ..) => (taint, "refused"),
    };
    let mut details = details(call);
    details["sources"] = json!(taint.words());
    details["decision"] = json!(decision);
    let (agent, turn) = (id_of(world, owner), id_of(world, turn));
    note(world, taint::audit_kinds::TOOL_TAINTED, agent, turn, &details);
}

fn note(world: &mut World, kind: AuditKind, agent: AgentId, turn: TurnId, details: &Value) {
    append(world, Actor::Agent { agent, turn }, kind, Some(agent), details);
}

fn details(call: &ToolCall) -> Value {
    let name = &call.name[..call.name.floor_char_boundary(NAME_BYTES_MAX)];
    json!({ "tool": name, "input_sha256": hex(&Sha256::digest(call.input.as_bytes())) })
}
