//! The served web page.

pub(crate) mod assets;
pub(crate) mod routes;
