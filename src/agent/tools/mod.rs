//! Tools that find, list, start, message and end agents, and tell their owner.

pub(crate) mod find;
pub(crate) mod kill;
pub(crate) mod list;
pub(crate) mod notify_owner;
pub(crate) mod send;
pub(crate) mod spawn;
