//! The world seen from outside: its status and its metrics.

pub(crate) mod cli;
pub(crate) mod probe;
pub(crate) mod process;
