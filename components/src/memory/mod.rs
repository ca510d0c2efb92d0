//! What an agent remembers under keys.

pub mod record;
