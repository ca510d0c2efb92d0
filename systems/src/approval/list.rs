//! Approvals as they are shown.

use agentsvc_components::approval::Approval;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, ApprovalId, Timestamp};
use bevy_ecs::prelude::{Entity, World};

use super::{Approvals, decided_at, find};
use crate::kernel::command::{Answer, Command};
use crate::kernel::index::id_of;
use crate::kernel::page::Page;

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalView {
    /// Its id.
    pub id: ApprovalId,
    /// All of it.
    pub approval: Approval,
}

pub(super) fn view(world: &World, entity: Entity) -> ApprovalView {
    let approval = world.get::<Approval>(entity).expect("found by the caller").clone();
    ApprovalView { id: id_of(world, entity), approval }
}

/// Reads one approval.
#[derive(Clone, Copy, Debug)]
pub struct GetApproval(pub ApprovalId);

impl Command for GetApproval {
    type Reply = ApprovalView;
    const NAME: &'static str = "get_approval";
    const WRITES: bool = false;
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<ApprovalView> {
        Answer::Now(find(world, self.0).map(|entity| view(world, entity)))
    }
}

/// Reads a page of the approvals: those that are pending, the oldest first, or those that were decided, the newest
/// decision first.
#[derive(Clone, Copy, Debug)]
pub struct ListApprovals {
    /// Decided ones?
    pub decided: bool,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// From behind this one on.
    pub after: Option<ApprovalId>,
    /// At most so many.
    pub limit: usize,
}

impl Command for ListApprovals {
    type Reply = Page<ApprovalView, ApprovalId>;
    const NAME: &'static str = "list_approvals";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Page<ApprovalView, ApprovalId>> {
        Answer::read(page(world, self))
    }
}

fn page(world: &World, query: ListApprovals) -> Page<ApprovalView, ApprovalId> {
    use std::ops::Bound::{Excluded, Unbounded};
    let approvals = world.resource::<Approvals>();
    let total = if query.decided { approvals.decided.len() } else { approvals.pending.len() };
    let mut page = Page { items: Vec::new(), next: None, total };
    let ids: Box<dyn Iterator<Item = ApprovalId>> = match (query.decided, query.after) {
        (true, None) => Box::new(approvals.decided.iter().rev().map(|(_, id)| *id)),
        (true, Some(after)) => {
            // One that is gone was the oldest of all: nothing is behind it.
            let Ok(entity) = find(world, after) else { return page };
            let upto = (world.get::<Approval>(entity).map_or(Timestamp(i64::MIN), decided_at), after);
            Box::new(approvals.decided.range(..upto).rev().map(|(_, id)| *id))
        }
        (false, after) => Box::new(approvals.pending.range((after.map_or(Unbounded, Excluded), Unbounded)).copied()),
    };
    let mut last = None;
    for (looked, id) in ids.enumerate() {
        if looked == limit::PAGE_SCAN_MAX || page.items.len() == query.limit {
            page.next = last;
            return page;
        }
        last = Some(id);
        let Ok(entity) = find(world, id) else { continue };
        let view = view(world, entity);
        if query.agent.is_none_or(|agent| agent == view.approval.agent) {
            page.items.push(view);
        }
    }
    page
}

/// Number of approvals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApprovalCounts {
    /// Pending approvals.
    pub pending: usize,
    /// That are decided and still kept.
    pub decided: usize,
}

/// Counts the approvals.
#[derive(Clone, Copy, Debug)]
pub struct CountApprovals;

impl Command for CountApprovals {
    type Reply = ApprovalCounts;
    const NAME: &'static str = "count_approvals";
    const WRITES: bool = false;
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<ApprovalCounts> {
        let approvals = world.resource::<Approvals>();
        Answer::read(ApprovalCounts { pending: approvals.pending.len(), decided: approvals.decided.len() })
    }
}
