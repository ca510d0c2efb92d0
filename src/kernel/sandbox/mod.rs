//! The sandbox: what agents touch of this machine, and how they are kept to it.
//!
//! - *Files.* Each agent has a private workspace. Tools and routes reach its files by [`Workspaces`] only, which never
//!   leaves it: paths are resolved beneath the workspace by the kernel, not by looking at their text.
//! - *Commands.* [`Commands`] runs a program in a sandbox of its own: a clean environment, limits, namespaces in which it
//!   sees its workspace, the read-only files of the system and its own processes only, Landlock rules and seccomp filters
//!   as a second wall, a cgroup where one can be had, and a supervisor that ends all it started. [`Report`] says which of these this machine has.

mod bounds;
mod clip;
mod command;
pub mod config;
mod error;
mod files;
mod filter;
mod fullness;
mod holders;
mod init;
mod landlock;
pub mod launcher;
mod listing;
mod marks;
mod measure;
mod mounts;
mod namespaces;
mod owner;
mod path;
mod program;
mod quota;
mod report;
mod sandbox_spec;
mod seccomp;
mod server;
mod supervise;
mod terminal;
mod variables;
mod workspace;

pub use crate::kernel::openat2::Resolver;
pub use agentsvc_api::http::places::Place;
pub use bounds::Bound;
pub use bounds::cgroup::divide as divide_cgroup;
pub use command::{Commands, Ran, Request};
pub use error::Error;
pub use files::{Entry, Kind, Piece, Workspace, Write};
pub use filter::{Filter, Filtered, NotFiltered};
pub use fullness::Full;
pub use listing::Listing;
pub(crate) use marks::marks_are_kept;
pub(crate) use measure::measure_at;
pub(crate) use owner::damaged_marks;
pub use path::WorkspacePath;
pub use program::Asked;
pub use quota::CommandWorkspace;
pub use report::Report;
pub use sandbox_spec::Parts;
pub use server::{Input as ServerInput, Output as ServerOutput, Process, Server, ServerProgram};
pub use terminal::{Screen, Terminal, TerminalSize};
pub use variables::{AgentVariables, Variables};
pub use workspace::Workspaces;
pub(crate) use workspace::has_workspace;

#[cfg(test)]
mod tests;
