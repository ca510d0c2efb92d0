//! The client makes webhooks, and their receivers answer, fail and refuse.

use agentsvc_components::kernel::job::TryEnd;
use agentsvc_components::webhook::{Mount, Webhook};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::webhook::{CreateWebhook, UpdateWebhook, WebhookFields};

use super::action::What;
use super::facts::GONE;
use super::harness::Harness;

/// Webhooks that the client makes at most: each multiplies what happens.
const WEBHOOKS: usize = 3;

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    let known = harness.known.webhooks.clone();
    let name = harness.text("hook");
    let events = harness.rng.pick(&["all", "agent.spawned", "trigger_fired", "message.completed", "workflow_failed"]);
    if what == What::NewWebhook {
        if known.len() >= WEBHOOKS {
            return;
        }
        let fields = WebhookFields {
            name: Some(name.clone()),
            url: Some("https://hooks.example/".to_owned()),
            events: Some(vec![events.to_owned()]),
            secret: harness.rng.chance(50).then(|| Some("sealed".to_owned())),
            enabled: None,
        };
        let mount = harness.rng.pick(&[Mount::Webhooks, Mount::Events]);
        return harness.ask(CreateWebhook { mount, fields }, move |harness, view| {
            harness.known.webhooks.push(view.id);
            harness.learn(format!("webhook/{}", view.id), name);
        });
    }
    let Some(webhook) = harness.rng.any(&known) else { return };
    let key = format!("webhook/{webhook}");
    if what == What::RemoveWebhook {
        harness.known.webhooks.retain(|id| *id != webhook);
        let fact = harness.facts.submit(key, GONE);
        return harness.ask(Remove::<Webhook>(webhook), move |harness, ()| harness.facts.acknowledge(fact));
    }
    let fact = harness.facts.submit(key, name.as_str());
    let enabled = harness.rng.pick(&[None, Some(true), Some(false)]);
    let events = harness.rng.chance(30).then(|| vec![events.to_owned()]);
    let fields = WebhookFields { name: Some(name), enabled, events, ..WebhookFields::default() };
    harness.ask(UpdateWebhook { webhook, fields }, move |harness, _| harness.facts.acknowledge(fact));
}

/// What becomes of a try.
pub(crate) fn answer(harness: &mut Harness) -> TryEnd {
    let report = |status: u16| format!("{{\"status\":{status},\"took_ms\":3}}");
    match harness.rng.below(10) {
        0 => TryEnd::Failed(report(410)),
        1 => TryEnd::Lost("it took too long".to_owned()),
        2 | 3 => TryEnd::Retry { after_ms: harness.rng.chance(50).then_some(5_000), reason: report(503) },
        _ => TryEnd::Done(report(200)),
    }
}
