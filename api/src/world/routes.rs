//! The world at work: ticks, steps, systems, memory, queues and rates, as one reading or as a stream (`docs/world.md`).

use std::sync::Arc;
use std::time::Duration;

use agentsvc_systems::kernel::footprint::KindFootprint;
use bytes::Bytes;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use crate::Api;
use crate::http::call::Call;
use crate::http::domain::Queue;
use crate::http::error::Error;
use crate::http::metrics::Times;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::{reply, sse};
use crate::world::live_stats::{Rates, live_stats};
use crate::world::shape::{Kind, Stage, System, entities, queues, stages, systems};
use crate::world::watch::WorldWatch;

/// Time between two events of the stream.
const PERIOD: Duration = Duration::from_secs(1);

/// A reading looks at some hundred entities.
const COST: u32 = 2;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/world", "Get live statistics of the world", |call| Box::pin(world(call)))
        .cost(COST)
        .replies(&[Reply::json::<WorldBody>(200, "ticks, steps, systems, memory, queues and rates")]),
    Route::get("/api/world/stream", "Stream a summary of the live statistics, about once a second", |call| {
        Box::pin(watch(call))
    })
    .replies(&[
        Reply::plain(200, "events `world`", "text/event-stream"),
        Reply::error(429, "too many streams are open"),
    ]),
];

/// Live statistics of the world.
#[derive(Serialize, JsonSchema)]
struct WorldBody {
    release: Release,
    /// `running`; `loading` until the first step; `exchanging` during a restore.
    state: &'static str,
    uptime_seconds: u64,
    step: Step,
    beat: Beat,
    steps: Steps,
    /// In execution order.
    systems: Vec<System>,
    stages: Vec<Stage>,
    entities: Vec<Kind>,
    memory: Memory,
    queues: Vec<Queue>,
    store: Store,
    /// During the last ten seconds.
    rates: Rates,
    turns: Turns,
    totals: Totals,
}

#[derive(Serialize, JsonSchema)]
struct Release {
    version: &'static str,
    git_sha: &'static str,
    build_date: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Step {
    /// Newest step that changed something, counted across restarts; null if steps have no numbers.
    number: Option<u64>,
    /// Steps since the start, including steps without changes.
    since_start: u64,
}

#[derive(Serialize, JsonSchema)]
struct Beat {
    /// As configured.
    hz: u32,
    /// Measured during the last ten seconds.
    achieved_hz: f64,
    total: u64,
    missed_total: u64,
    missed_last_minute: u64,
    time: Times,
}

#[derive(Serialize, JsonSchema)]
struct Steps {
    total: u64,
    per_second: f64,
    time: Times,
}

#[derive(Serialize, JsonSchema)]
struct Memory {
    /// Of the whole process; null if the system does not report it.
    rss_bytes: Option<u64>,
    /// Of the kinds below.
    estimated_bytes: usize,
    /// Whether the kinds are from an earlier reading because the world did not respond in time.
    stale: bool,
    kinds: Vec<KindMemory>,
}

shape! {

    struct KindMemory from of: &KindFootprint {
        let KindFootprint { kind, count, rows_bytes, heap_bytes, index_bytes } = *of;
    } {
        kind: &'static str = kind,
        count: usize = count,
        /// Exact.
        rows_bytes: usize = rows_bytes,
        /// Extrapolated from a sample.
        heap_bytes: usize = heap_bytes,
        /// A fixed estimate per item.
        index_bytes: usize = index_bytes,
        bytes: usize = of.bytes(),
    }
}

#[derive(Serialize, JsonSchema)]
struct Store {
    up: bool,
    backlog_bytes: usize,
    commits_total: u64,
    /// Time from the end of a step until it is on disk.
    lag: Times,
    /// Duration of a batch.
    commit_time: Times,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Turns3")]
struct Turns {
    /// Including queued turns.
    open: usize,
    waiting: usize,
    calls_out: usize,
    tools_out: usize,
}

#[derive(Serialize, JsonSchema)]
struct Totals {
    events: u64,
    /// Turns started by triggers, schedules and cron jobs.
    fires: u64,
    messages: u64,
    turns_completed: u64,
    turns_failed: u64,
    cost_micros: u64,
}

async fn world(call: Call) -> Result<Response, Error> {
    let api = &call.api;
    let (kinds, stale) = api.state::<WorldWatch>().footprint(&api.bridge).await;
    let reading = live_stats(api);
    let build = &api.settings.build;
    let (turns, calls) = (&reading.world.turn_totals, &reading.world.call_totals);
    reply::ok(&WorldBody {
        release: Release { version: build.version, git_sha: build.git_sha, build_date: build.build_date },
        state: api.bridge.state(),
        uptime_seconds: api.health.uptime_seconds(),
        step: Step { number: reading.step, since_start: reading.steps },
        beat: Beat {
            hz: reading.beat_hz,
            achieved_hz: reading.rates.beats_per_second,
            total: reading.beats,
            missed_total: reading.beats_missed,
            missed_last_minute: reading.beats_missed_last_minute,
            time: reading.beat_time,
        },
        steps: Steps { total: reading.steps, per_second: reading.rates.steps_per_second, time: reading.step_time },
        systems: systems(&reading.systems),
        stages: stages(&reading.systems),
        entities: entities(&reading.world),
        memory: Memory {
            rss_bytes: reading.rss_bytes,
            estimated_bytes: kinds.iter().map(KindFootprint::bytes).sum(),
            stale,
            kinds: kinds.iter().map(KindMemory::from).collect(),
        },
        queues: queues(api, &reading),
        store: Store {
            up: api.health.store_is_up(),
            backlog_bytes: reading.backlog_bytes,
            commits_total: reading.commits,
            lag: reading.store_lag,
            commit_time: reading.commit_time,
        },
        rates: reading.rates,
        turns: Turns {
            open: reading.world.turns_open,
            waiting: reading.world.turns_waiting,
            calls_out: reading.world.calls_out,
            tools_out: reading.world.tools_out,
        },
        totals: Totals {
            events: reading.events,
            fires: reading.world.fires(),
            messages: turns.messages,
            turns_completed: turns.completed,
            turns_failed: turns.failed,
            cost_micros: calls.cost_micros,
        },
    })
}

/// One event of the stream.
#[derive(Serialize)]
struct Short {
    at: String,
    uptime_seconds: u64,
    step: Option<u64>,
    turns_in_flight: usize,
    turns_waiting: usize,
    calls_out: usize,
    tools_out: usize,
    events_per_second: f64,
    fires_per_second: f64,
    messages_per_second: f64,
    steps_per_second: f64,
    beat_hz: f64,
    beat_p99_us: u64,
    step_p99_us: u64,
    beats_missed: u64,
    store_lag_p99_us: u64,
    store_backlog_bytes: usize,
    queues: Vec<Queue>,
    agents: usize,
    sessions: usize,
    approvals_pending: usize,
    cost_micros: u64,
    rss_bytes: Option<u64>,
}

fn short(api: &Api) -> Short {
    let reading = live_stats(api);
    let (world, rates) = (&reading.world, reading.rates);
    Short {
        at: crate::http::timestamp::timestamp_now().to_string(),
        uptime_seconds: api.health.uptime_seconds(),
        step: reading.step,
        turns_in_flight: world.turns_open,
        turns_waiting: world.turns_waiting,
        calls_out: world.calls_out,
        tools_out: world.tools_out,
        events_per_second: rates.events_per_second,
        fires_per_second: rates.fires_per_second,
        messages_per_second: rates.messages_per_second,
        steps_per_second: rates.steps_per_second,
        beat_hz: rates.beats_per_second,
        beat_p99_us: reading.beat_time.p99_us,
        step_p99_us: reading.step_time.p99_us,
        beats_missed: reading.beats_missed,
        store_lag_p99_us: reading.store_lag.p99_us,
        store_backlog_bytes: reading.backlog_bytes,
        queues: queues(api, &reading),
        agents: world.agents,
        sessions: world.sessions,
        approvals_pending: world.approvals_pending,
        cost_micros: world.call_totals.cost_micros,
        rss_bytes: reading.rss_bytes,
    }
}

/// A watcher, and when it gets its next event.
struct Watcher {
    api: Arc<Api>,
    due: Instant,
    _permit: OwnedSemaphorePermit,
}

async fn watch(call: Call) -> Result<Response, Error> {
    let permit = call.api.state::<WorldWatch>().stream_permit()?;
    let watcher = Watcher { api: Arc::clone(&call.api), due: Instant::now(), _permit: permit };
    let events = stream::unfold(watcher, |mut watcher| async move {
        sleep_until(watcher.due).await;
        watcher.due = Instant::now() + PERIOD;
        // Nothing is kept for one who does not read: the next event is made when it is wanted.
        let wire: Bytes = sse::event("world", &short(&watcher.api));
        Some((wire, watcher))
    });
    Ok(sse::response(&call.api.shutdown, events, None))
}
