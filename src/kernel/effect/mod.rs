//! What all calls for the outside share: their spans, the calls that are out, and the one outcome that each owes the world.

pub(crate) mod in_flight;
pub(crate) mod readers;
pub(crate) mod reply;
pub(crate) mod span;
