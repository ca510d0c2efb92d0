//! What event hooks show of themselves.

use agentsvc_components::Timestamp;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRun {
    /// When it began.
    pub at: Timestamp,
    /// For which event.
    pub event: String,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// Why it failed; `None` for one that did not.
    pub error: Option<String>,
}

/// One event hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventHookState {
    /// Its folder.
    pub directory: String,
    /// Its name; that of the folder where it has none.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The events, by name or glob.
    pub events: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Why it does not run, or what it will never hear of.
    pub problem: Option<String>,
    /// Runs since the daemon started.
    pub runs: u64,
    /// Those that failed.
    pub failures: u64,
    /// The last one.
    pub last_run: Option<HookRun>,
}

/// The event hooks of the daemon.
pub trait EventHookList: Send + Sync + 'static {
    /// Each, in the order of their folders; and how many events were dropped because too many waited.
    fn list(&self) -> (Vec<EventHookState>, u64);
}
