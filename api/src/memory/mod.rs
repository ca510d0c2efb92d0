//! The routes of agents' memory.

pub mod entries;
pub(crate) mod routes;
