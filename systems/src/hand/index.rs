//! Where instances of hands are found: by their agents and by their hands.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use agentsvc_components::AgentId;
use agentsvc_components::agent::WakesPaused;
use agentsvc_components::hand::{HandInstance, HandInstanceId, HandState};

use super::error_codes::HANDS_FULL;
use super::limits;
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Indexed, Places};
use crate::kernel::index;
use crate::kernel::quota::Quota;

/// Every instance.
pub(super) type Instances = Entities<HandInstance>;

/// What instances may take.
pub(super) const QUOTA: Quota = Quota {
    count: limits::HAND_INSTANCES_MAX,
    bytes: limits::HAND_INSTANCES_BYTES_MAX,
    what: "hand instances",
    code: HANDS_FULL,
};

impl Indexed for HandInstance {
    type Places = InstancePlaces;
    const NOUN: &'static str = "hand instance";

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

/// Instances by their agents that live, and by hand with their numbers.
#[derive(Debug, Default, PartialEq)]
pub struct InstancePlaces {
    by_agent: BTreeMap<AgentId, HandInstanceId>,
    by_hand: BTreeSet<(Box<str>, u32, HandInstanceId)>,
    /// How many are paused.
    pub(super) paused: usize,
}

impl InstancePlaces {
    /// The instance that an agent is part of.
    pub(super) fn instance_of(&self, agent: AgentId) -> Option<HandInstanceId> {
        self.by_agent.get(&agent).copied()
    }

    /// The instances of a hand, by number.
    pub(super) fn of_hand<'p>(&'p self, hand: &str) -> impl Iterator<Item = (u32, HandInstanceId)> + 'p {
        let hand: Box<str> = hand.into();
        let first = (hand.clone(), 0, HandInstanceId(Uuid::nil()));
        self.by_hand.range(first..).take_while(move |it| it.0 == hand).map(|(_, number, id)| (*number, *id))
    }

    /// How many instances each hand has.
    pub(super) fn counts(&self) -> BTreeMap<Box<str>, usize> {
        let mut counts = BTreeMap::new();
        for (hand, ..) in &self.by_hand {
            *counts.entry(hand.clone()).or_default() += 1;
        }
        counts
    }

    /// The lowest number that no instance of a hand has.
    pub(super) fn free_number(&self, hand: &str) -> u32 {
        let taken = self.of_hand(hand).map(|(number, _)| number);
        taken.fold(1, |free, number| if number == free { free + 1 } else { free })
    }
}

impl Places<HandInstance> for InstancePlaces {
    fn insert(&mut self, id: HandInstanceId, instance: &HandInstance) {
        self.by_hand.insert((instance.hand.clone(), instance.number, id));
        self.paused += usize::from(instance.state == HandState::Paused);
        for member in instance.members.iter().filter(|member| !member.is_gone) {
            self.by_agent.insert(member.agent, id);
        }
    }

    fn remove(&mut self, id: HandInstanceId, instance: &HandInstance) {
        self.by_hand.remove(&(instance.hand.clone(), instance.number, id));
        self.paused -= usize::from(instance.state == HandState::Paused);
        for member in &instance.members {
            self.by_agent.remove(&member.agent);
        }
    }
}

/// Changes an instance in its component and in every index, and marks it.
pub(super) fn change_instance<R>(world: &mut World, at: Entity, change: impl FnOnce(&mut HandInstance) -> R) {
    entities::change(world, at, |instance: &mut HandInstance| drop(change(instance)));
}

/// Says which index is wrong, and which instance does not fit its agents ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<HandInstance>(world, faults, |world, id, instance, faults| {
        for member in instance.members.iter().filter(|member| !member.is_gone) {
            let agent = index::agent(world, member.agent).ok();
            faults.that(agent.is_some(), || format!("hand instance {id}: agent {} does not exist", member.agent));
            let rests = agent.is_some_and(|agent| world.get::<WakesPaused>(agent).is_some());
            let is_paused = instance.state == HandState::Paused;
            faults.that(rests == is_paused, || format!("hand instance {id}: agent {} rests: {rests}", member.agent));
        }
        let has_coordinator = instance.coordinator().is_some();
        faults.that(has_coordinator, || format!("hand instance {id}: it has no coordinator"));
    });
    QUOTA.check(world.resource::<Instances>().used, faults);
}
