//! The routes of agents' memory.

pub mod entries;
pub(crate) mod routes;
pub mod store;
pub(crate) mod transfer;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("memory")
    .uses(&["agent", "knowledge", "proactive_memory"])
    .routes(&[transfer::ROUTES, routes::ROUTES]);
