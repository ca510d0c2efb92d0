//! Snapshots of the whole world: taken while it runs, listed, deleted and put back in its place.

use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::Refusal;
use agentsvc_components::kernel::limit;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Api;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::snapshot::store::{Before, Restored, Snapshot, SnapshotService, Underway};

/// What a snapshot or a restore costs the client's rate budget: it reads the whole world.
const COST: u32 = 50;

pub(crate) const ROUTES: &[Route] =
    &[
        Route::get("/api/world/snapshots", "List snapshots", |call| Box::pin(list(call))).replies(&[Reply::json::<
            SnapshotList,
        >(
            200,
            "snapshots, newest first, and the running operation",
        )]),
        Route::post("/api/world/snapshots", "Create a snapshot", |call| Box::pin(create(call)))
            .cost(COST)
            .body::<CreateBody>()
            .replies(&[
                Reply::json::<Snapshot>(201, "created and stored"),
                Reply::error(409, "another snapshot is being created or restored"),
                Reply::error(507, "not enough disk space; nothing was stored"),
            ]),
        Route::get("/api/world/snapshots/{id}", "Get a snapshot", |call| Box::pin(show(call)))
            .replies(&[Reply::json::<SnapshotShown>(200, "the snapshot, with the progress of a restore")]),
        Route::delete("/api/world/snapshots/{id}", "Delete a snapshot", |call| Box::pin(remove(call)))
            .replies(&[Reply::json::<Deleted>(200, "deleted"), Reply::error(409, "the snapshot is being restored")]),
        Route::post("/api/world/snapshots/{id}/restore", "Restore a snapshot", |call| Box::pin(restore(call)))
            .cost(COST)
            .replies(&[
                Reply::json::<Restored>(200, "restored"),
                Reply::error(
                    409,
                    "another snapshot is being created or restored, or the snapshot is damaged; nothing was \
            changed",
                ),
                Reply::error(507, "not enough disk space; nothing was changed"),
            ]),
    ];

/// All snapshots.
#[derive(Serialize, JsonSchema)]
struct SnapshotList {
    snapshots: Vec<Snapshot>,
    total: usize,
    /// Running operation; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    underway: Option<Underway>,
}

/// One snapshot.
#[derive(Serialize, JsonSchema)]
struct SnapshotShown {
    #[serde(flatten)]
    snapshot: Snapshot,
    /// Running operation on it; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    underway: Option<Underway>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CreateBody {
    /// Label.
    label: Option<String>,
    /// Step to save, as far back as the input log reaches. Default: the newest step.
    step: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    /// `deleted`.
    status: &'static str,
    snapshot: Snapshot,
}

/// Asks the disk on a thread that may wait for it. It is done to its end even when the client goes.
async fn ask<T: Send + 'static>(
    api: &Arc<Api>,
    ask: impl FnOnce(&dyn SnapshotService) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Error> {
    let worlds = api.service::<dyn SnapshotService>()?;
    let asked = spawn_blocking(move || ask(&*worlds)).await;
    let asked = asked.map_err(|error| {
        tracing::error!(%error, "a snapshot operation was interrupted");
        Error::internal("the snapshot operation was interrupted; see the daemon's log for the reason")
    })?;
    Ok(asked?)
}

/// A snapshot before something that cannot be undone. Without it, that is not done: it would be the one way back.
pub(crate) async fn take_before(call: &Call, what: Before) -> Result<(), Error> {
    if call.api.services.get::<dyn SnapshotService>().is_none() {
        return Ok(());
    }
    ask(&call.api, move |worlds| worlds.take_before(what)).await.map(drop)
}

async fn list(call: Call) -> Result<Response, Error> {
    let (snapshots, underway) = ask(&call.api, |worlds| Ok((worlds.list()?, worlds.underway()))).await?;
    reply::ok(&SnapshotList { total: snapshots.len(), snapshots, underway })
}

async fn create(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    let CreateBody { label, step } = call.json_or_default()?;
    if let Some(label) = &label {
        check_label(label)?;
    }
    if step == Some(0) {
        return Err(Error::bad_field("step", "step: must be at least 1"));
    }
    let taken = ask(&call.api, move |worlds| match step {
        Some(step) => worlds.take_at(actor, label, step),
        None => worlds.take(actor, label),
    });
    let taken = taken.await?;
    reply::json(StatusCode::CREATED, &taken)
}

fn check_label(label: &str) -> Result<(), Error> {
    if label.trim().is_empty() || label.len() > limit::LABEL_BYTES_MAX || label.chars().any(char::is_control) {
        let max = limit::LABEL_BYTES_MAX;
        return Err(Error::bad_field("label", format!("label: must be 1 to {max} bytes without control characters")));
    }
    Ok(())
}

async fn show(call: Call) -> Result<Response, Error> {
    let id = call.id::<Uuid>("id")?;
    let (snapshots, underway) = ask(&call.api, |worlds| Ok((worlds.list()?, worlds.underway()))).await?;
    let snapshot = snapshots.into_iter().find(|snapshot| snapshot.id == id);
    let snapshot = snapshot.ok_or_else(|| Refusal::not_found("snapshot", id))?;
    reply::ok(&SnapshotShown { snapshot, underway: underway.filter(|underway| underway.id == id) })
}

async fn remove(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    let id = call.id::<Uuid>("id")?;
    let snapshot = ask(&call.api, move |worlds| worlds.delete(actor, id)).await?;
    reply::ok(&Deleted { status: "deleted", snapshot })
}

async fn restore(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    let id = call.id::<Uuid>("id")?;
    reply::ok(&ask(&call.api, move |worlds| worlds.restore(actor, id)).await?)
}
