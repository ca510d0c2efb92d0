//! The route that publishes custom events.

pub(crate) mod routes;
