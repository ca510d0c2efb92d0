//! External agents are discovered and removed, take messages, and answer, fail and hang.

use agentsvc_components::a2a::outbound::{A2aAgent, A2aCard, A2aDialect, A2aSentState};
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_systems::a2a::outbound::{RegisterA2aAgent, SendToA2aAgent, SentReport};
use agentsvc_systems::kernel::entities::Remove;

use super::action::What;
use super::client::agent;
use super::facts::GONE;
use super::harness::Harness;

/// External agents that the client discovers at most.
const AGENTS: usize = 3;

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    let known = harness.known.external.clone();
    if what == What::DiscoverA2aAgent {
        return discover(harness, known.len());
    }
    let Some(to) = harness.rng.any(&known) else { return };
    if what == What::RemoveA2aAgent {
        harness.known.external.retain(|id| *id != to);
        let fact = harness.facts.submit(format!("external/{to}"), GONE);
        return harness.ask(Remove::<A2aAgent>(to), move |harness, ()| harness.facts.acknowledge(fact));
    }
    let from = if harness.rng.chance(50) { agent(harness) } else { None };
    let sent = harness.known.sent.clone();
    let continues = if harness.rng.chance(20) { harness.rng.any(&sent) } else { None };
    let key = if harness.rng.chance(30) { format!("k{}", harness.rng.below(20)) } else { String::new() };
    let (message, per_minute) = (harness.text("an agent says"), harness.rng.pick(&[1, 1_000]));
    let message = SendToA2aAgent { to, from, message, context: None, continues, key, per_minute };
    harness.ask(message, |harness, view| harness.known.sent.push(view.id));
}

fn discover(harness: &mut Harness, known: usize) {
    // Agents that are known are discovered again, some with another card.
    if known >= AGENTS && harness.rng.chance(50) {
        return;
    }
    let at = harness.rng.below(AGENTS);
    let dialect = harness.rng.pick(&[A2aDialect::V1, A2aDialect::V0, A2aDialect::Tasks, A2aDialect::Rest]);
    let card = A2aCard {
        name: "external".into(),
        endpoint: format!("https://{at}.example/rpc").into(),
        dialect,
        digest: harness.rng.below(2).to_string().into(),
        ..A2aCard::default()
    };
    // The same with each discovery: one that was not acknowledged may be there after a kill.
    let name = format!("external {at}");
    let register =
        RegisterA2aAgent { url: format!("https://{at}.example"), name: Some(name.clone()), card, secret: None };
    harness.ask(register, move |harness, found| {
        if !harness.known.external.contains(&found.view.id) {
            harness.known.external.push(found.view.id);
        }
        harness.learn(format!("external/{}", found.view.id), name);
    });
}

/// What becomes of a try.
pub(crate) fn answer(harness: &mut Harness) -> TryEnd {
    let report = |state: A2aSentState| {
        let (state, remote, result) = (Some(state), Some("remote".to_owned()), Some("an answer".to_owned()));
        serde_json::to_string(&SentReport { state, remote, result, ..SentReport::default() }).unwrap_or_default()
    };
    match harness.rng.below(12) {
        0 => TryEnd::Failed(report(A2aSentState::Rejected)),
        1 => TryEnd::Lost("it took too long".to_owned()),
        2 => TryEnd::Failed("it is no agent".to_owned()),
        3..=5 => TryEnd::Retry { after_ms: None, reason: report(A2aSentState::Working) },
        6 => TryEnd::Done(report(A2aSentState::InputRequired)),
        7 | 8 => TryEnd::Done(report(A2aSentState::Working)),
        _ => TryEnd::Done(report(A2aSentState::Completed)),
    }
}
