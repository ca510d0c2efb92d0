//! The bodies of clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ClusterStatus, Drained, Moved, NodeCheck, NodeRole, NodeRow, Role, ServerRow, StreamRow, Verified, VerifiedNode,
    WorldRow,
};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// The cluster as the node sees it that answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ClusterBody {
    /// Whether this daemon is a node of a cluster. If it is not, there are no other fields.
    pub(crate) enabled: bool,
    #[serde(flatten)]
    pub(crate) cluster: Option<ClusterItem>,
}

shape! {
    /// A cluster.
    pub(crate) struct ClusterItem from given: (Role, ClusterStatus) {
        let (role, status) = given;
        let owner = status.worlds.iter().find_map(|world| world.owner.clone());
    } {
        /// Name of the cluster.
        name: String = status.cluster,
        /// Name of the node that answers.
        node: String = status.node,
        /// What that node is: `owner`, `standby` or `moving`.
        role: &'static str = role_of(&role).as_str(),
        /// Name of the node that owns the world; null while none does.
        owner: Option<String> = owner,
        worlds: Vec<WorldItem> = status.worlds.into_iter().map(WorldItem::from).collect(),
        /// The stream that holds the journal; null while the NATS servers do not answer.
        stream: Option<StreamItem> = status.stream.map(StreamItem::from),
        /// NATS servers that hold the stream.
        servers: Vec<ServerItem> = status.servers.into_iter().map(ServerItem::from).collect(),
        /// Problems, one sentence each.
        problems: Vec<String> = status.problems,
    }
}

const fn role_of(role: &Role) -> NodeRole {
    match role {
        Role::Owner => NodeRole::Owner,
        Role::Standby { .. } => NodeRole::Standby,
        Role::Moving => NodeRole::Moving,
    }
}

shape! {
    /// A world. There is one, number 0.
    pub(crate) struct WorldItem from world: WorldRow {} {
        world: u16 = world.world,
        /// Name of the node that owns it; null while none does.
        owner: Option<String> = world.owner,
        /// Number of times that a node became its owner.
        epoch: u64 = world.epoch,
        /// Last entry of its journal.
        index: u64 = world.index,
        /// Since when the owner has owned it.
        since: Option<Moment> = world.since.map(Moment),
        /// Why it has no owner or takes no changes; null otherwise.
        problem: Option<String> = world.problem,
    }
}

/// A world and the nodes that can take it over.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WorldDetail {
    #[serde(flatten)]
    pub(crate) world: WorldItem,
    /// The other nodes, furthest first.
    pub(crate) standbys: Vec<NodeItem>,
}

shape! {
    /// The stream that holds the journal.
    pub(crate) struct StreamItem from stream: StreamRow {} {
        name: String = stream.name,
        /// First entry that it still has.
        first: u64 = stream.first,
        /// Last entry.
        last: u64 = stream.last,
        bytes: u64 = stream.bytes,
        /// Number of servers that keep it.
        replicas: u32 = stream.replicas,
        /// Name of the server that leads it; null during an election.
        leader: Option<String> = stream.leader,
    }
}

shape! {
    /// A NATS server.
    pub(crate) struct ServerItem from server: ServerRow {} {
        name: String = server.name,
        /// Whether it has all that the leader has.
        current: bool = server.is_current,
        offline: bool = server.is_offline,
        /// Operations that it is behind.
        lag: u64 = server.lag,
    }
}

shape! {
    /// A comparison of a node's records with those of the owner.
    struct CheckItem from check: NodeCheck {} {
        at: Moment = Moment(check.at),
        /// Entry of the journal up to which both had everything.
        index: u64 = check.index,
        same: bool = check.is_same,
    }
}

shape! {
    /// A node.
    pub(crate) struct NodeItem from node: NodeRow {} {
        name: String = node.name,
        /// Where the other nodes reach its API.
        url: String = node.url,
        version: Option<String> = node.version,
        /// `owner`, `standby`, `moving`, `joining` (it is given the whole world first) or `silent` (not heard of for long).
        role: &'static str = node.role.as_str(),
        /// Whether it was drained: it owns nothing until it restarts.
        draining: bool = node.is_draining,
        /// Newest epoch that it knows.
        epoch: u64 = node.epoch,
        /// Last entry of the journal that its store has.
        index: u64 = node.index,
        /// Entries of the journal that its store does not have yet.
        lag: u64 = node.lag,
        /// When the node that answers last heard of it; null if never.
        last_heard: Option<Moment> = node.last_heard.map(Moment),
        /// Last comparison with the owner; null if there was none.
        checked: Option<CheckItem> = node.checked.map(CheckItem::from),
    }
}

/// Nodes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NodeList {
    pub(crate) nodes: Vec<NodeItem>,
    pub(crate) total: usize,
}

/// Where a world is to be moved.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct MoveBody {
    /// Name of the node. Default: the standby that is furthest.
    pub(crate) node: Option<String>,
}

shape! {
    /// The world was moved.
    pub(crate) struct MovedItem from given: (u16, Moved) {
        let (world, moved) = given;
    } {
        world: u16 = world,
        /// Name of the node that owns it now.
        owner: String = moved.owner,
        epoch: u64 = moved.epoch,
        /// Milliseconds without an owner.
        paused_ms: u64 = moved.paused_ms,
    }
}

/// The node was drained.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DrainedBody {
    pub(crate) node: String,
    /// What it owned, and where that is now.
    pub(crate) moved: Vec<MovedItem>,
}

impl DrainedBody {
    pub(crate) fn new(node: String, drained: Drained) -> Self {
        Self { node, moved: drained.moved.into_iter().map(MovedItem::from).collect() }
    }
}

shape! {
    /// What a comparison found of one node.
    struct VerifiedItem from node: VerifiedNode {} {
        name: String = node.name,
        /// Whether its records are those of the owner; null if it did not answer.
        same: Option<bool> = node.is_same,
    }
}

shape! {
    /// What a comparison of all nodes found.
    pub(crate) struct VerifiedBody from verified: Verified {
        let is_same = verified.nodes.iter().all(|node| node.is_same == Some(true));
    } {
        /// Whether every node answered and has what the owner has, and nothing is wrong with the journal.
        ok: bool = is_same && verified.problems.is_empty(),
        /// Entry of the journal at which the nodes were compared.
        index: u64 = verified.index,
        /// SHA-256 of the owner's records.
        hash: String = verified.hash,
        /// Entries of the journal whose hashes were followed.
        entries: u64 = verified.entries,
        nodes: Vec<VerifiedItem> = verified.nodes.into_iter().map(VerifiedItem::from).collect(),
        /// Problems, one sentence each.
        problems: Vec<String> = verified.problems,
    }
}

impl VerifiedBody {
    /// Has every node what the owner has, and is the journal well?
    pub(crate) fn is_ok(&self) -> bool {
        self.ok
    }
}
