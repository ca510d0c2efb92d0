//! The routes of goals.

pub(crate) mod routes;
pub(crate) mod templates;
