//! The daemon: configuration, home, logging, the command line, and the wiring of the world to the outside.

pub mod config;
pub mod store;
pub mod world_loop;
