//! The journal of NATS servers by itself, without a node.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::config::ClusterConfig;
use super::nats::{NatsJournal, NotReady, Standing, Wire};
use super::node::PAUSE;
use super::seals::Seals;
use crate::kernel::store::journal::Journal;
use crate::kernel::store::journal::entry::Position;

/// NATS servers that keep the journal of a cluster whose nodes do not run, to look at what they do.
pub struct JournalServers(Arc<Wire>);

impl JournalServers {
    /// Connects to `servers`, which ask for the user and the password in the file at `credentials`, and waits until the stream of the
    /// journal can be used. Entries are sealed with `key`. Only from threads that may wait.
    ///
    /// # Errors
    /// The file cannot be read, or the servers must not be used; the text says why.
    pub fn connect(servers: &[String], credentials: PathBuf, key: &[u8; 32], handle: &Handle) -> Result<Self, String> {
        let config = ClusterConfig {
            servers: servers.iter().map(|server| server.as_str().into()).collect(),
            credentials: Some(credentials),
            ..ClusterConfig::default()
        };
        let wire = handle.block_on(Wire::connect(&config, Seals::new(key, 1), handle.clone()))?;
        loop {
            match wire.wait(wire.ready()) {
                Ok(()) => return Ok(Self(wire)),
                Err(NotReady::Refused(text)) => return Err(text),
                Err(NotReady::Unavailable(_)) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// The journal for a store that has nothing of it.
    pub fn journal(&self) -> Box<dyn Journal> {
        Box::new(NatsJournal::new(&self.0, &Arc::<Standing>::default(), &Position::default(), None))
    }
}
