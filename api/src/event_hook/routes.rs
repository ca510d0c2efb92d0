//! Event hooks are listed.

use schemars::JsonSchema;
use serde::Serialize;

use super::host::{EventHookList, EventHookState, HookRun};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::timestamp::Moment;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/event-hooks", "List event hooks with their last runs", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<EventHooks>(200, "the hooks")])];

/// Event hooks.
#[derive(Serialize, JsonSchema)]
struct EventHooks {
    event_hooks: Vec<EventHookItem>,
    total: usize,
    /// Events that no hook heard of because too many waited.
    dropped: u64,
}

/// An event hook.
#[derive(Serialize, JsonSchema)]
struct EventHookItem {
    /// Name of its folder in `{home}/hooks`.
    directory: String,
    name: String,
    description: String,
    events: Vec<String>,
    /// Program and arguments.
    command: Vec<String>,
    /// Why it does not run, or events that never happen; null if nothing is wrong.
    problem: Option<String>,
    /// Runs since the daemon started.
    runs: u64,
    failures: u64,
    last_run: Option<EventHookRun>,
}

/// A run of an event hook.
#[derive(Serialize, JsonSchema)]
struct EventHookRun {
    at: Moment,
    event: String,
    took_ms: u64,
    /// Why it failed; null if it did not.
    error: Option<String>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let (hooks, dropped) = call.api.service::<dyn EventHookList>()?.list();
    let event_hooks: Vec<EventHookItem> = hooks.into_iter().map(item).collect();
    let total = event_hooks.len();
    reply::ok(&EventHooks { event_hooks, total, dropped })
}

fn item(state: EventHookState) -> EventHookItem {
    let run = |HookRun { at, event, took_ms, error }| EventHookRun { at: Moment(at), event, took_ms, error };
    EventHookItem {
        directory: state.directory,
        name: state.name,
        description: state.description,
        events: state.events,
        command: state.command,
        problem: state.problem,
        runs: state.runs,
        failures: state.failures,
        last_run: state.last_run.map(run),
    }
}
