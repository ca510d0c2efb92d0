//! Calls of public tools by clients without the key, on the audit trail. A flood of them cannot fill the disk: the first call of a
//! tool leaves an entry, those of the next [`ANONYMOUS_CALLS_SECS`] seconds leave one together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::audit::audit_kinds::TOOL_CALLED;
use agentsvc_systems::mcp::limits::{ANONYMOUS_CALLS_PEERS_MAX, ANONYMOUS_CALLS_SECS};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::Api;
use crate::http::error::Error;

/// The tools that were called of late, and the calls of each that wait for their entry.
#[derive(Default)]
pub(crate) struct AnonymousCalls(Mutex<HashMap<Box<str>, Gathered>>);

/// Calls of one tool in one stretch of time, without its first.
#[derive(Default)]
struct Gathered {
    calls: u64,
    /// Where they came from, each once; at most [`ANONYMOUS_CALLS_PEERS_MAX`].
    peers: Vec<IpAddr>,
}

/// A client at `peer` calls the tool, which is one that there is, so that there are few. The first call waits until its entry is
/// stored; those that are joined do not wait.
///
/// # Errors
/// The entry of a first call could not be stored.
pub(crate) async fn note(api: &Arc<Api>, peer: IpAddr, tool: &str) -> Result<(), Error> {
    let calls = api.state::<AnonymousCalls>();
    {
        let mut all = calls.0.lock();
        if let Some(gathered) = all.get_mut(tool) {
            gathered.calls += 1;
            if gathered.peers.len() < ANONYMOUS_CALLS_PEERS_MAX && !gathered.peers.contains(&peer) {
                gathered.peers.push(peer);
            }
            return Ok(());
        }
        all.insert(tool.into(), Gathered::default());
    }
    // A client that goes away ends only the wait.
    let (stored, is_stored) = oneshot::channel();
    tokio::spawn(record(Arc::clone(api), calls, tool.into(), peer, stored));
    let ended = || Err(Error::unavailable("the daemon is stopping", 1));
    is_stored.await.unwrap_or_else(|_| ended())
}

/// Puts the first call on record, and after a while, or when the daemon stops, those that came since.
async fn record(
    api: Arc<Api>,
    all: Arc<AnonymousCalls>,
    tool: Box<str>,
    peer: IpAddr,
    stored: oneshot::Sender<Result<(), Error>>,
) {
    let first = write(&api, json!({ "tool": tool, "direct": true, "calls": 1, "peers": [peer] })).await;
    if first.is_ok() {
        // The client may be gone.
        let _ = stored.send(Ok(()));
        let begun = Instant::now();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(ANONYMOUS_CALLS_SECS)) => {}
            () = api.shutdown.wait() => {}
        }
        all.write_rest(&api, &tool, begun.elapsed().as_secs()).await;
    } else {
        // The next call tries again.
        all.write_rest(&api, &tool, 0).await;
        let _ = stored.send(first);
    }
}

impl AnonymousCalls {
    async fn write_rest(&self, api: &Api, tool: &str, secs: u64) {
        let Gathered { calls, peers } = self.0.lock().remove(tool).unwrap_or_default();
        if calls > 0 {
            let details = json!({ "tool": tool, "direct": true, "calls": calls, "peers": peers, "secs": secs });
            // It is logged; the calls have run.
            let _ = write(api, details).await;
        }
    }
}

async fn write(api: &Api, details: Value) -> Result<(), Error> {
    let entry = NoteAction { kind: TOOL_CALLED, agent: None, details };
    api.bridge.ask(entry).await.map(drop).map_err(|refusal| {
        tracing::warn!(%refusal, "calls of public tools could not be recorded in the audit log");
        Error::from(refusal)
    })
}
