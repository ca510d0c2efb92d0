//! The routes that send messages to agents, stream turns, and show what turns did.

mod events;
pub mod hub;
pub(crate) mod metrics;
pub(crate) mod receipts;
mod repeat;
pub(crate) mod routes;
mod sender;
pub mod sent;
pub mod store;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod traces;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("turn")
    .uses(&["channel", "delivery", "injection", "session", "skill", "upload"])
    .routes(&[routes::ROUTES, traces::ROUTES, sent::ROUTES, metrics::ROUTES])
    .metrics(hub::gather)
    .queues(hub::queues);
