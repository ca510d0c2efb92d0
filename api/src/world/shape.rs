//! The lists of `GET /api/world`: systems, stages, kinds of entities, queues.

use agentsvc_components::kernel::limit;
use agentsvc_systems::kernel::timings::Timing;
use agentsvc_systems::world::WorldStats;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Api;
use crate::http::domain::Queue;
use crate::world::live_stats::LiveReading;
use crate::world::watch::WorldWatch;

/// One system.
#[derive(Serialize, JsonSchema)]
pub(crate) struct System {
    name: &'static str,
    stage: &'static str,
    runs: u64,
    total_us: u64,
    mean_us: f64,
    max_us: u64,
    /// Share of the time of all systems.
    share: f64,
}

/// The systems of one stage together.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stage {
    name: &'static str,
    total_us: u64,
    share: f64,
}

/// A kind of entities.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Kind {
    kind: &'static str,
    count: usize,
}

/// A part of a whole, to four digits.
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64 * 1e4).round() / 1e4
}

pub(crate) fn systems(timings: &[Timing]) -> Vec<System> {
    let whole: u64 = timings.iter().map(|timing| timing.total_ns).sum();
    let system = |timing: &Timing| System {
        name: timing.name,
        stage: timing.stage,
        runs: timing.runs,
        total_us: timing.total_ns / 1_000,
        mean_us: (timing.total_ns as f64 / timing.runs.max(1) as f64 / 10.0).round() / 100.0,
        max_us: timing.max_ns / 1_000,
        share: share(timing.total_ns, whole),
    };
    timings.iter().map(system).collect()
}

pub(crate) fn stages(timings: &[Timing]) -> Vec<Stage> {
    let whole: u64 = timings.iter().map(|timing| timing.total_ns).sum();
    let mut stages: Vec<Stage> = Vec::new();
    for timing in timings {
        match stages.iter_mut().find(|stage| stage.name == timing.stage) {
            // Nanoseconds while they are added.
            Some(stage) => stage.total_us += timing.total_ns,
            None => stages.push(Stage { name: timing.stage, total_us: timing.total_ns, share: 0.0 }),
        }
    }
    for stage in &mut stages {
        stage.share = share(stage.total_us, whole);
        stage.total_us /= 1_000;
    }
    stages
}

pub(crate) fn entities(world: &WorldStats) -> Vec<Kind> {
    let kinds = [
        ("agents", world.agents),
        ("sessions", world.sessions),
        ("sessions_hidden", world.sessions_hidden),
        ("turns", world.turns_open),
        ("triggers", world.triggers),
        ("schedules", world.schedules),
        ("cron_jobs", world.cron_jobs),
        ("goals", world.goals),
        ("tasks", world.tasks),
        ("workflows", world.workflows),
        ("runs", world.workflow_runs),
        ("approvals", world.approvals),
        ("compactions", world.compactions_open),
        ("manifests", world.manifests),
    ];
    kinds.into_iter().map(|(kind, count)| Kind { kind, count }).collect()
}

/// The queues of the world, and those of the domains.
pub(crate) fn queues(api: &Api, reading: &LiveReading) -> Vec<Queue> {
    let world = &reading.world;
    let of_world = [
        Queue::new("bridge", "commands", api.bridge.waiting(), Some(limit::BRIDGE_COMMANDS_MAX)),
        Queue::new("store_backlog", "bytes", reading.backlog_bytes, Some(limit::STORE_BACKLOG_BYTES_MAX)),
        Queue::new("turns_open", "turns", world.turns_open, Some(limit::TURNS_OPEN_MAX)),
        Queue::new("turns_waiting", "turns", world.turns_waiting, Some(limit::TURNS_OPEN_MAX)),
        Queue::new("budget_waiting", "turns", world.budget_waiting, Some(limit::TURNS_OPEN_MAX)),
        Queue::new("trigger_matches", "matches", world.matches_waiting, None),
        Queue::new("model_calls_out", "calls", world.calls_out, Some(limit::EFFECTS_OUT_MAX)),
        Queue::new("tools_out", "calls", world.tools_out, Some(limit::TOOLS_OUT_MAX)),
        Queue::new("tasks_pending", "tasks", world.tasks_pending, Some(limit::TASKS_OPEN_MAX)),
        Queue::new("approvals_pending", "approvals", world.approvals_pending, Some(limit::APPROVALS_PENDING_MAX)),
    ];
    let streams = api.state::<WorldWatch>().open_streams();
    let own = Queue::new("world_streams", "streams", streams, Some(limit::WORLD_STREAMS_MAX));
    of_world.into_iter().chain(api.queues()).chain([own]).collect()
}
