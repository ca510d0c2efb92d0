//! What the API asks of the cluster.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use agentsvc_api::cluster::{
    Cluster, ClusterError, ClusterStatus, Drained, Moved, NodeRole, NodeRow, Role, ServerRow, StreamRow, Verified,
    WorldRow,
};
use agentsvc_api::http::timestamp::timestamp_now;
use agentsvc_components::Timestamp;
use crossbeam_channel::Sender;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::giving;
use super::members::{Beat, Members, Other};
use super::nats::Wire;
use super::node::Event;
use super::progress::ALONE;
use crate::kernel::exchange::Exchange;

/// The number of the one world.
const WORLD: u16 = 0;

impl Members {
    /// All nodes, by name.
    pub(super) fn rows(&self) -> Vec<NodeRow> {
        let (now, wall) = (self.now(), timestamp_now());
        let last = |others: &BTreeMap<String, Other>| others.values().map(|it| it.beat.index).max().unwrap_or_default();
        let (own, checked) = (self.beat(), self.checked.lock().clone());
        let others = self.others.lock();
        let newest = last(&others).max(self.standing.index.load(Ordering::Acquire));
        let row = |beat: Beat, age: u64, is_alive: bool| NodeRow {
            role: if is_alive { beat.role() } else { NodeRole::Silent },
            is_draining: beat.draining,
            epoch: beat.epoch,
            index: beat.index,
            lag: newest.saturating_sub(beat.index),
            last_heard: Some(wall.plus_ms(-i64::try_from(age).unwrap_or(i64::MAX))),
            checked: checked.get(&beat.node).cloned(),
            name: beat.node,
            url: beat.url,
            version: Some(beat.version),
        };
        let mut rows: Vec<NodeRow> =
            others.values().map(|it| row(it.beat.clone(), now.saturating_sub(it.at), it.is_alive(now))).collect();
        rows.push(row(own, 0, true));
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        rows
    }
}

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
    /// The present world; empty until the node starts.
    exchange: Arc<OnceLock<Arc<Exchange>>>,
    tell: Sender<Event>,
}

impl Service {
    pub(super) fn new(
        cluster: String,
        secret: [u8; 32],
        (wire, members, shown): (&Arc<Wire>, &Arc<Members>, &Arc<Shown>),
        exchange: &Arc<OnceLock<Arc<Exchange>>>,
        tell: Sender<Event>,
    ) -> Self {
        let exchange = Arc::clone(exchange);
        let (wire, members, shown) = (Arc::clone(wire), Arc::clone(members), Arc::clone(shown));
        Self { cluster, secret, wire, members, shown, exchange, tell }
    }

    /// The owner as this node knows it: its name, its epoch and since when it is the owner.
    fn owner(&self) -> Option<(String, u64, Option<Timestamp>)> {
        if self.members.own_role() == NodeRole::Owner {
            let epoch = self.members.standing.epoch.load(Ordering::Acquire);
            return Some((self.members.node().to_owned(), epoch, self.members.since()));
        }
        self.members.owner().map(|owner| (owner.beat.node, owner.beat.epoch, owner.beat.since.map(Timestamp)))
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

    fn is_fresh(&self) -> bool {
        self.members.is_fresh()
    }

    fn finishes(&self, url: &str) -> bool {
        self.members.finishes(url)
    }

    fn leave(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // It takes nothing over while it stops.
            self.members.drain();
            if self.members.own_role() == NodeRole::Owner
                && let Err(error) = giving::announce(&self.wire, &self.members).await
            {
                tracing::debug!(error, "the other nodes will learn soon that this one stops");
            }
        })
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
            epoch: owner.as_ref().map_or(newest.0, |(_, epoch, _)| *epoch),
            index: newest.1,
            since: owner.as_ref().and_then(|(_, _, since)| *since),
            problem: owner.is_none().then(|| "no node owns the world".to_owned()),
            owner: owner.map(|(node, ..)| node),
        };
        ClusterStatus {
            node: self.members.node().to_owned(),
            cluster: self.cluster.clone(),
            nodes,
            worlds: vec![world],
            stream,
            servers,
            is_journal_alone: self.members.problem(ALONE).is_some(),
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
        Box::pin(async move {
            let exchange = self.exchange.get().cloned().ok_or(ClusterError::NotOwner)?;
            if self.members.own_role() != NodeRole::Owner {
                return Err(ClusterError::NotOwner);
            }
            super::verify::verify(Arc::clone(&self.wire), Arc::clone(&self.members), exchange).await
        })
    }
}
