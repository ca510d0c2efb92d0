//! A device is paired, and goes.

use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::pairing::{Device, DeviceId};
use agentsvc_components::{Actor, Refusal};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::index::{DEVICES, Devices};
use super::list::DeviceView;
use super::{audit_kinds, error_codes, limits};
use crate::audit::Audit;
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, find, state};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::people::{self, CreateKey, KeyGone};

/// Pairs a device whose code was right, in the name of whoever asked for the code. Its key stays outside: this has the hash.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PairDevice {
    /// What people call it. Several may have the same name.
    pub name: String,
    /// What it runs.
    pub platform: String,
    /// SHA-256 of its key.
    pub hash: [u8; 32],
    /// What it may do, where its key has no user.
    pub role: Role,
    /// Whose it is.
    pub user: Option<UserId>,
    /// The only scopes that it has; empty for all those of the role.
    pub scopes: Vec<Scope>,
    /// Devices that there may be, as the configuration says.
    pub devices_max: u32,
}

command!(write "pair_device" PairDevice => DeviceView, Root, |it, world| Answer::stored(pair(world, it)));

fn pair(world: &mut World, it: PairDevice) -> Result<DeviceView, Refusal> {
    check_actor(world, it.role, it.user)?;
    let name = checked("display_name", &it.name, 1, limits::DEVICE_NAME_BYTES_MAX)?;
    let platform = checked("platform", &it.platform, 0, limits::DEVICE_PLATFORM_BYTES_MAX)?;
    let devices = world.resource::<Devices>();
    if devices.len() >= it.devices_max as usize {
        let text = format!("there are {} paired devices, which is the limit ([pairing] max_devices)", devices.len());
        return Err(Refusal::full(text, error_codes::DEVICES_FULL));
    }
    DEVICES.admit(devices.used, 1, name.len() + platform.len())?;
    let of_key = people::free_key_name(world, &name);
    let key =
        CreateKey { name: of_key, hash: it.hash, role: it.role, user: it.user, scopes: it.scopes, expires_at: None };
    let key = people::create_key(world, key)?.id;
    let device = Device { name, platform, key, paired_at: world.resource::<Now>().0 };
    let details = json!({ "name": device.name, "platform": device.platform, "key": key });
    let id: DeviceId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, device)).id();
    world.mark(entity);
    note(world, id, audit_kinds::DEVICE_PAIRED, details);
    DeviceView::seen(world, id)
}

/// Refuses in the name of a person who may no longer make keys, or none with this role. A key that is gone is refused with that of the device.
fn check_actor(world: &World, role: Role, of: Option<UserId>) -> Result<(), Refusal> {
    people::check_acting_key(world)?;
    let Actor::Key { user: Some(user), .. } = world.resource::<Acting>().0 else { return Ok(()) };
    // The person whose device it is may have another role by now.
    let role = of.and_then(|of| people::seen_user(world, of)).map_or(role, |of| of.role.max(role));
    let may = people::seen_user(world, user).is_some_and(|user| user.role.has(Scope::Admin) && user.role >= role);
    let refusal = || {
        Refusal::new(agentsvc_components::RefusalKind::Forbidden, "who asked for this code may no longer pair devices")
    };
    may.then_some(()).ok_or_else(refusal)
}

fn checked(field: &str, text: &str, least: usize, most: usize) -> Result<Box<str>, Refusal> {
    let text = text.trim();
    if text.len() < least || text.len() > most || text.chars().any(char::is_control) {
        let text = format!("{field} must have {least} to {most} bytes without control characters");
        return Err(Refusal::bad_field(field, text));
    }
    Ok(text.into())
}

fn note(
    world: &mut World,
    id: DeviceId,
    kind: agentsvc_components::kernel::audit_kind::AuditKind,
    mut details: serde_json::Value,
) {
    details["device"] = json!(id);
    world.audit(kind, None, details);
}

/// Removes a device and revokes its key.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoveDevice(pub DeviceId);

command!(last_write "remove_device" RemoveDevice => (), Root, |RemoveDevice(id), world| {
    Answer::stored(remove(world, id))
});

fn remove(world: &mut World, id: DeviceId) -> Result<(), Refusal> {
    find::<Device>(world, id)?;
    let key = state::<Device>(world, id).map(|device| device.key);
    if let Some(key) = key {
        people::revoke(world, key);
    }
    Ok(())
}

/// A key goes, and the device that has it.
pub(super) fn key_gone(world: &mut World, KeyGone(key): &KeyGone) {
    let Some(id) = world.resource::<Devices>().with(*key) else { return };
    let Some(entity) = world.resource::<Devices>().get(id) else { return };
    let name = world.get::<Device>(entity).map(|device| device.name.clone());
    world.despawn(entity);
    note(world, id, audit_kinds::DEVICE_REMOVED, json!({ "name": name }));
}
