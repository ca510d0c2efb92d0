//! The routes of sessions: lists, messages, search, transcripts and trajectories.

pub(crate) mod agent;
pub(crate) mod branch;
pub mod content;
pub(crate) mod messages;
pub(crate) mod routes;
pub mod search;
pub(crate) mod search_routes;
pub(crate) mod shape;
#[cfg(test)]
mod tests;
pub(crate) mod trajectory;
pub(crate) mod transcript;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain =
    HttpDomain::new("session").uses(&["agent", "compaction", "prompt", "redact", "upload"]).routes(&[
        agent::ROUTES,
        routes::ROUTES,
        search_routes::ROUTES,
        trajectory::ROUTES,
        messages::ROUTES,
        branch::ROUTES,
    ]);
