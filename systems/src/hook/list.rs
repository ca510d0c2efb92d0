//! Calls are read.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::hook::{HookCall, HookCallId};

use crate::kernel::command::Place;
use crate::kernel::entities::{List, View};
use crate::kernel::index::id_of;

/// What the world knows of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCallView {
    /// Its id.
    pub id: HookCallId,
    /// Its state.
    pub call: HookCall,
    /// Of an answer to a call: the same call was sent before.
    pub is_repeated: bool,
}

impl View for HookCallView {
    type Kind = HookCall;
    /// Only those that are held, or all.
    type Filter = bool;
    const NAMES: [&'static str; 2] = ["get_hook_call", "list_hook_calls"];
    const PLACE: Place<List<Self>> = Place::All;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), call: world.get::<HookCall>(at)?.clone(), is_repeated: false })
    }

    fn passes(&self, only_held: &bool) -> bool {
        !only_held || self.call.held
    }
}
