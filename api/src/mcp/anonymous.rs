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

use crate::Api;

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

/// A client at `peer` calls the tool, which is one that there is, so that there are few. Never waits.
pub(crate) fn note(api: &Arc<Api>, peer: IpAddr, tool: &str) {
    let calls = api.state::<AnonymousCalls>();
    {
        let mut all = calls.0.lock();
        if let Some(gathered) = all.get_mut(tool) {
            gathered.calls += 1;
            if gathered.peers.len() < ANONYMOUS_CALLS_PEERS_MAX && !gathered.peers.contains(&peer) {
                gathered.peers.push(peer);
            }
            return;
        }
        all.insert(tool.into(), Gathered::default());
    }
    let (api, tool) = (Arc::clone(api), Box::<str>::from(tool));
    tokio::spawn(async move {
        write(&api, json!({ "tool": tool, "direct": true, "calls": 1, "peers": [peer] })).await;
        tokio::time::sleep(Duration::from_secs(ANONYMOUS_CALLS_SECS)).await;
        let Gathered { calls, peers } = calls.0.lock().remove(&tool).unwrap_or_default();
        if calls > 0 {
            let secs = ANONYMOUS_CALLS_SECS;
            write(&api, json!({ "tool": tool, "direct": true, "calls": calls, "peers": peers, "secs": secs })).await;
        }
    });
}

async fn write(api: &Api, details: Value) {
    let entry = NoteAction { kind: TOOL_CALLED, agent: None, details };
    if let Err(refusal) = api.bridge.ask(entry).await {
        tracing::warn!(%refusal, "calls of public tools could not be recorded in the audit log");
    }
}
