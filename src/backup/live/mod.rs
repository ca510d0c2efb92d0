//! Backups of this home while the daemon runs (spec 2, Backup and restore). What an archive is stands in `src/backup/`.
//!
//! One thing at a time: whoever wants a backup or a restore while another is under way is refused (409); a backup that is
//! due waits.

mod clock;
mod restore;

use agentsvc_api::backup::audit_kinds;
use agentsvc_api::backup::error_codes::BACKUP_BUSY;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use agentsvc_api::Api;
use agentsvc_api::backup::store::{
    BackupError, BackupLine, BackupMade, BackupRestored, BackupStatus, Backups, RestoreWanted, ScheduledBackup,
};
use agentsvc_api::config::configuration::{ConfigError, ConfigReloaded};
use agentsvc_api::http::files::FileReader;
use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::snapshot::store::SnapshotService;
use agentsvc_components::{Actor, Refusal, RefusalKind, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::runtime::Handle;

use crate::backup;
use crate::backup::config::Backup as Config;
use crate::backup::progress::Progress;
use crate::backup::{Places, archives, name, place};
use crate::kernel::disk;
use crate::kernel::exchange::Exchange;
use crate::kernel::home::Home;
use crate::kernel::settings::{ReadConfig, Settings};
use crate::kernel::store::is_full;
use crate::kernel::vault::Vault;
use crate::kernel::world_loop::Clock;

/// The backups of this home.
pub(crate) struct HomeBackups {
    parts: Parts,
    clock: Clock,
    /// Held by who makes or restores one.
    turn: Mutex<()>,
    work: Mutex<Option<Work>>,
    schedule: Mutex<Schedule>,
    /// Backups made since the start.
    made: AtomicU64,
    /// Backups that failed since the start.
    failed: AtomicU64,
    /// When the newest one was made, in seconds since 1970; 0 when there is none.
    newest: AtomicU64,
}

/// What a restore asks of those who read files of the home at the start.
pub(crate) trait Restorable: Send + Sync {
    /// Has here what a backup is to contain and only other daemons have as yet.
    ///
    /// # Errors
    /// For people: some of it cannot be had now.
    fn gather(&self) -> Result<(), String>;

    /// Does something while nobody else changes the configuration's file.
    fn alone(&self, work: &mut dyn FnMut());

    /// Has everybody read again; also the configuration, if it is to be reloaded.
    fn read_again(&self, reload: bool) -> Option<Result<ConfigReloaded, ConfigError>>;
}

/// What backups need from the rest of the daemon.
pub(crate) struct Parts {
    pub(crate) home: Home,
    pub(crate) data: PathBuf,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) api: Arc<Api>,
    pub(crate) settings: Settings,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) worlds: Arc<dyn SnapshotService>,
    pub(crate) restorable: Box<dyn Restorable>,
    pub(crate) vault: Vault,
    pub(crate) handle: Handle,
}

/// What is under way.
struct Work {
    kind: &'static str,
    began: Instant,
    progress: Arc<Progress>,
}

/// Clears [`HomeBackups::work`] however it ends.
struct Working<'a>(&'a HomeBackups);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        *self.0.work.lock() = None;
    }
}

/// What was last made by itself, and what comes next.
#[derive(Default)]
struct Schedule {
    last: Option<ScheduledBackup>,
    next: Option<Timestamp>,
    /// When the one that is due was first tried, while there is no world to make it of.
    waits_since: Option<Timestamp>,
}

impl HomeBackups {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let probe = Arc::clone(&parts.api);
        let backups = Arc::new(Self {
            parts,
            clock: Clock::system(),
            turn: Mutex::new(()),
            work: Mutex::new(None),
            schedule: Mutex::default(),
            made: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            newest: AtomicU64::new(0),
        });
        probe.add_probe(Arc::clone(&backups) as _);
        backups
    }

    /// Once there is a world: a restore that a start has completed goes on record, and the schedule begins.
    pub(crate) fn watch(self: &Arc<Self>) {
        let backups = Arc::clone(self);
        self.parts.handle.spawn_blocking(move || {
            if let Some(mut details) = place::done(&backups.parts.home) {
                details["completed_by"] = json!("start");
                backups.parts.exchange.note(Actor::System, audit_kinds::BACKUP_RESTORED, details);
                backups.forget_done();
            }
        });
        clock::watch(self);
    }

    /// What runs gives up soon.
    pub(crate) fn stop(&self) {
        if let Some(work) = &*self.work.lock() {
            work.progress.stop();
        }
    }

    fn forget_done(&self) {
        if let Err(error) = place::forget_done(&self.parts.home) {
            tracing::warn!(%error, "the next start records the restore again");
        }
    }

    fn now(&self) -> Timestamp {
        (self.clock.wall)()
    }

    /// The settings in force.
    fn config(&self) -> Arc<Config> {
        self.parts.settings.get()
    }

    fn places(&self) -> Places {
        let config = self.config();
        let home = self.parts.home.clone();
        let backups = home.backups_dir(config.directory.as_deref());
        Places {
            data: self.parts.data.clone(),
            backups,
            home,
            workspaces: config.workspaces,
            data_dir: self.parts.data_dir.clone(),
            read: *self.parts.settings.get::<ReadConfig>(),
        }
    }

    fn my_turn(&self) -> Result<MutexGuard<'_, ()>, BackupError> {
        self.turn.try_lock().ok_or_else(|| self.busy())
    }

    fn busy(&self) -> BackupError {
        BackupError::Busy(self.work.lock().as_ref().map_or("backup", |work| work.kind))
    }

    /// Says what is under way from here on.
    fn begin(&self, kind: &'static str) -> (Working<'_>, Arc<Progress>) {
        let progress = Arc::new(Progress::default());
        *self.work.lock() = Some(Work { kind, began: Instant::now(), progress: Arc::clone(&progress) });
        (Working(self), progress)
    }

    fn note_newest(&self, made: Timestamp) {
        self.newest.fetch_max(u64::try_from(made.0 / 1_000).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Makes a backup; the turn is held.
    fn make(&self, actor: Actor) -> Result<BackupMade, BackupError> {
        let made = self.try_to_make(actor);
        if made.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        made
    }

    fn try_to_make(&self, actor: Actor) -> Result<BackupMade, BackupError> {
        let (_working, progress) = self.begin("backup");
        let began = Instant::now();
        self.parts.restorable.gather().map_err(BackupError::NotReady)?;
        let view = self.parts.exchange.view().map_err(|refusal| of_refusal(&refusal))?;
        // While there is the first view, it is the same world.
        let newest = || {
            let newest = self.parts.exchange.view().map_err(|_| backup::Error::Stopped)?;
            Ok(newest.into_parts().0)
        };
        let made = backup::create(&view, &self.places(), self.now(), &progress, newest);
        drop(view);
        let made = made.map_err(of_error)?;
        self.made.fetch_add(1, Ordering::Relaxed);
        self.note_newest(self.now());
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(filename = made.filename, size_bytes = made.size_bytes, seconds, "a backup was created");
        let details = json!({
            "filename": made.filename,
            "size_bytes": made.size_bytes,
            "step": made.step,
            "left_out": made.warnings.len(),
        });
        self.parts.exchange.note(actor, audit_kinds::BACKUP_CREATED, details);
        Ok(made)
    }

    fn checked(filename: &str) -> Result<(), BackupError> {
        let wrong = |reason: &str| BackupError::Wrong { field: "filename", message: reason.to_owned() };
        name::check_filename(filename).map_err(wrong)
    }
}

impl Backups for HomeBackups {
    fn create(&self, actor: Actor) -> Result<BackupMade, BackupError> {
        let _turn = self.my_turn()?;
        self.make(actor)
    }

    fn list(&self) -> Result<Vec<BackupLine>, BackupError> {
        let lines = archives::list(&self.places().backups).map_err(of_error)?;
        Ok(lines.into_iter().map(|(_, line)| line).collect())
    }

    fn delete(&self, actor: Actor, filename: &str) -> Result<(), BackupError> {
        Self::checked(filename)?;
        let _turn = self.my_turn()?;
        let unknown = || BackupError::Unknown(filename.to_owned());
        let dir = self.places().backups;
        archives::find(&dir, filename).ok_or_else(unknown)?;
        let details = json!({ "filename": filename, "reason": "asked" });
        let noted = self.parts.exchange.record(actor, audit_kinds::BACKUP_DELETED, details);
        noted.map_err(|refusal| BackupError::NotReady(refusal.message))?;
        if archives::remove(&dir, filename).map_err(of_error)? { Ok(()) } else { Err(unknown()) }
    }

    fn open(&self, actor: Actor, filename: &str) -> Result<(u64, FileReader), BackupError> {
        Self::checked(filename)?;
        let unknown = || BackupError::Unknown(filename.to_owned());
        let path = archives::find(&self.places().backups, filename).ok_or_else(unknown)?;
        let file = disk::open(&path).map_err(|_| unknown())?;
        let size = file.metadata().map_err(|error| failed(&error))?.len();
        // Everything is in it: that it left is on record.
        self.parts.exchange.note(actor, audit_kinds::BACKUP_DOWNLOADED, json!({ "filename": filename }));
        Ok((size, Box::new(file)))
    }

    fn restore(&self, actor: Actor, wanted: &RestoreWanted) -> Result<BackupRestored, BackupError> {
        self.put_back(actor, wanted)
    }

    fn status(&self) -> BackupStatus {
        let schedule = self.schedule.lock();
        let (scheduled, next_scheduled) = (schedule.last.clone(), schedule.next.map(|next| next.to_string()));
        drop(schedule);
        let work = self.work.lock();
        let Some(Work { kind, began, progress }) = &*work else {
            return BackupStatus { phase: "idle", scheduled, next_scheduled, ..BackupStatus::default() };
        };
        let (done_bytes, total_bytes) = progress.bytes();
        BackupStatus {
            running: Some(kind),
            phase: progress.phase(),
            done_bytes,
            total_bytes,
            seconds: began.elapsed().as_secs(),
            scheduled,
            next_scheduled,
        }
    }
}

impl Probe for HomeBackups {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.family("agentsvc_backups_total", "Backups, by outcome.", "counter");
        out.sample("agentsvc_backups_total", "outcome=\"made\"", load(&self.made));
        out.sample("agentsvc_backups_total", "outcome=\"failed\"", load(&self.failed));
        let help = "Time of the newest backup in seconds since 1970; 0 if there is none.";
        out.gauge("agentsvc_backup_newest_seconds", help, load(&self.newest));
    }
}

/// What a client is told of an error; where on the disk it was stays in the log.
fn of_error(error: backup::Error) -> BackupError {
    if is_full(&error) {
        tracing::error!(%error, "the disk is full");
        return BackupError::Full("the disk is full".to_owned());
    }
    match (error.code(), error) {
        (_, backup::Error::NoRoom { needed, free, .. }) => {
            BackupError::Full(format!("{needed} bytes are needed, but only {free} are free"))
        }
        (Some(code), error) => BackupError::Refused { code, message: error.to_string() },
        (None, backup::Error::Stopped) => BackupError::NotReady("the daemon is shutting down".to_owned()),
        (None, error) => failed(&error),
    }
}

fn of_refusal(refusal: &Refusal) -> BackupError {
    match refusal.kind {
        RefusalKind::Failed => BackupError::Failed(refusal.message.to_string()),
        RefusalKind::NoRoom => BackupError::Full(refusal.message.to_string()),
        RefusalKind::Conflict => {
            let code = refusal.code.unwrap_or(BACKUP_BUSY);
            BackupError::InTheWay { code, message: refusal.message.clone() }
        }
        _ => BackupError::NotReady(refusal.message.to_string()),
    }
}

fn failed(error: &dyn std::fmt::Display) -> BackupError {
    tracing::error!(%error, "a backup or restore failed");
    BackupError::Failed("failed and nothing was changed; see the daemon's log for the reason".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_no_missing_world() {
        let busy = of_refusal(&Refusal::conflict("rehearsal is reading the world"));
        assert!(matches!(&busy, BackupError::InTheWay { code, .. } if *code == BACKUP_BUSY), "{busy:?}");
        assert_eq!(busy.to_string(), "rehearsal is reading the world");
        let full = of_refusal(&Refusal::of(
            agentsvc_api::snapshot::error_codes::TOO_MANY_SNAPSHOTS,
            "the limit of 1000 snapshots is reached",
        ));
        assert!(matches!(&full, BackupError::InTheWay { code, .. } if **code == *"too_many_snapshots"), "{full:?}");
        assert!(matches!(of_refusal(&Refusal::busy("no world", 1)), BackupError::NotReady(_)));
    }
}
