//! The routes of queries over the world.

pub(crate) mod routes;
pub(crate) mod run;
pub(crate) mod shape;
pub(crate) mod stream;
