//! Approvals: actions that wait for a person.
//!
//! | from    | what happens                               | to       | leaves behind                            |
//! |---------|--------------------------------------------|----------|------------------------------------------|
//! | (none)  | a turn calls a tool that needs one          | Pending  | record, event; the call is `Gated`        |
//! | (none)  | a client asks                               | Pending  | record, event                            |
//! | (none)  | a client calls a tool that needs one        | Pending  | record, event; the client waits          |
//! | Pending | a person says yes                           | Approved | record, event; the call stands in line    |
//! | Pending | a person says no                            | Rejected | record, event; the call gets an error     |
//! | Pending | the deadline passes                         | Expired  | the same as no                            |
//! | Pending | its turn ends, or its agent is removed      | Expired  | record, event                            |
//! | Pending | its client is gone, or the daemon restarts  | Expired  | record, event                            |
//!
//! A decision is one commit with what follows from it, so that an approved call runs once and what was approved is what
//! runs: the call's hash is part of the approval and compared before the call goes out.

mod ask;
mod decide;
pub mod error_codes;
mod invoke;
mod list;
pub(crate) mod query;

pub use ask::RequestApproval;
pub(crate) use ask::{gate, is_gated};
pub(crate) use decide::{CallDecided, agent_removed, beat, clock_set_back, next_due, withdraw};
pub use decide::{DecideApprovals, Decision};
pub(crate) use invoke::nobody_waits;
pub use invoke::{InvokeTool, Invoker, WithdrawInvocation};
pub use list::{ApprovalCounts, ApprovalView, CountApprovals, GetApproval, ListApprovals};

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::approval::{Approval, ApprovalState};
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::{PendingState, Turn};
use agentsvc_components::{AgentId, ApprovalId, Refusal, Timestamp};

use crate::kernel::check::Faults;
use crate::kernel::domain::Phase;
use crate::kernel::domain::{Domain, System};
use crate::kernel::index;
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::outbox::Outbox;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record;
use crate::kernel::record::Kind;
use crate::kernel::record::{Error, restore_components};
use crate::kernel::restore::Records;
use crate::kernel::stage::Stage;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "config"],
    kinds: &[Kind::component::<Approval>()],
    restore: &[(Phase::Owned, restore_components::<Approval>), (Phase::Joined, reconcile)],
    install,
    systems: &[System { stage: Stage::Time, name: "approval_beat", run: beat }],
    next_due,
    clock_set_back,
    check,
    is_quiet: |world| nobody_waits(world),
    commands: &[
        CommandDef::of::<DecideApprovals>(),
        CommandDef::of::<InvokeTool>(),
        CommandDef::of::<RequestApproval>(),
        CommandDef::of::<WithdrawInvocation>(),
    ],
    error_codes: error_codes::ALL,
    ..Domain::named("approval")
};

/// The approvals of the world.
#[derive(Resource, Default)]
pub(crate) struct Approvals {
    by_id: BTreeMap<ApprovalId, Entity>,
    /// In the order in which they were asked for.
    pending: BTreeSet<ApprovalId>,
    /// The same, by who asks.
    pending_of: BTreeSet<(AgentId, ApprovalId)>,
    /// In the order in which they were decided; at most
    /// [`APPROVALS_DECIDED_MAX`](agentsvc_components::kernel::limit::APPROVALS_DECIDED_MAX).
    decided: BTreeSet<(Timestamp, ApprovalId)>,
    deadlines: BTreeSet<(Timestamp, ApprovalId)>,
    /// Bytes of the texts of those that wait.
    pending_bytes: usize,
    /// Bytes of the texts of those that were decided.
    decided_bytes: usize,
}

impl Approvals {
    /// How many there are, decided ones included.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many wait for a person.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Is there no room for another one that waits?
    fn is_full(&self) -> bool {
        self.pending() >= limit::APPROVALS_PENDING_MAX || self.pending_bytes >= limit::APPROVALS_PENDING_BYTES_MAX
    }

    /// The decided one to forget, when more are kept than may be; the newest stays whatever its size.
    fn decided_over(&self) -> Option<ApprovalId> {
        let is_over = self.decided.len() > limit::APPROVALS_DECIDED_MAX
            || (self.decided.len() > 1 && self.decided_bytes > limit::APPROVALS_DECIDED_BYTES_MAX);
        self.decided.first().filter(|_| is_over).map(|(_, oldest)| *oldest)
    }

    /// The approval `id`.
    pub(crate) fn get(&self, id: ApprovalId) -> Option<Entity> {
        self.by_id.get(&id).copied()
    }

    /// All of them in the order in which they were asked for, from after `after` on.
    pub(crate) fn after(&self, after: Option<ApprovalId>) -> impl Iterator<Item = (ApprovalId, Entity)> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        self.by_id.range((after.map_or(Unbounded, Excluded), Unbounded)).map(|(id, entity)| (*id, *entity))
    }

    /// One waits for a person.
    fn open(&mut self, id: ApprovalId, agent: AgentId, deadline: Timestamp) {
        self.pending.insert(id);
        self.pending_of.insert((agent, id));
        self.deadlines.insert((deadline, id));
    }

    /// It does not any more.
    fn close(&mut self, id: ApprovalId, agent: AgentId, deadline: Timestamp) {
        self.pending.remove(&id);
        self.pending_of.remove(&(agent, id));
        self.deadlines.remove(&(deadline, id));
    }

    /// Those that wait on behalf of `agent`.
    fn pending_of(&self, agent: AgentId) -> Vec<ApprovalId> {
        let from = (agent, ApprovalId(uuid::Uuid::nil()));
        self.pending_of.range(from..).take_while(|(owner, _)| *owner == agent).map(|(_, id)| *id).collect()
    }
}

/// Prepares a new world for approvals.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Approvals>();
    world.init_resource::<invoke::Parked>();
    world.register_component_hooks::<ApprovalId>().on_insert(inserted).on_remove(removed);
    on(world, |world, gone: &Removed<AgentId>| agent_removed(world, gone.id));
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<ApprovalId>(at.entity).copied() else { return };
    let Some(known) = world.get::<Approval>(at.entity) else { return };
    let (state, agent, deadline, decided_at) = (known.state, known.agent, known.deadline, decided_at(known));
    let bytes = known.bytes();
    let mut approvals = world.resource_mut::<Approvals>();
    approvals.by_id.insert(id, at.entity);
    if state == ApprovalState::Pending {
        approvals.open(id, agent, deadline);
        approvals.pending_bytes += bytes;
    } else {
        approvals.decided.insert((decided_at, id));
        approvals.decided_bytes += bytes;
    }
}

/// When it was decided; of one that waits, when it will have been at the latest.
fn decided_at(approval: &Approval) -> Timestamp {
    approval.decided_at.unwrap_or(approval.deadline)
}

/// The entity goes: its record goes with it.
fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<ApprovalId>(at.entity).copied() else { return };
    let facts = |known: &Approval| (known.agent, known.deadline, decided_at(known), known.state, known.bytes());
    let known = world.get::<Approval>(at.entity).map(facts);
    let mut approvals = world.resource_mut::<Approvals>();
    approvals.by_id.remove(&id);
    if let Some((agent, deadline, decided_at, state, bytes)) = known {
        approvals.close(id, agent, deadline);
        approvals.decided.remove(&(decided_at, id));
        if state == ApprovalState::Pending {
            approvals.pending_bytes -= bytes;
        } else {
            approvals.decided_bytes -= bytes;
        }
    }
    world.resource_mut::<Outbox>().ops.push(record::remove_component::<Approval>(id));
}

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut found = world.query::<(Entity, &ApprovalId, &Approval)>();
    let world = &*world;
    let (mut scan, approvals) = (Approvals::default(), world.resource::<Approvals>());
    for (entity, id, approval) in found.iter(world) {
        scan.by_id.insert(*id, entity);
        if approval.state == ApprovalState::Pending {
            scan.open(*id, approval.agent, approval.deadline);
            scan.pending_bytes += approval.bytes();
        } else {
            scan.decided.insert((decided_at(approval), *id));
            scan.decided_bytes += approval.bytes();
        }
    }
    faults.same("approvals", &approvals.by_id, &scan.by_id);
    faults.same("pending approvals", &approvals.pending, &scan.pending);
    faults.same("pending approvals by agent", &approvals.pending_of, &scan.pending_of);
    faults.same("decided approvals", &approvals.decided, &scan.decided);
    faults.same("deadlines of approvals", &approvals.deadlines, &scan.deadlines);
    faults.same("bytes of pending approvals", &approvals.pending_bytes, &scan.pending_bytes);
    faults.same("bytes of decided approvals", &approvals.decided_bytes, &scan.decided_bytes);
    for (_, id, approval) in found.iter(world).filter(|(_, _, one)| one.state == ApprovalState::Pending) {
        faults.that(index::agent(world, approval.agent).is_ok(), || format!("approval {id}: the agent does not exist"));
        let Some(turn) = approval.call.and_then(|call| call.waiting_turn()) else { continue };
        let turn = index::turn(world, turn).and_then(|turn| world.get::<Turn>(turn));
        let waits = turn.is_some_and(|turn| turn.pending.iter().any(|tool| tool.state == PendingState::Gated(*id)));
        faults.that(waits, || format!("approval {id}: no call waits for it"));
    }
    let (count, bytes) = (scan.decided.len(), scan.decided_bytes);
    faults.that(scan.decided_over().is_none(), || format!("{count} decided approvals are kept, {bytes} bytes"));
}

/// The approval `id`.
pub(crate) fn find(world: &World, id: ApprovalId) -> Result<Entity, Refusal> {
    let found = world.resource::<Approvals>().by_id.get(&id).copied();
    found.ok_or_else(|| Refusal::not_found("approval", id))
}

/// Once every turn is back: an approval whose call does not wait for it would wait for nobody.
fn reconcile(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let pending: Vec<ApprovalId> = world.resource::<Approvals>().pending.iter().copied().collect();
    for id in pending {
        let Ok(entity) = find(world, id) else { continue };
        let Some(call) = world.get::<Approval>(entity).and_then(|approval| approval.call) else { continue };
        let turn = index::turn(world, call.turn).and_then(|turn| world.get::<Turn>(turn));
        let waits = turn.is_some_and(|turn| turn.pending.iter().any(|tool| tool.state == PendingState::Gated(id)));
        if !waits {
            let why = if call.is_clients() { "the daemon was restarted" } else { "its turn has ended" };
            withdraw(world, id, why);
        }
    }
    // It may have been set back meanwhile.
    clock_set_back(world);
    Ok(())
}

#[cfg(test)]
mod invoke_tests;
#[cfg(test)]
mod tests;
