//! What the routes see of the network.

use std::io;
use std::sync::Arc;

use agentsvc_api::peer::audit_kinds;
use agentsvc_api::peer::network::{NetworkStatus, PeerAgent, PeerNetwork, PeerRow, TrustedRow};
use futures_util::future::BoxFuture;
use serde_json::json;

use super::message::RemoteAgent;
use super::network::Network;

/// A network that is off.
pub(super) struct Off {
    pub(super) is_enabled: bool,
    /// Why, if it is enabled.
    pub(super) problem: Option<String>,
}

impl PeerNetwork for Off {
    fn status(&self) -> NetworkStatus {
        NetworkStatus { enabled: self.is_enabled, problem: self.problem.clone(), ..NetworkStatus::default() }
    }

    fn peers(&self) -> Vec<PeerRow> {
        Vec::new()
    }

    fn trusted(&self) -> Vec<TrustedRow> {
        Vec::new()
    }

    fn forget(self: Arc<Self>, _: String) -> BoxFuture<'static, io::Result<bool>> {
        Box::pin(async { Ok(false) })
    }
}

impl PeerNetwork for Network {
    fn status(&self) -> NetworkStatus {
        let is_listening = !self.listening().is_empty() || self.config.listen_addresses.is_empty();
        NetworkStatus {
            enabled: true,
            problem: (!is_listening).then(|| "no address of network.listen_addresses can be used".to_owned()),
            node_id: Some(self.us.identity.node_id.clone()),
            node_name: Some(self.us.node_name.clone()),
            listen: self.listening().iter().map(ToString::to_string).collect(),
            fingerprint: Some(self.us.identity.fingerprint()),
            counts: self.peer_counts(),
        }
    }

    fn peers(&self) -> Vec<PeerRow> {
        let peers = self.table.all().into_iter();
        let row = |(node_id, peer): (String, super::table::Peer)| PeerRow {
            is_connected: peer.is_connected(),
            node_id,
            node_name: peer.node_name,
            address: peer.address,
            has_key: peer.has_key,
            connected_at: peer.connected_at,
            last_seen: peer.last_seen,
            agents: peer.agents.into_iter().map(shown).collect(),
        };
        peers.map(row).collect()
    }

    fn trusted(&self) -> Vec<TrustedRow> {
        let rows = self.trust.all().into_iter();
        let row = |row: super::trust::Trusted| TrustedRow {
            node_id: row.node_id,
            node_name: row.node_name,
            mode: row.mode.as_str(),
            fingerprint: row.fingerprint,
            first_seen: row.first_seen,
            last_verified: row.last_verified,
            address: row.address,
        };
        rows.map(row).collect()
    }

    fn forget(self: Arc<Self>, node_id: String) -> BoxFuture<'static, io::Result<bool>> {
        Box::pin(async move {
            let (network, id) = (Arc::clone(&self), node_id.clone());
            let forgotten = tokio::task::spawn_blocking(move || network.trust.forget(&id)).await;
            let forgotten = forgotten.map_err(io::Error::other)??;
            if forgotten {
                self.table.remove(&node_id);
                self.note(audit_kinds::PEER_FORGOTTEN, None, json!({ "node_id": node_id })).await;
            }
            Ok(forgotten)
        })
    }
}

fn shown(agent: RemoteAgent) -> PeerAgent {
    let RemoteAgent { id, name, description, tags, tools, state } = agent;
    PeerAgent { id, name, description, tags, tools, state }
}
