//! The routes of triggers.

pub(crate) mod routes;
