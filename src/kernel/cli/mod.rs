//! The frame of the command line: the global options, subcommands, the client, output and errors.

pub(crate) mod client;
pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod help;
mod made;
mod markdown;
pub(crate) mod names;
mod options;
pub(crate) mod output;
mod path;
pub(crate) mod request;
pub(crate) mod resource;
pub(crate) mod screen;
pub(crate) mod show;
mod subcommand;
mod suggest;
mod table;
mod titles;
mod verb;
pub(crate) mod words;

pub use context::Context;
pub use error::{Error, Exit};
pub(crate) use help::{Example, Heading, Note};
pub(crate) use resource::Resource;
pub(crate) use subcommand::Run;
pub use subcommand::{Group, Subcommand};
