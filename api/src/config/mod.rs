//! The routes of the configuration.

pub mod audit_kinds;
pub mod configuration;
pub mod error_codes;
pub(crate) mod routes;
#[cfg(test)]
mod tests;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("config")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .uses(&["provider"])
    .routes(&[routes::ROUTES]);
