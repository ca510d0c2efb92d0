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
