//! The routes that create and change skills (spec 2, Skills and marketplaces), and what tools and routes share.

pub mod audit_kinds;
pub mod change;
pub mod evolution;
pub(crate) mod pending_routes;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("skill_evolution")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .uses(&["audit", "skill_source"])
    .routes(&[routes::ROUTES, pending_routes::ROUTES]);
