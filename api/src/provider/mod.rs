//! The routes of model providers, their keys and sign-ins.

pub mod accounts;
pub mod catalog;
pub(crate) mod login;
pub(crate) mod routes;
