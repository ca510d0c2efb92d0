//! The sandbox: what agents touch of this machine, and how they are kept to it.
//!
//! - *Files.* Each agent has a private workspace. Tools and routes reach its files by [`Workspaces`] only, which never
//!   leaves it: paths are resolved beneath the workspace by the kernel, not by looking at their text.
//! - *Commands.* [`Commands`] runs a program in a cage of its own: a clean environment, limits, Landlock rules under
//!   which it can read the system and change its workspace and nothing else, and a supervisor that ends all it
//!   started. What the kernel cannot keep is said by [`Report`].

mod beneath;
mod cage;
mod clip;
mod command;
pub mod config;
mod error;
mod files;
mod landlock;
pub mod launcher;
mod listing;
mod path;
mod program;
mod report;
mod supervise;
mod workspace;

pub use beneath::Resolver;
pub use command::{Commands, Ran, Request, TEMPORARY};
pub use error::Error;
pub use files::{Entry, Kind, Piece, Workspace, Write};
pub use listing::Listing;
pub use path::WorkspacePath;
pub use program::Asked;
pub use report::Report;
pub use workspace::Workspaces;

#[cfg(test)]
mod tests;
