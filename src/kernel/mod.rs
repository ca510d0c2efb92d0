//! What every domain of the daemon uses; it names none of them.

pub(crate) mod archives;
pub mod cli;
pub mod config;
pub(crate) mod descriptors;
pub(crate) mod disk;
pub(crate) mod disk_watch;
pub mod domain;
pub mod effect;
pub mod egress;
pub(crate) mod exchange;
pub(crate) mod free_space;
pub(crate) mod front_matter;
pub mod home;
pub(crate) mod host;
pub mod latency_histogram;
pub mod logging;
pub(crate) mod memory;
pub(crate) mod oauth;
pub(crate) mod openat2;
pub(crate) mod percent;
pub(crate) mod removal;
pub mod retention;
pub mod sandbox;
pub mod server;
pub mod settings;
pub mod sse;
pub(crate) mod start_code;
pub mod store;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text_formats;
pub mod vault;
pub mod world_loop;
