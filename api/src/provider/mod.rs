//! The routes of model providers, their keys and sign-ins.

pub mod accounts;
pub mod audit_kinds;
pub mod calls;
pub mod catalog;
pub mod error_codes;
pub(crate) mod login;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("provider")
    .admin_changes()
    .uses(&["manifest", "turn"])
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, login::ROUTES]);
