//! Instances of hands are read and listed.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::hand::{HandInstance, HandInstanceId, HandVariable};
use agentsvc_components::{AgentId, Refusal};

use super::index::Instances;
use crate::kernel::command::{Answer, Command, Place};
use crate::kernel::entities::{List, View, ViewPage, state};
use crate::kernel::index::id_of;

/// What the world knows of an instance. Values of secrets are sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandView {
    /// Its id.
    pub id: HandInstanceId,
    /// Its state.
    pub instance: HandInstance,
}

impl HandView {
    /// Why it does not do its work, if so.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let gone: Vec<&str> =
            self.instance.members.iter().filter(|member| member.is_gone).map(|member| &*member.name).collect();
        (!gone.is_empty()).then(|| format!("deleted agents: {}", gone.join(", ")))
    }

    /// The word of the API for its state.
    #[must_use]
    pub fn status(&self) -> &'static str {
        if self.error().is_some() { "error" } else { self.instance.state.as_str() }
    }
}

impl View for HandView {
    type Kind = HandInstance;
    /// Only those of this hand; `None` lists all.
    type Filter = Option<Box<str>>;
    const NAMES: [&'static str; 2] = ["get_hand_instance", "list_hand_instances"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), instance: world.get::<HandInstance>(at)?.clone() })
    }

    fn passes(&self, filter: &Option<Box<str>>) -> bool {
        filter.as_ref().is_none_or(|hand| *hand == self.instance.hand)
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<Instances>();
        let total = list.filter.as_ref().map_or(all.len(), |hand| all.of_hand(hand).count());
        Ok(list.filled(world, Some(total), all.after(list.after)))
    }
}

/// Reads how many instances each hand has, by the hand's id; hands without any are left out.
#[derive(Clone, Copy, Debug)]
pub struct CountHands;

impl Command for CountHands {
    type Reply = std::collections::BTreeMap<Box<str>, usize>;
    const NAME: &'static str = "count_hands";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::Root;

    fn run(self, world: &mut World) -> Answer<Self::Reply> {
        Answer::read(world.resource::<Instances>().counts())
    }
}

/// Reads the variables that the commands of an agent get because it is part of a hand.
#[derive(Clone, Copy, Debug)]
pub struct HandEnvironment(pub AgentId);

impl Command for HandEnvironment {
    type Reply = Vec<HandVariable>;
    const NAME: &'static str = "hand_environment";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::Root;
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<Self::Reply> {
        let instance = world.resource::<Instances>().instance_of(self.0);
        let found = instance.and_then(|id| state::<HandInstance>(world, id));
        Answer::read(found.map(|instance| instance.environment.clone()).unwrap_or_default())
    }
}
