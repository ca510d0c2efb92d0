//! Users of the installation in chats.

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
