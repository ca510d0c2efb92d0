//! The web tools of agents.

pub(crate) mod fetch;
pub(crate) mod search;
