//! The sandbox: what agents touch of this machine, and how they are kept to it.
//!
//! Each agent has a private workspace. Tools and routes reach its files by [`Workspaces`] only, which never leaves it.

mod beneath;
mod error;
mod files;
mod listing;
mod path;
mod workspace;

pub use beneath::Resolver;
pub use error::Error;
pub use files::{Entry, Kind, Piece, Workspace, Write};
pub use listing::Listing;
pub use path::WorkspacePath;
pub use workspace::Workspaces;

#[cfg(test)]
mod tests;
