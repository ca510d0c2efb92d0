//! The routes of checkpoints: files of workspaces as they were before tools changed them.

pub mod audit_kinds;
pub mod checkpoints;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("checkpoint")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .uses(&["audit", "taint"])
    .routes(&[routes::ROUTES]);
