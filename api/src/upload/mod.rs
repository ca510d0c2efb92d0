//! The routes of uploads and of the files in agents' workspaces.

pub(crate) mod attachments;
pub mod audit_kinds;
pub mod files;
pub(crate) mod routes;
pub(crate) mod workspace;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("upload")
    .audit_kinds(audit_kinds::ALL)
    .uses(&["agent", "audit", "injection", "taint", "session"])
    .routes(&[routes::ROUTES, workspace::ROUTES]);
