//! The routes of health, status and metrics, and the streams of the world.

pub mod audit_kinds;
pub(crate) mod event_hub;
pub(crate) mod events;
pub mod installation;
pub mod live_stats;
pub(crate) mod routes;
pub(crate) mod shape;
pub(crate) mod system;
pub mod watch;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("world")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .uses(&["audit", "event", "model"])
    .routes(&[system::ROUTES, routes::ROUTES, events::ROUTES])
    .metrics(watch::gather);
