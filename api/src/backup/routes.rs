//! Backups of the whole world and its files, and their way back (spec 2, Backup and restore).

use crate::http::blocking::spawn_blocking;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backup::store::{BackupError, BackupLine, BackupMade, BackupRestored, BackupStatus, Backups, RestoreWanted};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::served::Served;
use crate::http::{reply, served};

/// What such a request costs the client's rate budget: it reads the whole world.
const COST: u32 = 10;

const BUSY: Reply = Reply::error(409, "a backup or restore is running");
const FULL: Reply = Reply::error(507, "not enough disk space");

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/backup", "Create a backup", |call| Box::pin(create(call))).cost(COST).without_room().replies(&[
        Reply::json::<BackupMade>(200, "created"),
        BUSY,
        FULL,
    ]),
    Route::get("/api/backups", "List backups", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<BackupList>(200, "the backups, newest first")]),
    Route::get("/api/backups/status", "Get the backup status", |call| Box::pin(status(call))).replies(&[
        Reply::json::<BackupStatus>(200, "the progress of the running operation and the last scheduled backup"),
    ]),
    // The configuration in it has the API key, with which one is the owner.
    Route::get("/api/backups/{filename}", "Download a backup", |call| Box::pin(get(call)))
        .owners_only()
        .cost(COST)
        .replies(&[
            Reply::plain(200, "the archive", "application/zstd"),
            Reply::error(403, "only owners download backups"),
        ]),
    Route::delete("/api/backups/{filename}", "Delete a backup", |call| Box::pin(delete(call)))
        .replies(&[Reply::json::<BackupDeleted>(200, "deleted"), BUSY]),
    Route::post("/api/restore", "Restore a backup", |call| Box::pin(restore(call)))
        .cost(COST)
        .body::<RestoreBody>()
        .replies(&[Reply::json::<BackupRestored>(200, "restored; with `dry_run`, what would change"), BUSY, FULL]),
];

/// The backups.
#[derive(Serialize, JsonSchema)]
struct BackupList {
    backups: Vec<BackupLine>,
    total: usize,
}

/// The deleted backup.
#[derive(Serialize, JsonSchema)]
struct BackupDeleted {
    /// `deleted`.
    status: &'static str,
    filename: String,
}

/// Options of the restore.
#[derive(Deserialize, JsonSchema)]
struct RestoreBody {
    /// File name of a backup.
    filename: String,
    /// Keep the configuration and the secrets of this home.
    #[serde(default)]
    keep_config: bool,
    /// Components to restore: `config`, `cron_jobs`, `hand_state`, `custom_models`, `agents`, `skills`, `workflows`,
    /// `data`. Default: all.
    #[serde(default)]
    components: Option<Vec<String>>,
    /// Show the changes without applying them
    #[serde(default)]
    dry_run: bool,
}

/// Runs a call that waits for the disk on a thread that may; it goes on when the client leaves.
async fn blocking<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&dyn Backups) -> Result<T, BackupError> + Send + 'static,
) -> Result<T, Error> {
    let Some(backups) = call.api.services.get::<dyn Backups>() else {
        return Err(Error::unavailable("the daemon is still loading; try again in a moment", 1));
    };
    let done = spawn_blocking(move || work(&*backups)).await.map_err(|error| {
        tracing::error!(%error, "a backup or restore was interrupted");
        Error::internal("interrupted; see the daemon's log for the reason")
    })?;
    Ok(done?)
}

async fn create(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    reply::ok(&blocking(&call, move |backups| backups.create(actor)).await?)
}

async fn list(call: Call) -> Result<Response, Error> {
    let backups = blocking(&call, |backups| backups.list()).await?;
    reply::ok(&BackupList { total: backups.len(), backups })
}

async fn status(call: Call) -> Result<Response, Error> {
    let backups = call.api.services.get::<dyn Backups>().ok_or_else(|| {
        Error::unavailable(
            "the daemon is still loading; try \
            again in a moment",
            1,
        )
    })?;
    reply::ok(&backups.status())
}

async fn get(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    let filename = call.param("filename")?.into_owned();
    let name = filename.clone();
    let (size, content) = blocking(&call, move |backups| backups.open(actor, &name)).await?;
    let served = Served { filename: &filename, content_type: "application/zstd", size, in_place: false, content };
    served::response(&call, served).await
}

async fn delete(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    let filename = call.param("filename")?.into_owned();
    let name = filename.clone();
    blocking(&call, move |backups| backups.delete(actor, &name)).await?;
    reply::ok(&BackupDeleted { status: "deleted", filename })
}

async fn restore(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    let RestoreBody { filename, keep_config, components, dry_run } = call.json()?;
    let wanted = RestoreWanted { filename, keep_config, components, dry_run };
    reply::ok(&blocking(&call, move |backups| backups.restore(actor, &wanted)).await?)
}
