//! Devices are read and listed.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::pairing::{Device, DeviceId};
use bevy_ecs::prelude::{Entity, World};

use crate::kernel::command::Place;
use crate::kernel::entities::{List, View};
use crate::kernel::index::id_of;
use crate::people;

/// A device as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceView {
    /// Its id.
    pub id: DeviceId,
    /// Its state.
    pub device: Device,
    /// What it may do: the role of its key, or that of the user of the key.
    pub role: Role,
    /// The only scopes that it has; empty for all those of the role.
    pub scopes: Vec<Scope>,
    /// Whose it is.
    pub user: Option<UserId>,
    /// When its key was last used, to some minutes.
    pub used_at: Option<Timestamp>,
}

impl View for DeviceView {
    type Kind = Device;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_device", "list_devices"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let device = world.get::<Device>(at)?.clone();
        let key = people::seen_key(world, device.key)?;
        let of_user = |user| people::seen_user(world, user).map_or(Role::Viewer, |user| user.role);
        let (role, scopes, user, used_at) =
            (key.user.map_or(key.role, of_user), key.scopes.clone(), key.user, key.used_at);
        Some(Self { id: id_of(world, at), device, role, scopes, user, used_at })
    }
}
