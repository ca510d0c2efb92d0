//! What every domain of the daemon uses; it names none of them.

pub mod cli;
pub(crate) mod descriptors;
pub(crate) mod disk;
pub mod effect;
pub mod egress;
pub mod home;
pub mod inputs;
pub mod logging;
pub(crate) mod percent;
pub(crate) mod room;
pub mod sandbox;
pub mod sse;
pub(crate) mod start_code;
pub mod store;
#[cfg(test)]
mod testing;
pub mod vault;
pub mod window;
pub mod world_loop;
