//! The routes of agent types.

pub(crate) mod routes;
pub(crate) mod shape;
pub mod store;
