//! Other nodes (spec 3, Network peers).

pub mod audit_kinds;
pub mod network;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("peer")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .routes(&[routes::ROUTES])
    .metrics(routes::gather);
