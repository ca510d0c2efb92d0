//! What pairing needs of the daemon.

use std::time::Duration;

/// `[pairing]` in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairingPolicy {
    /// Can devices be paired?
    pub is_enabled: bool,
    /// How long a code is good.
    pub code_time: Duration,
    /// Devices that there may be.
    pub devices_max: u32,
    /// Where devices reach the daemon; `None`: where the client did that asks for a code.
    pub base_url: Option<Box<str>>,
    /// The service that notifications go to, where there is one.
    pub push_provider: Option<&'static str>,
}

/// The daemon, as far as pairing needs it.
pub trait PairingHost: Send + Sync + 'static {
    /// What the configuration in force says.
    fn policy(&self) -> PairingPolicy;
}
