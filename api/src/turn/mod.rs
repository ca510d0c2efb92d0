//! The routes that send messages to agents, stream turns, and show what turns did.

pub mod hub;
pub(crate) mod metrics;
pub(crate) mod routes;
pub(crate) mod stream;
pub(crate) mod traces;

#[cfg(test)]
mod tests;
