//! The frame of the command line: the global options, the client, output and errors.

pub(crate) mod client;
pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod output;
