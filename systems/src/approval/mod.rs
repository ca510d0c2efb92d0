//! Approvals: actions that wait for a person.
//!
//! | from    | what happens                               | to       | leaves behind                            |
//! |---------|--------------------------------------------|----------|------------------------------------------|
//! | (none)  | a turn calls a tool that needs one          | Pending  | record, event; the call is `Gated`        |
//! | (none)  | a client asks                               | Pending  | record, event                            |
//! | (none)  | a client calls a tool that needs one        | Pending  | record, event; the client waits          |
//! | (none)  | something outside asks a person             | Pending  | record, event; it waits for the answer   |
//! | Pending | a person says yes                           | Approved | record, event; the call stands in line    |
//! | Pending | a person says no                            | Rejected | record, event; the call gets an error     |
//! | Pending | the deadline passes                         | Expired  | the same as no                            |
//! | Pending | its turn ends, or its agent is removed      | Expired  | record, event                            |
//! | Pending | who waits is gone, or the daemon restarts   | Expired  | record, event                            |
//!
//! A decision is one commit with what follows from it, so that an approved call runs once and what was approved is what
//! runs: the call's hash is part of the approval and compared before the call goes out.

mod answer;
mod ask;
pub mod audit_kinds;
mod decide;
pub mod error_codes;
mod invoke;
pub mod limits;
mod list;
mod metrics;
mod parked;
pub(crate) mod query;
mod question;

pub use answer::check_answer;
pub use ask::RequestApproval;
pub(crate) use ask::{ApprovalAsked, gate, is_gated};
pub(crate) use decide::{CallDecided, agent_removed, beat, clock_set_back, decide, next_due, withdraw};
pub use decide::{DecideApprovals, Decision};
pub use invoke::{CheckInvocation, InvokeTool, Invoker};
pub use list::{ApprovalCounts, ApprovalFilter, ApprovalView, CountApprovals, ListApprovals};
pub use parked::WithdrawInvocation;
pub(crate) use parked::nobody_waits;
pub use question::{AskPerson, PersonAnswer};

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::World;

use agentsvc_components::approval::{Approval, ApprovalState};
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::{PendingState, Turn};
use agentsvc_components::{AgentId, ApprovalId, Timestamp, TurnId};

use crate::kernel::check::Faults;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities::{self, Entities, Places, indexed, state};
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::index;
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::kept::Kept;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Error, Kind, restore_components};
use crate::kernel::restore::Records;
use crate::kernel::stage::Stage;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "config", "event", "manifest", "session", "taint", "turn"],
    kinds: &[Kind::component::<Approval>()],
    restore: &[(Phase::Owned, restore_components::<Approval>), (Phase::Joined, reconcile)],
    install,
    measures: &[Measure::of::<ApprovalId>("approvals", |world, at| of(world, at, Approval::bytes), entries(28, 3))],
    systems: &[System { stage: Stage::Time, name: "approval_beat", run: beat }],
    next_due,
    clock_set_back,
    check,
    is_quiet: |world| nobody_waits(world),
    commands: &[
        CommandDef::of::<AskPerson>(),
        CommandDef::of::<DecideApprovals>(),
        CommandDef::of::<InvokeTool>(),
        CommandDef::of::<RequestApproval>(),
        CommandDef::of::<WithdrawInvocation>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("approval")
};

/// Every approval.
pub(crate) type Approvals = Entities<Approval>;

indexed!(Approval: ApprovalPlaces, "approval");

/// Approvals that wait for a person, and those that were decided.
#[derive(Debug, Default, PartialEq)]
pub struct ApprovalPlaces {
    /// In the order in which they were asked for, those of strangers behind all others.
    pending: BTreeSet<(bool, ApprovalId)>,
    /// The same, by who asks. No entry is empty.
    pending_of: BTreeMap<AgentId, Share>,
    /// How many of those that wait are of strangers.
    strangers: usize,
    /// Bytes of their texts.
    strangers_bytes: usize,
    /// In the order in which they were decided; at most
    /// [`APPROVALS_DECIDED_MAX`](agentsvc_components::kernel::limit::APPROVALS_DECIDED_MAX).
    decided: BTreeSet<(Timestamp, ApprovalId)>,
    /// The same, by whose share they take.
    kept: Kept<ApprovalId>,
    deadlines: BTreeSet<(Timestamp, ApprovalId)>,
    /// Bytes of the texts of those that wait.
    pending_bytes: usize,
    /// Bytes of the texts of those that were decided.
    decided_bytes: usize,
}

/// What waits on behalf of one agent.
#[derive(Debug, Default, PartialEq)]
struct Share {
    ids: BTreeSet<ApprovalId>,
    /// How many of them are of no strangers.
    known: usize,
    /// Bytes of the texts of those.
    bytes: usize,
}

impl ApprovalPlaces {
    /// How many wait for a person.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// How many of them are of strangers.
    pub(crate) fn of_strangers(&self) -> usize {
        self.strangers
    }

    /// Why there is no room for another one of the agent's that waits. Those of strangers have a bound of their own and take
    /// nothing from the agent's share.
    fn full(&self, agent: AgentId, is_strangers: bool) -> Option<String> {
        let (all, own) = (self.pending(), self.pending_of.get(&agent));
        if is_strangers {
            let is_full = self.strangers >= limits::STRANGERS_PENDING_MAX
                || self.strangers_bytes >= limits::STRANGERS_PENDING_BYTES_MAX;
            return is_full.then(|| format!("too many calls of strangers wait for approval ({})", self.strangers));
        }
        // Strangers take no place of others.
        let all = all - self.strangers;
        let bytes = self.pending_bytes - self.strangers_bytes;
        if all >= limit::APPROVALS_PENDING_MAX || bytes >= limit::APPROVALS_PENDING_BYTES_MAX {
            return Some(format!("the limit of {all} pending approvals is reached"));
        }
        let own = own.filter(|own| {
            own.known >= limit::APPROVALS_PENDING_OF_AGENT_MAX
                || own.bytes >= limit::APPROVALS_PENDING_OF_AGENT_BYTES_MAX
        })?;
        Some(format!("too many calls of this agent wait for approval ({})", own.known))
    }

    /// How many wait on behalf of these agents together, and how long their texts are; strangers apart.
    fn known_of(&self, agents: impl Iterator<Item = AgentId>) -> (usize, usize) {
        let own = agents.filter_map(|agent| self.pending_of.get(&agent));
        own.fold((0, 0), |(count, bytes), own| (count + own.known, bytes + own.bytes))
    }

    /// The decided one to forget, when more are kept than may be: the oldest of whoever keeps most. The newest stays whatever its size.
    fn decided_over(&self) -> Option<ApprovalId> {
        if self.decided.len() > limit::APPROVALS_DECIDED_MAX {
            return self.kept.by_count().next();
        }
        let newest = self.decided.last().filter(|_| self.decided_bytes > limit::APPROVALS_DECIDED_BYTES_MAX)?.1;
        self.kept.by_bytes().find(|id| *id != newest)
    }

    /// Those that wait on behalf of `agent`.
    pub(crate) fn pending_of(&self, agent: AgentId) -> Vec<ApprovalId> {
        self.pending_of.get(&agent).map_or_else(Vec::new, |own| own.ids.iter().copied().collect())
    }
}

impl Places<Approval> for ApprovalPlaces {
    fn insert(&mut self, id: ApprovalId, approval: &Approval) {
        if approval.state == ApprovalState::Pending {
            self.pending.insert((approval.is_strangers, id));
            let own = self.pending_of.entry(approval.agent).or_default();
            own.ids.insert(id);
            if approval.is_strangers {
                self.strangers += 1;
                self.strangers_bytes += approval.bytes();
            } else {
                own.known += 1;
                own.bytes += approval.bytes();
            }
            self.deadlines.insert((approval.deadline, id));
            self.pending_bytes += approval.bytes();
        } else {
            self.decided.insert((decided_at(approval), id));
            self.kept.insert(approval.holder, decided_at(approval), id, approval.bytes());
            self.decided_bytes += approval.bytes();
        }
    }

    fn remove(&mut self, id: ApprovalId, approval: &Approval) {
        if approval.state == ApprovalState::Pending {
            self.pending.remove(&(approval.is_strangers, id));
            if approval.is_strangers {
                self.strangers -= 1;
                self.strangers_bytes -= approval.bytes();
            }
            if let Some(own) = self.pending_of.get_mut(&approval.agent) {
                own.ids.remove(&id);
                if !approval.is_strangers {
                    own.known -= 1;
                    own.bytes -= approval.bytes();
                }
                if own.ids.is_empty() {
                    self.pending_of.remove(&approval.agent);
                }
            }
            self.deadlines.remove(&(approval.deadline, id));
            self.pending_bytes -= approval.bytes();
        } else {
            self.decided.remove(&(decided_at(approval), id));
            self.kept.remove(approval.holder, decided_at(approval), id, approval.bytes());
            self.decided_bytes -= approval.bytes();
        }
    }
}

/// Prepares a new world for approvals.
pub(crate) fn install(world: &mut World) {
    entities::install::<Approval>(world);
    world.init_resource::<parked::Parked>();
    on(world, |world, gone: &Removed<AgentId>| agent_removed(world, gone.id));
}

/// When it was decided; of one that waits, when it will have been at the latest.
fn decided_at(approval: &Approval) -> Timestamp {
    approval.decided_at.unwrap_or(approval.deadline)
}

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Approval>(world, faults, |world, id, approval, faults| {
        if approval.state != ApprovalState::Pending {
            return;
        }
        faults.that(index::agent(world, approval.agent).is_ok(), || format!("approval {id}: the agent does not exist"));
        let waits = approval.call.is_none_or(|call| call.waiting_turn().is_none_or(|turn| waits(world, id, turn)));
        faults.that(waits, || format!("approval {id}: no call waits for it"));
    });
    let approvals = world.resource::<Approvals>();
    let (count, bytes) = (approvals.decided.len(), approvals.decided_bytes);
    faults.that(approvals.decided_over().is_none(), || format!("{count} decided approvals are kept, {bytes} bytes"));
}

/// Does a call of the turn wait for the approval?
fn waits(world: &World, id: ApprovalId, turn: TurnId) -> bool {
    let turn = index::turn(world, turn).and_then(|turn| world.get::<Turn>(turn));
    turn.is_some_and(|turn| turn.pending.iter().any(|tool| tool.state == PendingState::Gated(id)))
}

/// Once every turn is back: an approval whose call does not wait for it would wait for nobody.
fn reconcile(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let pending: Vec<ApprovalId> = world.resource::<Approvals>().pending.iter().map(|(_, id)| *id).collect();
    for id in pending {
        let Some(call) = state::<Approval>(world, id).and_then(|approval| approval.call) else { continue };
        if !waits(world, id, call.turn) {
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
mod kept_tests;
#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod strangers_tests;
#[cfg(test)]
mod tests;
