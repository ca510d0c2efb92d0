//! Where webhooks are found: by the events they want; and deliveries: by webhook, and those that have ended by their end.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::webhook::{Delivery, DeliveryId, DeliveryState, Webhook, WebhookId};
use bevy_ecs::prelude::World;
use uuid::Uuid;

use super::{error_codes, limits, words};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Mirrored, Put, indexed, put_under, state};
use crate::kernel::job::Jobs;
use crate::kernel::quota::Quota;

/// Every webhook.
pub(super) type Webhooks = Entities<Webhook>;
/// Every delivery.
pub(super) type Deliveries = Entities<Delivery>;

/// What webhooks may take.
pub(super) const QUOTA: Quota = Quota {
    count: limits::WEBHOOKS_MAX,
    bytes: limits::WEBHOOKS_BYTES_MAX,
    what: "webhooks",
    code: error_codes::WEBHOOKS_FULL,
};

indexed!(Webhook: WebhookPlaces, "webhook");

indexed!(Delivery: DeliveryPlaces, "delivery");

/// Webhooks that are enabled, by the words of their events.
#[derive(Debug, Default, PartialEq)]
pub struct WebhookPlaces(BTreeMap<&'static str, BTreeSet<WebhookId>>);

impl WebhookPlaces {
    /// Does none want any event?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that want the event of this word, in the order of their creation.
    pub(super) fn wanting(&self, word: &str) -> BTreeSet<WebhookId> {
        [word, words::ALL].into_iter().filter_map(|word| self.0.get(word)).flatten().copied().collect()
    }
}

/// The words of the events that a webhook gets.
fn words_of(webhook: &Webhook) -> impl Iterator<Item = &'static str> + '_ {
    webhook.events.iter().filter(|_| webhook.enabled).filter_map(|event| words::parse(event))
}

impl Mirrored<Webhook> for WebhookPlaces {
    fn place(&mut self, id: WebhookId, webhook: &Webhook, is_in: bool) {
        words_of(webhook).for_each(|word| put_under(&mut self.0, word, id, is_in));
    }
}

/// Deliveries by webhook.
#[derive(Debug, Default, PartialEq)]
pub struct DeliveryPlaces {
    of: BTreeSet<(WebhookId, DeliveryId)>,
    ended: BTreeSet<(WebhookId, Timestamp, DeliveryId)>,
}

/// The first of all ids of deliveries.
pub(super) const FIRST: DeliveryId = DeliveryId(Uuid::nil());
/// The last of all ids of deliveries.
const LAST: DeliveryId = DeliveryId(Uuid::max());

impl DeliveryPlaces {
    /// The deliveries of a webhook, newest first, those before `before`.
    pub(super) fn of(&self, id: WebhookId, before: Option<DeliveryId>) -> impl Iterator<Item = DeliveryId> + '_ {
        let end = before.map_or_else(|| (id, LAST), |before| (id, before));
        self.of.range((id, FIRST)..end).rev().map(|(_, delivery)| *delivery)
    }

    /// The ended deliveries of a webhook beyond those that are kept, the ones that ended first.
    pub(super) fn beyond(&self, id: WebhookId) -> Vec<DeliveryId> {
        let all = (id, Timestamp(i64::MIN), FIRST)..=(id, Timestamp(i64::MAX), LAST);
        let ended = self.ended.range(all).map(|(.., delivery)| *delivery);
        let count = ended.clone().count().saturating_sub(limits::WEBHOOK_DELIVERIES_KEPT_MAX);
        ended.take(count).collect()
    }
}

impl Mirrored<Delivery> for DeliveryPlaces {
    fn place(&mut self, id: DeliveryId, delivery: &Delivery, is_in: bool) {
        self.of.put((delivery.webhook, id), is_in);
        if let Some(at) = delivery.ended_at {
            self.ended.put((delivery.webhook, at, id), is_in);
        }
    }
}

/// Says which index is wrong, and which delivery lacks its webhook or its job ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Webhook>(world, faults, |world, id, _, faults| {
        let over = world.resource::<Deliveries>().beyond(id).len();
        faults.that(over == 0, || format!("webhook {id}: {over} ended deliveries too many"));
    });
    QUOTA.check(world.resource::<Webhooks>().used, faults);
    entities::check::<Delivery>(world, faults, |world, id, delivery, faults| {
        let has_webhook = state::<Webhook>(world, delivery.webhook).is_some();
        faults.that(has_webhook, || format!("delivery {id}: its webhook does not exist"));
        let has_job = world.resource::<Jobs>().get(JobId(id.0)).is_some();
        let is_open = delivery.state == DeliveryState::Pending;
        faults.that(has_job == is_open, || format!("delivery {id}: {:?}, with a job: {has_job}", delivery.state));
        faults.that(delivery.ended_at.is_none() == is_open, || format!("delivery {id}: {delivery:?}"));
    });
}
