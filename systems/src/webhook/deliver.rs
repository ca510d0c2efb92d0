//! Events become deliveries, and deliveries come to their ends.

use std::sync::Arc;

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use agentsvc_components::agent::Agent;
use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::webhook::{Delivery, DeliveryId, DeliveryState, DeliveryTry, Webhook, WebhookId};
use agentsvc_components::{AgentId, Timestamp};

use super::index::{Deliveries, Webhooks};
use super::{audit_kinds, change, limits, words};
use crate::agent::holder_of;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::entities;
use crate::kernel::index;
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};
use crate::kernel::outbox::Emit;
use crate::trigger::TriggerFired;

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
    is_shared: true,
    is_ordered: false,
    count_max: limits::DELIVERIES_OPEN_MAX,
    subject_count_max: limits::WEBHOOK_DELIVERIES_OPEN_MAX,
    subject_bytes_max: limits::WEBHOOK_DELIVERIES_BYTES_MAX,
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
pub(super) fn happened(world: &mut World, EventEnvelope { event, at, holder, .. }: &EventEnvelope) {
    if !world.resource::<Webhooks>().is_empty() {
        send(world, words::word_of(event.kind()), (event.agent(), *holder), *at, || words::data_of(event));
    }
}

/// A trigger has begun a turn.
pub(super) fn trigger_fired(world: &mut World, fired: &TriggerFired) {
    if !world.resource::<Webhooks>().is_empty() {
        let TriggerFired { trigger, agent, turn, at } = *fired;
        let ids = [("trigger_id", trigger.0), ("agent_id", agent.0), ("turn_id", turn.0)];
        let data = || ids.into_iter().map(|(key, id)| (key.to_owned(), json!(id))).collect();
        let holder = index::agent(world, agent).ok().map(|agent| holder_of(world, agent));
        send(world, words::TRIGGER_FIRED, (Some(agent), holder), at, data);
    }
}

/// Whoever fills the places of a webhook with events leaves some to the events of others: a delivery takes the share of `holder`.
fn send(
    world: &mut World,
    word: &'static str,
    (agent, holder): (Option<AgentId>, Option<Holder>),
    at: Timestamp,
    data: impl FnOnce() -> Map<String, Value>,
) {
    let mut wanting = world.resource::<Webhooks>().wanting(word);
    wanting.retain(|id| {
        let has_room = job::has_room(world, NAME, id.0, holder);
        if !has_room {
            drop_one(world, *id);
        }
        has_room
    });
    if wanting.is_empty() {
        return;
    }
    let name = agent.and_then(|agent| index::agent(world, agent).ok()).and_then(|at| world.get::<Agent>(at));
    let body: Arc<str> = words::body(word, at, data(), name.map(|agent| &*agent.name)).into();
    for id in wanting {
        let new = NewJob { subject: id.0, owner: None, holder, input: Arc::clone(&body) };
        match job::add(world, NAME, new) {
            Ok(job) => {
                let (event_type, state) = (word.into(), DeliveryState::Pending);
                let (tries, tried, ended_at) = (Vec::new(), 0, None);
                let delivery = Delivery { webhook: id, event_type, created_at: at, state, tries, tried, ended_at };
                let entity = world.spawn((DeliveryId(job.0), delivery)).id();
                world.mark(entity);
            }
            Err(_) => drop_one(world, id),
        }
    }
}

/// Counts an event that is not delivered. No index knows of the count.
fn drop_one(world: &mut World, id: WebhookId) {
    let Some(entity) = world.resource::<Webhooks>().get(id) else { return };
    if let Some(mut webhook) = world.get_mut::<Webhook>(entity) {
        webhook.dropped += 1;
    }
    world.mark(entity);
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
        JobEvent::Unknown => (DeliveryState::Failed, "the outcome is unknown".to_owned()),
    };
    // What no performer reports, such as a deadline that passed, says nothing of the receiver.
    let report = serde_json::from_str::<TryReport>(&text).ok();
    let was_asked = report.is_some();
    let a_try = tried(now, report.unwrap_or_else(|| TryReport { error: Some(text), ..TryReport::default() }));
    change_delivery(world, id, |delivery| {
        (delivery.state, delivery.tried) = (state, of.tries);
        delivery.ended_at = (state != DeliveryState::Pending).then_some(now);
        if delivery.tries.len() == limits::DELIVERY_TRIES_KEPT_MAX {
            delivery.tries.remove(0);
        }
        delivery.tries.push(a_try);
    });
    if state == DeliveryState::Delivered {
        if state_of(world, webhook).is_some_and(|webhook| webhook.failing_since.is_some()) {
            change_webhook(world, webhook, |webhook| (webhook.failing_since, webhook.last_failed_at) = (None, None));
        }
    } else if was_asked {
        failed(world, webhook, now);
    }
    trim(world, webhook);
}

/// A try as it is kept.
fn tried(at: Timestamp, TryReport { status, took_ms, error }: TryReport) -> DeliveryTry {
    let cut = |error: String| error[..error.floor_char_boundary(limits::DELIVERY_ERROR_BYTES_MAX)].into();
    DeliveryTry { at, status, took_ms, error: error.map(cut) }
}

/// The state of a webhook.
fn state_of(world: &World, id: WebhookId) -> Option<&Webhook> {
    entities::state::<Webhook>(world, id)
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

/// A try has failed: a webhook of which all have failed for a day is disabled. A pause between two tries, or a clock that was
/// set back, begins the day anew.
fn failed(world: &mut World, id: WebhookId, now: Timestamp) {
    let Some(webhook) = state_of(world, id).filter(|webhook| webhook.enabled) else { return };
    let is_going_on = |last: Timestamp| last <= now && now.ms_since(last) <= limits::WEBHOOK_FAILING_GAP_MS_MAX as u64;
    let since = webhook.failing_since.filter(|_| webhook.last_failed_at.is_some_and(is_going_on)).unwrap_or(now);
    let name = webhook.name.clone();
    change_webhook(world, id, |webhook| (webhook.failing_since, webhook.last_failed_at) = (Some(since), Some(now)));
    if now.ms_since(since) < limits::WEBHOOK_FAILING_MS_MAX as u64 {
        return;
    }
    let reason = format!("all deliveries have failed since {since}");
    change_webhook(world, id, |webhook| {
        (webhook.enabled, webhook.disabled_reason) = (false, Some(reason.as_str().into()));
    });
    cancel_open(world, id);
    change::note(world, audit_kinds::WEBHOOK_DISABLED, id, json!({ "name": name, "reason": reason }));
    let payload = json!({ "webhook_id": id, "name": name, "reason": reason }).to_string().into();
    let event_type = "webhook_disabled".to_owned();
    world.event(Event::Custom { event_type, agent: None, payload, by: None });
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
