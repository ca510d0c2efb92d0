//! Tools over the task queue.

pub(crate) mod claim;
pub(crate) mod complete;
pub(crate) mod list;
pub(crate) mod post;
pub(crate) mod shape;
pub(crate) mod status;
