//! Other nodes over OFP/1 (spec 3, Network peers): they let each other's agents be messaged.
//!
//! | rule | why |
//! |---|---|
//! | no secret, no network | only nodes of the same operator are let in |
//! | what does not fit ends the connection, not the network | a stranger stops nothing |
//! | the first key of a node is pinned and stored before the node is let in | another one cannot take its place |
//! | each message to a peer has a connection of its own and is sent once | nothing is done twice unasked |
//! | a message of a peer goes to a session of its own, tainted, within limits | it has no more rights than other untrusted content |

mod agents;
pub(crate) mod cli;
pub mod config;
mod connection;
mod crypto;
mod dial;
mod front;
pub(crate) mod fuzzing;
mod guesses;
mod handshake;
mod identity;
mod inbound;
mod listener;
mod message;
mod network;
mod nonces;
mod outbound;
mod table;
mod trust;
mod usage;
mod wire;

use std::path::Path;
use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_api::peer::network::PeerNetwork;
use tokio::runtime::Handle;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::tool::remote::Remote;
use crate::tool::toolset::ToolParts;
pub(crate) use agents::AgentChanges;
use config::NetworkConfig;
pub(crate) use crypto::holds;
use network::{Around, Network};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "peer",
    uses: &["agent", "audit", "event", "injection", "tool", "turn"],
    commands: &[Subcommand::group::<cli::Peers>(23, "peers", "List peers, and show or forget pinned ones")
        .examples(&[
            Example::new("peers status", "Show the id and the addresses of this node"),
            Example::new("peers trusted", "List the peers whose keys are pinned"),
        ])
        .also("peer")
        .under(Group::Connections)],
    ..Domain::EMPTY
};

/// Starts the network, where it is enabled and has a secret that is long enough. Its problem is in the log and in the status, and the daemon runs
/// without it.
pub(crate) fn start(
    (is_enabled, config): (bool, &NetworkConfig),
    parts: &ToolParts,
    api: &Arc<Api>,
    data: &Path,
    handle: &Handle,
) {
    let off = |problem: Option<String>| {
        let service: Arc<dyn PeerNetwork> = Arc::new(front::Off { is_enabled, problem });
        api.services.provide::<dyn PeerNetwork>(service);
    };
    if !is_enabled {
        return off(None);
    }
    if !config.shared_secret.is_set() {
        return off(Some("network.shared_secret is not set".to_owned()));
    }
    if let Some(problem) = config.weakness() {
        tracing::error!(problem, "the network of nodes is off");
        return off(Some(problem));
    }
    let around = Around {
        bridge: parts.bridge.clone(),
        injection: parts.injection,
        shutdown: api.shutdown.clone(),
        changes: api.services.state::<AgentChanges>(),
    };
    let network = match Network::open(config, data, around) {
        Ok(network) => Arc::new(network),
        Err(error) => {
            tracing::error!(%error, "the network of nodes cannot be used");
            return off(Some(error.to_string()));
        }
    };
    let _inside = handle.enter();
    listener::start(&network, &config.listen_addresses);
    dial::start(&network, &config.bootstrap_peers);
    parts.settings.set(Remote(Some(Arc::clone(&network) as _)));
    tracing::info!(node = network.us.identity.node_id, listen = ?network.listening(), "the network of nodes is on");
    api.services.provide::<dyn PeerNetwork>(network);
}
