//! The tool that moves an agent's goals forward.

pub(crate) mod update;
