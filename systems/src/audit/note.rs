//! Actions that the world only hears of, and the ends of the trail for those who read it.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use agentsvc_components::AgentId;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::kernel::audit_kind::AuditKind;

use super::{Audit, AuditChain};
use crate::kernel::command::{Answer, Command, Place, Room, command};

/// Notes an action that happens outside the world, such as the writing of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoteAction {
    /// What.
    pub kind: AuditKind,
    /// The agent it is about, if it is about one; need not live.
    pub agent: Option<AgentId>,
    /// More about it: an object.
    pub details: Value,
}

impl Command for NoteAction {
    /// Sent when the entry is on disk.
    type Reply = ();
    const NAME: &'static str = "note_action";
    const WRITES: bool = true;
    const ROOM: Room = Room::Last;
    const PLACE: Place<Self> = Place::IdOrRoot(|it| it.agent.map(|id| id.0));

    fn run(self, world: &mut World) -> Answer<()> {
        world.audit(self.kind, self.agent, self.details);
        Answer::Stored(())
    }
}

/// Reads both ends of the trail, once everything before is on disk: the rows read after the answer reach to its end.
#[derive(Clone, Copy, Debug)]
pub struct GetAuditHead;

command! {
    read "get_audit_head" GetAuditHead => AuditHead, All, |_, world| Answer::Stored(world.resource::<AuditChain>().head())
}
