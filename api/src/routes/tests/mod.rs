//! The routes against a real world.

mod agents;
mod daemon;
mod documented;
mod messages;
mod sessions;
mod socket;
