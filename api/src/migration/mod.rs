//! The routes that import the homes of other programs.

pub(crate) mod routes;
pub mod source;
