//! Where devices are found: also by their keys.

use std::collections::BTreeMap;

use agentsvc_components::kernel::id::KeyId;
use agentsvc_components::pairing::{Device, DeviceId};
use bevy_ecs::prelude::World;

use super::{error_codes, limits};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Mirrored, Put, indexed};
use crate::kernel::quota::Quota;
use crate::people;

/// Every device.
pub(super) type Devices = Entities<Device>;

/// What devices may take.
pub(super) const DEVICES: Quota = Quota {
    count: limits::DEVICES_MAX,
    bytes: limits::DEVICES_MAX * (limits::DEVICE_NAME_BYTES_MAX + limits::DEVICE_PLATFORM_BYTES_MAX),
    what: "paired devices",
    code: error_codes::DEVICES_FULL,
};

indexed!(Device: DevicePlaces, "device");

/// Devices by their keys.
#[derive(Debug, Default, PartialEq)]
pub struct DevicePlaces(BTreeMap<KeyId, DeviceId>);

impl DevicePlaces {
    /// The device that has this key.
    pub(super) fn with(&self, key: KeyId) -> Option<DeviceId> {
        self.0.get(&key).copied()
    }
}

impl Mirrored<Device> for DevicePlaces {
    fn place(&mut self, id: DeviceId, device: &Device, is_in: bool) {
        self.0.put((device.key, id), is_in);
    }
}

/// Says which index is wrong, and which device lacks its key ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Device>(world, faults, |world, id, device, faults| {
        let has_key = people::seen_key(world, device.key).is_some();
        faults.that(has_key, || format!("device {id}: its key does not exist"));
    });
    DEVICES.check(world.resource::<Devices>().used, faults);
}
