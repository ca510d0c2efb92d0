//! Web chats: one script puts a chat with an agent on any site (docs/web-chat.md).

pub(crate) mod error_codes;
pub mod hub;
mod rate;
pub(crate) mod routes;
pub mod service;
pub(crate) mod shape;
mod stream;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("widget")
    .uses(&["channel", "injection"])
    .error_codes(error_codes::ALL)
    .metrics(hub::gather)
    .routes(&[routes::ROUTES]);
