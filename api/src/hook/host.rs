//! What hooks need of the daemon.

use std::sync::Arc;

use uuid::Uuid;

/// What a caller must show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookToken {
    /// The key of the API.
    #[default]
    ApiKey,
    /// The token of which this is the SHA-256.
    Own([u8; 32]),
    /// The configured variable has no token that can be used: no caller gets in.
    Unusable,
}

/// `[webhook_triggers]` in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookPolicy {
    /// Are hooks answered at all?
    pub is_enabled: bool,
    /// What a caller must show.
    pub token: HookToken,
    /// Calls in a minute.
    pub rate_per_minute: u32,
}

/// The daemon, as far as hooks need it.
pub trait HookHost: Send + Sync + 'static {
    /// What the configuration in force says.
    fn policy(&self) -> Arc<HookPolicy>;

    /// A random id.
    ///
    /// # Errors
    /// The system has no randomness.
    fn random(&self) -> Result<Uuid, String>;
}
