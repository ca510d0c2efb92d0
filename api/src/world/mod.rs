//! The routes of health, status and metrics, and the streams of the world.

pub(crate) mod event_hub;
pub(crate) mod events;
pub(crate) mod routes;
pub(crate) mod shape;
pub(crate) mod system;
pub mod vitals;
pub(crate) mod watch;
