//! What the daemon knows of other nodes.

use std::io;
use std::sync::Arc;

use agentsvc_components::Timestamp;
use futures_util::future::BoxFuture;

/// The network of nodes. The daemon provides it.
pub trait PeerNetwork: Send + Sync {
    /// This node and what it has to do with others.
    fn status(&self) -> NetworkStatus;

    /// The nodes that are or were connected since the start.
    fn peers(&self) -> Vec<PeerRow>;

    /// The nodes whose keys are pinned.
    fn trusted(&self) -> Vec<TrustedRow>;

    /// Forgets the key of a node and ends its connections; false when it is not known.
    ///
    /// # Errors
    /// The file of the trusted nodes cannot be written.
    fn forget(self: Arc<Self>, node_id: String) -> BoxFuture<'static, io::Result<bool>>;
}

/// This node.
#[derive(Clone, Debug, Default)]
pub struct NetworkStatus {
    /// Does the configuration switch the network on?
    pub enabled: bool,
    /// Why it is off although it is enabled, or why peers cannot connect to it.
    pub problem: Option<String>,
    /// The id of this node.
    pub node_id: Option<String>,
    /// The name of this node.
    pub node_name: Option<String>,
    /// Where it listens.
    pub listen: Vec<String>,
    /// The fingerprint of its key.
    pub fingerprint: Option<String>,
    /// What was sent and received since the start.
    pub counts: PeerCounts,
}

/// What was sent and received since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Messages for agents that came from peers.
    pub received: u64,
    /// Messages for agents of peers.
    pub sent: u64,
    /// Of those, the ones that may or may not have arrived.
    pub unknown: u64,
    /// Handshakes that were refused.
    pub refused_handshakes: u64,
    /// Requests that were refused because of a limit.
    pub limited: u64,
    /// Frames that were altered on the way, or sent again.
    pub altered: u64,
    /// Tokens that messages of peers have cost.
    pub tokens: u64,
}

/// A node that is or was connected.
#[derive(Clone, Debug)]
pub struct PeerRow {
    /// Its id.
    pub node_id: String,
    /// Its name, as it says.
    pub node_name: String,
    /// Where it is dialled, or from where it connected.
    pub address: String,
    /// Is it connected now?
    pub is_connected: bool,
    /// Did it sign with its key? One that did not knows the shared secret.
    pub has_key: bool,
    /// When it connected last.
    pub connected_at: Timestamp,
    /// When it last sent something.
    pub last_seen: Timestamp,
    /// Its agents, as it says.
    pub agents: Vec<PeerAgent>,
}

/// An agent of another node.
#[derive(Clone, Debug, Default)]
pub struct PeerAgent {
    /// Its id there.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its tools.
    pub tools: Vec<String>,
    /// Its lifecycle state.
    pub state: String,
}

/// A node whose key is pinned.
#[derive(Clone, Debug)]
pub struct TrustedRow {
    /// Its id.
    pub node_id: String,
    /// Its name, as it said.
    pub node_name: String,
    /// `secure` or `legacy`.
    pub mode: &'static str,
    /// The fingerprint of its key.
    pub fingerprint: Option<String>,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When it last proved that it has the key.
    pub last_verified: Timestamp,
    /// Where it was then.
    pub address: String,
}
