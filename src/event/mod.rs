//! Events of the world: their log lines, and the tool that publishes one.

pub(crate) mod log;
pub(crate) mod publish;
