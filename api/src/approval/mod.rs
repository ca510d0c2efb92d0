//! The routes of approvals.

pub(crate) mod lists;
pub(crate) mod routes;
