//! Users and keys.

use agentsvc_components::RefusalKind;
use agentsvc_components::kernel::scope::{Role, Scope};

use super::*;
use crate::kernel::entities::{Get, List};
use crate::testing::TestWorld;

fn key(name: &str) -> CreateKey {
    CreateKey { name: name.to_owned(), hash: [7; 32], role: Role::Admin, ..CreateKey::default() }
}

fn user(name: &str, role: Role) -> CreateUser {
    CreateUser(UserFields { name: Some(name.to_owned()), role: Some(role), channel_bindings: None })
}

#[test]
fn a_key_of_a_user_has_the_role_that_the_user_has_now_and_goes_with_the_user() {
    let mut world = TestWorld::new();
    let ann = world.ask(user("ann", Role::User)).unwrap().id;
    let of_ann = world.ask(CreateKey { user: Some(ann), role: Role::Owner, ..key("laptop") }).unwrap();
    assert_eq!(of_ann.role, Role::User, "not that of the key");
    world.ask(key("ci")).unwrap();
    let role = Some(Role::Viewer);
    world.ask(UpdateUser { user: ann, fields: UserFields { role, ..UserFields::default() } }).unwrap();
    let grants = world.ask(ListGrants).unwrap();
    let roles: Vec<_> = grants.iter().map(|grant| (&*grant.name, grant.role)).collect();
    assert_eq!(roles, [("ann", Role::Viewer), ("ci", Role::Admin)]);
    assert_eq!(world.ask(Get::<UserView>(ann)).unwrap().keys, 1);
    world.ask(Remove::<User>(ann)).unwrap();
    let left = world.ask(List::<KeyView> { limit: 10, ..List::default() }).unwrap();
    assert_eq!(left.items.iter().map(|view| &*view.key.name).collect::<Vec<_>>(), ["ci"]);
}

#[test]
fn bad_keys_and_users_change_nothing() {
    let mut world = TestWorld::new();
    let ann = world.ask(user("ann", Role::User)).unwrap().id;
    world.ask(key("ci")).unwrap();
    let long = "n".repeat(limits::PERSON_NAME_BYTES_MAX + 1);
    for (command, field) in [
        (key(" "), "name"),
        (key(&long), "name"),
        (key("ci"), "name"),
        (CreateKey { role: Role::Viewer, ..key("a") }, "role"),
        (CreateKey { user: Some(UserId(uuid::Uuid::max())), ..key("a") }, "user"),
        (CreateKey { expires_at: Some(world.now), ..key("a") }, "expires_at"),
    ] {
        let refusal = world.ask(command).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field));
    }
    let binding = |id: &str| Some(vec![("telegram".to_owned(), id.to_owned())]);
    let bound = |channel_bindings| UserFields { channel_bindings, ..UserFields::default() };
    world.ask(UpdateUser { user: ann, fields: bound(binding("1")) }).unwrap();
    for (fields, field) in [
        (UserFields::default(), "name"),
        (UserFields { name: Some("ann".to_owned()), ..UserFields::default() }, "name"),
        (UserFields { name: Some("bob".to_owned()), ..bound(binding("")) }, "channel_bindings"),
        (UserFields { name: Some("bob".to_owned()), ..bound(binding("1")) }, "channel_bindings"),
    ] {
        assert_eq!(world.ask(CreateUser(fields)).unwrap_err().field.as_deref(), Some(field));
    }
    assert_eq!(world.ask(ListGrants).unwrap().len(), 1);
    assert_eq!(world.ask(List::<UserView> { filter: (), after: None, limit: 10 }).unwrap().items.len(), 1);
}

#[test]
fn there_are_only_so_many_keys() {
    let mut world = TestWorld::new();
    for at in 0..limits::KEYS_MAX {
        world.ask(key(&at.to_string())).unwrap();
    }
    let refusal = world.ask(key("more")).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::KEYS_FULL));
    assert_ne!(refusal.kind, RefusalKind::NotFound);
}

#[test]
fn chats_know_users_by_their_channel() {
    let mut world = TestWorld::new();
    for (name, role, channel, id) in [
        ("ann", Role::Admin, "telegram", "7"),
        ("bob", Role::User, "telegram", "8"),
        ("eve", Role::User, "telegrams", "1"),
    ] {
        let bindings = Some(vec![(channel.to_owned(), id.to_owned())]);
        world.ask(CreateUser(UserFields { channel_bindings: bindings, ..user(name, role).0 })).unwrap();
    }
    let bound = bound_to(world.engine.world(), "telegram");
    assert_eq!(bound, [("7".into(), Role::Admin), ("8".into(), Role::User)]);
    assert!(bound_to(world.engine.world(), "slack").is_empty());
}

#[test]
fn the_use_of_a_key_is_kept_and_never_goes_back() {
    let mut world = TestWorld::new();
    let made = world.ask(CreateKey { scopes: vec![Scope::Read, Scope::Read], ..key("ci") }).unwrap();
    assert_eq!(made.key.scopes, [Scope::Read]);
    let now = world.now;
    for at in [now.plus_ms(5), now] {
        world.ask(NoteKeyUse { key: made.id, at }).unwrap();
    }
    assert_eq!(world.ask(Get::<KeyView>(made.id)).unwrap().key.used_at, Some(now.plus_ms(5)));
    world.ask(Remove::<ApiKey>(made.id)).unwrap();
    world.ask(NoteKeyUse { key: made.id, at: now }).unwrap();
    assert!(world.ask(ListGrants).unwrap().is_empty());
}

fn configured(name: &str, role: Role, sender: &str, hash: Option<u8>) -> ConfiguredUser {
    let channel_bindings = vec![("telegram".to_owned(), sender.to_owned())];
    ConfiguredUser { name: name.to_owned(), role, channel_bindings, key_hash: hash.map(|byte| [byte; 32]) }
}

fn names(world: &mut TestWorld) -> Vec<(String, bool)> {
    let list = world.ask(List::<UserView> { filter: (), after: None, limit: 10 }).unwrap();
    list.items.into_iter().map(|view| (view.user.name.into(), view.user.configured)).collect()
}

#[test]
fn users_of_the_configuration_come_change_and_go_with_it_alone() {
    let mut world = TestWorld::new();
    let ann = world.ask(user("ann", Role::Viewer)).unwrap().id;
    world.ask(user("eve", Role::User)).unwrap();
    let both = vec![configured("ann", Role::User, "1", Some(1)), configured("bob", Role::Admin, "2", None)];
    world.ask(SetConfiguredUsers(both.clone())).unwrap();
    let of = |name: &str, configured| (name.to_owned(), configured);
    assert_eq!(names(&mut world), [of("ann", true), of("eve", false), of("bob", true)]);
    let view = world.ask(Get::<UserView>(ann)).unwrap();
    assert_eq!((view.user.role, view.keys), (Role::User, 1), "the one of this name is the same");
    let grants = world.ask(ListGrants).unwrap();
    assert_eq!((grants.len(), grants[0].hash, grants[0].user), (1, [1; 32], Some(ann)));
    // The same again changes nothing, not even when it was changed last.
    world.now = world.now.plus_ms(5);
    world.ask(SetConfiguredUsers(both)).unwrap();
    assert_eq!(world.ask(Get::<UserView>(ann)).unwrap(), view);
    let refusal = world.ask(UpdateUser { user: ann, fields: UserFields::default() }).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::USER_CONFIGURED));
    world.ask(CreateKey { user: Some(ann), ..key("laptop") }).unwrap();
    // They change places in chats, and one goes.
    let swapped = vec![configured("bob", Role::Admin, "1", None), configured("ann", Role::User, "2", None)];
    world.ask(SetConfiguredUsers(swapped)).unwrap();
    world.restart();
    assert_eq!(bound_to(world.engine.world(), "telegram"), [("1".into(), Role::Admin), ("2".into(), Role::User)]);
    world.ask(SetConfiguredUsers(vec![configured("bob", Role::Admin, "1", None)])).unwrap();
    assert_eq!(names(&mut world), [of("eve", false), of("bob", true)]);
    assert!(world.ask(ListGrants).unwrap().is_empty(), "keys go with their user");
}

#[test]
fn users_of_the_configuration_take_no_identity_of_others() {
    let mut world = TestWorld::new();
    let bindings = Some(vec![("telegram".to_owned(), "1".to_owned())]);
    world.ask(CreateUser(UserFields { channel_bindings: bindings, ..user("eve", Role::User).0 })).unwrap();
    for (users, field) in [
        (vec![configured("ann", Role::User, "1", None)], "channel_bindings"),
        (vec![configured("ann", Role::User, "2", None), configured("bob", Role::User, "2", None)], "channel_bindings"),
        (vec![configured("ann", Role::User, "2", None), configured("ann", Role::User, "3", None)], "name"),
    ] {
        let refusal = world.ask(SetConfiguredUsers(users)).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field));
    }
    assert_eq!(names(&mut world), [("eve".to_owned(), false)]);
    // The one who has it may become one of the configuration.
    world.ask(SetConfiguredUsers(vec![configured("eve", Role::Admin, "1", None)])).unwrap();
    assert_eq!(names(&mut world), [("eve".to_owned(), true)]);
}

#[test]
fn a_key_that_has_expired_stays_so_when_the_clock_is_set_back() {
    let mut world = TestWorld::new();
    let start = world.now;
    let ends = Some(start.plus_ms(60_000));
    let id = world.ask(CreateKey { expires_at: ends, ..key("short") }).unwrap().id;
    world.ask(key("ci")).unwrap();
    let names = |world: &mut TestWorld| -> Vec<Box<str>> {
        world.ask(ListGrants).unwrap().into_iter().map(|grant| grant.name).collect()
    };
    let set = |world: &mut TestWorld, now| {
        world.now = now;
        world.engine.set_now(now);
        world.engine.beat();
        world.step();
    };
    assert_eq!(names(&mut world).len(), 2);
    set(&mut world, start.plus_ms(61_000));
    assert_eq!(names(&mut world), ["ci".into()]);
    for restarted in [false, true] {
        set(&mut world, start.plus_ms(-3_600_000));
        if restarted {
            world.restart();
        }
        assert_eq!(names(&mut world), ["ci".into()]);
        world.actor = agentsvc_components::Actor::Key { key: id, user: None };
        assert_eq!(world.ask(key("more")).unwrap_err().kind, RefusalKind::Forbidden);
        world.actor = agentsvc_components::Actor::Api;
    }
    assert!(world.ask(Get::<KeyView>(id)).unwrap().key.expired, "it is listed until it is deleted");
}

#[test]
fn what_an_expiring_key_makes_expires_with_it() {
    let mut world = TestWorld::new();
    let ends = world.now.plus_ms(60_000);
    let short = world.ask(CreateKey { expires_at: Some(ends), ..key("short") }).unwrap().id;
    let lasting = world.ask(key("lasting")).unwrap().id;
    let made = |world: &mut TestWorld, by, name: &str, expires_at| {
        world.actor = agentsvc_components::Actor::Key { key: by, user: None };
        world.ask(CreateKey { expires_at, ..key(name) }).unwrap().key.expires_at
    };
    assert_eq!(made(&mut world, short, "a", None), Some(ends));
    assert_eq!(made(&mut world, short, "b", Some(ends.plus_ms(1))), Some(ends));
    assert_eq!(made(&mut world, short, "c", Some(ends.plus_ms(-1))), Some(ends.plus_ms(-1)));
    assert_eq!(made(&mut world, lasting, "d", None), None);
    assert_eq!(made(&mut world, lasting, "e", Some(ends)), Some(ends));
}

#[test]
fn the_agents_of_a_user_who_may_run_none_begin_nothing_by_themselves() {
    use crate::schedule::{CreateSchedule, RunSchedule, tests::plain};
    use agentsvc_components::Actor;
    use agentsvc_components::schedule::ScheduleKind;
    let mut world = TestWorld::new();
    let ann = world.ask(user("ann", Role::User)).unwrap().id;
    world.actor = Actor::Key { key: agentsvc_components::kernel::id::KeyId(uuid::Uuid::from_u128(9)), user: Some(ann) };
    let agent = world.ask(crate::testing::spawn_command("anns")).unwrap().agent;
    let id = world.ask(CreateSchedule { new: plain(agent, "@daily"), by_tool: false }).unwrap().id;
    world.actor = Actor::Api;
    let run = RunSchedule { kind: ScheduleKind::Schedule, id };
    let set = |world: &mut TestWorld, role| {
        let fields = UserFields { role: Some(role), ..UserFields::default() };
        world.ask(UpdateUser { user: ann, fields }).unwrap();
    };
    world.ask(run).unwrap();
    let attempt = world.next_call().attempt;
    world.answer(attempt, "done");
    set(&mut world, Role::Viewer);
    for _ in 0..2 {
        assert_eq!(world.ask(run).unwrap_err().kind, RefusalKind::Conflict);
        world.restart();
    }
    assert!(world.calls.is_empty());
    set(&mut world, Role::User);
    world.ask(run).unwrap();
    assert_eq!(world.calls.len(), 1);
}
