//! The daemon: configuration, home, logging, the command line, and the wiring of the world to the outside.

pub mod agent_types;
pub mod audit;
pub mod backup;
pub mod bindings;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod daemon;
mod disk;
pub mod doctor;
pub mod effects;
pub mod files;
#[doc(hidden)]
pub mod fuzzing;
pub mod home;
pub mod inputs;
pub mod launch;
pub mod logging;
pub mod manifest_keys;
pub mod migrate;
pub mod providers;
pub mod rehearsal;
mod room;
pub mod second_factor;
pub mod security;
pub mod snapshot;
pub mod sse;
pub mod store;
pub mod swap;
#[cfg(test)]
mod testing;
pub mod vault;
pub mod window;
pub mod world_loop;
