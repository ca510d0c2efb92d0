//! Several nodes that keep one world: which of them owns it, how far the others are, and what moves it.

pub(crate) mod audit_kinds;
pub(crate) mod error_codes;
pub(crate) mod routes;
pub(crate) mod shape;

use std::sync::Arc;

use agentsvc_components::Timestamp;
use futures_util::future::BoxFuture;

use crate::http::api::Api;
use crate::http::domain::HttpDomain;
use crate::http::elsewhere::{Placement, Site};

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("cluster")
    .uses(&["audit"])
    .admin_changes()
    .error_codes(error_codes::ALL)
    .audit_kinds(audit_kinds::ALL)
    .routes(&[routes::ROUTES])
    .metrics(routes::gather);

/// Makes the API that of a node of `cluster`: its routes are about it, and requests go to the owner. To be called once, before the
/// server starts; without it the daemon is a single one.
pub fn join(api: &Api, cluster: Arc<dyn Cluster>) {
    api.elsewhere.set(Arc::new(OfCluster(Arc::clone(&cluster))));
    api.services.provide(cluster);
}

/// Says where the owner is.
struct OfCluster(Arc<dyn Cluster>);

impl Placement for OfCluster {
    fn site(&self) -> Site {
        match self.0.role() {
            Role::Owner => Site::Here,
            Role::Standby { owner: Some(url) } => Site::There(url),
            Role::Standby { owner: None } | Role::Moving => Site::Nowhere,
        }
    }

    fn secret(&self) -> [u8; 32] {
        self.0.secret()
    }

    fn is_fresh(&self) -> bool {
        self.0.is_fresh()
    }

    fn finishes(&self, site: &str) -> bool {
        self.0.finishes(site)
    }

    fn leave(&self) -> BoxFuture<'static, ()> {
        Arc::clone(&self.0).leave()
    }
}

/// The node's part of a cluster. The daemon provides it where the configuration has one; a single daemon has none.
pub trait Cluster: Send + Sync {
    /// What this node is now. Asked for every request: must take no lock that is held while something is waited for.
    fn role(&self) -> Role;

    /// Is what this node knows of the world, if it owns it, as new as reads must be? Asked for every read, like [`role`](Self::role).
    fn is_fresh(&self) -> bool;

    /// Does the node at this address, which gives the world away, still answer what it has begun? To be answered like
    /// [`role`](Self::role).
    fn finishes(&self, url: &str) -> bool;

    /// The daemon stops: this node takes no more requests of others and owns nothing new. Ends when they know, or soon.
    fn leave(self: Arc<Self>) -> BoxFuture<'static, ()>;

    /// A key that every node of this cluster has and nobody else, such as one derived from the vault's. With it nodes show one
    /// another which client a request comes from.
    fn secret(&self) -> [u8; 32];

    /// What this node knows of the cluster, from what it last heard of the others. Must not wait.
    fn status(&self) -> ClusterStatus;

    /// Hands the world to another node: no more is taken in, what was begun is answered, what was taken in is stored, the other one
    /// opens it. Asked of the owner.
    ///
    /// # Errors
    /// [`ClusterError`]; except for [`Unknown`](ClusterError::Unknown), the world is where it was.
    fn move_to(self: Arc<Self>, world: u16, node: String) -> BoxFuture<'static, Result<Moved, ClusterError>>;

    /// Lets a node own nothing until it starts again: what it owns moves to the standby that is furthest, and it is no candidate
    /// any more. Asked of the owner. Draining twice is the same as once.
    ///
    /// # Errors
    /// [`ClusterError`].
    fn drain(self: Arc<Self>, node: String) -> BoxFuture<'static, Result<Drained, ClusterError>>;

    /// Compares the rows of the world on all nodes at one index, and the chain of the journal's entries. Asked of the owner.
    ///
    /// # Errors
    /// [`ClusterError`] when the comparison could not be made; what it found is in the answer.
    fn verify(self: Arc<Self>) -> BoxFuture<'static, Result<Verified, ClusterError>>;
}

/// What a node is for the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It owns the world and answers.
    Owner,
    /// It follows the journal.
    Standby {
        /// Where the owner answers, such as `http://10.0.0.2:4545`; `None` while none is heard of.
        owner: Option<Arc<str>>,
    },
    /// It hands the world over, takes it over, or has lost it: it answers nothing, and nobody answers for it yet.
    Moving,
}

agentsvc_components::enum_words! {
    /// What a node says that it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NodeRole [ALL, as_str] {
        /// It owns the world.
        Owner = "owner",
        /// It follows the journal and can take over.
        Standby = "standby",
        /// It hands the world over or takes it over.
        Moving = "moving",
        /// It follows, but has to be given the whole world first.
        Joining = "joining",
        /// It has not been heard of for long.
        Silent = "silent",
    }
}

/// What one node knows of the cluster.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// The name of this node.
    pub node: String,
    /// The name of the cluster.
    pub cluster: String,
    /// Every node that is configured or was heard of, this one too, by name.
    pub nodes: Vec<NodeRow>,
    /// The worlds; one for now, number 0.
    pub worlds: Vec<WorldRow>,
    /// The stream that holds the journal; `None` while the servers do not answer.
    pub stream: Option<StreamRow>,
    /// The servers that hold it, as far as they are known.
    pub servers: Vec<ServerRow>,
    /// Changes should wait until a standby has them, and no standby follows: they are acknowledged by the journal alone.
    pub is_journal_alone: bool,
    /// Problems, each in one sentence for people; empty without any.
    pub problems: Vec<String>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Where it answers, such as `http://10.0.0.2:4545`.
    pub url: String,
    /// Its version, where it has said so.
    pub version: Option<String>,
    /// What it is.
    pub role: NodeRole,
    /// It was drained: it takes nothing over.
    pub is_draining: bool,
    /// The newest epoch that it knows.
    pub epoch: u64,
    /// The last entry of the journal that its store has.
    pub index: u64,
    /// Entries of the journal that its store does not have yet.
    pub lag: u64,
    /// When this node last heard of it; `None` if never. Of itself: now.
    pub last_heard: Option<Timestamp>,
    /// The last comparison with the owner; `None` if there was none.
    pub checked: Option<NodeCheck>,
}

/// A comparison of a node's rows with those of the owner.
#[derive(Clone, Debug)]
pub struct NodeCheck {
    /// When it was made.
    pub at: Timestamp,
    /// The entry of the journal that both had applied, no more and no less.
    pub index: u64,
    /// Are the rows the same?
    pub is_same: bool,
}

/// A world.
#[derive(Clone, Debug)]
pub struct WorldRow {
    /// Its number.
    pub world: u16,
    /// The node that owns it; `None` while none does.
    pub owner: Option<String>,
    /// How often it was opened.
    pub epoch: u64,
    /// The last entry of its journal.
    pub index: u64,
    /// When the present owner opened it.
    pub since: Option<Timestamp>,
    /// Why it is not owned or takes no writes, in a sentence; `None` when it does.
    pub problem: Option<String>,
}

/// The stream that holds a journal.
#[derive(Clone, Debug)]
pub struct StreamRow {
    /// Its name.
    pub name: String,
    /// The first entry that it still has.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Copies that it is kept in.
    pub replicas: u32,
    /// The server that leads it; `None` during an election.
    pub leader: Option<String>,
}

/// A server that holds the journal.
#[derive(Clone, Debug)]
pub struct ServerRow {
    /// Its name.
    pub name: String,
    /// Has it all that the leader has?
    pub is_current: bool,
    /// Is it not heard of?
    pub is_offline: bool,
    /// Operations that it is behind.
    pub lag: u64,
}

/// A world was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The node that owns it now.
    pub owner: String,
    /// The epoch that it opened.
    pub epoch: u64,
    /// Milliseconds in which nobody answered.
    pub paused_ms: u64,
}

/// A node was drained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained {
    /// The worlds that it owned, and where they are now.
    pub moved: Vec<(u16, Moved)>,
}

/// What a comparison of all nodes found.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The entry of the journal at which rows were compared.
    pub index: u64,
    /// SHA-256 of the owner's rows, in hexadecimal digits.
    pub hash: String,
    /// Entries of the journal whose chain was followed.
    pub entries: u64,
    /// What was found of each node that holds a copy.
    pub nodes: Vec<VerifiedNode>,
    /// Breaks of the chain and other things that should not be, each in one sentence; empty when all is well.
    pub problems: Vec<String>,
}

/// What a comparison found of one node.
#[derive(Clone, Debug)]
pub struct VerifiedNode {
    /// Its name.
    pub name: String,
    /// Are its rows those of the owner? `None` when it did not answer.
    pub is_same: Option<bool>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// There is no such node.
    #[error("there is no node {0:?} in the cluster")]
    NoNode(String),
    /// There is no such world.
    #[error("there is no world {0}")]
    NoWorld(u16),
    /// This node does not own the world: it was moved meanwhile.
    #[error("this node does not own the world any more")]
    NotOwner,
    /// A move or a takeover is under way.
    #[error("the world is being moved")]
    Busy,
    /// The other node cannot take over now; the sentence says why.
    #[error("{0}")]
    NotReady(String),
    /// The journal does not answer; the sentence says what was tried.
    #[error("{0}")]
    Journal(String),
    /// It was begun, and nobody knows whether it came to an end: the status shows it soon.
    #[error("{0}")]
    Unknown(String),
}

#[cfg(test)]
mod tests;
