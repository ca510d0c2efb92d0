//! The routes of backups.

pub(crate) mod routes;
pub mod store;
