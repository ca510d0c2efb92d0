//! A fair queue: items in order within an agent, agents in turn, so that one agent with ten thousand items delays the
//! others by one. In place of agents it can be families of them, or whatever else has a key. An item can be taken out of the middle; what it leaves behind is cleared away before there is more of
//! it than of what waits, so that a lane is bounded by what waits in it, however many came and went.

use std::collections::VecDeque;
use std::hash::Hash;

use bevy_ecs::prelude::Entity;
use hashbrown::HashMap;

/// Agents without items that a ring may hold beside as many as have some.
const IDLE_SPARE: usize = 64;

/// The queue. Bounded by what its owner lets in.
pub(crate) struct Lane<T, K = Entity> {
    ring: VecDeque<K>,
    by_agent: HashMap<K, Queue<T>>,
    /// Agents in the ring whose items were all taken out. One that gets another keeps its place.
    idle: usize,
    /// Numbers items in the order in which they came.
    next: u64,
}

/// Where an item stands: what takes it out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<K = Entity> {
    agent: K,
    number: u64,
}

/// The items of one agent, by their numbers; nothing where one was taken out.
struct Queue<T> {
    items: VecDeque<(u64, Option<T>)>,
    waiting: usize,
}

impl<T, K> Default for Lane<T, K> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), by_agent: HashMap::new(), idle: 0, next: 0 }
    }
}

impl<T> Queue<T> {
    fn pop(&mut self) -> Option<T> {
        while let Some((_, item)) = self.items.pop_front() {
            if item.is_some() {
                self.waiting -= 1;
                return item;
            }
        }
        None
    }

    /// Takes an item out of the middle. False when it is not there any more.
    fn take_out(&mut self, number: u64) -> bool {
        let Ok(at) = self.items.binary_search_by_key(&number, |(number, _)| *number) else { return false };
        if self.items[at].1.take().is_none() {
            return false;
        }
        self.waiting -= 1;
        // Half of it at least goes, so that each item that is taken out pays for two at most.
        if self.items.len() > 2 * self.waiting {
            self.items.retain(|(_, item)| item.is_some());
        }
        true
    }
}

impl<T, K: Copy + Eq + Hash> Lane<T, K> {
    /// Takes out the last item of an agent.
    pub(crate) fn take_last(&mut self, agent: K) {
        let Some(queue) = self.by_agent.get_mut(&agent) else { return };
        while queue.items.pop_back_if(|(_, item)| item.is_none()).is_some() {}
        if let Some(number) = queue.items.back().map(|(number, _)| *number) {
            self.take_out(Place { agent, number });
        }
    }

    /// Puts an item behind those of its agent.
    pub(crate) fn push(&mut self, agent: K, item: T) -> Place<K> {
        let number = self.next;
        self.next += 1;
        let queue = self.by_agent.entry(agent).or_insert_with(|| {
            self.ring.push_back(agent);
            self.idle += 1;
            Queue { items: VecDeque::new(), waiting: 0 }
        });
        if queue.waiting == 0 {
            self.idle -= 1;
        }
        queue.waiting += 1;
        queue.items.push_back((number, Some(item)));
        Place { agent, number }
    }

    /// The next item of the agent whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.pop_of(|_| true)
    }

    /// The next item of the agent whose turn it is of those that may.
    pub(crate) fn pop_of(&mut self, may: impl Fn(K) -> bool) -> Option<T> {
        for _ in 0..self.ring.len() {
            let agent = self.ring.pop_front()?;
            if !may(agent) {
                self.ring.push_back(agent);
                continue;
            }
            let Some(queue) = self.by_agent.get_mut(&agent) else { continue };
            let item = queue.pop();
            if queue.waiting > 0 {
                self.ring.push_back(agent);
            } else {
                self.by_agent.remove(&agent);
            }
            if item.is_some() {
                return item;
            }
            self.idle -= 1;
        }
        None
    }

    /// Has any agent that may something in it?
    pub(crate) fn any_of(&self, may: impl Fn(K) -> bool) -> bool {
        let waits = |agent: &K| self.by_agent.get(agent).is_some_and(|queue| queue.waiting > 0);
        self.ring.iter().any(|agent| may(*agent) && waits(agent))
    }

    /// Takes an item out, wherever it stands.
    pub(crate) fn take_out(&mut self, place: Place<K>) {
        let Some(queue) = self.by_agent.get_mut(&place.agent) else { return };
        if !queue.take_out(place.number) || queue.waiting > 0 {
            return;
        }
        self.idle += 1;
        let agents = self.agents();
        if agents == 0 || self.idle > agents + IDLE_SPARE {
            let by_agent = &mut self.by_agent;
            self.ring.retain(|agent| {
                let has_items = by_agent.get(agent).is_some_and(|queue| queue.waiting > 0);
                if !has_items {
                    by_agent.remove(agent);
                }
                has_items
            });
            self.idle = 0;
        }
    }

    /// Everything that waits, in no order that means anything.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.by_agent.values().flat_map(|queue| queue.items.iter().filter_map(|(_, item)| item.as_ref()))
    }

    /// Agents that have something in it.
    pub(crate) fn agents(&self) -> usize {
        self.ring.len() - self.idle
    }

    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.agents() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(n: u32) -> Entity {
        Entity::from_raw_u32(n).unwrap()
    }

    fn rest(lane: &mut Lane<u32>) -> Vec<u32> {
        let order = std::iter::from_fn(|| lane.pop()).collect();
        assert!(lane.by_agent.is_empty() && lane.ring.is_empty() && lane.idle == 0 && lane.is_empty());
        order
    }

    #[test]
    fn a_lane_serves_agents_in_turn_and_each_agent_in_order() {
        let mut lane = Lane::default();
        for item in 10..14 {
            lane.push(e(1), item);
        }
        lane.push(e(2), 20);
        lane.push(e(3), 30);
        assert_eq!(rest(&mut lane), [10, 20, 30, 11, 12, 13]);
    }

    #[test]
    fn agents_that_may_not_are_passed_over() {
        let mut lane = Lane::default();
        (10..13).for_each(|item| {
            lane.push(e(1), item);
        });
        lane.push(e(2), 20);
        let second = |agent| agent == e(2);
        assert!(lane.any_of(second));
        assert_eq!((lane.pop_of(second), lane.pop_of(second), lane.any_of(second)), (Some(20), None, false));
        assert_eq!(rest(&mut lane), [10, 11, 12]);
    }

    #[test]
    fn what_is_taken_out_is_passed_over_and_the_order_of_the_others_stays() {
        let mut lane = Lane::default();
        let places: Vec<Place> = (10..16).map(|item| lane.push(e(1), item)).collect();
        let second = lane.push(e(2), 20);
        lane.push(e(3), 30);
        for at in [0, 2, 4, 2] {
            lane.take_out(places[at]);
        }
        lane.take_out(second);
        assert_eq!((lane.agents(), lane.items().count()), (2, 4));
        assert_eq!(lane.pop(), Some(11));
        lane.take_out(places[1]);
        lane.push(e(2), 21);
        assert_eq!(rest(&mut lane), [21, 30, 13, 15], "one that comes back has kept its place");
    }

    #[test]
    fn a_lane_is_bounded_by_what_waits_in_it() {
        let mut lane = Lane::default();
        let mut last = lane.push(e(1), 0);
        for item in 1..10_000 {
            // Something of its agent always waits, before it and behind it.
            let next = lane.push(e(1), item);
            lane.take_out(last);
            last = next;
            let other = lane.push(e(item + 2), item);
            lane.take_out(other);
            assert!(lane.by_agent[&e(1)].items.len() <= 2, "{item}");
            assert!(lane.ring.len() <= 2 + IDLE_SPARE && lane.by_agent.len() == lane.ring.len(), "{item}");
            assert_eq!((lane.agents(), lane.items().count()), (1, 1));
        }
        lane.take_out(last);
        assert!(lane.is_empty() && lane.ring.is_empty() && lane.by_agent.is_empty());
    }
}
