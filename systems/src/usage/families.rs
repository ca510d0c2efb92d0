//! What the descendants of agents have spent and reserved. It counts at the agent's limits beside what that has spent
//! itself, so that an agent spends no more by spawning others. What a descendant has spent stays counted when it is gone.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use agentsvc_components::kernel::record::Op;
use agentsvc_components::usage::record::{CallRecord, ScopeUseRecord};
use agentsvc_components::usage::{Period, Scope, UsageSum};
use agentsvc_components::{AgentId, Micros, Timestamp};

use super::node::Node;
use super::rows;

/// What the descendants of one agent have spent, as it is stored.
pub(super) struct FamilyUse(pub(super) ScopeUseRecord);

/// The agents whose descendants have spent or reserved anything.
#[derive(Default)]
pub(super) struct Families {
    nodes: HashMap<AgentId, Node>,
    /// What this step changed.
    dirty: BTreeSet<AgentId>,
}

impl Families {
    /// What the descendants of `agent` have spent and reserved.
    pub(super) fn of(&self, agent: AgentId) -> Option<&Node> {
        self.nodes.get(&agent)
    }

    fn node(&mut self, agent: AgentId) -> &mut Node {
        self.nodes.entry(agent).or_insert_with(|| Node::of(ScopeUseRecord::new(Scope::Agent(agent))))
    }

    /// A call goes out.
    pub(super) fn reserve(&mut self, call: &CallRecord) {
        if call.reserved.is_zero() {
            return;
        }
        for agent in &call.above {
            self.node(*agent).change_reserved(call, Micros::plus);
        }
    }

    /// A call is back. What is reserved at an agent that is gone meanwhile went with it.
    pub(super) fn release(&mut self, call: &CallRecord) {
        for agent in call.above.iter().filter(|_| !call.reserved.is_zero()) {
            if let Some(node) = self.nodes.get_mut(agent) {
                node.change_reserved(call, Micros::minus);
            }
        }
    }

    /// A descendant of these agents, which live, has spent something.
    pub(super) fn add(&mut self, above: &[AgentId], at: Timestamp, sum: UsageSum) {
        for agent in above {
            self.node(*agent).add(at, sum);
            self.dirty.insert(*agent);
        }
    }

    /// What is stored.
    pub(super) fn stored(&self) -> impl Iterator<Item = (AgentId, &ScopeUseRecord)> {
        let used = self.nodes.iter().filter(|(_, node)| node.stored.total.requests > 0);
        used.map(|(agent, node)| (*agent, &node.stored))
    }

    /// Everything that is reserved.
    pub(super) fn reserved(&self) -> BTreeMap<(AgentId, Period, i64), Micros> {
        let of_node = |(agent, node): (&AgentId, &Node)| {
            let agent = *agent;
            node.reserved.iter().map(|((period, at), sum)| ((agent, *period, *at), *sum)).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of_node).collect()
    }

    /// The records that this step changed.
    pub(super) fn store_dirty(&mut self) -> Vec<Op> {
        let dirty = std::mem::take(&mut self.dirty);
        let row = |agent: &AgentId| match self.nodes.get(agent) {
            Some(node) => rows::put_family_use(*agent, &node.stored),
            None => rows::remove_family_use(*agent),
        };
        dirty.iter().map(row).collect()
    }

    /// Takes in what is stored (restore).
    pub(super) fn load(&mut self, stored: impl IntoIterator<Item = FamilyUse>) {
        let nodes = stored.into_iter().filter_map(|FamilyUse(stored)| Some((stored.agent?, Node::of(stored))));
        self.nodes.extend(nodes);
    }

    /// An agent leaves the world. True when something was kept of its descendants.
    pub(super) fn remove(&mut self, agent: AgentId) -> bool {
        let was_kept = self.nodes.remove(&agent).is_some();
        if was_kept {
            self.dirty.insert(agent);
        }
        was_kept
    }
}
