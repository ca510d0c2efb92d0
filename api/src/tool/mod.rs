//! The routes of tools and tool profiles.

pub(crate) mod profile_routes;
pub mod profiles;
pub(crate) mod routes;
pub mod toolbox;
