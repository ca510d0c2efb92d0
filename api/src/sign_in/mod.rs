//! Single sign-on at identity providers (OpenID Connect), sign-in with a password, and the sessions of people.

pub mod audit_kinds;
pub mod error_codes;
mod password;
pub mod provider;
mod routes;
mod session;
mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("sign_in")
    .uses(&["audit", "people", "second_factor"])
    .error_codes(error_codes::ALL)
    .audit_kinds(audit_kinds::ALL)
    .routes(&[routes::ROUTES, session::ROUTES, password::ROUTES]);
