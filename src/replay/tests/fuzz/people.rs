//! Users, their keys and agents, and calls of hooks, at random.

use agentsvc_components::hook::{HookCallId, HookKind};
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::pairing::DeviceId;
use agentsvc_components::people::{ApiKey, User};
use agentsvc_components::sign_in::{Profile, SignInId, SignInSession};
use agentsvc_components::{Actor, Timestamp};
use agentsvc_systems::Engine;
use agentsvc_systems::agent::SetOwner;
use agentsvc_systems::hook::{ReleaseHookCall, SendHookCall};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::pairing::{NotifyDevices, PairDevice, RemoveDevice};
use agentsvc_systems::people::{
    ConfiguredUser, CreateKey, CreateUser, Identity, NoteKeyUse, SetConfiguredUsers, UpdateUser, UserFields,
};
use agentsvc_systems::sign_in::{SignIn, Who};

use super::{Fuzz, ask};

impl Fuzz {
    pub(super) fn of_people(&mut self, engine: &mut Engine, now: Timestamp) {
        let (user, key, api) = (UserId(self.some(b'1')), KeyId(self.some(b'2')), Actor::Api);
        match self.random.below(17) {
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
            8 => ask(engine, Actor::System, self.sign_in()),
            9 => ask(engine, api, Remove::<SignInSession>(SignInId(self.some(b'4')))),
            11 => {
                let user = self.random.one_in(2).then_some(user);
                let (name, platform) = (self.text(), "ios".to_owned());
                let pair =
                    PairDevice { name, platform, role: Role::Admin, user, devices_max: 9, ..PairDevice::default() };
                ask(engine, api, pair);
            }
            12 => ask(engine, api, RemoveDevice(DeviceId(self.some(b'5')))),
            13 => {
                let (title, message) = (self.text(), self.text());
                ask(engine, api, NotifyDevices { title, message, can_send: true });
            }
            10 => ask(engine, api, ReleaseHookCall(HookCallId(self.some(b'^')))),
            _ => {
                let call = self.hook_call();
                ask(engine, api, call);
            }
        }
    }

    fn sign_in(&mut self) -> SignIn {
        let subject = format!("s{}", self.random.below(9));
        let email = self.random.one_in(2).then(|| format!("{subject}@example.com"));
        let may_join = self.random.one_in(2).then_some(Role::User);
        let profile = Profile { provider: "id".into(), subject: subject.as_str().into(), ..Profile::default() };
        let identity = Identity { issuer: "https://id.example".to_owned(), subject, email, may_join };
        let (who, client) = (Who::Identity(identity), "127.0.0.1".to_owned());
        SignIn { who, profile, hash: [7; 32], client, lasts_ms: 60_000 }
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
