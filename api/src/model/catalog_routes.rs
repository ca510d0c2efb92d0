//! The catalog as a whole: how it is, and a newer one (spec 2, Model catalog).

use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::model::catalog::{CatalogStatus, UpdateReport};
use crate::model::routes::known;

/// What an update costs the client's rate budget: it asks another machine.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/catalog/update", "Update the model catalog", |call| Box::pin(update(call)))
        .cost(COST)
        .body::<UpdateBody>()
        .replies(&[
            Reply::json::<UpdateReport>(200, "the result of the update"),
            Reply::error(409, "no remote catalog is configured, or an update is already running"),
            Reply::error(502, "the remote catalog is not valid; the current catalog is unchanged"),
        ]),
    Route::get("/api/catalog/status", "Get the catalog status", |call| Box::pin(status(call)))
        .replies(&[Reply::json::<CatalogStatus>(200, "version, source and last update")]),
];

/// Options of the update. Optional.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct UpdateBody {
    /// Only check for a newer version.
    dry_run: bool,
}

async fn update(call: Call) -> Result<Response, Error> {
    let UpdateBody { dry_run } = call.json_or_default()?;
    let report = known(&call)?.update(dry_run).await?;
    reply::ok(&report)
}

async fn status(call: Call) -> Result<Response, Error> {
    reply::ok(&known(&call)?.status())
}
