//! One rehearsal, from reading the world to the report. Runs on a thread of its own.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use agentsvc_api::rehearsal::runs::{Injected, Model, Report};
use agentsvc_components::Timestamp;
use agentsvc_systems::{Engine, Settings};

use super::collect::{Collector, Ending};
use super::directory::{self, Directory};
use super::fork::{Fork, Pace, Step, Watcher};
use super::script::Script;
use super::source::{self, Source};
use super::spool::{Listing, Spool};
use crate::kernel::store::view::StoreView;

/// What a thread and those who look at it share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Current virtual time.
    pub(super) at: AtomicI64,
    /// Fires so far.
    pub(super) fires: AtomicU64,
    /// Turns that have ended so far.
    pub(super) turns: AtomicU64,
    /// Somebody wants it no more.
    pub(super) cancel: AtomicBool,
}

/// The world to begin with.
pub(super) enum Origin {
    /// As of one committed step, and what says that it is being read.
    View(StoreView, Arc<()>),
    /// The file of a snapshot.
    Snapshot(PathBuf),
}

/// What is to be done.
pub(super) struct Order {
    /// The world.
    pub(super) origin: Origin,
    /// When it begins.
    pub(super) from: Timestamp,
    /// When it ends.
    pub(super) until: Timestamp,
    /// Who answers.
    pub(super) model: Model,
    /// All the randomness.
    pub(super) seed: u64,
    /// Events to inject.
    pub(super) events: Vec<Injected>,
    /// The settings of the live world.
    pub(super) settings: Settings,
}

/// What came of it.
pub(super) struct Done {
    /// `completed`, `failed` or `cancelled`.
    pub(super) state: &'static str,
    /// Why it failed.
    pub(super) error: Option<String>,
    /// The report, as far as it came; `None` when it never began.
    pub(super) report: Option<Report>,
    /// Its fires.
    pub(super) listing: Option<Listing>,
}

impl Done {
    /// It failed before it began.
    pub(super) fn failed(error: String) -> Self {
        Self { state: "failed", error: Some(error), report: None, listing: None }
    }
}

/// Rehearses; the list of fires is written at `path`.
pub(super) fn run(order: Order, path: &Path, shared: &Shared) -> Done {
    match rehearse(order, path, shared) {
        Ok(done) => done,
        Err(error) => {
            if let Err(error) = std::fs::remove_file(path) {
                tracing::debug!(%error, "the list of fires does not exist");
            }
            if shared.cancel.load(Ordering::Relaxed) {
                return Done { state: "cancelled", error: None, report: None, listing: None };
            }
            tracing::warn!(%error, "a rehearsal failed");
            Done::failed(error.to_string())
        }
    }
}

/// Why it could not be rehearsed.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The world could not be read.
    #[error("the world could not be read: {0}")]
    Source(#[from] source::Error),
    /// It contradicts itself.
    #[error("the copy of the world cannot be restored: {0}")]
    Restore(#[from] agentsvc_systems::kernel::record::Error),
    /// The list of fires.
    #[error("the list of fires could not be written: {0}")]
    Spool(#[from] std::io::Error),
}

fn rehearse(order: Order, path: &Path, shared: &Shared) -> Result<Done, Error> {
    let begun = Instant::now();
    let Order { origin, from, until, model, seed, events, settings } = order;
    let repeats = model == Model::Recorded;
    let Source { records, histories } = match origin {
        Origin::View(view, _reader) => source::of_view(&view, repeats, &shared.cancel)?,
        Origin::Snapshot(file) => source::of_snapshot(&file, repeats, &shared.cancel)?,
    };
    let (directory, waiting) = (Directory::of(&records), directory::waiting(&records));
    let costs = histories.iter().map(|(agent, history)| (*agent, history.costs)).collect();
    let turns: HashMap<_, _> = histories.into_iter().map(|(agent, history)| (agent, history.turns)).collect();
    let script = if repeats { Script::recorded(&settings, seed, turns) } else { Script::builtin(&settings) };
    let spool = Spool::create(path)?;
    let collector = Collector::new(directory, costs, waiting, spool, (from, until));
    let mut fork = Fork::new(settings, records, from, seed, script)?.with_events(events);
    let mut watched = Watched { collector, shared, steps: 0 };
    fork.run(until, Pace::Jump, &mut watched);
    watched.show(fork.now());
    let failure = watched.collector.failure().map(str::to_owned);
    let cancelled = shared.cancel.load(Ordering::Relaxed) && fork.now() < until;
    let open = fork.engine().stats().turns_open as u64;
    let ending = Ending { until: fork.now(), took: begun.elapsed(), open, fate: fork.fate() };
    let (report, rows, reasons, directory) = watched.collector.finish(ending)?;
    let listing = Listing { path: path.to_owned(), rows, reasons, directory };
    let state = match &failure {
        Some(_) => "failed",
        None if cancelled => "cancelled",
        None => "completed",
    };
    Ok(Done { state, error: failure, report: Some(report), listing: Some(listing) })
}

/// A collector whose progress is shown, and that can be told to stop.
struct Watched<'a> {
    collector: Collector,
    shared: &'a Shared,
    steps: u64,
}

/// Steps between two looks at the progress.
const SHOW_EVERY: u64 = 256;

impl Watched<'_> {
    fn show(&self, now: Timestamp) {
        let (fires, turns) = self.collector.so_far();
        self.shared.at.store(now.0, Ordering::Relaxed);
        self.shared.fires.store(fires, Ordering::Relaxed);
        self.shared.turns.store(turns, Ordering::Relaxed);
    }
}

impl Watcher for Watched<'_> {
    fn step(&mut self, step: Step, engine: &mut Engine) -> ControlFlow<()> {
        let now = step.now;
        self.collector.step(step, engine)?;
        self.steps += 1;
        if self.steps.is_multiple_of(SHOW_EVERY) {
            self.show(now);
        }
        if self.shared.cancel.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
