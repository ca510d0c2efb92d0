//! A fair queue: items in order within an agent, agents in turn, so that one agent with ten thousand items delays the
//! others by one.

use std::collections::VecDeque;

use bevy_ecs::prelude::Entity;
use hashbrown::HashMap;

/// The queue. Bounded by what its owner lets in.
pub(super) struct Lane<T> {
    ring: VecDeque<Entity>,
    by_agent: HashMap<Entity, VecDeque<T>>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), by_agent: HashMap::new() }
    }
}

impl<T> Lane<T> {
    /// Puts an item behind those of its agent.
    pub(super) fn push(&mut self, agent: Entity, item: T) {
        let queue = self.by_agent.entry(agent).or_default();
        if queue.is_empty() {
            self.ring.push_back(agent);
        }
        queue.push_back(item);
    }

    /// The next item of the agent whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let agent = self.ring.pop_front()?;
        let queue = self.by_agent.get_mut(&agent)?;
        let item = queue.pop_front();
        if queue.is_empty() {
            self.by_agent.remove(&agent);
        } else {
            self.ring.push_back(agent);
        }
        item
    }

    /// Everything that waits, in no order that means anything.
    pub(super) fn items(&self) -> impl Iterator<Item = &T> {
        self.by_agent.values().flatten()
    }

    /// Agents that have something in it.
    pub(super) fn agents(&self) -> usize {
        self.ring.len()
    }

    /// Nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_serves_agents_in_turn_and_each_agent_in_order() {
        let e = |n: u32| Entity::from_raw_u32(n).unwrap();
        let mut lane = Lane::default();
        for item in 10..14 {
            lane.push(e(1), item);
        }
        lane.push(e(2), 20);
        lane.push(e(3), 30);
        let order: Vec<u32> = std::iter::from_fn(|| lane.pop()).collect();
        assert_eq!(order, [10, 20, 30, 11, 12, 13]);
        assert!(lane.by_agent.is_empty() && lane.is_empty());
    }
}
