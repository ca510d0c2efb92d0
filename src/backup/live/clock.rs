//! Backups that are made by themselves, and those that go (`[backup]`).

use agentsvc_api::backup::audit_kinds;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_api::backup::store::{BackupError, BackupMade, ScheduledBackup};
use agentsvc_components::Actor;
use agentsvc_components::Timestamp;
use agentsvc_systems::schedule::Rule;
use serde_json::json;

use super::HomeBackups;
use crate::backup::archives;
use crate::kernel::archives::prune;
use crate::kernel::retention::RetentionClock;

/// The longest wait: how soon another configuration, or a clock that was set, is seen.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The shortest one.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Milliseconds for which one that is due is tried again and again while there is no world to make it of. A restore takes
/// seconds; the next slot may be a day away.
const WORLD_WAIT_MS: i64 = 10 * 60 * 1_000;

/// Makes what is due until the daemon ends.
pub(super) fn watch(backups: &Arc<HomeBackups>) {
    let backups = Arc::clone(backups);
    let shutdown = backups.parts.api.shutdown.clone();
    backups.parts.handle.clone().spawn(async move {
        let mut after = None;
        loop {
            let looking = Arc::clone(&backups);
            let looked = tokio::task::spawn_blocking(move || looking.look(after)).await;
            let (next, wait) = looked.unwrap_or_else(|error| {
                tracing::error!(%error, "a scheduled backup was interrupted; the next one runs as scheduled");
                (backups.now(), LOOK_EVERY)
            });
            after = Some(next);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = shutdown.wait() => return,
            }
        }
    });
}

impl HomeBackups {
    /// Makes a backup when one is due after `after`, the last moment that was looked at; a start looks from the newest
    /// backup on. Gives the moment to look from next, and how long that has time.
    fn look(&self, after: Option<Timestamp>) -> (Timestamp, Duration) {
        let now = self.now();
        let after = after.unwrap_or_else(|| self.newest_of_ours().unwrap_or(now)).min(now);
        let next = self.due_after(after);
        {
            let mut schedule = self.schedule.lock();
            schedule.next = next;
            if next.is_none_or(|next| next > now) {
                schedule.waits_since = None;
            }
        }
        match next {
            None => (after, LOOK_EVERY),
            Some(next) if next > now => {
                let wait = Duration::from_millis(u64::try_from(next.0 - now.0).unwrap_or_default());
                (after, wait.clamp(LOOK_PAUSE, LOOK_EVERY))
            }
            Some(_) => {
                if !self.make_scheduled(now) {
                    return (after, LOOK_EVERY);
                }
                // Slots that passed meanwhile are this one.
                let done = self.now();
                self.schedule.lock().next = self.due_after(done);
                (done, LOOK_PAUSE)
            }
        }
    }

    /// The first moment after `after` at which a backup is due; `None` while none are made by themselves.
    fn due_after(&self, after: Timestamp) -> Option<Timestamp> {
        let config = self.config();
        let rule = config.enabled.then(|| Rule::parse(&config.schedule).ok()).flatten()?;
        rule.next_utc(after, after)
    }

    fn newest_of_ours(&self) -> Option<Timestamp> {
        let lines = match archives::list(&self.places().backups) {
            Ok(lines) => lines,
            Err(error) => {
                tracing::warn!(%error, "the time of the newest backup is unknown");
                return None;
            }
        };
        let newest = lines.iter().find(|(_, line)| line.valid).map(|(at, _)| *at)?;
        self.note_newest(newest);
        Some(newest)
    }

    /// Makes the one that is due. False when it is to be tried again soon.
    fn make_scheduled(&self, now: Timestamp) -> bool {
        let made = {
            let _turn = self.turn.lock();
            let made = self.try_to_make(Actor::System);
            if made.is_ok() {
                self.prune();
            }
            made
        };
        if let Err(error) = &made {
            let tried_before = self.schedule.lock().waits_since;
            if is_tried_again(error, tried_before.map_or(0, |first| now.0.saturating_sub(first.0))) {
                if tried_before.is_none() {
                    tracing::warn!(%error, "a scheduled backup is waiting for the world");
                    self.schedule.lock().waits_since = Some(now);
                }
                return false;
            }
            self.failed.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "a scheduled backup failed");
            self.parts.exchange.note(Actor::System, audit_kinds::BACKUP_FAILED, json!({ "reason": error.to_string() }));
        }
        let mut schedule = self.schedule.lock();
        (schedule.last, schedule.waits_since) = (Some(of(now, made)), None);
        true
    }

    /// Lets backups go that are too old or too many. One that cannot be removed is tried again with the next.
    fn prune(&self) {
        let config = self.config();
        let dir = self.places().backups;
        let lines = match archives::list(&dir) {
            Ok(lines) => lines,
            Err(error) => return tracing::warn!(%error, "old backups could not be deleted"),
        };
        let (keep, max_age_days) = (config.keep, config.max_age_days);
        let now = self.parts.settings.get::<RetentionClock>().now();
        let outdated = archives::outdated(&lines, keep, max_age_days, now);
        let remove = |filename: &String| archives::remove(&dir, filename).map(drop);
        prune(&self.parts.exchange, audit_kinds::BACKUP_DELETED, ("backup", "filename"), outdated, remove);
    }
}

/// Is a backup that could not be made, and was tried for so long already, tried again soon? Not for what lasts.
fn is_tried_again(error: &BackupError, tried_for_ms: i64) -> bool {
    let passes = matches!(error, BackupError::NotReady(_) | BackupError::Busy(_) | BackupError::InTheWay { .. });
    passes && tried_for_ms < WORLD_WAIT_MS
}

fn of(at: Timestamp, made: Result<BackupMade, BackupError>) -> ScheduledBackup {
    let (filename, error) = match made {
        Ok(made) => (Some(made.filename), None),
        Err(error) => (None, Some(error.to_string())),
    };
    ScheduledBackup { at: at.to_string(), filename, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_waits_for_the_world_and_not_for_ever() {
        let exchanged = BackupError::NotReady("another world takes the place of this one".to_owned());
        assert!(is_tried_again(&exchanged, 0) && is_tried_again(&exchanged, WORLD_WAIT_MS - 1));
        assert!(!is_tried_again(&exchanged, WORLD_WAIT_MS));
        // A disk that is full, or broken, is told at once.
        assert!(!is_tried_again(&BackupError::Full("the disk is full".to_owned()), 0));
        assert!(!is_tried_again(&BackupError::Failed("it failed".to_owned()), 0));
    }
}
