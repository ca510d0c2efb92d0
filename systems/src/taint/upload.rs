//! Files come into the workspace of an agent outside of its turns: uploads, what skills write that clients call, deliveries and
//! checkpoints.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{AgentId, Refusal};

use super::audit_kinds::FILE_UPLOADED;
use super::{stain_files, tracked};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;

/// Notes an upload, before its copy comes into the agent's workspace: reading files there taints from then on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoteUpload {
    /// For whom.
    pub agent: AgentId,
    /// More about it: an object.
    pub details: Value,
}

command!(write "note_upload" NoteUpload => (), Id(|it| it.agent.0), |it, world| Answer::stored(note(world, it)));

fn note(world: &mut World, command: NoteUpload) -> Result<(), Refusal> {
    let NoteUpload { agent, details } = command;
    let entity = index::agent(world, agent)?;
    let taint = tracked(world, Taint::UPLOAD);
    stain_files(world, entity, taint);
    world.audit(FILE_UPLOADED, agent, details);
    Ok(())
}

/// Notes, before it is so, that files come into an agent's workspace outside of its turns: from a skill that runs for a client, a
/// delivery, or a checkpoint.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NoteFiles {
    /// In whose workspace.
    pub agent: AgentId,
    /// What is behind their content.
    pub taint: Taint,
}

command! {
    write "note_files" NoteFiles => (), Id(|it| it.agent.0), |it, world| {
        let noted = index::agent(world, it.agent).map(|entity| {
            let taint = tracked(world, it.taint);
            stain_files(world, entity, taint);
        });
        Answer::stored(noted)
    }
}
