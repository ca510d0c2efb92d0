//! The routes of the log.

pub(crate) mod agent;
pub mod hub;
