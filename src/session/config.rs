//! `[sessions]`: how much of the store conversations may take.

use agentsvc_systems::config::{FAMILY_SESSIONS_BYTES_DEFAULT, USER_SESSIONS_BYTES_DEFAULT};

use crate::kernel::config::table;

table! {
    /// `[sessions]`: conversations of agents.
    pub struct Sessions {
        /// Maximum size of the sessions of one family in the store, in bytes: an agent that a client created, and all agents that it
        /// and they spawned. Beyond, messages are refused and turns fail.
        family_max_bytes: u64 = FAMILY_SESSIONS_BYTES_DEFAULT => integer(1 << 20..=1 << 37).writable(),
        /// The same of all agents that belong to one user.
        user_max_bytes: u64 = USER_SESSIONS_BYTES_DEFAULT => integer(1 << 20..=1 << 50).writable(),
    }
}
