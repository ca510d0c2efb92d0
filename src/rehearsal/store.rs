//! Begins rehearsals, one at a time, each on a thread of its own, and keeps what came of the newest.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::rehearsal::runs::{
    FirePage, FireRange, Model, Plan, PlanEnd, Progress, RehearsalError, Rehearsals, Removal, Report, Status,
};
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_systems::kernel::id_generator::IdGenerator;
use chrono::DateTime;
use parking_lot::Mutex;
use serde_json::Value;
use uuid::Uuid;

use super::run::{self, Done, Order, Origin, Shared};
use super::spool::Listing;
use super::stats::RehearsalStats;
use crate::kernel::disk;
use crate::kernel::home::create_private_dir;
use crate::kernel::store::view::StoreView;
use crate::kernel::world_loop::{Clock, panic_text};

/// The end of the name of a list of fires.
const FIRES: &str = "fires";

/// Where a keeper finds what it needs.
pub struct Places {
    /// Its own directory; emptied when the keeper is made.
    pub dir: PathBuf,
    /// Where snapshots are: `<id>.rows.zst` with `<id>.json` beside it.
    pub snapshots: PathBuf,
    /// The rows of the live world, and what keeps another world from taking its place while it is there; `None` while there
    /// is no world. Asked from threads that may wait.
    pub view: Box<dyn Fn() -> Option<(StoreView, Arc<()>)> + Send + Sync>,
    /// The clock of the daemon.
    pub clock: Clock,
}

/// Keeps rehearsals.
pub struct RehearsalStore {
    places: Places,
    mint: Mutex<IdGenerator>,
    /// The oldest first.
    entries: Mutex<Vec<Arc<Entry>>>,
    stats: Arc<RehearsalStats>,
}

/// One rehearsal.
struct Entry {
    id: Uuid,
    from: String,
    from_at: Timestamp,
    until: Timestamp,
    model: Model,
    seed: u64,
    created_at: Timestamp,
    shared: Shared,
    end: Mutex<Option<End>>,
}

/// What came of it.
#[derive(Clone)]
struct End {
    at: Timestamp,
    state: &'static str,
    error: Option<String>,
    report: Option<Arc<Report>>,
    listing: Option<Arc<Listing>>,
}

impl RehearsalStore {
    /// A keeper without rehearsals; what an earlier one has left on the disk goes.
    pub fn new(places: Places) -> std::io::Result<Self> {
        sweep(&places.dir);
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(std::io::Error::other)?;
        Ok(Self { places, mint: Mutex::new(IdGenerator::new(seed)), entries: Mutex::default(), stats: Arc::default() })
    }

    fn entry(&self, id: Uuid) -> Option<Arc<Entry>> {
        self.entries.lock().iter().find(|entry| entry.id == id).cloned()
    }

    /// The world to begin with, what it is called, and when it was so.
    fn origin(&self, from: Option<Uuid>) -> Result<(Origin, String, Timestamp), RehearsalError> {
        match from {
            None => {
                // Read before the clock: nothing in the view is later than its beginning.
                let (view, reader) = (self.places.view)().ok_or(RehearsalError::NotReady)?;
                Ok((Origin::View(view, reader), "now".to_owned(), (self.places.clock.wall)()))
            }
            Some(id) => {
                let missing = || RehearsalError::NotFound(format!("snapshot {id} does not exist"));
                let rows = self.places.snapshots.join(format!("{id}.rows.zst"));
                let at = taken_at(&self.places.snapshots.join(format!("{id}.json"))).ok_or_else(missing)?;
                if !rows.is_file() {
                    return Err(missing());
                }
                Ok((Origin::Snapshot(rows), id.to_string(), at))
            }
        }
    }
}

/// When a snapshot was taken.
fn taken_at(card: &Path) -> Option<Timestamp> {
    let text = disk::read(card).ok()?;
    let card: Value = serde_json::from_slice(&text).ok()?;
    let moment = DateTime::parse_from_rfc3339(card["created_at"].as_str()?).ok()?;
    Some(Timestamp(moment.timestamp_millis()))
}

/// Empties the directory of lists.
fn sweep(dir: &Path) {
    let Ok(files) = std::fs::read_dir(dir) else { return };
    for path in files.flatten().map(|file| file.path()) {
        if path.extension().is_some_and(|extension| extension == FIRES)
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "files of a rehearsal could not be removed");
        }
    }
}

/// When a plan ends; checks that what is injected lies before that.
fn end_of(plan: &Plan, from: Timestamp) -> Result<Timestamp, RehearsalError> {
    let wrong = |field: &str, text: String| RehearsalError::BadField { field: field.to_owned(), text };
    let until = match plan.end {
        PlanEnd::After(ms) => from.plus_ms(ms),
        PlanEnd::At(at) => at,
    };
    if until <= from {
        return Err(wrong("until", format!("until: must be after the start, {from}")));
    }
    if until.0.saturating_sub(from.0) > limit::REHEARSAL_MS_MAX {
        let days = limit::REHEARSAL_MS_MAX / 86_400_000;
        return Err(wrong("until", format!("until: at most {days} days can be rehearsed")));
    }
    match plan.events.iter().position(|event| event.at < from || event.at >= until) {
        Some(n) => {
            let field = format!("events[{n}].at");
            let text = format!("{field}: must be within the rehearsal, from {from} to {until}");
            Err(wrong(&field, text))
        }
        None => Ok(until),
    }
}

impl Entry {
    fn status(&self) -> Status {
        let end = self.end.lock().clone();
        let at = Timestamp(self.shared.at.load(Ordering::Relaxed));
        let (passed, all) = (at.ms_since(self.from_at), self.until.ms_since(self.from_at));
        let progress = Progress {
            at: at.to_string(),
            share: (passed as f64 / all.max(1) as f64).min(1.0),
            fires: self.shared.fires.load(Ordering::Relaxed),
            turns: self.shared.turns.load(Ordering::Relaxed),
        };
        Status {
            id: self.id,
            state: end.as_ref().map_or("running", |end| end.state),
            from: self.from.clone(),
            from_at: self.from_at.to_string(),
            until: self.until.to_string(),
            model: self.model.as_str(),
            seed: self.seed,
            created_at: self.created_at.to_string(),
            ended_at: end.as_ref().map(|end| end.at.to_string()),
            progress,
            error: end.and_then(|end| end.error),
        }
    }

    fn runs(&self) -> bool {
        self.end.lock().is_none()
    }

    /// The whole life of its thread; gives the state in which it ended.
    fn live(&self, order: Order, path: &Path, clock: &Clock) -> &'static str {
        let rehearsed = std::panic::catch_unwind(AssertUnwindSafe(|| run::run(order, path, &self.shared)));
        let done = rehearsed.unwrap_or_else(|panic| {
            let error = format!("the copy of the world panicked: {}", panic_text(&*panic));
            tracing::error!(id = %self.id, %error, "a rehearsal was interrupted; the live world is not affected");
            let _gone_or_never_there = std::fs::remove_file(path);
            Done::failed(error)
        });
        let Done { state, error, report, listing } = done;
        let (at, report, listing) = ((clock.wall)(), report.map(Arc::new), listing.map(Arc::new));
        *self.end.lock() = Some(End { at, state, error, report, listing });
        state
    }
}

impl Rehearsals for RehearsalStore {
    fn begin(&self, plan: Plan) -> Result<Status, RehearsalError> {
        let failed = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a rehearsal could not be started");
            RehearsalError::Failed("the rehearsal could not be started; see the daemon's log for the reason".to_owned())
        };
        // Held until it is among them, so that two at once are not both the only one.
        let mut entries = self.entries.lock();
        if let Some(running) = entries.iter().find(|entry| entry.runs()) {
            let text = format!("rehearsal {} is running; wait for it or cancel it", running.id);
            return Err(RehearsalError::Running(text));
        }
        let (origin, from, from_at) = self.origin(plan.from)?;
        let until = end_of(&plan, from_at)?;
        create_private_dir(&self.places.dir).map_err(|error| failed(&error))?;
        let created_at = (self.places.clock.wall)();
        let id = self.mint.lock().uuid(created_at, Slot::ROOT);
        let Plan { model, seed, events, settings, .. } = plan;
        let shared = Shared::default();
        shared.at.store(from_at.0, Ordering::Relaxed);
        let end = Mutex::new(None);
        let entry = Arc::new(Entry { id, from, from_at, until, model, seed, created_at, shared, end });
        let order = Order { origin, from: from_at, until, model, seed, events, settings: *settings };
        let path = self.places.dir.join(format!("{id}.{FIRES}"));
        let (own, clock, stats) = (Arc::clone(&entry), self.places.clock.clone(), Arc::clone(&self.stats));
        let thread = std::thread::Builder::new().name("rehearsal".to_owned());
        let live = move || {
            stats.begun();
            stats.ended(own.live(order, &path, &clock));
        };
        thread.spawn(live).map_err(|error| failed(&error))?;
        entries.push(Arc::clone(&entry));
        while entries.len() > limit::REHEARSALS_KEPT_MAX {
            entries.remove(0);
        }
        Ok(entry.status())
    }

    fn list(&self) -> Vec<Status> {
        self.entries.lock().iter().rev().map(|entry| entry.status()).collect()
    }

    fn get(&self, id: Uuid) -> Option<(Status, Option<Arc<Report>>)> {
        let entry = self.entry(id)?;
        let report = entry.end.lock().as_ref().and_then(|end| end.report.clone());
        let status = entry.status();
        Some((status, report))
    }

    fn fires(&self, id: Uuid, range: FireRange) -> Result<FirePage, RehearsalError> {
        let missing = || RehearsalError::NotFound(format!("rehearsal {id} does not exist"));
        let entry = self.entry(id).ok_or_else(missing)?;
        let end = entry.end.lock().clone();
        let running = || {
            RehearsalError::Running(format!(
                "rehearsal {id} is still running; its fires are available \
            when it has ended"
            ))
        };
        let Some(listing) = end.ok_or_else(running)?.listing else { return Ok(FirePage::default()) };
        listing.page(range).map_err(|error| {
            tracing::error!(%error, path = %listing.path.display(), "the list of fires cannot be read");
            RehearsalError::Failed("the list of fires cannot be read".to_owned())
        })
    }

    fn remove(&self, id: Uuid) -> Result<Removal, RehearsalError> {
        let mut entries = self.entries.lock();
        let place = entries.iter().position(|entry| entry.id == id);
        let place = place.ok_or_else(|| RehearsalError::NotFound(format!("rehearsal {id} does not exist")))?;
        if entries[place].runs() {
            entries[place].shared.cancel.store(true, Ordering::Relaxed);
            return Ok(Removal::Cancelling);
        }
        entries.remove(place);
        Ok(Removal::Removed)
    }
}

impl Probe for RehearsalStore {
    fn gather(&self, out: &mut MetricsText) {
        self.stats.gather(out);
    }
}

impl Drop for RehearsalStore {
    /// A thread that still runs ends by itself.
    fn drop(&mut self) {
        for entry in self.entries.get_mut() {
            entry.shared.cancel.store(true, Ordering::Relaxed);
        }
    }
}
