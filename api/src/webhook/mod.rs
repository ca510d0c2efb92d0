//! The routes of outbound webhooks (spec 3, Webhooks).

pub(crate) mod error_codes;
pub(crate) mod routes;
pub mod sender;
pub(crate) mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain =
    HttpDomain::new("webhook").admin_changes().error_codes(error_codes::ALL).routes(&[routes::ROUTES]);
