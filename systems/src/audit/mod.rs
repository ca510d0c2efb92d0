//! The audit trail (spec 3, Audit and security): every action that changes state or matters to security, with its
//! actor, in a chain of SHA-256 hashes that only ever grows at its end.
//!
//! | part | what it does |
//! |------|--------------|
//! | [`entry`](encode) | an entry as bytes: the form that is hashed is the form that is stored |
//! | [`checkpoint`](message) | what is signed, so that entries missing at the end are missed |
//! | [`walk`](Walk) | looks at stored rows, one after the other, and names the first that is not as it was written |
//! | `note`, `trim` | the commands: an action outside the world is noted, the oldest entries go |
//!
//! An entry is appended on the world's thread in the step of its action, so that both are one commit. The world keeps
//! only both ends of the chain ([`AuditHead`], key `z`). Keys, signatures and files are known outside: the world asks for
//! a signature by [`SealAudit`], at the first entry after a start, then every [`limit::AUDIT_CHECKPOINT_EVERY`] entries, and
//! [`limit::AUDIT_CHECKPOINT_MS`] after the first entry that is not signed.

pub mod audit_kinds;
mod checkpoint;
mod entry;
mod metrics;
mod note;
mod trim;
mod walk;

pub use checkpoint::{SIGNATURE_BYTES, encode_checkpoint, message, parse_checkpoint};
pub use entry::{decode, encode};
pub use note::{GetAuditHead, NoteAction};
pub use trim::{TrimAudit, first_since};
pub use walk::{Broken, Walk, Walked};

use bevy_ecs::prelude::{Resource, World};
use serde_json::Value;

use agentsvc_components::audit::record::{AuditEntry, AuditHead, SealAudit};
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, Timestamp};

use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::outbox::Emit;
use crate::kernel::record::{self, Error, Kind};
use crate::kernel::restore::Records;
use crate::kernel::stage::Stage;
use agentsvc_components::kernel::record::{Op, Space};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &[],
    content: &[(record::AUDIT_PREFIX[0], is_readable)],
    kinds: &[Kind::new(record::AUDIT_HEAD_KEY[0], read_head)],
    restore: &[(Phase::Owned, load)],
    rows: head_row,
    install,
    systems: &[System { stage: Stage::Seal, name: "audit_close", run: close }],
    next_due,
    commands: &[CommandDef::of::<NoteAction>(), CommandDef::of::<TrimAudit>()],
    audit_kinds: audit_kinds::ALL,
    metrics: metrics::ALL,
    ..Domain::named("audit")
};

/// The chain's ends, and what of them is not stored or signed yet.
#[derive(Resource, Default)]
pub(crate) struct AuditChain {
    head: AuditHead,
    /// The newest entry that a checkpoint was asked for in this process.
    sealed: u64,
    /// A checkpoint is wanted at the end of this step, however few entries there are.
    is_seal_due: bool,
    /// When the oldest entry came in that no checkpoint was asked for.
    unsigned_since: Option<Timestamp>,
    /// The head of the last record that was written.
    stored: AuditHead,
}

impl AuditChain {
    /// Both ends of the chain.
    pub(crate) const fn head(&self) -> AuditHead {
        self.head
    }
}

/// Prepares a new world.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<AuditChain>();
}

/// Goes on where the stored chain ends (restore).
fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    if let Some(head) = records.take::<AuditHead>().into_iter().last() {
        *world.resource_mut::<AuditChain>() = AuditChain { head, stored: head, ..AuditChain::default() };
    }
    Ok(())
}

/// Can this row be read? Checkpoints are only told by their keys: whether they are signed is for the vault to say.
fn is_readable(key: &[u8], value: &[u8]) -> Result<(), Error> {
    match record::parse_audit_key(key).ok_or_else(|| record::unknown(key))? {
        record::AuditKey::Entry(_) if decode(value).is_none() => {
            Err(Error::Corrupt { key: record::hex(key), reason: "not an audit log entry".to_owned() })
        }
        record::AuditKey::Entry(_) | record::AuditKey::Checkpoint(_) => Ok(()),
    }
}

fn read_head(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    if key != record::AUDIT_HEAD_KEY {
        return Err(record::unknown(key));
    }
    records.push::<AuditHead>(record::decode(key, value)?);
    Ok(())
}

/// The record of the chain's ends, once there are any.
fn head_row(world: &mut World, rows: &mut Vec<Op>) {
    let head = world.resource::<AuditChain>().head();
    if head != AuditHead::default() {
        rows.push(put_head(&head));
    }
}

pub(crate) fn put_head(head: &AuditHead) -> Op {
    record::op(Space::World, record::AUDIT_HEAD_KEY.to_vec(), Some(record::encode(head)))
}

/// Puts actions on record.
pub(crate) trait Audit {
    /// An action goes on record: who did it is whoever sent the command that is being carried out. `details` is an
    /// object.
    fn audit(&mut self, kind: AuditKind, agent: impl Into<Option<AgentId>>, details: Value);
}

impl Audit for World {
    fn audit(&mut self, kind: AuditKind, agent: impl Into<Option<AgentId>>, details: Value) {
        let actor = self.resource::<Acting>().0;
        append(self, actor, kind, agent.into(), &details);
    }
}

/// Appends an entry. `details` is an object.
pub(crate) fn append(world: &mut World, actor: Actor, kind: AuditKind, agent: Option<AgentId>, details: &Value) {
    let at = world.resource::<Now>().0;
    let op = append_to(&mut world.resource_mut::<AuditChain>().head, (at, actor), kind, agent, details);
    world.op(op);
}

/// Appends an entry behind `head`, which becomes it; gives its row.
fn append_to(
    head: &mut AuditHead,
    (at, actor): (Timestamp, Actor),
    kind: AuditKind,
    agent: Option<AgentId>,
    details: &Value,
) -> Op {
    let mut entry = AuditEntry {
        id: head.last + 1,
        at,
        event_type: kind.as_str().into(),
        agent,
        actor: actor.to_string().into(),
        details: fit(details.to_string()),
        prev_hash: head.hash,
        hash: [0; 32],
    };
    let row = encode(&mut entry);
    (head.last, head.hash) = (entry.id, entry.hash);
    record::put_audit_entry(entry.id, row)
}

/// The rows of an entry by which an operator accepts the trail up to `head` as it is, while no world runs; `head` becomes
/// that entry.
#[must_use]
pub fn accept(head: &mut AuditHead, at: Timestamp, details: &Value) -> Vec<Op> {
    let entry = append_to(head, (at, Actor::System), audit_kinds::AUDIT_ACCEPTED, None, details);
    vec![entry, put_head(head)]
}

/// The details within their bound.
fn fit(mut details: String) -> Box<str> {
    let most = limit::AUDIT_DETAILS_BYTES_MAX;
    if details.len() > most {
        details.truncate(details.floor_char_boundary(most));
        details.push_str("...");
    }
    details.into()
}

/// The names that an entry lists, and how many there are of them.
pub(crate) fn names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> (usize, Vec<&'a str>) {
    (names.len(), names.take(limit::AUDIT_NAMES_MAX).collect())
}

/// At the end of a step: the record of the ends when something was appended, and a checkpoint when one is due.
// &mut World: leaves a record and an effect in the outbox beside its own resource.
pub(crate) fn close(world: &mut World) {
    let trail = world.resource::<AuditChain>();
    let (head, now) = (trail.head, world.resource::<Now>().0);
    // A clock that was set back must not keep entries waiting.
    let is_late = |since: Timestamp| now < since || now >= since.plus_ms(limit::AUDIT_CHECKPOINT_MS);
    let is_late = trail.unsigned_since.is_some_and(is_late);
    if head == trail.stored {
        if is_late {
            seal(world);
        }
        return;
    }
    let is_many = head.last - trail.sealed >= limit::AUDIT_CHECKPOINT_EVERY;
    let is_due = trail.is_seal_due || trail.sealed == 0 || is_many || is_late;
    let mut trail = world.resource_mut::<AuditChain>();
    trail.stored = head;
    if is_due {
        seal(world);
    } else {
        trail.unsigned_since.get_or_insert(now);
    }
    world.op(put_head(&head));
}

/// Asks for a checkpoint up to the newest entry.
fn seal(world: &mut World) {
    let mut trail = world.resource_mut::<AuditChain>();
    let head = trail.head;
    (trail.sealed, trail.is_seal_due, trail.unsigned_since) = (head.last, false, None);
    world.effect(SealAudit(head));
}

/// When the oldest entry without a checkpoint has waited long enough.
fn next_due(world: &World) -> Option<Timestamp> {
    let since = world.resource::<AuditChain>().unsigned_since;
    since.map(|since| since.plus_ms(limit::AUDIT_CHECKPOINT_MS))
}

#[cfg(test)]
mod command_tests;
#[cfg(test)]
mod tests;
