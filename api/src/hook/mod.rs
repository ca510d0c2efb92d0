//! Hooks: other programs wake agents and ask them something, with a token of their own (spec 3, Webhooks).

pub(crate) mod error_codes;
pub(crate) mod gate;
pub mod host;
pub(crate) mod message;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("hook")
    .admin_changes()
    .uses(&["agent", "delivery", "injection", "model", "turn"])
    .error_codes(error_codes::ALL)
    .metrics(gate::gather)
    .routes(&[routes::ROUTES]);
