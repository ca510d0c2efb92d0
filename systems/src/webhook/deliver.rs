//! Events become deliveries, and deliveries come to their ends.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::webhook::{Delivery, DeliveryId, DeliveryState, DeliveryTry, Webhook, WebhookId};
use agentsvc_components::{AgentId, Timestamp};

use super::index::{Deliveries, Webhooks};
use super::list::webhook;
use super::{audit_kinds, change, limits, words};
use crate::kernel::clock::Now;
use crate::kernel::entities;
use crate::kernel::index;
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};
use crate::kernel::outbox::Emit;
use crate::trigger::TriggerFired;
use agentsvc_components::agent::Agent;

/// Deliveries. One that was under way when the daemon ended is sent again, with the same id.
pub(super) const DELIVERY: JobKind = JobKind {
    name: NAME,
    repeatable: true,
    tries_max: limits::DELIVERY_TRIES_MAX,
    backoff_ms: limits::DELIVERY_BACKOFF_MS,
    backoff_ms_max: limits::DELIVERY_BACKOFF_MS_MAX,
    deadline_ms: limits::DELIVERY_DEADLINE_MS,
    timeout_ms: limits::DELIVERY_TIMEOUT_MS + TIMEOUT_MARGIN_MS,
    lane: limits::DELIVERIES_OUT_MAX,
    subject_lane: limits::WEBHOOK_DELIVERIES_OUT_MAX,
    is_ordered: false,
    count_max: limits::DELIVERIES_OPEN_MAX,
    subject_count_max: limits::WEBHOOK_DELIVERIES_OPEN_MAX,
    input_bytes_max: limits::DELIVERY_BYTES_MAX,
    bytes_max: limits::DELIVERIES_BYTES_MAX,
    settle,
};

/// The name of the kind of jobs.
pub const NAME: &str = "webhook";
/// What a try may take beyond the receiver's time.
const TIMEOUT_MARGIN_MS: u32 = 5_000;

/// How a try ended: what the performer brings, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TryReport {
    /// The status of the receiver's answer.
    pub status: Option<u16>,
    /// Milliseconds that it took.
    pub took_ms: Option<u32>,
    /// Why it failed.
    pub error: Option<String>,
}

/// An event of the world goes to the webhooks that want it.
pub(super) fn happened(world: &mut World, EventEnvelope { event, at, .. }: &EventEnvelope) {
    if !world.resource::<Webhooks>().is_empty() {
        send(world, words::word_of(event.kind()), event.agent(), *at, || words::data_of(event));
    }
}

/// A trigger has begun a turn.
pub(super) fn trigger_fired(world: &mut World, fired: &TriggerFired) {
    if !world.resource::<Webhooks>().is_empty() {
        let TriggerFired { trigger, agent, turn, at } = *fired;
        let data = move || match json!({ "trigger_id": trigger, "agent_id": agent, "turn_id": turn }) {
            serde_json::Value::Object(data) => data,
            _ => serde_json::Map::new(),
        };
        send(world, words::TRIGGER_FIRED, Some(agent), at, data);
    }
}

fn send(
    world: &mut World,
    word: &'static str,
    agent: Option<AgentId>,
    at: Timestamp,
    data: impl FnOnce() -> serde_json::Map<String, serde_json::Value>,
) {
    let wanting = world.resource::<Webhooks>().wanting(word);
    if wanting.is_empty() {
        return;
    }
    let name = agent.and_then(|agent| index::agent(world, agent).ok()).and_then(|at| world.get::<Agent>(at));
    let body = words::body(word, at, data(), name.map(|agent| &*agent.name));
    for id in wanting {
        let new = NewJob { subject: id.0, owner: None, input: body.clone() };
        match job::add(world, NAME, new) {
            Ok(job) => {
                let (event_type, state) = (word.into(), DeliveryState::Pending);
                let delivery = Delivery {
                    webhook: id,
                    event_type,
                    created_at: at,
                    state,
                    tries: Vec::new(),
                    tried: 0,
                    ended_at: None,
                };
                let entity = world.spawn((DeliveryId(job.0), delivery)).id();
                world.mark(entity);
            }
            Err(_) => change_webhook(world, id, |webhook| webhook.dropped += 1),
        }
    }
}

fn change_webhook(world: &mut World, id: WebhookId, change: impl FnOnce(&mut Webhook)) {
    if let Some(entity) = world.resource::<Webhooks>().get(id) {
        entities::change(world, entity, change);
    }
}

fn change_delivery(world: &mut World, id: DeliveryId, change: impl FnOnce(&mut Delivery)) {
    if let Some(entity) = world.resource::<Deliveries>().get(id) {
        entities::change(world, entity, change);
    }
}

/// Hears of a try, or of the end of a delivery.
fn settle(world: &mut World, job: JobId, of: &Job, event: JobEvent) {
    let now = world.resource::<Now>().0;
    let (id, webhook) = (DeliveryId(job.0), WebhookId(of.subject));
    let (state, text) = match event {
        JobEvent::Done(text) => (DeliveryState::Delivered, text),
        JobEvent::Retried(text) => (DeliveryState::Pending, text),
        JobEvent::Failed(text) => (DeliveryState::Failed, text),
        JobEvent::Unknown => (DeliveryState::Failed, "it is not known whether it arrived".to_owned()),
    };
    let a_try = tried(now, &text);
    change_delivery(world, id, |delivery| {
        (delivery.state, delivery.tried) = (state, of.tries);
        delivery.ended_at = (state != DeliveryState::Pending).then_some(now);
        if delivery.tries.len() == limits::DELIVERY_TRIES_KEPT_MAX {
            delivery.tries.remove(0);
        }
        delivery.tries.push(a_try);
    });
    if state == DeliveryState::Delivered {
        if self::webhook(world, webhook).is_some_and(|webhook| webhook.failing_since.is_some()) {
            change_webhook(world, webhook, |webhook| webhook.failing_since = None);
        }
    } else {
        failed(world, webhook, now);
    }
    trim(world, webhook);
}

/// What a performer, or the kernel in its place, says of a try.
fn tried(at: Timestamp, text: &str) -> DeliveryTry {
    let report = serde_json::from_str(text)
        .unwrap_or_else(|_| TryReport { error: Some(text.to_owned()), ..TryReport::default() });
    let TryReport { status, took_ms, error } = report;
    let cut = |error: String| error[..error.floor_char_boundary(limits::DELIVERY_ERROR_BYTES_MAX)].into();
    DeliveryTry { at, status, took_ms, error: error.map(cut) }
}

/// The ended deliveries beyond those that are kept go.
fn trim(world: &mut World, webhook: WebhookId) {
    for id in world.resource::<Deliveries>().beyond(webhook) {
        remove(world, id);
    }
}

fn remove(world: &mut World, id: DeliveryId) {
    if let Some(entity) = world.resource::<Deliveries>().get(id) {
        world.despawn(entity);
    }
}

/// A try has failed: a webhook of which all have failed for a day is switched off.
fn failed(world: &mut World, id: WebhookId, now: Timestamp) {
    let Some(webhook) = webhook(world, id).filter(|webhook| webhook.enabled) else { return };
    match webhook.failing_since {
        None => change_webhook(world, id, |webhook| webhook.failing_since = Some(now)),
        // The clock was set back.
        Some(since) if since > now => change_webhook(world, id, |webhook| webhook.failing_since = Some(now)),
        Some(since) if now.ms_since(since) < limits::DELIVERY_DEADLINE_MS as u64 => {}
        Some(since) => {
            let (name, reason) = (webhook.name.clone(), format!("every try has failed since {since}"));
            change_webhook(world, id, |webhook| {
                (webhook.enabled, webhook.disabled_reason) = (false, Some(reason.as_str().into()));
            });
            cancel_open(world, id);
            change::note(world, audit_kinds::WEBHOOK_DISABLED, id, json!({ "name": name, "reason": reason }));
            let payload = json!({ "webhook_id": id, "name": name, "reason": reason }).to_string().into();
            let event_type = "webhook_disabled".to_owned();
            world.event(Event::Custom { event_type, agent: None, payload, by: None });
        }
    }
}

/// The webhook was switched off: its open deliveries end.
pub(super) fn cancel_open(world: &mut World, webhook: WebhookId) {
    let now = world.resource::<Now>().0;
    job::cancel_all(world, NAME, webhook.0);
    let open = of(world, webhook);
    let is_open = |id: &DeliveryId| {
        entities::state::<Delivery>(world, *id).is_some_and(|delivery| delivery.state == DeliveryState::Pending)
    };
    let open: Vec<_> = open.into_iter().filter(is_open).collect();
    for id in open {
        change_delivery(world, id, |delivery| {
            (delivery.state, delivery.ended_at) = (DeliveryState::Cancelled, Some(now));
        });
    }
    trim(world, webhook);
}

/// The webhook goes, and its deliveries with it.
pub(super) fn forget(world: &mut World, webhook: WebhookId) {
    job::cancel_all(world, NAME, webhook.0);
    of(world, webhook).into_iter().for_each(|id| remove(world, id));
}

fn of(world: &World, webhook: WebhookId) -> Vec<DeliveryId> {
    world.resource::<Deliveries>().of(webhook, None).collect()
}
