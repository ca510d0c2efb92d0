//! A restore that is decided and was cut off: every start carries it on to its end. One that cannot be carried out is
//! taken back here (`agentsvc doctor --repair`), so that nobody has to move files by hand.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::{Error, io};
use super::place::{PLAN, ROOM, Rooms, complete, exists, free, sync_dir};
use crate::kernel::home::Home;

/// What became of a restore that was cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "restore", rename_all = "snake_case")]
pub enum Mended {
    /// It is done to its end.
    Completed {
        /// The archive that was restored.
        archive: String,
    },
    /// The home is as it was before.
    TakenBack {
        /// The archive that is not restored.
        archive: String,
        /// Why it could not be carried out.
        reason: String,
    },
    /// The plan cannot be read. Nothing was moved, and what it was about is kept.
    SetAside {
        /// Why it cannot be read.
        reason: String,
        /// Where the plan is, what was to come, and what was replaced already.
        kept: Vec<PathBuf>,
    },
}

/// Carries a restore that was cut off on to its end; takes it back when that cannot be done. `None` when there is none.
/// Nobody else may use the home meanwhile; `data` is where its configuration has the stored files.
///
/// # Errors
/// [`Error::Unfinished`] when it can neither be carried out nor taken back: nothing is lost, and what stands in the way
/// is named. Others when the disk fails.
pub fn mend(home: &Home, data: &Path) -> Result<Option<Mended>, Error> {
    let path = home.root().join(PLAN);
    if !exists(&path)? {
        return Ok(None);
    }
    let plan = match Rooms::plan(home.root()) {
        Ok(None) => return Ok(None),
        Ok(Some(plan)) => plan,
        // What serde_json says of a text that makes no sense, or that ends too early.
        Err(Error::Io { source, .. })
            if matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            return set_aside(home, data, source.to_string()).map(Some);
        }
        Err(error) => return Err(error),
    };
    let archive = plan.archive.clone();
    let stopped = match complete(home) {
        Ok(_) => return Ok(Some(Mended::Completed { archive })),
        Err(error) => error,
    };
    let rooms = Rooms::new(home, &plan.data);
    if !rooms.return_world(&plan)? {
        // Without the world of before the files of before are of no use.
        return Err(stopped);
    }
    rooms.take_back(&plan)?;
    rooms.give_up()?;
    let reason = stopped.cause();
    tracing::warn!(archive, reason, "a failed restore was rolled back");
    Ok(Some(Mended::TakenBack { archive, reason }))
}

/// A plan that says nothing: which of the files are the old ones and which the new ones only a person can tell.
fn set_aside(home: &Home, data: &Path, reason: String) -> Result<Mended, Error> {
    let mut kept = Vec::new();
    for (dir, name) in [(home.root(), PLAN), (home.root(), ROOM), (data, ROOM)] {
        let from = dir.join(name);
        if !exists(&from)? {
            continue;
        }
        let to = free(dir.join(format!("{}.damaged", name.trim_start_matches('.'))))?;
        fs::rename(&from, &to).map_err(io("move", &from))?;
        sync_dir(dir)?;
        kept.push(to);
    }
    Ok(Mended::SetAside { reason, kept })
}

#[cfg(test)]
#[path = "unfinished_tests.rs"]
mod tests;
