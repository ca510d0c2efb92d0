//! The state of the inbox.

use schemars::JsonSchema;
use serde::Serialize;

use super::host::{Inbox, InboxState};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/inbox/status", "Get the state of the file inbox", |call| Box::pin(status(call)))
        .replies(&[Reply::json::<InboxStatus>(200, "the state")])];

/// The state of the file inbox.
#[derive(Serialize, JsonSchema)]
struct InboxStatus {
    enabled: bool,
    directory: String,
    poll_interval_secs: u64,
    /// Agent that reads files without an `agent:` line.
    default_agent: Option<String>,
    /// Files that waited at the last look, at most 1000.
    pending_count: usize,
    /// Pending messages by source.
    pending: Pending,
    /// Files that became messages since the daemon started.
    processed_count: u64,
    /// Files that were moved to `failed/` since the daemon started.
    failed_count: u64,
    /// Why files wait; null if nothing is wrong.
    last_error: Option<String>,
}

/// Pending messages by source.
#[derive(Serialize, JsonSchema)]
struct Pending {
    directory: usize,
}

async fn status(call: Call) -> Result<Response, Error> {
    let InboxState { enabled, directory, poll_interval_secs, default_agent, pending, processed, failed, last_error } =
        call.api.service::<dyn Inbox>()?.state();
    reply::ok(&InboxStatus {
        enabled,
        directory: directory.display().to_string(),
        poll_interval_secs,
        default_agent,
        pending_count: pending,
        pending: Pending { directory: pending },
        processed_count: processed,
        failed_count: failed,
        last_error,
    })
}
