//! The client switches the dreaming of agents on and off, and starts and stops runs.

use agentsvc_systems::auto_dream::{AbortDream, SetAutoDream, TriggerDream};

use super::action::What;
use super::client::agent;
use super::harness::Harness;

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    let Some(agent) = agent(harness) else { return };
    match what {
        What::SetDream => {
            let enabled = harness.rng.chance(80);
            let fact = harness.facts.submit(format!("dream/{agent}"), enabled.to_string());
            harness.ask(SetAutoDream { agent, enabled }, move |harness, _| harness.facts.acknowledge(fact));
        }
        What::TriggerDream => harness.ask(TriggerDream(agent), |_, _| {}),
        _ => harness.ask(AbortDream(agent), |_, _| {}),
    }
}
