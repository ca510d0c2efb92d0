//! What all connections of this node share.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::shutdown::Shutdown;
use agentsvc_api::peer::audit_kinds;
use agentsvc_api::peer::network::PeerCounts;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::{Actor, AgentId, SessionId, Timestamp};
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::peer::CountPeerTokens;
use agentsvc_systems::peer::limits::{PEER_MESSAGES_OUT_MAX, PEER_REFUSALS_NOTED_MAX};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::agents::{AgentChanges, OwnAgents};
use super::config::{Dial, NetworkConfig};
use super::guesses::Guesses;
use super::handshake::{FORBIDDEN, INTERNAL, Known, Refused, TOO_MANY, Us};
use super::identity::Identity;
use super::inbound::refused;
use super::message::{Hello, line};
use super::nonces::{Nonces, Seen};
use super::table::{Joined, Table};
use super::trust::{Distrust, Proven, TrustStore};
use super::usage::{Allowance, Usage};

/// See the head of the file.
pub(crate) struct Network {
    pub(crate) us: Us,
    pub(crate) config: NetworkConfig,
    pub(crate) trust: TrustStore,
    pub(crate) table: Table,
    pub(crate) bridge: Bridge,
    pub(crate) injection: InjectionPolicy,
    pub(crate) shutdown: Shutdown,
    pub(crate) counts: Counts,
    pub(crate) started: Instant,
    /// One permit for each message to a peer.
    pub(crate) sending: Arc<Semaphore>,
    nonces: Mutex<Nonces>,
    usage: Mutex<HashMap<String, Usage>>,
    pub(crate) agents: OwnAgents,
    listen: OnceLock<Vec<SocketAddr>>,
    guesses: Guesses,
    /// Refusals that were put on the audit log in a minute: of nodes that know the secret, and of others.
    noted: Mutex<[(Instant, u32); 2]>,
}

/// What the network finds around it.
pub(crate) struct Around {
    /// The way into the world.
    pub(crate) bridge: Bridge,
    pub(crate) injection: InjectionPolicy,
    pub(crate) shutdown: Shutdown,
    pub(crate) changes: Arc<AgentChanges>,
}

/// What happened since the start.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) refused_handshakes: AtomicU64,
    pub(crate) limited: AtomicU64,
    pub(crate) altered: AtomicU64,
    pub(crate) tokens: AtomicU64,
}

/// Counts one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The present moment.
pub(crate) fn now() -> Timestamp {
    agentsvc_api::http::timestamp::timestamp_now()
}

/// The name of the machine.
fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String =
        name.trim().chars().filter(|char| !char.is_control() && !"@|".contains(*char)).take(64).collect();
    if name.is_empty() { "agentsvc".to_owned() } else { name }
}

impl Network {
    /// The network of this node; its identity is made where there is none.
    ///
    /// # Errors
    /// A file of the data directory cannot be read or written, or is damaged.
    pub(crate) fn open(config: &NetworkConfig, data: &Path, around: Around) -> io::Result<Self> {
        let Around { bridge, injection, shutdown, changes } = around;
        let bridge = bridge.acting_as(Actor::Peer);
        let agents = OwnAgents::new(bridge.clone(), &config.agents, changes);
        let node_name = Some(config.node_name.to_string()).filter(|name| !name.is_empty());
        let us = Us {
            identity: Identity::open(data)?,
            secret: config.shared_secret.clone(),
            node_name: node_name.unwrap_or_else(machine_name),
        };
        Ok(Self {
            us,
            config: config.clone(),
            trust: TrustStore::open(data)?,
            table: Table::default(),
            bridge,
            injection,
            shutdown,
            counts: Counts::default(),
            started: Instant::now(),
            sending: Arc::new(Semaphore::new(PEER_MESSAGES_OUT_MAX)),
            nonces: Mutex::default(),
            usage: Mutex::default(),
            agents,
            listen: OnceLock::new(),
            guesses: Guesses::default(),
            noted: Mutex::new([(Instant::now(), 0); 2]),
        })
    }

    /// Where it listens.
    pub(crate) fn listening(&self) -> &[SocketAddr] {
        self.listen.get().map_or(&[], Vec::as_slice)
    }

    /// It listens there.
    pub(crate) fn listens_at(&self, addresses: Vec<SocketAddr>) {
        let _once = self.listen.set(addresses);
    }

    /// What a peer may do.
    const fn allowance(&self) -> Allowance {
        let NetworkConfig { max_messages_per_peer_per_minute, max_llm_tokens_per_peer_per_hour, .. } = self.config;
        Allowance { requests: max_messages_per_peer_per_minute, tokens: max_llm_tokens_per_peer_per_hour }
    }

    fn limited(&self, result: Result<(), String>) -> Result<(), Refused> {
        result.map_err(|reason| {
            count(&self.counts.limited);
            Refused::new(TOO_MANY, reason)
        })
    }

    /// A peer asks for something.
    pub(crate) fn request(&self, node_id: &str) -> Result<(), Refused> {
        let (mut usage, now) = (self.usage.lock(), Instant::now());
        if !usage.contains_key(node_id) {
            // Of nodes that have proved who they are there are not many, and few of them are busy.
            usage.retain(|_, usage| !usage.is_over(now));
        }
        let result = usage.entry(node_id.to_owned()).or_default().request(self.allowance(), now);
        drop(usage);
        self.limited(result)
    }

    /// A turn begins that a peer asks for in this session. [`turn_ended`](Self::turn_ended) must follow.
    pub(crate) async fn turn_begins(&self, node_id: &str, session: SessionId) -> Result<(), Refused> {
        let allowance = self.allowance();
        let sessions = self.usage.lock().entry(node_id.to_owned()).or_default().sessions(session, Instant::now());
        // Also what its messages set off, however long that goes on.
        let used = match allowance.tokens {
            0 => 0,
            _ => self.bridge.ask(CountPeerTokens(sessions)).await.map_err(|refusal| refused(&refusal))?,
        };
        let result = self.usage.lock().entry(node_id.to_owned()).or_default().begin(allowance, used);
        self.limited(result)
    }

    /// It has ended, and used so many tokens itself.
    pub(crate) fn turn_ended(&self, node_id: &str, tokens: u64) {
        self.counts.tokens.fetch_add(tokens, Ordering::Relaxed);
        self.usage.lock().entry(node_id.to_owned()).or_default().end();
    }

    /// A node connects: it must know the secret, and not come from where too many did not.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) async fn admit(&self, hello: Hello, address: SocketAddr) -> Result<Known, Refused> {
        let (node_id, from) = (line(&hello.node_id), address.ip());
        let judged = self.guesses.check(from, Instant::now()).and_then(|()| self.us.admit(hello));
        if let Err(refused) = &judged {
            if refused.is_guess {
                self.guesses.wrong(from, Instant::now());
            }
            self.note_refused(false, &node_id, &address.to_string(), refused).await;
        }
        judged
    }

    /// A frame with a valid HMAC has come from an address on a new connection: who sends it knows the secret. A handshake does not
    /// prove that, for it may be one that was recorded and is sent again.
    pub(crate) fn proved(&self, from: IpAddr) {
        self.guesses.right(from);
    }

    /// A peer that has proved itself is let in: its key must be the pinned one, and its nonce new. Its key is stored when this
    /// returns.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) async fn let_in(self: &Arc<Self>, known: &Known, address: &str) -> Result<(), Refused> {
        let distrust = |why: Distrust| match why {
            Distrust::OtherKey | Distrust::NoKey => Refused::new(FORBIDDEN, why.to_string()),
            Distrust::Full | Distrust::TooFast => Refused::new(TOO_MANY, why.to_string()),
            Distrust::NotStored => Refused::new(INTERNAL, why.to_string()),
        };
        let result = self.trust.check(&known.node_id, known.public_key.as_deref()).map_err(distrust);
        let result = result.and_then(|()| self.see_nonce(known));
        if let Err(refused) = result {
            self.note_refused(true, &known.node_id, address, &refused).await;
            return Err(refused);
        }
        let (network, who, at) = (Arc::clone(self), known.clone(), address.to_owned());
        let pinned = tokio::task::spawn_blocking(move || {
            network.trust.pin(&Proven {
                node_id: &who.node_id,
                node_name: &who.node_name,
                public_key: who.public_key.as_deref(),
                address: &at,
                now: now(),
            })
        });
        let is_new = pinned.await.map_err(|_| distrust(Distrust::NotStored))?.map_err(distrust)?;
        if is_new {
            let fingerprint = known.public_key.as_deref().map(super::crypto::fingerprint);
            tracing::info!(
                node = known.node_id,
                name = known.node_name,
                address,
                fingerprint,
                "a node is trusted from now on"
            );
            let details = json!({
                "node_id": known.node_id, "node_name": known.node_name, "address": address, "fingerprint": fingerprint,
            });
            self.note(audit_kinds::PEER_PINNED, None, details).await;
        }
        Ok(())
    }

    /// A peer that was [let in](Self::let_in) has a connection from now on.
    ///
    /// # Errors
    /// There are too many, or the peer was forgotten since it was let in.
    pub(crate) fn join(&self, known: &Known, address: &str, dial: Option<&Dial>) -> Result<Joined, Refused> {
        let joined = self.table.join(known, address, dial, now())?;
        // The table is looked at after a key is forgotten, and the keys after the table: one of both sees the other.
        if self.trust.is_pinned(&known.node_id, known.public_key.as_deref()) {
            return Ok(joined);
        }
        self.table.remove(&known.node_id);
        Err(Refused::new(FORBIDDEN, "the node was forgotten during its handshake"))
    }

    /// Waits until the world has loaded; false when the daemon stops before.
    pub(crate) async fn is_loaded(&self) -> bool {
        tokio::select! {
            () = self.bridge.opened() => true,
            () = self.shutdown.wait() => false,
        }
    }

    fn see_nonce(&self, Known { node_id, nonce, .. }: &Known) -> Result<(), Refused> {
        match self.nonces.lock().see(node_id, nonce, Instant::now()) {
            Seen::First => Ok(()),
            Seen::Again => Err(Refused::new(FORBIDDEN, "the nonce was used before: the handshake is a replay")),
            Seen::Full => Err(Refused::new(TOO_MANY, "too many handshakes within a few minutes")),
        }
    }

    /// Puts a refusal on the audit log, unless there were many.
    async fn note_refused(&self, is_known: bool, node_id: &str, address: &str, refused: &Refused) {
        let is_noted = {
            let noted = &mut self.noted.lock()[usize::from(is_known)];
            if noted.0.elapsed() >= Duration::from_secs(60) {
                *noted = (Instant::now(), 0);
            }
            noted.1 += 1;
            noted.1 <= PEER_REFUSALS_NOTED_MAX
        };
        if is_noted {
            tracing::warn!(node = node_id, address, reason = refused.reason, "a node was refused");
            let details = json!({ "node_id": node_id, "address": address, "reason": refused.reason });
            self.note(audit_kinds::PEER_REFUSED, None, details).await;
        }
    }

    /// Puts an entry on the audit log.
    pub(crate) async fn note(&self, kind: AuditKind, agent: Option<AgentId>, details: Value) {
        if let Err(refusal) = self.bridge.ask(NoteAction { kind, agent, details }).await {
            tracing::warn!(reason = refusal.message, "an entry about a peer is not on the audit log");
        }
    }

    /// What happened since the start.
    pub(crate) fn peer_counts(&self) -> PeerCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counts { received, sent, unknown, refused_handshakes, limited, altered, tokens } = &self.counts;
        PeerCounts {
            received: of(received),
            sent: of(sent),
            unknown: of(unknown),
            refused_handshakes: of(refused_handshakes),
            limited: of(limited),
            altered: of(altered),
            tokens: of(tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use agentsvc_api::http::bridge::bridge;
    use agentsvc_systems::peer::limits::PEER_WRONG_SECRETS_MAX;

    use super::*;

    impl Network {
        /// A network before the world behind `bridge`, with its files in `data`.
        pub(crate) fn of_test(bridge: Bridge, data: &Path) -> Self {
            let around = Around {
                bridge,
                injection: InjectionPolicy::default(),
                shutdown: Shutdown::new(),
                changes: Arc::default(),
            };
            Self::open(&NetworkConfig::default(), data, around).expect("an empty directory")
        }
    }

    #[tokio::test]
    async fn a_node_that_is_forgotten_during_its_handshake_does_not_join() {
        let dir = tempfile::tempdir().unwrap();
        let network = Arc::new(Network::of_test(bridge().0, dir.path()));
        let known = Known::of_test("a");
        network.let_in(&known, "1.2.3.4:5").await.unwrap();
        assert!(network.trust.forget("a").unwrap());
        network.table.remove("a");
        let refused = network.join(&known, "1.2.3.4:5", None).err().unwrap();
        assert!(refused.code == FORBIDDEN && network.table.all().is_empty());
        let mut known = known;
        known.nonce = "m".to_owned();
        network.let_in(&known, "1.2.3.4:5").await.unwrap();
        assert!(network.join(&known, "1.2.3.4:5", None).is_ok());
    }

    #[tokio::test]
    async fn a_recorded_handshake_does_not_make_an_address_a_known_one() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let network = Arc::new(Network::of_test(bridge().0, ours.path()));
        let peer = Network::of_test(bridge().0, theirs.path());
        let address = |n: u32| SocketAddr::from((Ipv4Addr::from_bits((10 << 24) + n), 1));
        let recorded = peer.us.begin(None, Vec::new()).unwrap().hello;
        let known = network.admit(recorded.clone(), address(1)).await.unwrap();
        network.let_in(&known, "10.0.0.1:1").await.unwrap();
        network.proved(address(1).ip());
        // Again within the time of its nonce, and as one whose nonce is forgotten: both know the right proof.
        let replayed = network.admit(recorded.clone(), address(2)).await.unwrap();
        assert_eq!(network.let_in(&replayed, "10.0.0.2:1").await.unwrap_err().code, FORBIDDEN);
        network.nonces.lock().clear();
        let replayed = network.admit(recorded.clone(), address(3)).await.unwrap();
        network.let_in(&replayed, "10.0.0.3:1").await.unwrap();
        for n in 0..PEER_WRONG_SECRETS_MAX {
            let wrong = Hello { auth_hmac: "0".repeat(64), ..recorded.clone() };
            assert_eq!(network.admit(wrong, address(100 + n)).await.unwrap_err().code, FORBIDDEN);
        }
        for replays in [2, 3] {
            let refused = network.admit(recorded.clone(), address(replays)).await.unwrap_err();
            assert!(refused.code == TOO_MANY && refused.reason.contains("all addresses"), "{replays}: {refused}");
        }
        assert!(network.admit(recorded, address(1)).await.is_ok());
    }
}
