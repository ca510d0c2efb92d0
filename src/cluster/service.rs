//! What the API asks of the cluster.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agentsvc_api::cluster::{
    Cluster, ClusterError, ClusterStatus, Drained, Moved, NodeRole, Role, ServerRow, StreamRow, Verified, WorldRow,
};
use crossbeam_channel::Sender;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::members::Members;
use super::nats::Wire;
use super::node::Event;

/// The number of the one world.
const WORLD: u16 = 0;

/// What was last heard of the stream and its servers.
#[derive(Default)]
pub(super) struct Shown(Mutex<Option<(StreamRow, Vec<ServerRow>)>>);

impl Shown {
    /// They were asked, and this came of it.
    pub(super) fn set(&self, found: Option<(StreamRow, Vec<ServerRow>)>) {
        *self.0.lock() = found;
    }
}

/// The cluster for the API.
pub(super) struct Service {
    cluster: String,
    secret: [u8; 32],
    wire: Arc<Wire>,
    members: Arc<Members>,
    shown: Arc<Shown>,
    tell: Sender<Event>,
}

impl Service {
    pub(super) fn new(
        cluster: String,
        secret: [u8; 32],
        (wire, members, shown): (&Arc<Wire>, &Arc<Members>, &Arc<Shown>),
        tell: Sender<Event>,
    ) -> Self {
        let (wire, members, shown) = (Arc::clone(wire), Arc::clone(members), Arc::clone(shown));
        Self { cluster, secret, wire, members, shown, tell }
    }

    /// The owner as this node knows it: its name and its epoch.
    fn owner(&self) -> Option<(String, u64)> {
        if self.members.own_role() == NodeRole::Owner {
            let epoch = self.members.standing.epoch.load(Ordering::Acquire);
            return Some((self.members.node().to_owned(), epoch));
        }
        self.members.owner().map(|owner| (owner.beat.node, owner.beat.epoch))
    }

    async fn hand_to(&self, node: String) -> Result<Moved, ClusterError> {
        if self.members.own_role() != NodeRole::Owner {
            return Err(ClusterError::NotOwner);
        }
        let (done, moved) = oneshot::channel();
        let _ended = self.tell.send(Event::Move { to: node, done });
        moved.await.unwrap_or_else(|_| Err(ClusterError::NotReady("the daemon is shutting down".to_owned())))
    }
}

impl Cluster for Service {
    fn role(&self) -> Role {
        self.members.role()
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }

    fn status(&self) -> ClusterStatus {
        let nodes = self.members.rows();
        let owner = self.owner();
        let (stream, servers) = self.shown.0.lock().clone().map_or((None, Vec::new()), |(it, them)| (Some(it), them));
        let newest = nodes.iter().map(|node| (node.epoch, node.index)).max().unwrap_or_default();
        let world = WorldRow {
            world: WORLD,
            epoch: owner.as_ref().map_or(newest.0, |(_, epoch)| *epoch),
            index: newest.1,
            since: None,
            problem: owner.is_none().then(|| "no node owns the world".to_owned()),
            owner: owner.map(|(node, _)| node),
        };
        ClusterStatus {
            node: self.members.node().to_owned(),
            cluster: self.cluster.clone(),
            nodes,
            worlds: vec![world],
            stream,
            servers,
            problems: self.members.problems(),
        }
    }

    fn move_to(self: Arc<Self>, world: u16, node: String) -> BoxFuture<'static, Result<Moved, ClusterError>> {
        Box::pin(async move {
            if world != WORLD {
                return Err(ClusterError::NoWorld(world));
            }
            if node == self.members.node() {
                let epoch = self.members.standing.epoch.load(Ordering::Acquire);
                return Ok(Moved { owner: node, epoch, paused_ms: 0 });
            }
            if self.members.other(&node).is_none() {
                return Err(ClusterError::NoNode(node));
            }
            self.hand_to(node).await
        })
    }

    fn drain(self: Arc<Self>, node: String) -> BoxFuture<'static, Result<Drained, ClusterError>> {
        Box::pin(async move {
            if node != self.members.node() {
                return super::talk::ask_to_drain(&self.wire, &self.members, node).await;
            }
            self.members.drain();
            let best = self.members.candidates(None).into_iter().next();
            match best {
                _ if self.members.own_role() != NodeRole::Owner => Ok(Drained { moved: Vec::new() }),
                Some(best) => Ok(Drained { moved: vec![(WORLD, self.hand_to(best).await?)] }),
                None => Err(ClusterError::NotReady("no other node can take the world over".to_owned())),
            }
        })
    }

    fn verify(self: Arc<Self>) -> BoxFuture<'static, Result<Verified, ClusterError>> {
        Box::pin(async move { Err(ClusterError::NotReady("the stores cannot be compared yet".to_owned())) })
    }
}
