//! Peers and the network (spec 3, Network peers).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::network::{NetworkStatus, PeerAgent, PeerCounts, PeerNetwork, PeerRow, TrustedRow};
use crate::http::api::Api;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

pub(crate) const ROUTES: &[Route] =
    &[
        Route::get("/api/peers", "List peers", |call| Box::pin(list(call)))
            .replies(&[Reply::json::<PeerList>(200, "the peers since the start")]),
        Route::get("/api/peers/{id}", "Get a peer", |call| Box::pin(get(call)))
            .replies(&[Reply::json::<PeerItem>(200, "the peer"), Reply::error(404, "no such peer was connected")]),
        Route::get("/api/network/status", "Get the status of this node", |call| Box::pin(status(call)))
            .replies(&[Reply::json::<StatusBody>(200, "the status")]),
        Route::get("/api/network/trusted", "List pinned peers", |call| Box::pin(trusted(call)))
            .replies(&[Reply::json::<TrustedList>(200, "the peers whose keys are pinned")]),
        Route::delete("/api/network/trusted/{id}", "Forget a pinned peer", |call| Box::pin(forget(call))).replies(&[
            Reply::json::<Forgotten>(200, "forgotten; the next key is pinned"),
            Reply::error(404, "not pinned"),
        ]),
    ];

/// The version of the protocol.
const PROTOCOL: &str = "ofp/1";

shape! {
    /// An agent of a peer, as the peer says.
    struct PeerAgentItem from agent: PeerAgent {} {
        id: String = agent.id,
        name: String = agent.name,
        description: String = agent.description,
        tags: Vec<String> = agent.tags,
        tools: Vec<String> = agent.tools,
        state: String = agent.state,
    }
}

shape! {
    /// A peer.
    struct PeerItem from peer: PeerRow {} {
        node_id: String = peer.node_id,
        /// Name, as the peer says.
        node_name: String = peer.node_name,
        /// Address, as `host:port`.
        address: String = peer.address,
        /// `connected` or `disconnected`.
        state: &'static str = if peer.is_connected { "connected" } else { "disconnected" },
        /// Whether it knows the shared secret. Other nodes are not listed.
        authenticated: bool = true,
        /// Whether it has proved its identity with its key.
        secure: bool = peer.has_key,
        connected_at: Moment = Moment(peer.connected_at),
        last_seen: Moment = Moment(peer.last_seen),
        /// At most 64.
        agents: Vec<PeerAgentItem> = peer.agents.into_iter().map(PeerAgentItem::from).collect(),
        protocol_version: &'static str = PROTOCOL,
    }
}

/// Peers.
#[derive(Serialize, JsonSchema)]
struct PeerList {
    peers: Vec<PeerItem>,
    total: usize,
}

shape! {
    /// A pinned peer.
    struct TrustedItem from row: TrustedRow {} {
        node_id: String = row.node_id,
        node_name: String = row.node_name,
        /// `secure`: its key is pinned. `legacy`: it has no key.
        mode: &'static str = row.mode,
        /// SHA-256 of the base64 key. Compare it with `identity_fingerprint` of the peer.
        fingerprint: Option<String> = row.fingerprint,
        first_seen: Moment = Moment(row.first_seen),
        last_verified: Moment = Moment(row.last_verified),
        /// Its address at that time.
        address: String = row.address,
    }
}

/// Pinned peers.
#[derive(Serialize, JsonSchema)]
struct TrustedList {
    trusted: Vec<TrustedItem>,
    total: usize,
}

shape! {
    /// Messages since the start.
    struct Throughput from counts: PeerCounts {} {
        /// Messages for agents that came from peers.
        messages_received: u64 = counts.received,
        /// Messages for agents of peers.
        messages_sent: u64 = counts.sent,
        /// Sent messages that may or may not have arrived.
        messages_unknown: u64 = counts.unknown,
        /// Requests over a limit.
        requests_limited: u64 = counts.limited,
        /// Refused handshakes.
        handshakes_refused: u64 = counts.refused_handshakes,
        /// Frames that were altered or repeated on the way.
        frames_refused: u64 = counts.altered,
        /// Tokens that messages of peers have cost.
        tokens: u64 = counts.tokens,
    }
}

/// This node and its network.
#[derive(Serialize, JsonSchema)]
struct StatusBody {
    /// Whether this node takes part in a network now.
    online: bool,
    /// Whether the configuration enables the network.
    enabled: bool,
    /// Why it is not online although it is enabled, or why peers cannot connect to it.
    problem: Option<String>,
    /// Null while the network is off.
    node_id: Option<String>,
    node_name: Option<String>,
    /// First address that it listens on.
    listen_addr: Option<String>,
    /// All addresses that it listens on.
    listen_addrs: Vec<String>,
    protocol_version: &'static str,
    /// Number of connected peers.
    connected_peers: usize,
    /// Number of peers since the start.
    total_peers: usize,
    /// SHA-256 of this node's base64 key, for comparison with what peers have pinned.
    identity_fingerprint: Option<String>,
    pinned_peers: Vec<TrustedItem>,
    throughput: Throughput,
}

fn network(call: &Call) -> Result<Arc<dyn PeerNetwork>, Error> {
    call.api.service::<dyn PeerNetwork>()
}

async fn list(call: Call) -> Result<Response, Error> {
    let peers: Vec<_> = network(&call)?.peers().into_iter().map(PeerItem::from).collect();
    reply::ok(&PeerList { total: peers.len(), peers })
}

async fn get(call: Call) -> Result<Response, Error> {
    let id = call.param("id")?;
    let found = network(&call)?.peers().into_iter().find(|peer| peer.node_id == *id);
    let peer = found.ok_or_else(|| Error::not_found(format!("peer {id} was not connected since the start")))?;
    reply::ok(&PeerItem::from(peer))
}

async fn status(call: Call) -> Result<Response, Error> {
    let network = network(&call)?;
    let NetworkStatus { enabled, problem, node_id, node_name, listen, fingerprint, counts } = network.status();
    let peers = network.peers();
    reply::ok(&StatusBody {
        online: node_id.is_some(),
        enabled,
        problem,
        node_id,
        node_name,
        listen_addr: listen.first().cloned(),
        listen_addrs: listen,
        protocol_version: PROTOCOL,
        connected_peers: peers.iter().filter(|peer| peer.is_connected).count(),
        total_peers: peers.len(),
        identity_fingerprint: fingerprint,
        pinned_peers: network.trusted().into_iter().map(TrustedItem::from).collect(),
        throughput: Throughput::from(counts),
    })
}

async fn trusted(call: Call) -> Result<Response, Error> {
    let trusted: Vec<_> = network(&call)?.trusted().into_iter().map(TrustedItem::from).collect();
    reply::ok(&TrustedList { total: trusted.len(), trusted })
}

/// The peer was forgotten.
#[derive(Serialize, JsonSchema)]
struct Forgotten {
    /// `forgotten`.
    status: &'static str,
    node_id: String,
}

async fn forget(call: Call) -> Result<Response, Error> {
    let node_id = call.param("id")?.into_owned();
    let forgotten = network(&call)?.forget(node_id.clone()).await.map_err(|error| {
        tracing::error!(%error, "a pinned peer could not be forgotten");
        Error::internal("the file of the pinned peers could not be written; see the daemon's log for the reason")
    })?;
    if !forgotten {
        return Err(Error::not_found(format!("peer {node_id} is not pinned")));
    }
    reply::ok(&Forgotten { status: "forgotten", node_id })
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let Some(network) = api.services.get::<dyn PeerNetwork>() else { return };
    let connected = network.peers().iter().filter(|peer| peer.is_connected).count();
    out.gauge("agentsvc_peers_connected", "Connected peers.", connected);
    let PeerCounts { received, sent, unknown, refused_handshakes, limited, altered, tokens } = network.status().counts;
    for (name, help, count) in [
        ("agentsvc_peer_messages_received_total", "Messages for agents that came from peers.", received),
        ("agentsvc_peer_messages_sent_total", "Messages for agents of peers.", sent),
        ("agentsvc_peer_messages_unknown_total", "Messages for peers that may or may not have arrived.", unknown),
        ("agentsvc_peer_handshakes_refused_total", "Refused handshakes.", refused_handshakes),
        ("agentsvc_peer_requests_limited_total", "Requests of peers over a limit.", limited),
        ("agentsvc_peer_frames_refused_total", "Frames of peers that were altered or repeated.", altered),
        ("agentsvc_peer_tokens_total", "Tokens that messages of peers have cost.", tokens),
    ] {
        out.counter(name, help, count);
    }
}
