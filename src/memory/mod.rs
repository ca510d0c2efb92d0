//! Tools over the memory of agents.

pub(crate) mod grant;
pub(crate) mod list;
pub(crate) mod recall;
pub(crate) mod store;
