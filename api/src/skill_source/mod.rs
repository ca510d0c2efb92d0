//! The routes of sources of skills: installs, hubs and registries (spec 2, Skills and marketplaces).

pub(crate) mod audit_kinds;
pub(crate) mod error_codes;
pub(crate) mod hub_routes;
pub(crate) mod routes;
pub mod sources;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("skill_source")
    .admin_changes()
    .error_codes(error_codes::ALL)
    .audit_kinds(audit_kinds::ALL)
    .uses(&["audit"])
    .routes(&[routes::ROUTES, hub_routes::ROUTES]);
