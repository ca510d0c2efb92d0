//! A user declares the files of a workspace trusted.

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::{PendingState, Turn};
use agentsvc_components::{AgentId, Refusal, RefusalKind};

use super::audit_kinds::FILES_TRUSTED;
use super::{of, tools};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::check;

/// Takes the taint from the files of an agent's workspace: a user has looked at them, or removed those that brought it. Refused
/// with 404 for an unknown agent, and with 409 while a call may write untrusted content there. Gives the labels that they had.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TrustFiles {
    /// Whose.
    pub agent: AgentId,
}

command!(write "trust_files" TrustFiles => Vec<&'static str>, Id(|it| it.agent.0), |it, world| Answer::stored(trust(world, it)));

/// Files of this agent's workspace are about to be trusted.
pub(crate) struct TrustingFiles {
    /// Whose.
    pub(crate) agent: AgentId,
}

/// Says that files cannot be trusted while they may change.
pub(crate) fn may_be_written() -> Refusal {
    let text = "a tool call that is running may write untrusted content into these files; stop its turn, or wait until the call \
                has ended, and try again";
    Refusal::new(RefusalKind::Conflict, text.to_owned())
}

fn trust(world: &mut World, command: TrustFiles) -> Result<Vec<&'static str>, Refusal> {
    let TrustFiles { agent } = command;
    let entity = index::agent(world, agent)?;
    if world.resource::<Index>().turns_of(entity).any(|turn| is_writing(world, turn)) {
        return Err(may_be_written());
    }
    check(world, &TrustingFiles { agent })?;
    let files = world.get::<Agent>(entity).map(|owner| owner.taint.files).unwrap_or_default();
    let labels = files.words();
    if let Some(mut owner) = world.get_mut::<Agent>(entity).filter(|_| !files.is_none()) {
        owner.taint.files = Taint::NONE;
        world.mark(entity);
    }
    world.audit(FILES_TRUSTED, agent, json!({ "labels": labels }));
    Ok(labels)
}

/// Is a call out that may write files, of a turn that is tainted?
fn is_writing(world: &World, turn: Entity) -> bool {
    let writes = |turn: &Turn| {
        turn.pending.iter().any(|call| call.state == PendingState::Out && tools::writes_files(&call.call.name))
    };
    world.get::<Turn>(turn).is_some_and(writes) && !of(world, turn).is_none()
}
