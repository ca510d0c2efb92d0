//! Approvals as they are shown.

use agentsvc_components::approval::{Approval, ApprovalState};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{AgentId, ApprovalId, Refusal};
use bevy_ecs::prelude::{Entity, World};

use super::{Approvals, decided_at};
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{List, View, ViewPage, state};
use crate::kernel::index::{self, id_of};
use crate::taint;

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalView {
    /// Its id.
    pub id: ApprovalId,
    /// All of it.
    pub approval: Approval,
    /// What the turn that waits for it had read; nothing when none waits.
    pub taint: Taint,
}

/// Which approvals to list: those that are pending, the oldest first and those of
/// strangers behind all others, or those that were decided, the newest decision first.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApprovalFilter {
    /// Decided ones?
    pub decided: bool,
    /// Only of this agent.
    pub agent: Option<AgentId>,
}

/// Reads a page of approvals.
pub type ListApprovals = List<ApprovalView>;

impl View for ApprovalView {
    type Kind = Approval;
    type Filter = ApprovalFilter;
    const NAMES: [&'static str; 2] = ["get_approval", "list_approvals"];
    const PLACE: Place<List<Self>> = Place::IdOrAll(|it| it.filter.agent.map(|id| id.0));

    fn of(world: &World, at: Entity) -> Option<Self> {
        let approval = world.get::<Approval>(at)?.clone();
        let waiting = approval.call.filter(|_| approval.state == ApprovalState::Pending);
        let turn = waiting.and_then(|call| index::turn(world, call.waiting_turn()?));
        let taint = turn.map(|turn| taint::of(world, turn)).unwrap_or_default();
        Some(Self { id: id_of(world, at), approval, taint })
    }

    fn passes(&self, filter: &ApprovalFilter) -> bool {
        filter.agent.is_none_or(|agent| agent == self.approval.agent)
    }

    fn page(world: &World, list: &ListApprovals) -> Result<ViewPage<Self>, Refusal> {
        use std::ops::Bound::{Excluded, Unbounded};
        let approvals = world.resource::<Approvals>();
        let found = |id: &ApprovalId| Some((*id, approvals.get(*id)?));
        if !list.filter.decided {
            // One that is gone meanwhile was of no stranger, or those of strangers are shown again: none is left out.
            let place = |id| (state::<Approval>(world, id).is_some_and(|approval| approval.is_strangers), id);
            let after = list.after.map_or(Unbounded, |after| Excluded(place(after)));
            let pending = approvals.pending.range((after, Unbounded));
            return Ok(list.filled(world, Some(approvals.pending.len()), pending.filter_map(|(_, id)| found(id))));
        }
        let total = Some(approvals.decided.len());
        let upto = match list.after {
            None => Unbounded,
            Some(after) => match state::<Approval>(world, after) {
                Some(approval) => Excluded((decided_at(approval), after)),
                // One that is gone was the oldest of all: nothing is behind it.
                None => return Ok(list.filled(world, total, std::iter::empty())),
            },
        };
        let decided = approvals.decided.range((Unbounded, upto)).rev();
        Ok(list.filled(world, total, decided.filter_map(|(_, id)| found(id))))
    }
}

/// Number of approvals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApprovalCounts {
    /// Pending approvals.
    pub pending: usize,
    /// Those among them that turns ask for which strangers began.
    pub of_strangers: usize,
    /// That are decided and still kept.
    pub decided: usize,
}

/// Counts the approvals.
#[derive(Clone, Copy, Debug)]
pub struct CountApprovals;

command!(quick "count_approvals" CountApprovals => ApprovalCounts, All, |_, world| Answer::read(count(world)));

fn count(world: &World) -> ApprovalCounts {
    let approvals = world.resource::<Approvals>();
    ApprovalCounts {
        pending: approvals.pending.len(),
        of_strangers: approvals.of_strangers(),
        decided: approvals.decided.len(),
    }
}
