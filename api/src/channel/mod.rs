//! Channels: the adapters through which people write to agents from messengers (spec 3, Channels).

pub mod audit_kinds;
pub(crate) mod body;
pub(crate) mod chats;
pub(crate) mod error_codes;
pub(crate) mod routes;
pub mod service;
pub mod shape;
#[cfg(test)]
mod tests;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("channel")
    .admin_changes()
    .uses(&["audit"])
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, chats::ROUTES]);
