//! What a domain brings to the world: one value for each, listed in `DOMAINS`.
//!
//! The kernel reads these values and names no domain. The order of the list is the order of everything that is done
//! for each domain: installing, reactions, the systems of one stage, restoring within one phase.

use std::sync::OnceLock;

use bevy_ecs::prelude::World;

use agentsvc_components::kernel::audit_kind::AuditAction;
use agentsvc_components::kernel::limit::Limit;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::{ErrorCode, Timestamp};

use super::check::{Faults, Rows};
use super::counters::{PerStep, Totals};
use super::engine::Told;
use super::footprint::{KindFootprint, Measure};
use super::inputs::table::{CommandDef, OutcomeDef};
use super::job::JobKind;
use super::metric::Metric;
use super::record::{ContentKind, Error, Kind};
use super::restore::Records;
use super::stage::Stage;

/// One domain.
#[derive(Clone, Copy)]
pub struct Domain {
    /// The name of its folder in every crate.
    pub name: &'static str,
    /// The domains whose items it uses. Upwards it speaks by [reactions](super::reaction) only.
    pub uses: &'static [&'static str],
    /// Prepares an empty world: resources, hooks and reactions.
    pub install: fn(&mut World),
    /// What it stores of the world.
    pub kinds: &'static [Kind],
    /// What it stores as content.
    pub content: &'static [ContentKind],
    /// How its records become a world again.
    pub restore: &'static [(Phase, Restore)],
    /// The rows that belong to no entity, and those that no mark leads to (for the check of a whole world).
    pub rows: fn(&mut World, &mut Vec<Op>),
    /// Rewrites rows that may be stored in several forms into one, before rows are compared.
    pub normalize_rows: fn(&mut Rows) -> Result<(), Error>,
    /// How the memory of its entities is measured.
    pub measures: &'static [Measure],
    /// The memory of what its entities share.
    pub shared_footprint: fn(&World) -> Option<KindFootprint>,
    /// Its commands that write.
    pub commands: &'static [CommandDef],
    /// What comes back to it from the outside.
    pub outcomes: &'static [OutcomeDef],
    /// The codes of its errors.
    pub error_codes: &'static [ErrorCode],
    /// Its limits.
    pub limits: &'static [Limit],
    /// Its kinds of audit log entries.
    pub audit_kinds: &'static [AuditAction],
    /// Its metrics.
    pub metrics: &'static [Metric],
    /// What begins anew with each step.
    pub per_step: &'static [PerStep],
    /// Its totals since the daemon started.
    pub totals: &'static [Totals],
    /// Its kinds of jobs.
    pub jobs: &'static [JobKind],
    /// Its systems.
    pub systems: &'static [System],
    /// What it ends a part of in each step, in the order in which they begin.
    pub ends: &'static [Ends],
    /// Would a further round of this step move anything?
    pub has_work: fn(&World) -> bool,
    /// Do fires wait, for this step or a later one?
    pub has_fires: fn(&World) -> bool,
    /// Are some of them fires of events? What is due by time leaves room for them.
    pub has_event_fires: fn(&World) -> bool,
    /// Is nothing under way that is in no record?
    pub is_quiet: fn(&mut World) -> bool,
    /// The earliest moment at which the beat would find something to do; it may have passed.
    pub next_due: fn(&World) -> Option<Timestamp>,
    /// Nothing follows in this step any more: reacts to what happened in it.
    pub before_close: fn(&mut World),
    /// What listeners are told when the step is on disk.
    pub told: fn(&mut World) -> Option<Told>,
    /// The rounds of a step ran out: what must not wait for the next step happens now.
    pub rounds_ran_out: fn(&mut World),
    /// The clock was set back by more than a little: nothing may last longer for it.
    pub clock_set_back: fn(&mut World),
    /// The clock was set back by so much that what is planned begins anew.
    pub clock_reset: fn(&mut World),
    /// Says what does not hold of a whole world.
    pub check: fn(&mut World, &mut Faults),
}

/// A system and when it runs.
#[derive(Clone, Copy)]
pub struct System {
    /// The stage.
    pub stage: Stage,
    /// The name under which its time is told.
    pub name: &'static str,
    /// The system.
    pub run: fn(&mut World),
}

/// Turns and sessions that end a part in each step ([`Fires::ends`](super::fires::Fires::ends)).
#[derive(Clone, Copy)]
pub struct Ends {
    /// Does any wait, and may this step end some?
    pub waits: fn(&World) -> bool,
    /// Ends some: at least one while any waits, and no more than there is left of the step.
    pub go_on: fn(&mut World),
}

/// Makes entities and resources of records that were read.
pub type Restore = fn(&mut World, &mut Records) -> Result<(), Error>;

/// The order in which a world is restored; within a phase the order is that of the domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// What entities share, and what other records stand for.
    Shared,
    /// The entities that others belong to.
    Owners,
    /// Jobs that stand in line before turns.
    Jobs,
    /// What owners have: sums, limits, definitions.
    Owned,
    /// What was out when the daemon ended and does not come back.
    Lost,
    /// Turns that were open.
    Turns,
    /// What waits for turns.
    Waiting,
    /// What is compared with all that was restored.
    Joined,
}

impl Phase {
    /// All phases in order.
    pub(crate) const ALL: [Self; 8] =
        [Self::Shared, Self::Owners, Self::Jobs, Self::Owned, Self::Lost, Self::Turns, Self::Waiting, Self::Joined];
}

/// All domains, in their order.
static DOMAINS: OnceLock<&'static [Domain]> = OnceLock::new();

/// Takes the list of all domains. Every way into this crate hands it over (`lib.rs`).
pub(crate) fn hand_over(domains: &'static [Domain]) {
    DOMAINS.get_or_init(|| domains);
}

/// All domains, in their order.
pub(crate) fn all() -> &'static [Domain] {
    #[cfg(test)]
    tests::hand_over();
    DOMAINS.get().copied().expect("every way into this crate hands the list of domains over")
}

impl Domain {
    /// A domain that brings nothing yet.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self {
            name,
            uses: &[],
            install: |_| {},
            kinds: &[],
            content: &[],
            restore: &[],
            rows: |_, _| {},
            normalize_rows: |_| Ok(()),
            measures: &[],
            shared_footprint: |_| None,
            commands: &[],
            outcomes: &[],
            error_codes: &[],
            limits: &[],
            audit_kinds: &[],
            metrics: &[],
            per_step: &[],
            totals: &[],
            jobs: &[],
            systems: &[],
            ends: &[],
            has_work: |_| false,
            has_fires: |_| false,
            has_event_fires: |_| false,
            is_quiet: |_| true,
            next_due: |_| None,
            before_close: |_| {},
            told: |_| None,
            rounds_ran_out: |_| {},
            clock_set_back: |_| {},
            clock_reset: |_| {},
            check: |_, _| {},
        }
    }
}

#[cfg(test)]
mod tests {
    /// Tests of the kernel take no way in.
    pub(super) fn hand_over() {
        super::hand_over(crate::DOMAINS);
    }
}
