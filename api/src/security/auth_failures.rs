//! Failed authentications on the audit trail, counted; a flood of them leaves few entries.

use crate::security::audit_kinds;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use crate::Api;
use crate::audit::shared::{self, Gathered, SharedEntries};
use crate::http::metrics::MetricsText;

/// The failures since the start, and those that wait for their entry.
#[derive(Default)]
pub(crate) struct AuthFailures {
    total: AtomicU64,
    entries: Arc<SharedEntries>,
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
    let details = |gathered: Gathered| json!({ "failures": gathered.count, "peers": gathered.peers });
    if failures.entries.is_first(api, (peer, None), audit_kinds::AUTH_FAILED, details) {
        let (api, details) = (Arc::clone(api), json!({ "failures": 1, "peers": [peer], "route": route }));
        tokio::spawn(async move { shared::write(&api, audit_kinds::AUTH_FAILED, details).await });
    }
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let help = "Requests with a missing or wrong API key.";
    out.counter("agentsvc_auth_failures_total", help, api.state::<AuthFailures>().total());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use agentsvc_components::kernel::limit;
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
