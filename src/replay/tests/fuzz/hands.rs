//! Hands, activated and changed at random.

use agentsvc_components::Actor;
use agentsvc_components::hand::{HandInstance, HandInstanceId, HandValue, HandVariable};
use agentsvc_systems::hand::prepare::NewMember;
use agentsvc_systems::hand::values::Config;
use agentsvc_systems::hand::{ActivateHand, CountHands, PauseHand, ResumeHand, SetHandConfig};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::{Engine, manifest};

use super::{Fuzz, ask};

/// What may make an agent of a hand act by itself.
const WAKES: &[&str] = &["", "schedule = { periodic = { cron = \"every 1m\" } }\n", "[autonomous]\nmax_restarts = 1\n"];

impl Fuzz {
    pub(super) fn of_hands(&mut self, engine: &mut Engine) {
        let (instance, api) = (HandInstanceId(self.some(b'H')), Actor::Api);
        match self.random.below(8) {
            0 | 1 => {
                let command = self.hand();
                ask(engine, api, command);
            }
            2 => ask(engine, api, PauseHand(instance)),
            3 => ask(engine, api, ResumeHand(instance)),
            4 | 5 => {
                let [was, config] = [self.values(), self.values()];
                let environment = vec![HandVariable { name: "TOKEN".into(), sealed: None }];
                let settings_text = self.text().into();
                ask(engine, api, SetHandConfig { instance, was, config, environment, settings_text });
            }
            6 => ask(engine, api, Remove::<HandInstance>(instance)),
            _ => ask(engine, api, CountHands),
        }
    }

    /// A hand with up to three agents; some of them have one name, and the coordinator may be none of them.
    fn hand(&mut self) -> ActivateHand {
        let hand = self.random.of(&["desk", "press"]);
        let count = self.random.below(4);
        let members = (0..count).map(|_| {
            let (role, wakes) = (self.random.of(&["main", "helper", "clerk"]), self.random.of(WAKES));
            let text = format!("name = \"{hand}-{role}\"\n{wakes}");
            let parsed = manifest::parse(&text).unwrap();
            let name = format!("{hand}:{role}").into();
            NewMember { role: role.into(), name, invoke_hint: "".into(), manifest: parsed.manifest, text }
        });
        let members = members.collect();
        ActivateHand {
            hand: hand.into(),
            version: "1".into(),
            members,
            coordinator: self.random.below(3) as u32,
            config: self.values(),
            environment: Vec::new(),
            settings_text: "".into(),
        }
    }

    fn values(&mut self) -> Config {
        let value = HandValue { text: self.text().into(), is_sealed: self.random.one_in(2) };
        if self.random.one_in(2) { Config::new() } else { Config::from([("tone".into(), value)]) }
    }
}
