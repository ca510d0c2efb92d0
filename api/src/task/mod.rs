//! The routes of the task queue.

pub(crate) mod routes;
