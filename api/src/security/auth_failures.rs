//! Failed authentications on the audit trail. A flood of them cannot fill the disk: the first one leaves an entry, those
//! of the next [`limit::AUTH_FAILURES_SECS`] seconds leave one together.

use crate::security::audit_kinds;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_components::kernel::limit;
use agentsvc_systems::audit::NoteAction;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Api;
use crate::http::metrics::MetricsText;

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
    let failures = api.state::<AuthFailures>();
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
        let gathered = failures.gathered.lock().take().unwrap_or_default();
        if gathered.failures > 0 {
            let Gathered { failures, peers } = gathered;
            write(&api, json!({ "failures": failures, "peers": peers, "secs": limit::AUTH_FAILURES_SECS })).await;
        }
    });
}

async fn write(api: &Api, details: Value) {
    let entry = NoteAction { kind: audit_kinds::AUTH_FAILED, agent: None, details };
    if let Err(refusal) = api.bridge.ask(entry).await {
        tracing::warn!(%refusal, "failed authentications could not be recorded in the audit log");
    }
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let help = "Requests with a missing or wrong API key.";
    out.counter("agentsvc_auth_failures_total", help, api.state::<AuthFailures>().total());
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;
    use crate::http::bridge::{Arrival, Intake};
    use crate::http::settings::ApiSettings;
    use crate::testing::{loading, send};

    /// Lets the tasks run until all of them wait.
    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets the tasks run, and gives the number of entries that they sent. Nobody answers them.
    async fn entries(intake: &Intake) -> usize {
        settle().await;
        let sent = intake.arrivals.try_iter();
        let is_entry = |arrival: &Arrival| matches!(arrival, Arrival::Command(e) if e.name() == "note_action");
        let count = sent.filter(is_entry).count();
        settle().await;
        count
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_leaves_two_entries_a_minute() {
        let settings = ApiSettings { api_key: "k".to_owned(), rate_limit_per_second: 0, ..ApiSettings::default() };
        let (api, intake) = loading(settings);
        intake.open();
        for _ in 0..3 {
            for _ in 0..100 {
                assert_eq!(send(&api, Request::get("/api/agents"), "").await.status(), 401);
            }
            assert_eq!(entries(&intake).await, 1, "the first");
            tokio::time::advance(Duration::from_secs(limit::AUTH_FAILURES_SECS + 1)).await;
            assert_eq!(entries(&intake).await, 1, "the others together");
        }
        assert_eq!(send(&api, Request::get("/api/agents"), "").await.status(), 401);
        assert_eq!(entries(&intake).await, 1);
        tokio::time::advance(Duration::from_secs(limit::AUTH_FAILURES_SECS + 1)).await;
        assert_eq!(entries(&intake).await, 0, "there were no others");
        assert_eq!(api.state::<AuthFailures>().total(), 301);
    }
}
