//! The routes of token usage and its cost.

pub(crate) mod days;
pub(crate) mod export;
pub(crate) mod routes;
