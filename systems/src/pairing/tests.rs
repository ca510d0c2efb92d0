//! Paired devices.

use agentsvc_components::Actor;
use agentsvc_components::kernel::job::RunJob;
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::pairing::DeviceId;
use agentsvc_components::people::{ApiKey, User};

use super::*;
use crate::kernel::entities::{List, Remove};
use crate::people::{CreateKey, CreateUser, KeyView, ListGrants, UpdateUser, UserFields};
use crate::testing::TestWorld;

fn phone(name: &str) -> PairDevice {
    let (role, scopes) = (Role::Admin, vec![Scope::Read, Scope::Chat]);
    PairDevice {
        name: name.to_owned(),
        platform: "ios".to_owned(),
        role,
        scopes,
        devices_max: 3,
        ..PairDevice::default()
    }
}

fn names(world: &mut TestWorld) -> Vec<String> {
    let list = world.ask(List::<DeviceView> { limit: 10, ..List::default() }).unwrap();
    list.items.into_iter().map(|view| view.device.name.into()).collect()
}

fn key_names(world: &mut TestWorld) -> Vec<String> {
    let list = world.ask(List::<KeyView> { limit: 10, ..List::default() }).unwrap();
    list.items.into_iter().map(|view| view.key.name.into()).collect()
}

#[test]
fn a_device_and_its_key_come_and_go_together() {
    let mut world = TestWorld::new();
    let first = world.ask(phone("phone")).unwrap();
    assert_eq!((first.role, &first.scopes[..]), (Role::Admin, &[Scope::Read, Scope::Chat][..]));
    let second = world.ask(phone("phone")).unwrap();
    let third = world.ask(phone(" tablet ")).unwrap();
    assert_eq!(key_names(&mut world), ["phone", "phone 2", "tablet"]);
    world.restart();
    assert_eq!(names(&mut world), ["phone", "phone", "tablet"]);
    world.ask(RemoveDevice(first.id)).unwrap();
    world.ask(Remove::<ApiKey>(second.device.key)).unwrap();
    assert_eq!((names(&mut world), key_names(&mut world)), (vec!["tablet".to_owned()], vec!["tablet".to_owned()]));
    assert!(world.ask(RemoveDevice(first.id)).is_err());
    world.restart();
    world.ask(RemoveDevice(third.id)).unwrap();
    assert!(names(&mut world).is_empty() && world.ask(ListGrants).unwrap().is_empty());
}

#[test]
fn a_device_goes_with_the_user_of_its_key() {
    let mut world = TestWorld::new();
    let fields = UserFields { name: Some("ann".to_owned()), role: Some(Role::User), ..UserFields::default() };
    let ann = world.ask(CreateUser(fields)).unwrap().id;
    let device = world.ask(PairDevice { user: Some(ann), ..phone("phone") }).unwrap();
    assert_eq!((device.role, device.user), (Role::User, Some(ann)));
    world.ask(Remove::<User>(ann)).unwrap();
    assert!(names(&mut world).is_empty() && key_names(&mut world).is_empty());
}

#[test]
fn what_is_refused_leaves_no_key() {
    let mut world = TestWorld::new();
    let long = "n".repeat(limits::DEVICE_NAME_BYTES_MAX + 1);
    for (command, field) in [
        (phone(" "), "display_name"),
        (phone("a\nb"), "display_name"),
        (phone(&long), "display_name"),
        (PairDevice { platform: long.clone(), ..phone("a") }, "platform"),
        (PairDevice { role: Role::Viewer, ..phone("a") }, "role"),
    ] {
        assert_eq!(world.ask(command).unwrap_err().field.as_deref(), Some(field));
    }
    for name in ["a", "b", "c"] {
        world.ask(phone(name)).unwrap();
    }
    let refusal = world.ask(phone("d")).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::DEVICES_FULL));
    assert_eq!(key_names(&mut world), ["a", "b", "c"]);
    assert!(world.ask(RemoveDevice(DeviceId(uuid::Uuid::nil()))).is_err());
}

#[test]
fn a_code_of_someone_who_may_no_more_pairs_nothing() {
    let mut world = TestWorld::new();
    let fields = |role| UserFields { name: Some("ann".to_owned()), role: Some(role), ..UserFields::default() };
    let ann = world.ask(CreateUser(fields(Role::Admin))).unwrap().id;
    let key = world.ask(CreateKey { name: "laptop".to_owned(), user: Some(ann), ..CreateKey::default() }).unwrap().id;
    world.actor = Actor::Key { key, user: Some(ann) };
    world.ask(phone("one")).unwrap();
    world.actor = Actor::Api;
    world.ask(UpdateUser { user: ann, fields: fields(Role::User) }).unwrap();
    world.actor = Actor::Key { key, user: Some(ann) };
    world.ask(phone("two")).unwrap_err();
    world.actor = Actor::Api;
    world.ask(UpdateUser { user: ann, fields: fields(Role::Admin) }).unwrap();
    world.ask(Remove::<ApiKey>(key)).unwrap();
    world.actor = Actor::Key { key, user: Some(ann) };
    world.ask(phone("three")).unwrap_err();
    world.actor = Actor::Api;
    assert_eq!(names(&mut world), ["one"]);
}

#[test]
fn a_device_lasts_no_longer_than_the_key_that_asked_for_its_code() {
    let mut world = TestWorld::new();
    let expires_at = Some(world.now.plus_ms(60_000));
    let short = CreateKey { name: "short".to_owned(), role: Role::Admin, expires_at, ..CreateKey::default() };
    let short = world.ask(short).unwrap().id;
    world.actor = Actor::Key { key: short, user: None };
    let device = world.ask(phone("phone")).unwrap().device;
    world.actor = Actor::Api;
    assert_eq!(world.ask(crate::kernel::entities::Get::<KeyView>(device.key)).unwrap().key.expires_at, expires_at);
}

#[test]
fn a_notification_is_a_job_that_a_restart_keeps() {
    let mut world = TestWorld::new();
    let notify = |title: &str, message: &str| NotifyDevices {
        title: title.to_owned(),
        message: message.to_owned(),
        can_send: true,
    };
    for (command, field) in [
        (notify("", "m"), "title"),
        (notify("a\nb", "m"), "title"),
        (notify("t", " "), "message"),
        (notify("t", &"m".repeat(limits::NOTIFICATION_MESSAGE_BYTES_MAX + 1)), "message"),
    ] {
        assert_eq!(world.ask(command).unwrap_err().field.as_deref(), Some(field));
    }
    let sent = |world: &TestWorld| world.effects.iter().filter(|effect| effect.get::<RunJob>().is_some()).count();
    assert_eq!(world.ask(notify("t", "m")), Ok(None), "there is no device");
    world.ask(phone("a")).unwrap();
    assert_eq!(world.ask(NotifyDevices { can_send: false, ..notify("t", "m") }), Ok(None));
    assert_eq!(sent(&world), 0);
    // Control characters are the longest in JSON.
    world.ask(notify("t", &"\u{1}".repeat(limits::NOTIFICATION_MESSAGE_BYTES_MAX))).unwrap().unwrap();
    assert_eq!(sent(&world), 1);
    // What was asked of the outside before is forgotten here.
    world.restart();
    assert_eq!(sent(&world), 1, "nobody knows whether the first try was taken");
}
