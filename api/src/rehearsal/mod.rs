//! The routes of rehearsals.

pub(crate) mod fires;
pub(crate) mod routes;
pub mod runs;
