//! Clients of A2A send tasks, send them again, cancel them and want to be told of their end.

use agentsvc_components::a2a::{A2aTaskId, PushTarget};
use agentsvc_components::{Micros, SessionId};
use agentsvc_systems::a2a::{CancelA2aTask, SendA2aTask, SetA2aPush};
use uuid::Uuid;

use super::action::What;
use super::client::agent;
use super::harness::Harness;

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    let known = harness.rng.any(&harness.known.a2a);
    let target =
        |name: &str| PushTarget { id: name.into(), url: "https://hooks.example/".into(), ..Default::default() };
    match (what, known) {
        (What::CancelA2aTask, Some((id, _))) => harness.ask(CancelA2aTask(id), |_, _| {}),
        (What::SetA2aPush, Some((id, _))) => {
            let name = harness.rng.pick(&["a", "b", "c"]);
            harness.ask(SetA2aPush { task: id, target: target(name) }, |_, _| {});
        }
        // What was heard no answer to is sent again, now and then with another text.
        (What::SendA2aTask, Some((_, before))) if harness.rng.chance(20) => {
            let digest = harness.rng.pick(&[before.digest.as_str(), "other"]).to_owned();
            let id = A2aTaskId(Uuid::from_u128(harness.rng.roll().into()));
            harness.ask(SendA2aTask { id, digest, ..before }, |_, _| {});
        }
        (What::SendA2aTask, _) => send(harness, target("first")),
        _ => {}
    }
}

fn send(harness: &mut Harness, target: PushTarget) {
    let Some(agent) = agent(harness) else { return };
    let id = A2aTaskId(Uuid::from_u128(harness.rng.roll().into()));
    let conversation = harness.rng.below(4) as u128;
    let message = harness.text("a guest says");
    let task = SendA2aTask {
        id,
        agent,
        agent_name: "agent".to_owned(),
        client: harness.rng.pick(&["", "@one", "@two", "key:one", "key:two"]).to_owned(),
        context: conversation.to_string(),
        // That of another agent is refused.
        session: SessionId(Uuid::from_u128(0xa2a_0000 + conversation)),
        client_id: None,
        key: if harness.rng.chance(80) { format!("m:{id}") } else { String::new() },
        digest: "one".to_owned(),
        message_id: "m".to_owned(),
        message,
        shielded: None,
        found: Vec::new(),
        push: harness.rng.chance(40).then_some(target),
        daily_limit: Micros(harness.rng.pick(&[0, 0, 1, 1_000_000])),
        trace: None,
    };
    let sent = task.clone();
    harness.ask(task, move |harness, view| harness.known.a2a.push((view.id, sent)));
}
