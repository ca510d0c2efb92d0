//! The routes of the second factor of approvals.

pub mod factor;
pub(crate) mod routes;
