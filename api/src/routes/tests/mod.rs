//! The routes against a real world.

mod agents;
mod configuration;
mod daemon;
mod documented;
mod messages;
mod sessions;
mod socket;
