//! The client adds users and makes keys, changes, and removes them.

use agentsvc_components::Micros;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::people::{ApiKey, User};
use agentsvc_components::usage::{self, Limits};
use agentsvc_systems::agent::SetOwner;
use agentsvc_systems::budget::SetBudget;
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::pairing::{PairDevice, RemoveDevice};
use agentsvc_systems::people::{ConfiguredUser, CreateKey, CreateUser, SetConfiguredUsers, UpdateUser, UserFields};

use super::action::What;
use super::facts::GONE;
use super::harness::{ANSWER, CONTEXT, Harness};

/// Users, and keys, that the client makes at most.
const PEOPLE: usize = 4;

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::NewUser => new_user(harness),
        What::UpdateUser => update_user(harness),
        What::RemoveUser => remove_user(harness),
        What::ConfigureUsers => configure(harness),
        What::NewKey => new_key(harness),
        What::PairDevice => pair(harness),
        What::RemoveDevice => remove_device(harness),
        _ => revoke_key(harness),
    }
}

fn new_user(harness: &mut Harness) {
    if harness.known.users.len() >= PEOPLE {
        return;
    }
    let name = harness.text("user");
    let role = Some(harness.rng.pick(&Role::ALL));
    let fields = UserFields { name: Some(name.clone()), role, channel_bindings: None };
    harness.ask(CreateUser(fields), move |harness, view| {
        harness.known.users.push(view.id);
        harness.learn(format!("user/{}", view.id), name);
    });
}

fn update_user(harness: &mut Harness) {
    let known = harness.known.users.clone();
    let Some(user) = harness.rng.any(&known) else { return };
    let name = harness.text("user");
    let fact = harness.facts.submit(format!("user/{user}"), name.as_str());
    let role = Some(harness.rng.pick(&Role::ALL));
    let fields = UserFields { name: Some(name), role, channel_bindings: None };
    harness.ask(UpdateUser { user, fields }, move |harness, _| harness.facts.acknowledge(fact));
    give_an_agent(harness, user);
}

/// An agent belongs to the user from here on, who has a budget or none.
fn give_an_agent(harness: &mut Harness, user: UserId) {
    let known = harness.known.agents.clone();
    if let Some(agent) = harness.rng.any(&known) {
        let user = harness.rng.chance(80).then_some(user);
        harness.ask(SetOwner { agent, user }, |_, _| {});
    }
    let daily = Some(Micros(harness.rng.pick(&[0, 3, 30]) * (CONTEXT + ANSWER)));
    let limits = Limits { daily, ..Limits::default() };
    harness.ask(SetBudget { scope: usage::Scope::User(user), limits }, |_, _| {});
}

fn remove_user(harness: &mut Harness) {
    let known = harness.known.users.clone();
    let Some(user) = harness.rng.any(&known) else { return };
    harness.known.users.retain(|id| *id != user);
    // The agents of the user stop, whichever those are by now.
    harness.facts.forget("running/");
    let fact = harness.facts.submit(format!("user/{user}"), GONE);
    harness.ask(Remove::<User>(user), move |harness, ()| harness.facts.acknowledge(fact));
}

/// Some of a few users are those of the configuration.
fn configure(harness: &mut Harness) {
    let mut users = Vec::new();
    for name in ["conf-a", "conf-b", "conf-c"] {
        if harness.rng.chance(60) {
            let role = harness.rng.pick(&Role::ALL);
            let key_hash = harness.rng.chance(50).then_some([6; 32]);
            let channel_bindings = vec![("telegram".to_owned(), name.to_owned())];
            users.push(ConfiguredUser { name: name.to_owned(), role, channel_bindings, key_hash });
        }
    }
    // Agents of users who are gone stop.
    harness.facts.forget("running/");
    harness.ask(SetConfiguredUsers(users), |_, ()| {});
}

/// Keys of users go with them, so only those without one are looked for later.
fn new_key(harness: &mut Harness) {
    if harness.known.keys.len() >= PEOPLE {
        return;
    }
    let (name, users) = (harness.text("key"), harness.known.users.clone());
    let user = if harness.rng.chance(50) { harness.rng.any(&users) } else { None };
    let key = CreateKey { name: name.clone(), role: Role::Admin, user, ..CreateKey::default() };
    harness.ask(key, move |harness, view| {
        if user.is_none() {
            harness.known.keys.push(view.id);
            harness.learn(format!("key/{}", view.id), name);
        }
    });
}

fn revoke_key(harness: &mut Harness) {
    let known = harness.known.keys.clone();
    let Some(key) = harness.rng.any(&known) else { return };
    harness.known.keys.retain(|id| *id != key);
    let fact = harness.facts.submit(format!("key/{key}"), GONE);
    harness.ask(Remove::<ApiKey>(key), move |harness, ()| harness.facts.acknowledge(fact));
}

/// Devices of users go with them, so only those without one are looked for later.
fn pair(harness: &mut Harness) {
    if harness.known.devices.len() >= PEOPLE {
        return;
    }
    let (name, users) = (harness.text("device"), harness.known.users.clone());
    let user = if harness.rng.chance(50) { harness.rng.any(&users) } else { None };
    let device = PairDevice { name: name.clone(), role: Role::Admin, user, devices_max: 50, ..PairDevice::default() };
    harness.ask(device, move |harness, view| {
        if user.is_none() {
            harness.known.devices.push(view.id);
            harness.learn(format!("device/{}", view.id), name);
        }
    });
}

fn remove_device(harness: &mut Harness) {
    let known = harness.known.devices.clone();
    let Some(device) = harness.rng.any(&known) else { return };
    harness.known.devices.retain(|id| *id != device);
    let fact = harness.facts.submit(format!("device/{device}"), GONE);
    harness.ask(RemoveDevice(device), move |harness, ()| harness.facts.acknowledge(fact));
}
