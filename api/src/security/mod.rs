//! The routes of the security systems.

pub(crate) mod auth_failures;
pub(crate) mod routes;
pub mod systems;
