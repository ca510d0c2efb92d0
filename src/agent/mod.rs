//! Agents: their tools, their subcommands and the signatures of their manifests.

pub(crate) mod cli;
pub mod manifest_keys;
pub mod tools;
