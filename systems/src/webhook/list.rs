//! Webhooks and deliveries are read and listed.

use agentsvc_components::kernel::id::JobId;
use agentsvc_components::webhook::{Delivery, DeliveryId, Mount, Webhook, WebhookId};
use agentsvc_components::{Refusal, Timestamp};
use bevy_ecs::prelude::{Entity, World};

use super::index::{Deliveries, Webhooks};
use crate::kernel::command::Place;
use crate::kernel::entities::{List, View, ViewPage, find};
use crate::kernel::index::id_of;
use crate::kernel::job;

/// What the world knows of a webhook. Its secret is sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookView {
    /// Its id.
    pub id: WebhookId,
    /// Its state.
    pub webhook: Webhook,
}

impl View for WebhookView {
    type Kind = Webhook;
    /// Only those that are managed here; `None` lists all.
    type Filter = Option<Mount>;
    const NAMES: [&'static str; 2] = ["get_webhook", "list_webhooks"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), webhook: world.get::<Webhook>(at)?.clone() })
    }

    fn passes(&self, filter: &Option<Mount>) -> bool {
        filter.is_none_or(|mount| self.webhook.mount == mount)
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<Webhooks>();
        let shown = |(_, at): &(WebhookId, Entity)| Self::of(world, *at).is_some_and(|view| view.passes(&list.filter));
        // There are few.
        let total = all.after(None).filter(shown).count();
        Ok(list.filled(world, Some(total), all.after(list.after)))
    }
}

/// What the world knows of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryView {
    /// Its id.
    pub id: DeliveryId,
    /// Its state.
    pub delivery: Delivery,
    /// When it is tried next; `None` when it has ended.
    pub next_try_at: Option<Timestamp>,
}

impl View for DeliveryView {
    type Kind = Delivery;
    /// Those of this webhook.
    type Filter = WebhookId;
    const NAMES: [&'static str; 2] = ["get_delivery", "list_deliveries"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let id: DeliveryId = id_of(world, at);
        let next_try_at = job::due(world, JobId(id.0));
        Some(Self { id, delivery: world.get::<Delivery>(at)?.clone(), next_try_at })
    }

    fn passes(&self, filter: &WebhookId) -> bool {
        self.delivery.webhook == *filter
    }

    /// Newest first.
    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        find::<Webhook>(world, list.filter)?;
        Ok(list.counted(world, |after| world.resource::<Deliveries>().of(list.filter, after)))
    }
}
