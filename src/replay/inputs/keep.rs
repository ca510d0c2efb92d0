//! Which epochs go. Only whole ones: without the rows it began with, the rest of an epoch means nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::folder::{EpochFolder, epochs};
use super::{Error, InputSettings};

/// What is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Epochs.
    pub epochs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The oldest step that can be replayed from.
    pub oldest: u64,
}

/// Removes the oldest epochs while all together have more than `settings` allow, and those that ended too long ago. The
/// epoch `current` stays, and so does the newest: one that had to end because it alone has too much is all there is to be
/// replayed until the next begins. One that cannot be removed is left out for now, with a line in the log, and keeps no
/// other from going.
pub fn trim(inputs: &Path, current: &Path, settings: InputSettings, now_ms: u64) -> Result<Kept, Error> {
    let all = epochs(inputs)?;
    let sizes: Vec<u64> = all.iter().map(EpochFolder::bytes).collect();
    let mut bytes: u64 = sizes.iter().sum();
    let mut left = all.len() as u64;
    let (mut oldest, mut failed) = (None, None);
    for (at, (epoch, size)) in all.iter().zip(sizes).enumerate() {
        // An epoch ends where the next one begins.
        let ended_ms = all.get(at + 1).map(|next| next.began_ms);
        let is_old = ended_ms.is_some_and(|end| millis(settings.keep) <= now_ms.saturating_sub(end));
        let stays = epoch.path == current || ended_ms.is_none();
        if !stays && (is_old || bytes > settings.max_bytes) {
            match fs::remove_dir_all(&epoch.path).map_err(Error::io(&epoch.path)) {
                Ok(()) => (bytes, left) = (bytes - size, left - 1),
                // A part of it may be gone: nothing is replayed from it.
                Err(error) => failed = failed.or(Some(error)),
            }
        } else {
            oldest.get_or_insert(epoch.after + 1);
        }
    }
    if let Some(error) = failed {
        tracing::warn!(%error, "old inputs cannot be removed");
    }
    Ok(Kept { epochs: left, bytes, oldest: oldest.unwrap_or(0) })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_epochs_go_and_the_current_one_never() {
        let dir = tempfile::tempdir().unwrap();
        let make = |began: u64, after: u64| {
            let path = dir.path().join(format!("{began:015}-{after:020}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("1.log"), [0; 100]).unwrap();
            path
        };
        let paths = [make(1_000, 0), make(2_000, 10), make(3_000, 20), make(4_000, 30)];
        let settings = InputSettings { keep: Duration::from_secs(1), max_bytes: 1_000 };
        let kept = trim(dir.path(), &paths[3], settings, 3_100).unwrap();
        // The first one ended at 2000, more than a second ago.
        assert_eq!((kept.epochs, kept.bytes, kept.oldest), (3, 300, 11));
        assert!(!paths[0].exists() && paths[1].exists());
        let kept = trim(dir.path(), &paths[3], InputSettings { max_bytes: 250, ..settings }, 3_100).unwrap();
        assert_eq!((kept.epochs, kept.oldest), (2, 21));
        let kept = trim(dir.path(), &paths[3], InputSettings { max_bytes: 1, ..settings }, 3_100).unwrap();
        assert_eq!((kept.epochs, kept.bytes, kept.oldest), (1, 100, 31));
        // None is being written.
        let kept = trim(dir.path(), Path::new(""), InputSettings { max_bytes: 1, ..settings }, 9_100).unwrap();
        assert_eq!((kept.epochs, kept.bytes, kept.oldest), (1, 100, 31));
        assert!(paths[3].exists());
    }

    #[test]
    fn one_that_cannot_be_removed_keeps_no_other_from_going() {
        let dir = tempfile::tempdir().unwrap();
        // What is no directory cannot be removed as one.
        let stuck = dir.path().join(format!("{:015}-{:020}", 1_000, 0));
        fs::write(&stuck, "in the way").unwrap();
        let make = |began: u64, after: u64| {
            let path = dir.path().join(format!("{began:015}-{after:020}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("1.log"), [0; 100]).unwrap();
            path
        };
        let paths = [make(2_000, 10), make(3_000, 20)];
        let settings = InputSettings { keep: Duration::from_secs(1), max_bytes: 1 };
        let kept = trim(dir.path(), &paths[1], settings, 3_100).unwrap();
        assert!(stuck.exists() && !paths[0].exists());
        assert_eq!((kept.epochs, kept.bytes, kept.oldest), (2, 100, 21));
    }
}
