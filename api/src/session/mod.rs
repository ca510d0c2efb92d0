//! The routes of sessions: lists, messages, search, transcripts and trajectories.

pub(crate) mod agent;
pub mod content;
pub(crate) mod messages;
pub(crate) mod routes;
pub mod search;
pub(crate) mod search_routes;
pub(crate) mod shape;
pub(crate) mod trajectory;
pub(crate) mod transcript;

#[cfg(test)]
mod tests;
