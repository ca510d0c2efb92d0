//! How the world's thread and the store are doing: what `GET /api/world` shows of the daemon behind the API.

use agentsvc_systems::kernel::timings::Timing;
use agentsvc_systems::world::WorldStats;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::api::Api;
use crate::http::metrics::Times;

/// Knows how the world's thread and the store are doing.
pub trait LiveStats: Send + Sync + 'static {
    /// A reading. Asks nobody and must not block.
    fn read(&self) -> LiveReading;

    /// The number of the newest step that changed something; `None` when steps have none.
    fn step(&self) -> Option<u64>;
}

/// How they are doing; nothing but zeros while the world is loading.
pub(crate) fn live_stats(api: &Api) -> LiveReading {
    api.services.get::<dyn LiveStats>().map(|live_stats| live_stats.read()).unwrap_or_default()
}

/// The number of the newest step that changed something.
pub(crate) fn step(api: &Api) -> Option<u64> {
    api.services.get::<dyn LiveStats>()?.step()
}

/// Rates per second during the last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rates {
    /// Durable events.
    pub events_per_second: f64,
    /// Turns started by triggers, schedules and cron jobs.
    pub fires_per_second: f64,
    /// Messages taken.
    pub messages_per_second: f64,
    /// Commands run or refused.
    pub commands_per_second: f64,
    /// Steps of the world.
    #[serde(skip)]
    pub steps_per_second: f64,
    /// Beats.
    #[serde(skip)]
    pub beats_per_second: f64,
}

/// One reading.
#[derive(Clone, Debug, Default)]
pub struct LiveReading {
    /// The number of the newest step that changed something; `None` when steps have none.
    pub step: Option<u64>,
    /// Steps since the start.
    pub steps: u64,
    /// Beats a second, as configured.
    pub beat_hz: u32,
    /// Beats since the start.
    pub beats: u64,
    /// Beats left out since the start.
    pub beats_missed: u64,
    /// Beats left out in the last minute.
    pub beats_missed_last_minute: u64,
    /// Duration of the systems of a tick.
    pub beat_time: Times,
    /// Time of one step.
    pub step_time: Times,
    /// Each system.
    pub systems: Vec<Timing>,
    /// Time from the end of a step until it is durable.
    pub store_lag: Times,
    /// Time of one durable batch.
    pub commit_time: Times,
    /// Bytes that are not yet durable.
    pub backlog_bytes: usize,
    /// Steps made durable since the start.
    pub commits: u64,
    /// Events that became durable since the start.
    pub events: u64,
    /// Bytes of the process in memory, where the system says so.
    pub rss_bytes: Option<u64>,
    /// How often things happened.
    pub rates: Rates,
    /// The world's own numbers as of the last beat.
    pub world: WorldStats,
}
