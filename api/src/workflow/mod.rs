//! The routes of workflows and their runs.

pub(crate) mod routes;
pub(crate) mod runs;
