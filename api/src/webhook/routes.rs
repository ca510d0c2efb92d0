//! Outbound webhooks, event subscriptions and deliveries (spec 3, Webhooks).

use std::sync::Arc;

use agentsvc_components::webhook::Mount;
use agentsvc_systems::webhook::limits::{WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_URL_BYTES_MAX};
use agentsvc_systems::webhook::{CreateWebhook, UpdateWebhook, WebhookFields, WebhookView};
use serde::Serialize;

use super::error_codes::WEBHOOK_UNREACHABLE;
use super::sender::{TestFailure, WebhookSender};
use super::shape::{DeliveryItem, SubscriptionItem, Tested, WebhookBody, WebhookItem};
use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::crud::{self, Shown};
use crate::http::error::Error;
use crate::http::error_codes::VAULT_UNAVAILABLE;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// The error of a full set.
const FULL: Reply = Reply::error(429, "the limit of webhooks is reached");

pub(crate) const ROUTES: &[Route] = &[
    crud::list::<WebhookItem>("/api/webhooks", "List webhooks"),
    Route::post("/api/webhooks", "Create a webhook", |call| Box::pin(create::<WebhookItem>(call, Mount::Webhooks)))
        .body::<WebhookBody>()
        .replies(&[Reply::json::<WebhookItem>(201, "the webhook"), FULL]),
    crud::list::<SubscriptionItem>("/api/webhooks/events", "List event subscriptions"),
    Route::post("/api/webhooks/events", "Create an event subscription", |call| {
        Box::pin(create::<SubscriptionItem>(call, Mount::Events))
    })
    .body::<WebhookBody>()
    .replies(&[Reply::json::<SubscriptionItem>(201, "the subscription"), FULL]),
    Route::put("/api/webhooks/events/{id}", "Update an event subscription", |call| {
        Box::pin(update::<SubscriptionItem>(call))
    })
    .body::<WebhookBody>()
    .replies(&[Reply::json::<SubscriptionItem>(200, "the updated subscription"), FULL]),
    crud::delete::<SubscriptionItem>("/api/webhooks/events/{id}", "Delete an event subscription"),
    crud::get::<WebhookItem>("/api/webhooks/{id}", "Get a webhook"),
    Route::put("/api/webhooks/{id}", "Update a webhook", |call| Box::pin(update::<WebhookItem>(call)))
        .body::<WebhookBody>()
        .replies(&[Reply::json::<WebhookItem>(200, "the updated webhook"), FULL]),
    crud::delete::<WebhookItem>("/api/webhooks/{id}", "Delete a webhook and its deliveries"),
    Route::post("/api/webhooks/{id}/test", "Send a test to a webhook", |call| Box::pin(test(call))).cost(10).replies(
        &[Reply::json::<Tested>(200, "the receiver responded"), Reply::error(502, "the receiver did not respond")],
    ),
    crud::list::<DeliveryItem>("/api/webhooks/{id}/deliveries", "List the deliveries of a webhook, newest first"),
];

/// The fields of the body, with a URL that may be reached and a secret that is sealed.
async fn fields(call: &Call, mut body: WebhookBody) -> Result<WebhookFields, Error> {
    let sender = call.api.service::<dyn WebhookSender>()?;
    if let Some(url) = body.url.take() {
        check_url(&url)?;
        let vetted = Arc::clone(&sender).vet(url).await;
        body.url = Some(vetted.map_err(|why| Error::bad_field("url", format!("url: {why}")))?);
    }
    let sealed = match body.secret.clone() {
        Some(Some(secret)) => {
            check_secret(&secret)?;
            let sealed = spawn_blocking(move || sender.seal(&secret)).await;
            let sealed = sealed.map_err(|_| Error::internal("the secret could not be encrypted"))?;
            Some(Some(sealed.map_err(|why| Error::of(VAULT_UNAVAILABLE, why))?))
        }
        other => other,
    };
    Ok(body.fields(sealed))
}

fn check_url(url: &str) -> Result<(), Error> {
    let most = WEBHOOK_URL_BYTES_MAX;
    let is_long = || Error::bad_field("url", format!("url is longer than {most} bytes"));
    if url.len() > most { Err(is_long()) } else { Ok(()) }
}

fn check_secret(secret: &str) -> Result<(), Error> {
    let most = WEBHOOK_SECRET_BYTES_MAX;
    if secret.is_empty() {
        return Err(Error::bad_field("secret", "secret must not be empty; null removes it"));
    }
    if secret.len() > most {
        return Err(Error::bad_field("secret", format!("secret is longer than {most} bytes")));
    }
    Ok(())
}

async fn create<S: From<WebhookView> + Serialize>(call: Call, mount: Mount) -> Result<Response, Error> {
    let fields = fields(&call, call.json()?).await?;
    reply::created(&S::from(call.ask(CreateWebhook { mount, fields }).await?))
}

async fn update<S: Shown<View = WebhookView>>(call: Call) -> Result<Response, Error> {
    let (webhook, body) = (call.id("id")?, call.json()?);
    let before = crud::view::<S>(&call, webhook).await?;
    let fields = fields(&call, body).await?;
    let is_change = fields != WebhookFields::default();
    let view = if is_change { call.ask(UpdateWebhook { webhook, fields }).await? } else { before };
    reply::ok(&S::from(view))
}

async fn test(call: Call) -> Result<Response, Error> {
    let view = crud::view::<WebhookItem>(&call, call.id("id")?).await?;
    let webhook_id = view.id.0;
    match call.api.service::<dyn WebhookSender>()?.test(view, call.request_id).await {
        Ok(response_status) => reply::ok(&Tested { status: "sent", response_status, webhook_id }),
        Err(TestFailure::Unreachable(why)) => Err(Error::of(WEBHOOK_UNREACHABLE, why)),
        Err(TestFailure::Refused(why)) => Err(Error::bad_field("url", format!("url: {why}"))),
        Err(TestFailure::Secret(why)) => Err(Error::of(VAULT_UNAVAILABLE, why)),
    }
}
