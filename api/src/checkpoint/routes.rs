//! Checkpoints over HTTP (spec 2, Checkpoint manager).

use std::sync::Arc;

use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::taint::NoteFiles;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::audit_kinds::{CHECKPOINT_RESTORE_STARTED, CHECKPOINT_RESTORED};
use super::checkpoints::{Checkpoint, Checkpoints, Directory, NotRestored, Page, Restored};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::receive::blocking;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What a restore costs the client's rate budget: it reads and writes up to 2,000 files.
const RESTORE_COST: u32 = 20;
/// What a list costs: it reads a file for each row.
const LIST_COST: u32 = 5;
/// Rows of a page when the query does not say.
const LIMIT_DEFAULT: usize = 100;
/// Rows of a page at most.
const LIMIT_MAX: usize = 1_000;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 4_096;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/checkpoints", "List directories with checkpoints, or the checkpoints of one", |call| {
        Box::pin(list(call))
    })
    .large()
    .cost(LIST_COST)
    .query::<ListQuery>()
    .replies(&[
        Reply::json::<CheckpointList>(200, "checkpoints, newest first; without `working_dir`, directories"),
        Reply::error(404, "the directory has no checkpoints"),
    ]),
    Route::post("/api/checkpoints/restore", "Restore files from a checkpoint", |call| Box::pin(restore(call)))
        .cost(RESTORE_COST)
        .body::<RestoreBody>()
        .replies(&[
            Reply::json::<RestoredShape>(200, "the files were restored, or some of them: see `not_restored`"),
            Reply::error(404, "the directory has no such checkpoint, or is not the workspace of an agent"),
            Reply::error(
                409,
                "a tool is writing files there, or the checkpoint is of another agent; nothing was changed",
            ),
            Reply::error(507, "no space for a checkpoint of the present files; nothing was changed"),
        ]),
];

/// Which checkpoints to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ListQuery {
    /// Absolute path of a directory. Default: list the directories.
    working_dir: Option<String>,
    /// Maximum number of rows, 1 to 1000. Default: 100.
    limit: Option<usize>,
    /// Rows to skip.
    offset: Option<usize>,
}

/// Checkpoints of a directory, or directories.
#[derive(Serialize, JsonSchema)]
struct CheckpointList {
    /// Checkpoints, newest first; absent without `working_dir`.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints: Option<Vec<Checkpoint>>,
    /// Directories, in an order that stays; absent with `working_dir`.
    #[serde(skip_serializing_if = "Option::is_none")]
    directories: Option<Vec<Directory>>,
    /// Rows in all.
    total: usize,
    offset: usize,
    limit: usize,
}

/// What to restore.
#[derive(Deserialize, JsonSchema)]
struct RestoreBody {
    /// Absolute path of the directory.
    working_dir: String,
    /// Id of the checkpoint: 4 to 40 hex digits that no other checkpoint of the directory begins with.
    commit: String,
}

/// What was restored.
#[derive(Serialize, JsonSchema)]
struct RestoredShape {
    /// `restored`, or `partial` where files are missing: see `not_restored`.
    status: &'static str,
    working_dir: String,
    /// Id of the restored checkpoint, in full.
    commit: String,
    /// Files that were written.
    files: usize,
    /// Checkpoint of the files before the restore: restore it to undo this.
    checkpoint: String,
    /// Files that could not be written, at most 100.
    not_restored: Vec<NotRestored>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let ListQuery { working_dir, limit, offset } = call.query()?;
    let (limit, offset) = (limit.unwrap_or(LIMIT_DEFAULT), offset.unwrap_or(0));
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Error::bad_field("limit", format!("limit: must be 1 to {LIMIT_MAX}")));
    }
    let (found, page) = (call.api.service::<dyn Checkpoints>()?, Page { offset, limit });
    let mut shown = CheckpointList { checkpoints: None, directories: None, total: 0, offset, limit };
    if let Some(working_dir) = working_dir {
        check_path(&working_dir)?;
        let (checkpoints, total) = blocking(move || found.checkpoints(&working_dir, page)).await?;
        (shown.checkpoints, shown.total) = (Some(checkpoints), total);
    } else {
        let (directories, total) = blocking(move || found.directories(page)).await?;
        (shown.directories, shown.total) = (Some(directories), total);
    }
    reply::ok(&shown)
}

async fn restore(call: Call) -> Result<Response, Error> {
    let RestoreBody { working_dir, commit } = call.json()?;
    check_path(&working_dir)?;
    let checkpoints = call.api.service::<dyn Checkpoints>()?;
    let details = json!({ "working_dir": working_dir, "commit": commit.chars().take(40).collect::<String>() });
    // Before it is done: one that the daemon does not outlive leaves an entry, too.
    call.ask(NoteAction { kind: CHECKPOINT_RESTORE_STARTED, agent: None, details }).await?;
    let (dir, found) = (working_dir.clone(), Arc::clone(&checkpoints));
    // What comes back may have been read from anywhere, and the files that are there may have been trusted since.
    if let Some(agent) = blocking(move || found.owner(&dir)).await? {
        match call.ask(NoteFiles { agent, taint: Taint::UPLOAD }).await {
            // A workspace that an agent has left.
            Err(error) if error.status() == StatusCode::NOT_FOUND => {}
            noted => noted?,
        }
    }
    let dir = working_dir.clone();
    let Restored { agent, commit, checkpoint, restored, total, not_restored } =
        blocking(move || checkpoints.restore(&dir, &commit)).await?;
    let details = json!({
        "working_dir": working_dir, "commit": commit, "checkpoint": checkpoint, "files": restored, "files_total": total,
    });
    if let Err(refusal) = call.ask(NoteAction { kind: CHECKPOINT_RESTORED, agent, details }).await {
        tracing::warn!(?refusal, "a restore of files is not on the audit log; that it started is");
    }
    let status = if restored == total { "restored" } else { "partial" };
    reply::ok(&RestoredShape { status, working_dir, commit, files: restored, checkpoint, not_restored })
}

fn check_path(path: &str) -> Result<(), Error> {
    if path.len() > PATH_BYTES_MAX {
        return Err(Error::bad_field("working_dir", format!("working_dir: longer than {PATH_BYTES_MAX} bytes")));
    }
    Ok(())
}
