//! The routes against a real world.

mod agents;
mod daemon;
mod messages;
mod sessions;
