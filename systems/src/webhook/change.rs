//! A webhook is made, changes, and goes.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::webhook::{Mount, Webhook, WebhookId};
use agentsvc_components::{Refusal, Timestamp};

use super::index::{QUOTA, Webhooks};
use super::list::WebhookView;
use super::{audit_kinds, deliver, limits, words};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{Removable, Remove, View, change, find, state};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::kernel::text;

/// What a client says of a webhook. A field that is left out has its default when the webhook is made, and stays as it is
/// when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookFields {
    /// Its name. Default: the host of the URL.
    pub name: Option<String>,
    /// Where events are posted; a new webhook needs it.
    pub url: Option<String>,
    /// The events that it wants. Default: all.
    pub events: Option<Vec<String>>,
    /// The secret, sealed by the vault; `Some(None)` takes it away.
    #[serde(with = "crate::kernel::patch")]
    pub secret: Option<Option<String>>,
    /// Are events delivered? Default: yes.
    pub enabled: Option<bool>,
}

impl WebhookFields {
    /// Puts the fields into `webhook`, all or none.
    fn put_into(self, webhook: &mut Webhook, now: Timestamp) -> Result<(), Refusal> {
        let mut changed = webhook.clone();
        if let Some(url) = self.url {
            let url = checked_url(&url)?;
            if url != changed.url {
                forgive(&mut changed);
            }
            changed.url = url;
        }
        if let Some(name) = self.name {
            changed.name = text::name("name", &name, limits::WEBHOOK_NAME_BYTES_MAX)?;
        }
        if let Some(events) = self.events {
            changed.events = words::checked(&events)?;
        }
        if let Some(secret) = self.secret {
            changed.secret = secret.map(Into::into);
        }
        if let Some(enabled) = self.enabled {
            changed.enabled = enabled;
            if enabled {
                forgive(&mut changed);
            }
        }
        changed.updated_at = now;
        *webhook = changed;
        Ok(())
    }
}

/// Forgets that tries have failed.
fn forgive(webhook: &mut Webhook) {
    (webhook.failing_since, webhook.last_failed_at, webhook.disabled_reason) = (None, None, None);
}

/// Whether the host may be reached was looked at outside.
fn checked_url(url: &str) -> Result<Box<str>, Refusal> {
    text::check_length("url", url, limits::WEBHOOK_URL_BYTES_MAX)?;
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(Refusal::bad_field("url", "url must begin with http:// or https://"));
    }
    Ok(url.into())
}

/// The host in a URL, and its port.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    &rest[..rest.floor_char_boundary(end.min(limits::WEBHOOK_NAME_BYTES_MAX))]
}

/// Makes a webhook (spec 3, Webhooks).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CreateWebhook {
    /// Under which routes it is managed.
    pub mount: Mount,
    /// What is known of it.
    pub fields: WebhookFields,
}

command!(write "create_webhook" CreateWebhook => WebhookView, Root, |it, world| Answer::stored(create(world, it)));

fn create(world: &mut World, CreateWebhook { mount, mut fields }: CreateWebhook) -> Result<WebhookView, Refusal> {
    let Some(url) = &fields.url else { return Err(Refusal::bad_field("url", "url is missing")) };
    fields.name.get_or_insert_with(|| host_of(url).to_owned());
    fields.events.get_or_insert_with(|| vec![words::ALL.to_owned()]);
    fields.enabled.get_or_insert(true);
    let now = world.resource::<Now>().0;
    let mut webhook = Webhook { mount, created_at: now, ..Webhook::default() };
    fields.put_into(&mut webhook, now)?;
    QUOTA.admit(world.resource::<Webhooks>().used, 1, webhook.bytes())?;
    let details = json!({ "name": webhook.name, "url_host": host_of(&webhook.url), "events": webhook.events });
    let id: WebhookId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, webhook)).id();
    world.mark(entity);
    note(world, audit_kinds::WEBHOOK_CREATED, id, details);
    WebhookView::seen(world, id)
}

/// Changes a webhook, all fields or none. One that is switched off loses its open deliveries; one that is switched on begins
/// anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateWebhook {
    /// Which.
    pub webhook: WebhookId,
    /// What.
    pub fields: WebhookFields,
}

command!(write "update_webhook" UpdateWebhook => WebhookView, Root, |it, world| Answer::stored(update(world, it)));

fn update(world: &mut World, UpdateWebhook { webhook: id, fields }: UpdateWebhook) -> Result<WebhookView, Refusal> {
    let entity = find::<Webhook>(world, id)?;
    let Some(mut webhook) = state::<Webhook>(world, id).cloned() else { return Err(Refusal::not_found("webhook", id)) };
    let (before, has_new_secret) = (webhook.bytes(), fields.secret.is_some());
    fields.put_into(&mut webhook, world.resource::<Now>().0)?;
    QUOTA.admit(world.resource::<Webhooks>().used, 0, webhook.bytes().saturating_sub(before))?;
    let details = json!({
        "name": webhook.name, "url_host": host_of(&webhook.url), "events": webhook.events, "enabled": webhook.enabled,
        "secret_changed": has_new_secret,
    });
    let is_off = !webhook.enabled;
    change(world, entity, |it: &mut Webhook| *it = webhook);
    if is_off {
        deliver::cancel_open(world, id);
    }
    note(world, audit_kinds::WEBHOOK_UPDATED, id, details);
    WebhookView::seen(world, id)
}

impl Removable for Webhook {
    const REMOVE: &'static str = "remove_webhook";
    const PLACE: Place<Remove<Self>> = Place::Root;
    type Reply = ();

    fn removed(self, world: &mut World, id: WebhookId) {
        deliver::forget(world, id);
        note(world, audit_kinds::WEBHOOK_DELETED, id, json!({ "name": self.name }));
    }
}

/// Puts what became of a webhook on the audit trail. Its whole URL is not there: it may hold a secret.
pub(super) fn note(world: &mut World, kind: AuditKind, id: WebhookId, mut details: Value) {
    details["webhook"] = json!(id);
    world.audit(kind, None, details);
}
