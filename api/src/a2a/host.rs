//! What A2A needs of the daemon.

use std::sync::Arc;

use agentsvc_components::Micros;
use futures_util::future::BoxFuture;
use uuid::Uuid;

/// `[a2a]` in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Is the daemon reached over A2A at all?
    pub is_enabled: bool,
    /// The name on the card.
    pub name: Box<str>,
    /// The description on the card.
    pub description: Box<str>,
    /// The URL under which clients reach the daemon; `None` takes the host that a request names.
    pub public_url: Option<Box<str>>,
    /// The agents that are offered, by globs over their names.
    pub agents: Vec<Box<str>>,
    /// Who answers requests that name no agent.
    pub default_agent: Option<Box<str>>,
    /// Tasks in a minute that one client sends.
    pub rate_per_minute: u32,
    /// The same of all clients without a key.
    pub total_rate_per_minute: u32,
    /// What the tasks of a client with a key, or of all others together, may cost in a UTC day; nothing means no limit.
    pub daily_limit: Micros,
}

/// Why a URL is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotVetted {
    /// Too many are being looked at.
    Busy,
    /// It may not be used: why, in a sentence.
    Refused(String),
}

/// The daemon, as far as A2A needs it.
pub trait A2aHost: Send + Sync + 'static {
    /// What the configuration in force says.
    fn policy(&self) -> Arc<Policy>;

    /// A random id that nobody guesses.
    ///
    /// # Errors
    /// The system has no randomness.
    fn random(&self) -> Result<Uuid, String>;

    /// May notifications be posted to `url`? Gives it in its one spelling.
    fn vet(self: Arc<Self>, url: String) -> BoxFuture<'static, Result<String, NotVetted>>;

    /// Seals a secret. May wait for the disk.
    ///
    /// # Errors
    /// Why the vault cannot be used.
    fn seal(&self, secret: &str) -> Result<String, String>;
}
