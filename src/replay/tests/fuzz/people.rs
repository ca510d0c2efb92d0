//! Users, their keys and agents, and calls of hooks, at random.

use agentsvc_components::hook::{HookCallId, HookKind};
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::people::{ApiKey, User};
use agentsvc_components::{Actor, Timestamp};
use agentsvc_systems::Engine;
use agentsvc_systems::agent::SetOwner;
use agentsvc_systems::hook::{ReleaseHookCall, SendHookCall};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::people::{
    ConfiguredUser, CreateKey, CreateUser, NoteKeyUse, SetConfiguredUsers, UpdateUser, UserFields,
};

use super::{Fuzz, ask};

impl Fuzz {
    pub(super) fn of_people(&mut self, engine: &mut Engine, now: Timestamp) {
        let (user, key, api) = (UserId(self.some(b'1')), KeyId(self.some(b'2')), Actor::Api);
        match self.random.below(11) {
            0 => {
                let fields = self.user();
                ask(engine, api, CreateUser(fields));
            }
            1 => {
                let fields = self.user();
                ask(engine, api, UpdateUser { user, fields });
            }
            2 => ask(engine, api, Remove::<User>(user)),
            3 => {
                let user = self.random.one_in(2).then_some(user);
                ask(engine, api, CreateKey { name: self.text(), role: Role::Admin, user, ..CreateKey::default() });
            }
            4 => ask(engine, api, Remove::<ApiKey>(key)),
            5 => ask(engine, Actor::System, NoteKeyUse { key, at: now }),
            6 => {
                let user = self.random.one_in(3).then_some(user);
                ask(engine, api, SetOwner { agent: self.agent(), user });
            }
            7 => {
                let role = self.random.of(&Role::ALL);
                let user =
                    ConfiguredUser { name: "conf".to_owned(), role, channel_bindings: Vec::new(), key_hash: None };
                ask(engine, Actor::System, SetConfiguredUsers(vec![user]));
            }
            8 => ask(engine, api, ReleaseHookCall(HookCallId(self.some(b'^')))),
            _ => {
                let call = self.hook_call();
                ask(engine, api, call);
            }
        }
    }

    fn user(&mut self) -> UserFields {
        let role = Some(self.random.of(&Role::ALL));
        UserFields { name: Some(self.text()), role, channel_bindings: None }
    }

    fn hook_call(&mut self) -> SendHookCall {
        let message = self.text();
        SendHookCall {
            id: HookCallId(self.random.uuid()),
            agent: self.agent(),
            kind: self.random.of(&[HookKind::Agent, HookKind::Wake]),
            waits: false,
            session: None,
            key: if self.random.one_in(2) { format!("k{}", self.random.below(9)) } else { String::new() },
            digest: message.clone(),
            message,
            taint: Taint::EVENT,
            found: Vec::new(),
            timeout_ms: 10_000,
            model: None,
            target: None,
            held: self.random.one_in(4),
            trace: None,
        }
    }
}
