//! Instances of hands (spec 2, Hands).

use std::collections::BTreeMap;

use agentsvc_components::hand::{HandInstance, HandInstanceId};
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_systems::hand::{HandView, PauseHand, ResumeHand};
use agentsvc_systems::kernel::entities::{Get, List, Remove};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::routes::{blocking, hands};
use super::shape::{InstanceItem, InstanceList};
use crate::browser::browsers::{Browsers, OpenPage};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::memory::store::MemoryStore;

/// What the values of a dashboard cost the client's rate budget.
const STATS_COST: u32 = 5;

const NONE: Reply = Reply::error(404, "no such instance");

pub(crate) const ROUTES: &[Route] =
    &[
        Route::get("/api/hands/active", "List instances of hands", |call| Box::pin(list(call)))
            .replies(&[Reply::json::<InstanceList>(200, "the instances, in the order of activation")]),
        Route::get("/api/hands/instances/{id}", "Get an instance of a hand", |call| Box::pin(show(call)))
            .replies(&[Reply::json::<InstanceItem>(200, "the instance"), NONE]),
        Route::delete("/api/hands/instances/{id}", "Deactivate an instance: remove it and its agents", |call| {
            Box::pin(deactivate(call))
        })
        .replies(&[Reply::json::<Deactivated>(200, "deactivated"), NONE]),
        Route::post("/api/hands/instances/{id}/pause", "Pause an instance", |call| Box::pin(pause(call))).replies(&[
            Reply::json::<InstanceItem>(200, "the paused instance"),
            NONE,
            Reply::error(409, "already paused"),
        ]),
        Route::post("/api/hands/instances/{id}/resume", "Resume an instance", |call| Box::pin(resume(call))).replies(
            &[Reply::json::<InstanceItem>(200, "the running instance"), NONE, Reply::error(409, "not paused")],
        ),
        Route::get("/api/hands/instances/{id}/stats", "Get the statistics of an instance", |call| {
            Box::pin(stats(call))
        })
        .cost(STATS_COST)
        .replies(&[Reply::json::<Stats>(200, "counts, and the metrics of the dashboard"), NONE]),
        Route::get("/api/hands/instances/{id}/browser", "Get the browser of an instance", |call| {
            Box::pin(browser(call))
        })
        .cost(STATS_COST)
        .replies(&[Reply::json::<Browser>(200, "the browser"), NONE]),
    ];

/// An instance that was removed.
#[derive(Serialize, JsonSchema)]
struct Deactivated {
    /// `deactivated`
    status: &'static str,
    instance_id: Uuid,
}

/// The statistics of an instance.
#[derive(Serialize, JsonSchema)]
struct Stats {
    instance_id: Uuid,
    hand_id: Box<str>,
    /// `running`, `paused` or `error`.
    status: &'static str,
    /// Seconds since it was activated.
    uptime_secs: u64,
    /// Turns of its agents that have ended.
    events_processed: u64,
    /// Those of them that failed.
    errors: u64,
    /// Metrics of the dashboard by label, from the memory of the coordinator.
    metrics: BTreeMap<String, MetricValue>,
}

/// A metric.
#[derive(Serialize, JsonSchema)]
struct MetricValue {
    /// The value as the coordinator stored it; null if it did not yet.
    value: Value,
    /// `number`, `duration`, `bytes`, `percentage`, `text` or `date`.
    format: String,
}

/// The browser of an instance.
#[derive(Serialize, JsonSchema)]
struct Browser {
    /// Whether an agent of the instance has a browser open.
    active: bool,
    /// The page that was used last, if an agent of the instance has one open.
    #[serde(flatten)]
    page: Option<OpenPage>,
}

async fn view(call: &Call) -> Result<HandView, Error> {
    let id: HandInstanceId = call.id("id")?;
    call.ask(Get::<HandView>(id)).await
}

async fn list(call: Call) -> Result<Response, Error> {
    let (mut after, mut instances) = (None, Vec::new());
    loop {
        let page = call.ask(List::<HandView> { filter: None, after, limit: 1_000 }).await?;
        instances.extend(page.items.into_iter().map(InstanceItem::from));
        after = page.next;
        if after.is_none() {
            return reply::ok(&InstanceList { total: instances.len(), instances });
        }
    }
}

async fn show(call: Call) -> Result<Response, Error> {
    reply::ok(&InstanceItem::from(view(&call).await?))
}

async fn deactivate(call: Call) -> Result<Response, Error> {
    let id: HandInstanceId = call.id("id")?;
    call.ask(Remove::<HandInstance>(id)).await?;
    reply::ok(&Deactivated { status: "deactivated", instance_id: id.0 })
}

async fn pause(call: Call) -> Result<Response, Error> {
    reply::ok(&InstanceItem::from(call.ask(PauseHand(call.id("id")?)).await?))
}

async fn resume(call: Call) -> Result<Response, Error> {
    reply::ok(&InstanceItem::from(call.ask(ResumeHand(call.id("id")?)).await?))
}

async fn stats(call: Call) -> Result<Response, Error> {
    let view = view(&call).await?;
    let (hands, memory) = (hands(&call)?, call.api.service::<dyn MemoryStore>()?);
    let (hand, coordinator) = (view.instance.hand.clone(), view.instance.coordinator().map(|member| member.agent));
    let metrics = blocking(move || {
        // A hand that was deleted from the disk has no dashboard any more.
        let found = hands.find(&hand)?.map(|hand| hand.definition.dashboard.metrics).unwrap_or_default();
        let mut metrics = BTreeMap::new();
        for metric in found {
            let stored = coordinator.map(|agent| memory.memory(agent, &metric.memory_key)).transpose()?.flatten();
            let value = stored.map_or(Value::Null, |record: MemoryRecord| json_of(&record));
            let label = if metric.label.is_empty() { metric.memory_key } else { metric.label };
            metrics.insert(label, MetricValue { value, format: metric.format });
        }
        Ok::<_, Error>(metrics)
    });
    let metrics = metrics.await??;
    let now = crate::http::timestamp::timestamp_now();
    reply::ok(&Stats {
        instance_id: view.id.0,
        status: view.status(),
        uptime_secs: now.ms_since(view.instance.activated_at) / 1_000,
        events_processed: view.instance.turns,
        errors: view.instance.failed,
        hand_id: view.instance.hand,
        metrics,
    })
}

fn json_of(record: &MemoryRecord) -> Value {
    serde_json::from_str(&record.value).unwrap_or(Value::Null)
}

async fn browser(call: Call) -> Result<Response, Error> {
    let view = view(&call).await?;
    let agents = view.instance.members.iter().map(|member| member.agent).collect();
    let page = match call.api.services.get::<dyn Browsers>() {
        Some(browsers) => browsers.open_page(agents).await,
        None => None,
    };
    reply::ok(&Browser { active: page.is_some(), page })
}
