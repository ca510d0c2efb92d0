//! A terminal on the machine of the daemon, over a WebSocket (spec 3, Remaining routes).

pub mod audit_kinds;
pub mod error_codes;
pub mod host;
mod message;
mod output;
mod routes;
mod session;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("terminal")
    .uses(&["audit"])
    .admin()
    .error_codes(error_codes::ALL)
    .audit_kinds(audit_kinds::ALL)
    .routes(&[routes::ROUTES]);
