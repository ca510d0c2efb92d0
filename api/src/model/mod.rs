//! The routes of the model catalog.

pub mod catalog;
pub(crate) mod catalog_routes;
pub(crate) mod routes;
