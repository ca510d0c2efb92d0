//! Users of the installation in chats.

use agentsvc_components::channel::rules::{ChatRole, ChatUser};
use agentsvc_components::kernel::scope::Role;

use super::*;
use crate::people::{CreateUser, UpdateUser, UserFields};

#[test]
fn users_of_the_installation_have_their_roles_in_chats_as_long_as_they_have_them() {
    let (mut world, _) = with(open("bot"));
    let fields = |role, channel: &str| UserFields {
        name: Some(format!("user of {channel}")),
        role: Some(role),
        channel_bindings: Some(vec![(channel.to_owned(), "bo".to_owned())]),
    };
    let approve = |id: &str| ChatEvent { command: command("approve", "0123abcd"), ..said("bo", "/approve", id) };
    let may = |received: &Received| matches!(received, Received::Command(pending) if pending.may_approve);
    assert!(!may(&receive(&mut world, approve("m1"))));
    world.ask(CreateUser(fields(Role::Admin, "slack"))).unwrap();
    assert!(!may(&receive(&mut world, approve("m2"))), "that is somebody in another channel");
    let bo = world.ask(CreateUser(fields(Role::Admin, "telegram"))).unwrap().id;
    assert!(may(&receive(&mut world, approve("m3"))));
    let mut room = approve("m4");
    room.sender.is_person = false;
    assert!(!may(&receive(&mut world, room)), "a room is no user");
    world.ask(UpdateUser { user: bo, fields: fields(Role::User, "telegram") }).unwrap();
    assert!(!may(&receive(&mut world, approve("m5"))));
}

#[test]
fn roles_of_a_platform_count_in_paired_chats_and_the_highest_counts() {
    let mapping = [("member", ChatRole::User), ("mod", ChatRole::Admin), ("muted", ChatRole::Viewer)];
    let rules = InstanceRules { role_mapping: mapping.map(|(name, role)| (name.into(), role)).to_vec(), ..open("bot") };
    let (mut world, _) = with(rules.clone());
    let from = |roles: &[&str], event: ChatEvent| {
        let roles = roles.iter().map(|role| (*role).into()).collect();
        ChatEvent { sender: Sender { roles, ..event.sender.clone() }, ..event }
    };
    let approve = |roles: &[&str], id: &str| {
        let event = in_group("room", "bo", "/approve 0123abcd", id);
        from(roles, ChatEvent { command: command("approve", "0123abcd"), ..event })
    };
    let may = |received: &Received| matches!(received, Received::Command(pending) if pending.may_approve);
    assert!(!may(&receive(&mut world, approve(&["mod"], "m1"))), "anyone can make a group of their own");
    world.ask(PairChat { instance: "bot".into(), chat: "room".into(), name: "Room".into() }).unwrap();
    assert!(may(&receive(&mut world, approve(&["member", "mod"], "m2"))));
    world.restart();
    assert!(may(&receive(&mut world, approve(&["muted", "mod"], "m3"))));
    assert!(!may(&receive(&mut world, approve(&["member"], "m4"))));
    assert!(!may(&receive(&mut world, approve(&["Mod"], "m5"))), "names are as the platform writes them");
    let mut room = approve(&["mod"], "m6");
    room.sender.is_person = false;
    assert!(!may(&receive(&mut world, room)), "a room has no roles");
    let muted = receive(&mut world, from(&["muted"], in_group("room", "bo", "hello", "m7")));
    assert_eq!(muted, Received::Ignored(Why::Denied), "the chat was told before what it may not");
    turn(&receive(&mut world, from(&["member"], in_group("room", "bo", "hello", "m8"))));
    let bo =
        ChatUser { name: "bo".into(), role: ChatRole::User, channel_bindings: vec![("telegram".into(), "bo".into())] };
    world.ask(SetInstances(vec![InstanceRules { users: vec![bo], ..rules }])).unwrap();
    assert!(!may(&receive(&mut world, approve(&["mod"], "m9"))), "a user of the configuration has their own role");
    whole(&mut world);
}
