//! Turns on the command line: one message, and the answer as it is written.

pub(crate) mod client;
pub(crate) mod message;
