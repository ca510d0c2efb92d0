//! What protects the daemon, and whether it is in force (spec 3, Audit and security).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::security::systems::{self, Status};

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/security", "List the security systems and their status", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<SecurityBody>(200, "the security systems")])];

/// The security systems.
#[derive(Serialize, JsonSchema)]
struct SecurityBody {
    /// Status by name: `active`, `inactive` (disabled or not supported by this machine) or `not_available` (not in this
    /// build).
    security_systems: BTreeMap<&'static str, &'static str>,
    /// Details by name.
    details: BTreeMap<&'static str, String>,
    total_systems: usize,
    /// Whether all systems are `active`.
    all_active: bool,
}

async fn show(call: Call) -> Result<Response, Error> {
    let systems = systems::all(&call.api);
    reply::ok(&SecurityBody {
        total_systems: systems.len(),
        all_active: systems.iter().all(|system| system.status == Status::Active),
        security_systems: systems.iter().map(|system| (system.name, system.status.as_str())).collect(),
        details: systems.into_iter().map(|system| (system.name, system.detail)).collect(),
    })
}
