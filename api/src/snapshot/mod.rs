//! The routes of snapshots of the world.

pub(crate) mod routes;
pub mod store;
