//! The routes of uploads and of the files in agents' workspaces.

pub(crate) mod attachments;
pub mod files;
pub(crate) mod routes;
pub(crate) mod workspace;
