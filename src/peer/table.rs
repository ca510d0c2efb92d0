//! The peers that are or were connected.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
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
    connections: Vec<Link>,
}

/// A connection of a peer.
#[derive(Clone, Debug)]
struct Link {
    number: u64,
    /// What ends it.
    end: Shutdown,
    /// Has a frame with a valid HMAC come? Before, the handshake may be one that was recorded long ago and is sent again.
    is_proven: bool,
    /// Where it comes from; `None` for one that this node dialled.
    origin: Option<IpAddr>,
    /// What the peer said of itself in the handshake, until it counts.
    said: Option<Known>,
}

impl Peer {
    /// Is it connected?
    pub(crate) fn is_connected(&self) -> bool {
        !self.connections.is_empty()
    }
}

/// The address that connections are counted by: of an IPv6 address its network, since a machine has all addresses of it.
pub(crate) const fn origin(from: IpAddr) -> IpAddr {
    match from {
        IpAddr::V4(_) => from,
        IpAddr::V6(from) => match from.to_ipv4_mapped() {
            Some(from) => IpAddr::V4(from),
            None => IpAddr::V6(Ipv6Addr::from_bits(from.to_bits() >> 64 << 64)),
        },
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
        inner.drop_link(&self.node_id, self.number);
        inner.trim();
    }
}

impl Inner {
    /// Ends the oldest connection that is not proven, of one peer or of all. Is there one?
    fn close_unproven(&mut self, node_id: Option<&str>) -> bool {
        let peers = self.peers.iter().filter(|(id, _)| node_id.is_none_or(|node_id| node_id == *id));
        let links = peers.flat_map(|(id, peer)| peer.connections.iter().map(move |link| (id, link)));
        let oldest = links.filter(|(_, link)| !link.is_proven).min_by_key(|(_, link)| link.number);
        let Some((node_id, number)) = oldest.map(|(id, link)| (id.clone(), link.number)) else { return false };
        self.drop_link(&node_id, number);
        true
    }

    /// All places are taken: the oldest connection of the origin that has most of them ends, if the new one's origin has fewer.
    /// Ends no connection that this node dialled. Is there one?
    fn close_of_most(&mut self, newcomer: Option<IpAddr>) -> bool {
        let links = || self.peers.iter().flat_map(|(id, peer)| peer.connections.iter().map(move |link| (id, link)));
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        links().filter_map(|(_, link)| link.origin).for_each(|from| *counts.entry(from).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or(0);
        let own = newcomer.map_or(0, |from| counts.get(&from).copied().unwrap_or(0) + 1);
        if own >= most {
            return false;
        }
        let of_most = links().filter(|(_, link)| link.origin.is_some_and(|from| counts.get(&from) == Some(&most)));
        let oldest = of_most.min_by_key(|(_, link)| link.number).map(|(id, link)| (id.clone(), link.number));
        let Some((node_id, number)) = oldest else { return false };
        self.drop_link(&node_id, number);
        true
    }

    /// A connection has ended, or ends now.
    fn drop_link(&mut self, node_id: &str, number: u64) {
        let Some(peer) = self.peers.get_mut(node_id) else { return };
        let Some(at) = peer.connections.iter().position(|link| link.number == number) else { return };
        peer.connections.remove(at).end.trigger();
        self.connections -= 1;
    }

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
    /// There are too many connections, of all peers or of this one, and none has to make room for it.
    pub(crate) fn join(
        &self,
        known: &Known,
        address: &str,
        dial: Option<&Dial>,
        now: Timestamp,
    ) -> Result<Joined, Refused> {
        let mut inner = self.0.lock();
        let of_peer = inner.peers.get(&known.node_id).map_or(0, |peer| peer.connections.len());
        if of_peer >= PEER_CONNECTIONS_MAX && !inner.close_unproven(Some(&known.node_id)) {
            let text = format!("the limit of {PEER_CONNECTIONS_MAX} connections of one peer is reached");
            return Err(Refused::new(TOO_MANY, text));
        }
        let from = address.parse::<SocketAddr>().ok().filter(|_| dial.is_none()).map(|from| origin(from.ip()));
        if inner.connections >= PEERS_MAX && !inner.close_unproven(None) && !inner.close_of_most(from) {
            let text =
                format!("the limit of {PEERS_MAX} peers is reached, and no address has more of them than this one");
            return Err(Refused::new(TOO_MANY, text));
        }
        inner.last += 1;
        inner.connections += 1;
        let (number, end) = (inner.last, Shutdown::new());
        let is_certain =
            inner.peers.get(&known.node_id).is_some_and(|peer| peer.connections.iter().any(|link| link.is_proven));
        if !is_certain {
            inner.see(known, address, dial, now);
        }
        let said = is_certain.then(|| known.clone());
        if let Some(peer) = inner.peers.get_mut(&known.node_id) {
            if peer.connections.is_empty() {
                peer.connected_at = now;
            }
            peer.connections.push(Link { number, end: end.clone(), is_proven: false, origin: from, said });
        }
        inner.trim();
        drop(inner);
        Ok(Joined { table: self.clone(), node_id: known.node_id.clone(), number, end })
    }

    /// A peer has responded, on a connection for one message.
    pub(crate) fn met(&self, known: &Known, dial: &Dial, now: Timestamp) {
        let mut inner = self.0.lock();
        inner.see(known, &format!("{}:{}", dial.host, dial.port), Some(dial), now);
        inner.trim();
    }

    /// A frame with a valid HMAC has come on a connection.
    pub(crate) fn proved(&self, Joined { node_id, number, .. }: &Joined, now: Timestamp) {
        let mut inner = self.0.lock();
        let Some(peer) = inner.peers.get_mut(node_id) else { return };
        peer.last_seen = now;
        let Some(link) = peer.connections.iter_mut().find(|link| link.number == *number) else { return };
        link.is_proven = true;
        if let Some(Known { node_name, agents, public_key, .. }) = link.said.take() {
            (peer.node_name, peer.agents, peer.has_key) = (node_name, agents, public_key.is_some());
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
        let mut inner = self.0.lock();
        if let Some(peer) = inner.peers.remove(node_id) {
            inner.connections -= peer.connections.len();
            peer.connections.iter().for_each(|link| link.end.trigger());
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
        let join = |node: &str| join(node).inspect(|joined| table.proved(joined, now));
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
    fn recorded_handshakes_keep_no_peer_out_and_change_nothing() {
        let table = Table::default();
        let join = |node: &str, agent: &str| {
            let agents = vec![RemoteAgent { id: agent.to_owned(), ..RemoteAgent::default() }];
            let mut known = known(node);
            known.agents = agents;
            table.join(&known, "1.2.3.4:5", None, Timestamp(1))
        };
        let agent = |table: &Table| table.all()["a"].agents[0].id.clone();
        let real = join("a", "now").unwrap();
        table.proved(&real, Timestamp(2));
        let mut recorded: Vec<_> = (0..PEER_CONNECTIONS_MAX).map(|_| join("a", "before").unwrap()).collect();
        assert_eq!(agent(&table), "now");
        assert!(recorded[0].end.is_triggered() && !recorded[1].end.is_triggered() && !real.end.is_triggered());
        // Those of other nodes leave places, too.
        for n in 0..PEERS_MAX {
            recorded.push(join(&n.to_string(), "x").unwrap());
        }
        assert!(!real.end.is_triggered());
        let again = join("a", "later").unwrap();
        assert_eq!(agent(&table), "now");
        table.proved(&again, Timestamp(3));
        assert_eq!(agent(&table), "later");
        drop((recorded, real, again));
        assert_eq!(table.0.lock().connections, 0);
    }

    #[test]
    fn one_address_does_not_keep_others_out() {
        let (table, now) = (Table::default(), Timestamp(1));
        let join = |node: &str, address: &str, dial: Option<&Dial>| {
            let joined = table.join(&known(node), address, dial, now);
            joined.inspect(|joined| table.proved(joined, now))
        };
        let dial = Dial::of_test("10.0.0.9", 7);
        let dialled = join("d", "10.0.0.9:7", Some(&dial)).unwrap();
        let flood: Vec<_> = (1..PEERS_MAX).map(|n| join(&n.to_string(), "[2001:db8::7]:5", None).unwrap()).collect();
        let refused = join("more", "[2001:db8::8]:5", None).err().unwrap();
        assert!(refused.code == TOO_MANY && refused.reason.contains("no address has more"), "{refused}");
        let other = join("other", "10.0.0.1:5", None).unwrap();
        assert!(flood[0].end.is_triggered() && !flood[1].end.is_triggered() && !dialled.end.is_triggered());
        // Each address that comes gets places, until all have as many.
        let mut others = vec![other];
        while let Ok(joined) = join(&format!("o{}", others.len()), "10.0.0.1:6", None) {
            others.push(joined);
        }
        let held = flood.iter().filter(|joined| !joined.end.is_triggered()).count();
        assert_eq!((others.len(), held), (24, 25));
        // A peer that the configuration names always gets one.
        assert!(join("e", "10.0.0.8:7", Some(&Dial::of_test("10.0.0.8", 7))).is_ok());
        assert!(!dialled.end.is_triggered());
        drop((flood, others, dialled));
        assert_eq!(table.0.lock().connections, 0);
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
