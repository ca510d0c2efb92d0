//! Failed authentications on the audit trail. A flood of them cannot fill the disk: the first one leaves an entry, those
//! of the next [`limit::AUTH_FAILURES_SECS`] seconds leave one together.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_components::audit::AuditKind;
use agentsvc_components::limit;
use agentsvc_systems::audit::NoteAction;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Api;

/// The failures since the start, and those that wait for their entry.
#[derive(Default)]
pub(crate) struct AuthFailures {
    total: AtomicU64,
    /// `None` when the next failure gets an entry of its own.
    gathered: Mutex<Option<Gathered>>,
}

/// Failures of one stretch of time, without its first.
#[derive(Default)]
struct Gathered {
    failures: u64,
    /// Where they came from, each once; at most [`limit::AUTH_FAILURES_PEERS_MAX`].
    peers: Vec<IpAddr>,
}

impl Gathered {
    fn add(&mut self, peer: IpAddr) {
        self.failures += 1;
        if self.peers.len() < limit::AUTH_FAILURES_PEERS_MAX && !self.peers.contains(&peer) {
            self.peers.push(peer);
        }
    }
}

impl AuthFailures {
    /// Failures since the start.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// The client at `peer` asked for the route `route`, a pattern, without the key. Never waits.
pub(crate) fn note(api: &Arc<Api>, peer: IpAddr, route: &'static str) {
    let failures = &api.auth_failures;
    failures.total.fetch_add(1, Ordering::Relaxed);
    {
        let mut gathered = failures.gathered.lock();
        if let Some(gathered) = &mut *gathered {
            return gathered.add(peer);
        }
        *gathered = Some(Gathered::default());
    }
    let api = Arc::clone(api);
    tokio::spawn(async move {
        write(&api, json!({ "failures": 1, "peers": [peer], "route": route })).await;
        tokio::time::sleep(Duration::from_secs(limit::AUTH_FAILURES_SECS)).await;
        let gathered = api.auth_failures.gathered.lock().take().unwrap_or_default();
        if gathered.failures > 0 {
            let Gathered { failures, peers } = gathered;
            write(&api, json!({ "failures": failures, "peers": peers, "secs": limit::AUTH_FAILURES_SECS })).await;
        }
    });
}

async fn write(api: &Api, details: Value) {
    let entry = NoteAction { kind: AuditKind::AuthFailed, agent: None, details };
    if let Err(refusal) = api.bridge.ask(entry).await {
        tracing::warn!(%refusal, "failed authentications are not on the audit trail");
    }
}
