//! The client activates hands, whose agents act by themselves, pauses and resumes them, changes their settings and ends them.

use std::collections::BTreeMap;

use agentsvc_components::hand::HandInstance;
use agentsvc_systems::hand::prepare::NewMember;
use agentsvc_systems::hand::{ActivateHand, PauseHand, ResumeHand, SetHandConfig};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::manifest;

use super::action::What;
use super::facts::GONE;
use super::harness::Harness;

/// Instances that the client has at most: each acts by itself.
const INSTANCES: usize = 3;
/// Agents of a hand.
const ROLES: [&str; 2] = ["main", "helper"];

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    if what == What::ActivateHand {
        if harness.known.hands.len() >= INSTANCES {
            return;
        }
        let hand = harness.rng.pick(&["desk", "press"]);
        let command = ActivateHand {
            hand: hand.into(),
            version: "1".into(),
            members: ROLES.iter().map(|role| member(hand, role)).collect(),
            coordinator: 0,
            config: BTreeMap::new(),
            environment: Vec::new(),
            settings_text: "".into(),
        };
        return harness.ask(command, move |harness, view| {
            harness.known.hands.push(view.id);
            harness.learn(format!("hand/{}", view.id), "running");
        });
    }
    let known = harness.known.hands.clone();
    let Some(instance) = harness.rng.any(&known) else { return };
    let key = format!("hand/{instance}");
    match what {
        What::PauseHand => {
            let fact = harness.facts.submit(key, "paused");
            harness.ask(PauseHand(instance), move |harness, _| harness.facts.acknowledge(fact));
        }
        What::ResumeHand => {
            let fact = harness.facts.submit(key, "running");
            harness.ask(ResumeHand(instance), move |harness, _| harness.facts.acknowledge(fact));
        }
        What::SetHand => {
            let (was, config, environment) = Default::default();
            let settings_text = harness.text("Tone").into();
            harness.ask(SetHandConfig { instance, was, config, environment, settings_text }, |_, _| {});
        }
        _ => {
            harness.known.hands.retain(|id| *id != instance);
            let fact = harness.facts.submit(key, GONE);
            harness.ask(Remove::<HandInstance>(instance), move |harness, ()| harness.facts.acknowledge(fact));
        }
    }
}

/// An agent of a hand; the first acts every minute.
fn member(hand: &str, role: &str) -> NewMember {
    let wakes = if role == ROLES[0] { "schedule = { periodic = { cron = \"every 1m\" } }\n" } else { "" };
    let text = format!("name = \"{hand}-{role}\"\nsystem_prompt = \"You work for {hand}.\"\n{wakes}");
    let parsed = manifest::parse(&text).expect("it is a manifest");
    NewMember {
        role: role.into(),
        name: format!("{hand}:{role}").into(),
        invoke_hint: "".into(),
        manifest: parsed.manifest,
        text,
    }
}
