//! What programs fill: looked at while they run.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::bounds::disk::{Running, there};
use super::bounds::unnamed::unnamed_bytes;
use super::measure::measure_at;
use crate::kernel::free_space;

/// Time between two measures of the workspace while a command runs, at least, unless much was written.
pub(super) const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// The same for what may run for months.
pub(super) const MEASURE_SERVER_EVERY: Duration = Duration::from_secs(60);
/// Time between two measures at most, beside that.
const MEASURE_REST_MAX: Duration = Duration::from_secs(10);
/// How much longer than it took nothing is measured again.
const MEASURE_REST_TIMES: u32 = 10;
/// Measures that may fail one after the other.
const MEASURES_FAILED_MAX: u32 = 3;

/// Measures of what programs write that are under way at once: each remembers names, and programs may be many.
static MEASURES: Semaphore = Semaphore::const_new(2);

/// What a program has filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The disk: there is no room but what is left to the store.
    Disk,
    /// The workspace: it holds more than it may.
    Workspace,
    /// The workspaces of a family of agents or of a user: they hold more than they may together.
    Share,
    /// All workspaces: they hold more than they may together.
    Workspaces,
    /// The epoll watches that the user of this process has, with all commands together.
    Watches,
    /// The memory of the machine, and no command held more.
    Memory,
}

/// Waits until the disk of a directory is full, and the program of this supervisor has to end for it, or until it holds more than it
/// may by `measure`, which blocks on the disk.
pub(super) async fn until_full(
    directory: &Path,
    supervisor: Option<u32>,
    every: Duration,
    measure: impl Fn() -> Result<Option<Full>, Errno> + Clone + Send + 'static,
) -> Full {
    let running = Running::new(directory, supervisor);
    let (mut next, mut soonest, mut failed) = (Instant::now() + every, Instant::now(), 0);
    loop {
        let much_is_lost = async {
            running.until_much_is_lost().await;
            sleep_until(soonest).await;
        };
        tokio::select! {
            () = running.until_it_must_end() => return Full::Disk,
            () = sleep_until(next) => {}
            () = much_is_lost => {}
        }
        let (measure, began) = (measure.clone(), Instant::now());
        // It is never closed.
        let turn = MEASURES.acquire().await;
        running.was_measured();
        let measured = tokio::task::spawn_blocking(measure).await;
        drop(turn);
        if let Ok(Ok(Some(full))) = measured {
            return full;
        }
        // What moves under every measure hides what it holds.
        failed = if matches!(measured, Ok(Ok(_))) { 0 } else { failed + 1 };
        if failed == MEASURES_FAILED_MAX {
            return Full::Workspace;
        }
        let rest = (began.elapsed() * MEASURE_REST_TIMES).min(MEASURE_REST_MAX);
        (next, soonest) = (Instant::now() + rest.max(every), Instant::now() + rest);
    }
}

/// Is the disk so full that no program begins?
pub(super) fn is_disk_full(directory: &Path) -> bool {
    free_space::check(there(directory), 0).is_err_and(|error| error.kind() == io::ErrorKind::StorageFull)
}

/// Bytes that a directory holds, with the files without a name that the program of a supervisor has open beside it. One that is
/// not there holds none.
///
/// # Errors
/// Those of [`measure_at`] and [`unnamed_bytes`].
pub(super) fn held_bytes(directory: &Path, supervisor: Option<u32>) -> Result<u64, Errno> {
    let named = match measure_at(directory) {
        Err(Errno::NOENT) => 0,
        measured => measured?,
    };
    let device = fs::metadata(there(directory)).map_or(0, |found| found.dev());
    let unnamed = supervisor.map_or(Ok(0), |supervisor| unnamed_bytes(supervisor, device))?;
    Ok(named.saturating_add(unnamed))
}

/// Waits until a program that is no command must end: the disk is full, or its directory holds more than it may.
pub(super) async fn until_server_full(directory: PathBuf, supervisor: Option<u32>, bytes_max: Option<u64>) -> Full {
    let measured = directory.clone();
    let measure = move || {
        let Some(bytes_max) = bytes_max else { return Ok(None) };
        Ok((held_bytes(&measured, supervisor)? > bytes_max).then_some(Full::Workspace))
    };
    until_full(&directory, supervisor, MEASURE_SERVER_EVERY, measure).await
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_ends_when_its_directory_holds_more_than_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("server");
        fs::create_dir(&at).unwrap();
        fs::write(at.join("file"), vec![7; 2 << 20]).unwrap();
        let ends = |bytes_max| timeout(MEASURE_SERVER_EVERY * 3, until_server_full(at.clone(), None, bytes_max));
        assert_eq!(ends(Some(1 << 20)).await, Ok(Full::Workspace));
        for bytes_max in [Some(8 << 20), None] {
            assert!(ends(bytes_max).await.is_err(), "{bytes_max:?}");
        }
        assert!(held_bytes(&at, None).unwrap() >= 2 << 20);
        fs::remove_dir_all(&at).unwrap();
        assert_eq!(held_bytes(&at, None), Ok(0), "a program may remove its own");
        assert!(ends(Some(1 << 20)).await.is_err());
    }
}
