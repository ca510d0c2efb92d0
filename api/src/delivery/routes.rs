//! Where the answers of schedules, cron jobs, triggers and workflows go.

use std::sync::Arc;

use agentsvc_components::delivery::{SourceKind, Target, TargetKind};
use agentsvc_systems::delivery::limits::{TARGET_SECRET_BYTES_MAX, TARGET_URL_BYTES_MAX, TARGETS_MAX};
use agentsvc_systems::delivery::{GetTargets, SetTargets, Source};

use super::shape::{TargetBody, TargetsBody, TargetsItem, kinds};
use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::error_codes::VAULT_UNAVAILABLE;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::webhook::sender::WebhookSender;

/// What all of them answer.
const SHOWN: Reply = Reply::json::<TargetsItem>(200, "the targets and the newest deliveries");
/// The error of a full set.
const FULL: Reply = Reply::error(429, "the limit of targets is reached");

pub(crate) const ROUTES: &[Route] = &[
    Route::get(
        "/api/schedules/{id}/targets",
        "Get the delivery targets of a schedule and its newest deliveries",
        |call| Box::pin(get(call, SourceKind::Schedule)),
    )
    .replies(&[SHOWN]),
    Route::put("/api/schedules/{id}/targets", "Set the delivery targets of a schedule", |call| {
        Box::pin(put(call, SourceKind::Schedule))
    })
    .body::<TargetsBody>()
    .replies(&[SHOWN, FULL]),
    Route::get(
        "/api/cron/jobs/{id}/targets",
        "Get the delivery targets of a cron job and its newest deliveries",
        |call| Box::pin(get(call, SourceKind::Cron)),
    )
    .replies(&[SHOWN]),
    Route::put("/api/cron/jobs/{id}/targets", "Set the delivery targets of a cron job", |call| {
        Box::pin(put(call, SourceKind::Cron))
    })
    .body::<TargetsBody>()
    .replies(&[SHOWN, FULL]),
    Route::get(
        "/api/triggers/{id}/targets",
        "Get the delivery targets of a trigger and its newest deliveries",
        |call| Box::pin(get(call, SourceKind::Trigger)),
    )
    .replies(&[SHOWN]),
    Route::put("/api/triggers/{id}/targets", "Set the delivery targets of a trigger", |call| {
        Box::pin(put(call, SourceKind::Trigger))
    })
    .body::<TargetsBody>()
    .replies(&[SHOWN, FULL]),
    Route::get(
        "/api/workflows/{id}/targets",
        "Get the delivery targets of a workflow and its newest deliveries",
        |call| Box::pin(get(call, SourceKind::Workflow)),
    )
    .replies(&[SHOWN]),
    Route::put("/api/workflows/{id}/targets", "Set the delivery targets of a workflow", |call| {
        Box::pin(put(call, SourceKind::Workflow))
    })
    .body::<TargetsBody>()
    .replies(&[SHOWN, FULL]),
];

async fn get(call: Call, kind: SourceKind) -> Result<Response, Error> {
    let source = Source::new(kind, call.id("id")?);
    reply::ok(&TargetsItem::from(call.ask(GetTargets(source)).await?))
}

async fn put(call: Call, kind: SourceKind) -> Result<Response, Error> {
    let source = Source::new(kind, call.id("id")?);
    let body: TargetsBody = call.json()?;
    let before = call.ask(GetTargets(source)).await?.targets;
    let missing = || Error::bad_field("delivery_targets", "delivery_targets: missing");
    let given = body.delivery_targets.ok_or_else(missing)?;
    if given.len() > TARGETS_MAX {
        let text = format!("delivery_targets has more than {TARGETS_MAX} entries");
        return Err(Error::bad_field("delivery_targets", text));
    }
    let mut targets = Vec::with_capacity(given.len());
    for (at, body) in given.into_iter().enumerate() {
        targets.push(target(&call, at, body, &before).await?);
    }
    reply::ok(&TargetsItem::from(call.ask(SetTargets { source, targets }).await?))
}

/// The target that a body means, its address vetted and its secrets sealed.
async fn target(call: &Call, at: usize, body: TargetBody, before: &[Target]) -> Result<Target, Error> {
    let bad = |key: &str, why: &str| {
        let field = format!("delivery_targets[{at}].{key}");
        let text = format!("{field}: {why}");
        Error::bad_field(&field, text)
    };
    let need = |key: &str, text: Option<String>| {
        text.filter(|text| !text.is_empty()).map(Box::<str>::from).ok_or_else(|| bad(key, "missing"))
    };
    let maybe = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Box::<str>::from);
    let kind = body.kind.as_deref().and_then(TargetKind::parse);
    let kind = kind.ok_or_else(|| bad("type", &format!("must be one of {}", kinds())))?;
    Ok(match kind {
        TargetKind::Channel => Target::Channel {
            instance: need("channel_type", maybe(body.account_id).map(Into::into).or(body.channel_type))?,
            recipient: maybe(body.recipient),
            thread: maybe(body.thread_id),
        },
        TargetKind::LastChannel => Target::LastChannel,
        TargetKind::LocalFile => Target::LocalFile { path: need("path", body.path)?, append: body.append },
        TargetKind::Email => Target::Email {
            instance: maybe(body.account_id).unwrap_or_else(|| "email".into()),
            to: need("to", body.to)?,
            subject_template: maybe(body.subject_template),
        },
        TargetKind::Webhook => {
            let url = need("url", body.url)?;
            if url.len() > TARGET_URL_BYTES_MAX {
                return Err(bad("url", &format!("longer than {TARGET_URL_BYTES_MAX} bytes")));
            }
            let sender = call.api.service::<dyn WebhookSender>()?;
            let url: Box<str> = sender.vet(url.into()).await.map_err(|why| bad("url", &why))?.into();
            let kept = before.iter().find_map(|target| match target {
                Target::Webhook { url: known, secret, auth_header } if *known == url => {
                    Some((secret.clone(), auth_header.clone()))
                }
                _ => None,
            });
            let (old_secret, old_header) = kept.unwrap_or_default();
            for (key, text) in [("secret", &body.secret), ("auth_header", &body.auth_header)] {
                let is_wrong = |text: &String| {
                    text.is_empty() || text.len() > TARGET_SECRET_BYTES_MAX || text.chars().any(char::is_control)
                };
                if text.as_ref().is_some_and(is_wrong) {
                    return Err(bad(key, &format!("must be one line of 1 to {TARGET_SECRET_BYTES_MAX} bytes")));
                }
            }
            let secret = sealed(call, body.secret).await?.or(old_secret);
            Target::Webhook { url, secret, auth_header: sealed(call, body.auth_header).await?.or(old_header) }
        }
    })
}

async fn sealed(call: &Call, secret: Option<String>) -> Result<Option<Box<str>>, Error> {
    let Some(secret) = secret else { return Ok(None) };
    let sender: Arc<dyn WebhookSender> = call.api.service()?;
    let sealed = spawn_blocking(move || sender.seal(&secret)).await;
    let sealed = sealed.map_err(|_| Error::internal("the secret could not be encrypted"))?;
    sealed.map(|sealed| Some(sealed.into())).map_err(|why| Error::of(VAULT_UNAVAILABLE, why))
}
