//! What each step takes in, as it is written down for a replay.

pub mod entry;
pub mod hash;
pub(crate) mod recorder;
pub(crate) mod table;
pub mod wire;
