//! The peers that are or were connected.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_api::http::shutdown::Shutdown;
use agentsvc_components::Timestamp;
use agentsvc_systems::peer::limits::{PEER_AGENTS_MAX, PEER_CONNECTIONS_MAX, PEERS_MAX, PEERS_REMEMBERED_MAX};
use parking_lot::Mutex;

use super::config::Dial;
use super::handshake::{Known, Refused, TOO_MANY};
use super::message::{Notification, RemoteAgent};

/// One peer.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) node_name: String,
    /// Where it is, for people.
    pub(crate) address: String,
    /// Where it can be dialled.
    pub(crate) dial: Option<Dial>,
    pub(crate) has_key: bool,
    pub(crate) connected_at: Timestamp,
    pub(crate) last_seen: Timestamp,
    pub(crate) agents: Vec<RemoteAgent>,
    /// Its connections, each with what ends it.
    connections: Vec<(u64, Shutdown)>,
}

impl Peer {
    /// Is it connected?
    pub(crate) fn is_connected(&self) -> bool {
        !self.connections.is_empty()
    }
}

/// What all connections share.
#[derive(Default)]
struct Inner {
    peers: BTreeMap<String, Peer>,
    /// How many there are of all peers.
    connections: usize,
    /// Counts them.
    last: u64,
}

/// The peers. Copies share them.
#[derive(Clone, Default)]
pub(crate) struct Table(Arc<Mutex<Inner>>);

/// A connection of a peer; it leaves the table when this is dropped.
pub(crate) struct Joined {
    table: Table,
    pub(crate) node_id: String,
    number: u64,
    /// Triggered when the connection must end.
    pub(crate) end: Shutdown,
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut inner = self.table.0.lock();
        inner.connections = inner.connections.saturating_sub(1);
        if let Some(peer) = inner.peers.get_mut(&self.node_id) {
            peer.connections.retain(|(number, _)| *number != self.number);
        }
        inner.trim();
    }
}

impl Inner {
    /// The peers that left first go while too many are remembered.
    fn trim(&mut self) {
        while self.peers.len() > PEERS_REMEMBERED_MAX {
            let left = self.peers.iter().filter(|(_, peer)| !peer.is_connected());
            let Some(oldest) = left.min_by_key(|(_, peer)| peer.last_seen).map(|(id, _)| id.clone()) else { return };
            self.peers.remove(&oldest);
        }
    }
}

impl Table {
    /// A peer has connected, or was dialled at an address.
    ///
    /// # Errors
    /// There are too many connections, of all peers or of this one.
    pub(crate) fn join(
        &self,
        known: &Known,
        address: &str,
        dial: Option<&Dial>,
        now: Timestamp,
    ) -> Result<Joined, Refused> {
        let mut inner = self.0.lock();
        if inner.connections >= PEERS_MAX {
            return Err(Refused::new(TOO_MANY, format!("the limit of {PEERS_MAX} peers is reached")));
        }
        let of_peer = inner.peers.get(&known.node_id).map_or(0, |peer| peer.connections.len());
        if of_peer >= PEER_CONNECTIONS_MAX {
            let text = format!("the limit of {PEER_CONNECTIONS_MAX} connections of one peer is reached");
            return Err(Refused::new(TOO_MANY, text));
        }
        inner.last += 1;
        inner.connections += 1;
        let (number, end) = (inner.last, Shutdown::new());
        inner.see(known, address, dial, now);
        if let Some(peer) = inner.peers.get_mut(&known.node_id) {
            if peer.connections.is_empty() {
                peer.connected_at = now;
            }
            peer.connections.push((number, end.clone()));
        }
        inner.trim();
        drop(inner);
        Ok(Joined { table: self.clone(), node_id: known.node_id.clone(), number, end })
    }

    /// A peer has said who it is, on a connection for one message.
    pub(crate) fn met(&self, known: &Known, dial: &Dial, now: Timestamp) {
        let mut inner = self.0.lock();
        inner.see(known, &format!("{}:{}", dial.host, dial.port), Some(dial), now);
        inner.trim();
    }

    /// A peer has sent something.
    pub(crate) fn seen(&self, node_id: &str, now: Timestamp) {
        if let Some(peer) = self.0.lock().peers.get_mut(node_id) {
            peer.last_seen = now;
        }
    }

    /// A peer has told something of its agents.
    pub(crate) fn told(&self, node_id: &str, told: Notification) {
        let mut inner = self.0.lock();
        let Some(peer) = inner.peers.get_mut(node_id) else { return };
        match told {
            Notification::AgentSpawned { agent } => {
                let agent = agent.bounded();
                peer.agents.retain(|known| known.id != agent.id);
                if peer.agents.len() < PEER_AGENTS_MAX {
                    peer.agents.push(agent);
                }
            }
            Notification::AgentTerminated { agent_id } => peer.agents.retain(|known| known.id != agent_id),
            Notification::ShuttingDown | Notification::Unknown => {}
        }
    }

    /// Ends all connections of a peer, and forgets it.
    pub(crate) fn remove(&self, node_id: &str) {
        if let Some(peer) = self.0.lock().peers.remove(node_id) {
            peer.connections.iter().for_each(|(_, end)| end.trigger());
        }
    }

    /// All of them, by their ids.
    pub(crate) fn all(&self) -> BTreeMap<String, Peer> {
        self.0.lock().peers.clone()
    }
}

impl Inner {
    fn see(&mut self, known: &Known, address: &str, dial: Option<&Dial>, now: Timestamp) {
        let before = self.peers.remove(&known.node_id);
        let (dial_before, address_before) = match &before {
            Some(before) => (before.dial.clone(), Some(before.address.clone()).filter(|_| before.dial.is_some())),
            None => (None, None),
        };
        let is_dialled = dial.is_some();
        let peer = Peer {
            node_name: known.node_name.clone(),
            // The address that it is dialled at is worth more than the port that it came from.
            address: address_before.filter(|_| !is_dialled).unwrap_or_else(|| address.to_owned()),
            dial: dial.cloned().or(dial_before),
            has_key: known.public_key.is_some(),
            connected_at: before.as_ref().map_or(now, |before| before.connected_at),
            last_seen: now,
            agents: known.agents.clone(),
            connections: before.map(|before| before.connections).unwrap_or_default(),
        };
        self.peers.insert(known.node_id.clone(), peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(node_id: &str) -> Known {
        Known::of_test(node_id)
    }

    #[test]
    fn connections_are_bounded_and_leave() {
        let (table, now) = (Table::default(), Timestamp(1));
        let join = |node: &str| table.join(&known(node), "1.2.3.4:5", None, now);
        let mut all: Vec<_> = (0..PEER_CONNECTIONS_MAX).map(|_| join("a").unwrap()).collect();
        assert_eq!(join("a").err().map(|refused| refused.code), Some(TOO_MANY));
        for n in PEER_CONNECTIONS_MAX..PEERS_MAX {
            all.push(join(&n.to_string()).unwrap());
        }
        assert_eq!(join("z").err().map(|refused| refused.code), Some(TOO_MANY));
        assert!(table.all()["a"].is_connected());
        all.clear();
        assert!(!table.all()["a"].is_connected() && join("z").is_ok());
        for n in 0..PEERS_REMEMBERED_MAX + 20 {
            drop(table.join(&known(&format!("n{n}")), "x", None, Timestamp(2 + n as i64)).unwrap());
        }
        let left = table.all();
        assert!(left.len() == PEERS_REMEMBERED_MAX && !left.contains_key("a"), "{}", left.len());
    }

    #[test]
    fn one_that_is_forgotten_is_told_to_go() {
        let table = Table::default();
        let joined = table.join(&known("a"), "x", None, Timestamp(1)).unwrap();
        table.remove("a");
        assert!(joined.end.is_triggered() && table.all().is_empty());
        drop(joined);
        assert_eq!(table.0.lock().connections, 0);
    }

    #[test]
    fn agents_come_and_go() {
        let table = Table::default();
        let _joined = table.join(&known("a"), "x", None, Timestamp(1)).unwrap();
        for n in 0..PEER_AGENTS_MAX + 5 {
            let agent = RemoteAgent { id: n.to_string(), name: "n\n".repeat(200), ..RemoteAgent::default() };
            table.told("a", Notification::AgentSpawned { agent });
        }
        table.told("a", Notification::AgentTerminated { agent_id: "0".to_owned() });
        let agents = &table.all()["a"].agents;
        assert_eq!(agents.len(), PEER_AGENTS_MAX - 1);
        assert!(agents[0].name.len() <= 128 && !agents[0].name.contains('\n'));
    }
}
