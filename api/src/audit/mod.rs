//! The routes of the audit log.

pub(crate) mod routes;
pub mod trail;
