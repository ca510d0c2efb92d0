//! The oldest entries go. What stays can still be checked: its first entry follows a hash that is signed before a row
//! is erased.

use crate::audit::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::audit::record::{AuditHead, Sha256Hash};
use agentsvc_components::{Refusal, Timestamp};

use super::entry::Tie;
use super::{Audit, AuditChain};
use crate::kernel::command::{Answer, command};

/// Lets the entries before `first` go. Whoever asks erases the rows, but only after the checkpoint that this asks for is
/// signed and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimAudit {
    /// The first entry that stays.
    pub first: u64,
    /// The hash of the entry before it.
    pub anchor: Sha256Hash,
}

command! {
    /// How many entries go.
    write "trim_audit" TrimAudit => u64, All, |it, world| Answer::stored(trim(world, it))
}

fn trim(world: &mut World, command: TrimAudit) -> Result<u64, Refusal> {
    let head = world.resource::<AuditChain>().head();
    if command.first <= head.first || command.first > head.last {
        let text = format!("entry {} is not between {} and {}", command.first, head.first, head.last);
        return Err(Refusal::bad_field("first", text));
    }
    let removed = command.first - head.first;
    let mut trail = world.resource_mut::<AuditChain>();
    (trail.head.first, trail.head.anchor) = (command.first, command.anchor);
    trail.is_seal_due = true;
    world.audit(audit_kinds::AUDIT_TRIMMED, None, json!({ "first": command.first, "removed": removed }));
    Ok(removed)
}

/// What to trim so that entries before `since` go: looks at rows in order, from the first that is kept. The newest entry
/// always stays. `None` when there is nothing to trim.
pub fn first_since<R: AsRef<[u8]>>(
    head: AuditHead,
    rows: impl IntoIterator<Item = R>,
    since: Timestamp,
) -> Option<TrimAudit> {
    let ties = rows.into_iter().map_while(|row| Tie::read(row.as_ref()));
    let stays = |tie: &Tie| tie.at >= since || tie.id >= head.last;
    let Tie { id, prev_hash, .. } = ties.into_iter().find(stays)?;
    (id > head.first).then_some(TrimAudit { first: id, anchor: prev_hash })
}
