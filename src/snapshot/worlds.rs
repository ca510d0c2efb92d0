//! Snapshots of the present world: taken beside it, kept for a while, and put back in its place.
//!
//! One thing at a time: whoever wants a snapshot while another one is taken or restored is refused (409), but for the
//! daemon itself, which waits. A restore finds everything that can be wrong with a snapshot before anything changes: its
//! rows go into a new store, with every record decoded on the way, and a world is brought to life from them that
//! nobody ever sees. Only then the present world is kept in a snapshot of its own, and gives way.

use agentsvc_api::snapshot::audit_kinds;
use agentsvc_api::snapshot::error_codes;
use agentsvc_components::kernel::error_codes as kernel_codes;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_api::snapshot::store::{Before, Reason, Restored, Snapshot, SnapshotService, Underway};
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, Refusal, RefusalKind, Timestamp};
use agentsvc_systems::kernel::record::hex;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::agent::files_taint::FilesTaint;
use crate::kernel::archives::prune;
use crate::kernel::exchange::{Entry, Exchange};
use crate::kernel::memory::Memory;
use crate::kernel::retention::RetentionClock;
use crate::kernel::settings::Settings;
use crate::kernel::store::is_full;
use crate::kernel::store::rows::read::{self, Copied};
use crate::kernel::store::{self, Store};
use crate::kernel::world_loop::Clock;
use crate::replay::inputs;
use crate::replay::time_travel::Past;
use crate::snapshot::archives::{Archives, Retention};
use crate::snapshot::config::Snapshots as Config;
use crate::snapshot::stats::SnapshotStats;
use crate::snapshot::write::{write, write_rows};

/// How long the daemon waits for a snapshot that is under way before it gives up what it wanted one for.
const TURN_WAIT: Duration = Duration::from_secs(60);
/// How often the age of snapshots is looked at.
const PRUNE_EVERY: Duration = Duration::from_secs(6 * 60 * 60);

/// The snapshots of this home.
pub(crate) struct Snapshots {
    archives: Archives,
    /// The input log.
    inputs: PathBuf,
    /// Where the workspaces of agents are.
    workspaces: PathBuf,
    exchange: Arc<Exchange>,
    settings: Settings,
    clock: Clock,
    /// Held by who takes or restores one.
    turn: Mutex<()>,
    work: Mutex<Option<Work>>,
    stats: Arc<SnapshotStats>,
}

/// What is under way.
struct Work {
    underway: Underway,
    copied: Arc<Copied>,
}

/// Clears [`Snapshots::work`] however it ends.
struct Working<'a>(&'a Snapshots);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        *self.0.work.lock() = None;
    }
}

impl Snapshots {
    /// The snapshots under the data directory. What kills have left there is removed.
    pub(crate) fn new(
        dir: PathBuf,
        (inputs, workspaces): (PathBuf, PathBuf),
        exchange: Arc<Exchange>,
        settings: Settings,
    ) -> Self {
        let archives = Archives::new(dir);
        match archives.sweep() {
            Ok(0) => {}
            Ok(swept) => tracing::info!(swept, "unfinished snapshots were removed"),
            Err(error) => tracing::warn!(%error, "unfinished snapshots cannot be removed"),
        }
        let (clock, turn, work) = (Clock::system(), Mutex::new(()), Mutex::new(None));
        Self { archives, inputs, workspaces, exchange, settings, clock, turn, work, stats: Arc::default() }
    }

    /// What the metrics page says of them.
    pub(crate) fn stats(&self) -> Arc<SnapshotStats> {
        Arc::clone(&self.stats)
    }

    /// The settings in force.
    fn config(&self) -> Arc<Config> {
        self.settings.get()
    }

    /// Lets snapshots go that are too old, now and then.
    pub(crate) fn watch(self: &Arc<Self>, handle: &Handle) {
        let snapshots = Arc::clone(self);
        handle.spawn(async move {
            let mut ticks = tokio::time::interval(PRUNE_EVERY);
            loop {
                ticks.tick().await;
                let snapshots = Arc::clone(&snapshots);
                let _panicked = tokio::task::spawn_blocking(move || {
                    let Some(_turn) = snapshots.turn.try_lock() else { return };
                    snapshots.prune(None);
                })
                .await;
            }
        });
    }

    /// Whoever works on a snapshot is not waited for; the sweep of old ones is, which nobody asked for and is short.
    fn my_turn(&self) -> Result<MutexGuard<'_, ()>, Refusal> {
        let turn = if self.work.lock().is_some() { self.turn.try_lock() } else { self.turn.try_lock_for(TURN_WAIT) };
        turn.ok_or_else(|| self.busy())
    }

    fn busy(&self) -> Refusal {
        let what = match self.underway() {
            Some(Underway { kind: "restore", id, .. }) => format!("snapshot {id} is being restored"),
            _ => "another snapshot is being created".to_owned(),
        };
        Refusal::of(kernel_codes::RESTORE_UNDERWAY, format!("{what}; try again later"))
    }

    /// Says what is under way from here on.
    fn begin(&self, kind: &'static str, phase: &'static str, id: Uuid) -> (Working<'_>, Arc<Copied>) {
        let copied = Arc::new(Copied::default());
        let started_at = self.now().to_string();
        let underway = Underway { kind, id, phase, started_at, rows: 0, bytes: 0 };
        *self.work.lock() = Some(Work { underway, copied: Arc::clone(&copied) });
        (Working(self), copied)
    }

    fn phase(&self, phase: &'static str) {
        if let Some(work) = &mut *self.work.lock() {
            work.underway.phase = phase;
        }
    }

    fn now(&self) -> Timestamp {
        (self.clock.wall)()
    }

    /// Takes a snapshot; `spare` is one that retention must not take away now, `past` an older step.
    fn write(
        &self,
        before: Option<Before>,
        label: Option<String>,
        spare: Option<Uuid>,
        past: Option<u64>,
    ) -> Result<Snapshot, Refusal> {
        let reason = if before.is_some() { Reason::Auto } else { Reason::Manual };
        let written = self.try_to_write(before, label, spare, past);
        match &written {
            Ok(_) => self.stats.count(reason, true),
            // What the client asks for cannot be had; nothing is wrong here.
            Err(refusal) if refusal.kind == RefusalKind::Conflict && reason == Reason::Manual => {}
            Err(_) => self.stats.count(reason, false),
        }
        written
    }

    fn try_to_write(
        &self,
        before: Option<Before>,
        label: Option<String>,
        spare: Option<Uuid>,
        past: Option<u64>,
    ) -> Result<Snapshot, Refusal> {
        if self.archives.list().map_err(|error| failed(&error))?.len() >= limit::SNAPSHOTS_MAX {
            let text = format!("the limit of {} snapshots is reached; delete some first", limit::SNAPSHOTS_MAX);
            return Err(Refusal::of(error_codes::TOO_MANY_SNAPSHOTS, text));
        }
        let now = self.now();
        let id = new_id(now).map_err(|error| failed(&error))?;
        // During a restore the progress shown is the restore's.
        let is_alone = self.work.lock().is_none();
        let (_working, copied) = match is_alone.then(|| self.begin("snapshot", "writing", id)) {
            Some((working, copied)) => (Some(working), copied),
            None => (None, Arc::default()),
        };
        let view = self.exchange.view()?;
        let step = Some(view.step().map_err(|error| failed(&error))?.number).filter(|step| *step > 0);
        let draft = self.archives.draft(id).map_err(|error| failed(&error))?;
        let (written, step, lost) = match past {
            None => (write(&view, &draft, &copied).map_err(|error| failed(&error))?, step, None),
            Some(number) => {
                has_room(Memory::now(), Past::log_bytes(&self.inputs).map_err(|error| failed(&error))?)?;
                let mut past = Past::at(&self.inputs, number, &view).map_err(|error| not_kept(&error))?;
                let written = write_rows(&mut past, &draft, &copied).map_err(|error| failed(&error))?;
                (written, Some(past.step.number), Some(past.lost()))
            }
        };
        drop(view);
        let snapshot = Snapshot {
            id,
            created_at: now.to_string(),
            step,
            size_bytes: written.size_bytes,
            reason: if before.is_some() { Reason::Auto } else { Reason::Manual },
            before,
            label,
            lost,
            counts: written.counts,
            sha256: hex(&written.totals.sha256),
        };
        self.archives.put(&snapshot).map_err(|error| failed(&error))?;
        tracing::info!(%id, rows = written.counts.rows, bytes = written.size_bytes, "a snapshot was created");
        self.prune(spare);
        Ok(snapshot)
    }

    fn note_taken(&self, actor: Actor, snapshot: &Snapshot) {
        let details = json!({
            "snapshot": snapshot.id,
            "before": snapshot.before.map(Before::as_str),
            "label": snapshot.label,
            "step": snapshot.step,
            "sha256": snapshot.sha256,
        });
        self.exchange.note(actor, audit_kinds::SNAPSHOT_TAKEN, details);
    }

    /// Lets go what `[snapshots]` says, but not `spare`.
    fn prune(&self, spare: Option<Uuid>) {
        let config = self.config();
        let (keep, keep_manual) = (config.keep as usize, config.keep_manual as usize);
        let retention = Retention { keep, max_age_days: config.max_age_days, keep_manual };
        let all = match self.archives.list() {
            Ok(all) => all,
            Err(error) => return tracing::warn!(%error, "old snapshots could not be deleted"),
        };
        let outdated = retention.outdated(&all, self.settings.get::<RetentionClock>().now());
        let outdated = outdated.into_iter().map(|snapshot| snapshot.id).filter(|id| Some(*id) != spare).collect();
        let (kind, called) = (audit_kinds::SNAPSHOT_DELETED, ("snapshot", "snapshot"));
        let gone = prune(&self.exchange, kind, called, outdated, |id| self.archives.delete(*id));
        self.stats.kept(all.iter().filter(|snapshot| !gone.contains(&snapshot.id)));
    }

    fn found(&self, id: Uuid) -> Result<Snapshot, Refusal> {
        let found = self.archives.find(id).map_err(|error| failed(&error))?;
        found.ok_or_else(|| Refusal::not_found("snapshot", id))
    }

    /// Builds the store of a snapshot where it can take the world's place, and brings its world to life once.
    fn check(&self, snapshot: &Snapshot, copied: &Copied) -> Result<(), Refusal> {
        let next = self.exchange.next_dir();
        self.exchange.clear_next().map_err(|error| failed(&error))?;
        let (records, totals) = read::build(&self.archives.rows(snapshot.id), &next, copied).map_err(|error| {
            if let store::Error::Rows { source } = &error { damaged(source) } else { failed(&error) }
        })?;
        if hex(&totals.sha256) != snapshot.sha256 {
            return Err(damaged(&"the rows belong to another snapshot"));
        }
        self.exchange.try_out(records).map_err(|error| damaged(&error))
    }

    fn put_back(&self, actor: Actor, snapshot: Snapshot) -> Result<Restored, Refusal> {
        let (_working, copied) = self.begin("restore", "reading", snapshot.id);
        self.check(&snapshot, &copied)?;
        let before = if self.config().automatic {
            self.phase("writing");
            let taken = self.write(Some(Before::Restore), None, Some(snapshot.id), None)?;
            self.note_taken(actor, &taken);
            Some(taken)
        } else {
            None
        };
        self.phase("exchanging");
        let details = json!({
            "snapshot": snapshot.id,
            "created_at": snapshot.created_at,
            "step": snapshot.step,
            "sha256": snapshot.sha256,
            "before": before.as_ref().map(|before| before.id),
        });
        let entry = Entry { actor, kind: audit_kinds::SNAPSHOT_RESTORED, details };
        // The files stay, with all that was written there since.
        let keep_taint = |old: &Store| {
            let files = FilesTaint { known: old.view(), workspaces: self.workspaces.clone() };
            files.raise_in(&self.exchange.next_dir()).map_err(|error| error.to_string())
        };
        let pause = self.exchange.replace(entry, keep_taint, || Ok(()))?;
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(id = %snapshot.id, pause_ms, "a snapshot was restored");
        Ok(Restored { status: "restored", snapshot, before, pause_ms })
    }
}

impl SnapshotService for Snapshots {
    fn list(&self) -> Result<Vec<Snapshot>, Refusal> {
        self.archives.list().map_err(|error| failed(&error))
    }

    fn underway(&self) -> Option<Underway> {
        let work = self.work.lock();
        work.as_ref().map(|Work { underway, copied }| Underway {
            rows: copied.rows.load(Ordering::Relaxed),
            bytes: copied.bytes.load(Ordering::Relaxed),
            ..underway.clone()
        })
    }

    fn take(&self, actor: Actor, label: Option<String>) -> Result<Snapshot, Refusal> {
        let _turn = self.my_turn()?;
        let snapshot = self.write(None, label, None, None)?;
        self.note_taken(actor, &snapshot);
        Ok(snapshot)
    }

    fn take_at(&self, actor: Actor, label: Option<String>, step: u64) -> Result<Snapshot, Refusal> {
        let _turn = self.my_turn()?;
        let snapshot = self.write(None, label, None, Some(step))?;
        self.note_taken(actor, &snapshot);
        Ok(snapshot)
    }

    fn take_before(&self, what: Before) -> Result<Option<Snapshot>, Refusal> {
        if !self.config().automatic {
            return Ok(None);
        }
        let _turn = self.turn.try_lock_for(TURN_WAIT).ok_or_else(|| self.busy())?;
        let snapshot = self.write(Some(what), None, None, None)?;
        self.note_taken(Actor::System, &snapshot);
        Ok(Some(snapshot))
    }

    fn delete(&self, actor: Actor, id: Uuid) -> Result<Snapshot, Refusal> {
        if self.underway().is_some_and(|underway| underway.id == id) {
            return Err(self.busy());
        }
        let snapshot = self.found(id)?;
        let details = json!({ "snapshot": id, "reason": "asked", "label": snapshot.label });
        self.exchange.record(actor, audit_kinds::SNAPSHOT_DELETED, details)?;
        self.archives.delete(id).map_err(|error| failed(&error))?;
        // What cannot be listed is counted with the next one that is taken.
        if let Ok(left) = self.archives.list() {
            self.stats.kept(left.iter());
        }
        Ok(snapshot)
    }

    fn restore(&self, actor: Actor, id: Uuid) -> Result<Restored, Refusal> {
        self.exchange.counted("snapshot", || {
            let snapshot = self.found(id)?;
            self.exchange.may_replace()?;
            let _turn = self.my_turn()?;
            let _next = self.exchange.claim_next()?;
            let restored = self.put_back(actor, snapshot);
            if restored.is_err() {
                // What cannot be removed is removed with the next start.
                let _ = self.exchange.clear_next();
            }
            restored
        })
    }
}

/// The world of an older step cannot be rebuilt.
/// A second world beside the one that runs takes as much again, and its rows as much again; the epoch's log is read into it.
fn has_room(memory: Option<Memory>, log_bytes: u64) -> Result<(), Refusal> {
    let Some(Memory { resident, available }) = memory else { return Ok(()) };
    let needed = resident.saturating_mul(2).saturating_add(log_bytes.saturating_mul(4));
    if needed <= available {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let text = format!(
        "rebuilding the world of an older step may take {} MiB of memory, and {} MiB are available",
        mib(needed),
        mib(available)
    );
    Err(Refusal::of(error_codes::NOT_ENOUGH_MEMORY, text))
}

fn not_kept(error: &inputs::Error) -> Refusal {
    match error {
        inputs::Error::NotKept(text) => Refusal::of(error_codes::STEP_NOT_KEPT, text.clone()),
        error => failed(error),
    }
}

/// A snapshot that cannot be restored; nothing was changed.
fn damaged(reason: &dyn std::fmt::Display) -> Refusal {
    let text = format!("the snapshot is damaged; nothing was changed: {reason}");
    Refusal::of(error_codes::SNAPSHOT_DAMAGED, text)
}

/// The disk failed, or the store; where it is stays in the log.
fn failed(error: &(dyn std::error::Error + 'static)) -> Refusal {
    tracing::error!(%error, "a snapshot operation failed");
    if is_full(error) {
        return Refusal::of(kernel_codes::STORAGE_FULL, "not enough disk space for the snapshot");
    }
    Refusal::new(RefusalKind::Failed, "the snapshot could not be written or read; see the daemon's log for the reason")
}

/// A UUID of version 7: ids grow with time.
fn new_id(now: Timestamp) -> io::Result<Uuid> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let ms = u64::try_from(now.0).unwrap_or_default();
    Ok(uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_world_needs_room() {
        let memory = |available| Some(Memory { resident: 1 << 30, available });
        let (two, log) = (2 << 30, 16 << 20);
        assert!(has_room(memory(two), 0).is_ok() && has_room(None, log).is_ok());
        assert!(has_room(memory(two + 4 * log), log).is_ok());
        let refused = has_room(memory(two + 4 * log - 1), log).unwrap_err();
        assert_eq!((refused.kind, refused.code), (RefusalKind::Busy, Some(error_codes::NOT_ENOUGH_MEMORY)));
        assert!(refused.message.contains("2112 MiB of memory, and 2112 MiB"), "{}", refused.message);
    }
}
