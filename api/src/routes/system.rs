//! Health, versions, metrics, logs and shutdown (spec 2, System).

use schemars::JsonSchema;
use serde::Serialize;

use crate::call::Call;
use crate::error::Error;
use crate::reply::{self, Response};
use crate::route::{Reply, Route};

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/versions", "API versions and their stability", |call| Box::pin(versions(call)))
        .replies(&[Reply::json::<Versions>(200, "the versions")])];

/// Every API version.
#[derive(Serialize, JsonSchema)]
struct Versions {
    versions: Vec<Version>,
}

/// One API version.
#[derive(Serialize, JsonSchema)]
struct Version {
    version: &'static str,
    prefix: &'static str,
    status: &'static str,
}

async fn versions(_call: Call) -> Result<Response, Error> {
    let versions = vec![
        Version { version: "v1", prefix: "/api", status: "stable" },
        Version { version: "v1", prefix: "/v1", status: "stable" },
    ];
    reply::ok(&Versions { versions })
}
