//! The tool that searches sessions.

pub(crate) mod search;
