//! Where deliveries are found: by what they came of, by agent, and those that have ended by their end.

use std::collections::BTreeSet;

use agentsvc_components::channel::send::SendState;
use agentsvc_components::delivery::{Receipt, ReceiptId, Targets};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::{AgentId, Timestamp};
use bevy_ecs::prelude::World;
use uuid::Uuid;

use super::{error_codes, limits, send};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Mirrored, Put, indexed};
use crate::kernel::job::Jobs;
use crate::kernel::quota::Quota;

/// The targets of everything that has some.
pub(super) type AllTargets = Entities<Targets>;
/// Every delivery.
pub(super) type Receipts = Entities<Receipt>;

/// What targets may take.
pub(super) const QUOTA: Quota = Quota {
    count: limits::TARGET_SOURCES_MAX,
    bytes: limits::TARGETS_BYTES_MAX,
    what: "sources with targets",
    code: error_codes::DELIVERY_TARGETS_FULL,
};

indexed!(Targets: (), "targets of");
indexed!(Receipt: ReceiptPlaces, "delivery");

/// Deliveries by all that is asked of them.
#[derive(Debug, Default, PartialEq)]
pub struct ReceiptPlaces {
    of: BTreeSet<(Uuid, ReceiptId)>,
    by_agent: BTreeSet<(AgentId, ReceiptId)>,
    ended: BTreeSet<(Timestamp, ReceiptId)>,
    ended_of: BTreeSet<(Uuid, Timestamp, ReceiptId)>,
}

const FIRST: ReceiptId = ReceiptId(Uuid::nil());
const LAST: ReceiptId = ReceiptId(Uuid::max());

impl ReceiptPlaces {
    /// Those of a source, the newest first, before `before`.
    pub(super) fn of(&self, source: Uuid, before: Option<ReceiptId>) -> impl Iterator<Item = ReceiptId> + '_ {
        self.of.range((source, FIRST)..(source, before.unwrap_or(LAST))).rev().map(|(_, id)| *id)
    }

    /// Those of an agent, likewise.
    pub(super) fn of_agent(&self, agent: AgentId, before: Option<ReceiptId>) -> impl Iterator<Item = ReceiptId> + '_ {
        self.by_agent.range((agent, FIRST)..(agent, before.unwrap_or(LAST))).rev().map(|(_, id)| *id)
    }

    /// The ended one that goes first, where there are more than are kept: of this source, or of all.
    pub(super) fn over(&self, source: Uuid) -> Option<ReceiptId> {
        let all = (source, Timestamp(i64::MIN), FIRST)..=(source, Timestamp(i64::MAX), LAST);
        if self.ended_of.range(all.clone()).nth(limits::RECEIPTS_EACH_MAX).is_some() {
            return self.ended_of.range(all).next().map(|(.., id)| *id);
        }
        self.ended.first().filter(|_| self.ended.len() > limits::RECEIPTS_MAX).map(|(_, id)| *id)
    }
}

impl Mirrored<Receipt> for ReceiptPlaces {
    fn place(&mut self, id: ReceiptId, it: &Receipt, is_in: bool) {
        self.of.put((it.source, id), is_in);
        if let Some(agent) = it.agent {
            self.by_agent.put((agent, id), is_in);
        }
        if let Some(at) = it.ended_at {
            self.ended.put((at, id), is_in);
            self.ended_of.put((it.source, at, id), is_in);
        }
    }
}

/// Says which index is wrong, and which delivery lacks what brings it to its end ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Targets>(world, faults, |_, id, it, faults| {
        let count = it.targets.len();
        faults.that((1..=limits::TARGETS_MAX).contains(&count), || format!("targets of {id}: {count}"));
    });
    QUOTA.check(world.resource::<AllTargets>().used, faults);
    entities::check::<Receipt>(world, faults, |world, id, it, faults| {
        let is_open = it.state == SendState::Queued;
        faults.that(it.ended_at.is_none() == is_open, || format!("delivery {id}: {it:?}"));
        if send::is_own(it.target) {
            let has_job = world.resource::<Jobs>().get(JobId(id.0)).is_some();
            faults.that(has_job == is_open, || format!("delivery {id}: {:?}, with a job: {has_job}", it.state));
        }
    });
}
