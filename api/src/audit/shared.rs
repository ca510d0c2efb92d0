//! Entries of the audit log that strangers cause. A flood of them cannot fill the disk: the first one leaves an entry, those of the
//! next [`limit::AUTH_FAILURES_SECS`] seconds leave one together.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::limit;
use agentsvc_systems::audit::NoteAction;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Api;

/// What waits for its entry; `None` when the next one gets an entry of its own.
#[derive(Default)]
pub(crate) struct SharedEntries(Mutex<Option<Gathered>>);

/// What came in one stretch of time, without the first.
#[derive(Default)]
pub(crate) struct Gathered {
    /// How often.
    pub(crate) count: u64,
    /// Where from, each once; at most [`limit::AUTH_FAILURES_PEERS_MAX`].
    pub(crate) peers: Vec<IpAddr>,
    /// Why, each once; at most as many.
    pub(crate) reasons: Vec<String>,
}

fn note<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if all.len() < limit::AUTH_FAILURES_PEERS_MAX && !all.contains(&one) {
        all.push(one);
    }
}

impl SharedEntries {
    /// Notes something that came from `peer`. True when it gets an entry of its own, which the caller writes; what follows it is
    /// written later, with the details of `details` and the time.
    pub(crate) fn is_first(
        self: &Arc<Self>,
        api: &Arc<Api>,
        (peer, reason): (IpAddr, Option<&str>),
        kind: AuditKind,
        details: fn(Gathered) -> Value,
    ) -> bool {
        {
            let mut gathered = self.0.lock();
            if let Some(gathered) = &mut *gathered {
                gathered.count += 1;
                note(&mut gathered.peers, peer);
                reason.into_iter().for_each(|reason| note(&mut gathered.reasons, reason.to_owned()));
                return false;
            }
            *gathered = Some(Gathered::default());
        }
        let (entries, api) = (Arc::clone(self), Arc::clone(api));
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(limit::AUTH_FAILURES_SECS)).await;
            let gathered = entries.0.lock().take().unwrap_or_default();
            if gathered.count > 0 {
                let mut details = details(gathered);
                details["secs"] = json!(limit::AUTH_FAILURES_SECS);
                write(&api, kind, details).await;
            }
        });
        true
    }
}

/// Writes an entry. What cannot be written is logged.
pub(crate) async fn write(api: &Api, kind: AuditKind, details: Value) {
    let name = kind.as_str().to_owned();
    if let Err(refusal) = api.bridge.ask(NoteAction { kind, agent: None, details }).await {
        tracing::warn!(%refusal, name, "an entry could not be recorded in the audit log");
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::http::bridge::{Arrival, Intake};
    use crate::http::settings::ApiSettings;
    use crate::testing::loading;

    const KIND: AuditKind = AuditKind::declared("sign_in_refused");

    /// The entries that were sent, once the tasks wait. Nobody answers them.
    async fn entries(intake: &Intake) -> usize {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let sent = intake.arrivals.try_iter();
        sent.filter(|arrival| matches!(arrival, Arrival::Command(e) if e.name() == "note_action")).count()
    }

    #[tokio::test(start_paused = true)]
    async fn those_of_a_minute_share_one_entry_that_names_few() {
        let (api, intake) = loading(ApiSettings::default());
        intake.open();
        let shared = Arc::<SharedEntries>::default();
        let came = |n: u32| {
            let reason = n.to_string();
            let of = (IpAddr::V4(Ipv4Addr::from_bits(n)), Some(&*reason));
            shared.is_first(&api, of, KIND, |all| {
                assert_eq!(all.count, 99);
                assert_eq!((all.peers.len(), all.reasons.len()), (limit::AUTH_FAILURES_PEERS_MAX, 16));
                json!({})
            })
        };
        for _ in 0..2 {
            assert_eq!((0..100).filter(|n| came(*n)).count(), 1, "the first has one of its own");
            assert_eq!(entries(&intake).await, 0, "the others wait");
            tokio::time::advance(Duration::from_secs(limit::AUTH_FAILURES_SECS + 1)).await;
            assert_eq!(entries(&intake).await, 1);
        }
        assert!(came(1));
        tokio::time::advance(Duration::from_secs(limit::AUTH_FAILURES_SECS + 1)).await;
        assert_eq!(entries(&intake).await, 0, "there were no others");
    }
}
