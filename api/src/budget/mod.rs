//! The routes of budgets.

pub(crate) mod routes;
