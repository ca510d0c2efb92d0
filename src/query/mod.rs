//! Queries on the command line.

pub(crate) mod cli;
