//! `backup`: the whole home in one file.

pub(crate) mod restore;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::backup::config::Backup as Config;
use crate::backup::offline::Offline;
use crate::backup::progress::Progress;
use crate::backup::{archives, name};
use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Table, Waiting, field, items};
use crate::kernel::cli::{Error, Exit, Run};
use crate::kernel::home::Home;

/// How often a running backup or restore is asked how far it is.
const POLL: Duration = Duration::from_millis(200);

/// Options of `backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    #[command(subcommand)]
    what: Option<What>,
}

/// Subcommands of `backup`.
#[derive(Debug, Subcommand)]
enum What {
    /// Make a backup (default); without a daemon, of a stopped home
    Create,
    /// List the backups, the newest first
    List,
    /// Delete a backup
    Delete {
        /// Its file name
        filename: String,
    },
}

impl Run for Backup {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self.what.unwrap_or(What::Create) {
            What::Create => create(context),
            What::List => list(context),
            What::Delete { filename } => delete(context, &filename),
        }
    }
}

/// Does what a daemon would do, when there is none and none was named.
pub(crate) fn or_offline<T>(
    context: &Context,
    online: Result<T, Error>,
    offline: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    match online {
        Err(Error::Unreachable { .. }) if !context.is_elsewhere() => offline(),
        other => other,
    }
}

fn create(context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    let made = context.block_on(watched(&client, client.post("/api/backup", None)));
    let made = or_offline(context, made, || {
        let home = context.home()?;
        let offline = Offline::new(&home, &context.settings(&home)?, home.lock()?, None)?;
        let made = with_bar(|progress| offline.create(progress))?;
        Ok(json!(made))
    })?;
    if context.json() {
        return output::json(&made);
    }
    warn(&made);
    let size = output::bytes(made["size_bytes"].as_u64().unwrap_or_default());
    output::line(&format!("{} ({size})", field(&made, "/filename")))
}

fn list(context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    let listed = or_offline(context, context.block_on(client.get("/api/backups", &[])), || {
        let home = context.home()?;
        let lines = archives::list(&backups_dir(context, &home)?)?;
        let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
        Ok(json!({ "total": lines.len(), "backups": lines }))
    })?;
    context.print(&listed, rows)
}

fn rows(listed: &Value) -> Table {
    let columns = [
        ("FILE", "/filename"),
        ("CREATED", "/created_at"),
        ("SIZE", "/size_bytes"),
        ("AGENTS", "/counts/agents"),
        ("MESSAGES", "/counts/messages"),
        ("PROBLEM", "/problem"),
    ];
    // The last column is there only where a backup has a problem.
    let is_sound = items(listed, "backups").all(|backup| backup["valid"] == true);
    let columns = if is_sound { &columns[..columns.len() - 1] } else { &columns[..] };
    Table::of("backups", items(listed, "backups"), columns).hint("Make one with `agentsvc backup`.")
}

fn delete(context: &Context, filename: &str) -> Result<(), Error> {
    name::check_filename(filename).map_err(|reason| Error::Usage(format!("{filename}: {reason}")))?;
    let client = context.client()?;
    let deleted = context.block_on(client.delete(&format!("/api/backups/{filename}")));
    let deleted = or_offline(context, deleted, || {
        let home = context.home()?;
        let _lock = home.lock()?;
        let dir = backups_dir(context, &home)?;
        if !archives::remove(&dir, filename)? {
            return Err(Error::NotFound(format!("backup {filename} does not exist")));
        }
        Ok(json!({ "status": "deleted", "filename": filename }))
    })?;
    context.print(&deleted, |_| format!("deleted {filename}\n"))
}

/// Says what was left out.
pub(crate) fn warn(answer: &Value) {
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        output::note(&format!("warning: {}", field(warning, "")));
    }
}

/// Waits for an answer and shows how far the daemon is.
pub(crate) async fn watched(
    client: &Client,
    answer: impl Future<Output = Result<Value, Error>>,
) -> Result<Value, Error> {
    let bar = Waiting::on("waiting");
    let mut answer = std::pin::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            () = tokio::time::sleep(POLL) => {}
        }
        tokio::select! {
            answer = &mut answer => return answer,
            status = client.get("/api/backups/status", &[]) => {
                // A daemon that does not say how far it is still answers in the end.
                let Ok(status) = status else { continue };
                let number = |key: &str| status[key].as_u64().unwrap_or_default();
                bar.say_bytes(&field(&status, "/phase"), number("done_bytes"), number("total_bytes"));
            }
        }
    }
}

/// Does something on this machine and shows how far it is.
pub(crate) fn with_bar<T>(
    work: impl FnOnce(&Progress) -> Result<T, crate::backup::Error>,
) -> Result<T, crate::backup::Error> {
    let progress = Arc::new(Progress::default());
    let has_ended = Arc::new(AtomicBool::new(false));
    let shown = std::thread::spawn({
        let (progress, has_ended) = (Arc::clone(&progress), Arc::clone(&has_ended));
        move || {
            let bar = Waiting::on("waiting");
            while !has_ended.load(Ordering::Relaxed) {
                let (done, total) = progress.bytes();
                bar.say_bytes(progress.phase(), done, total);
                std::thread::park_timeout(POLL);
            }
        }
    });
    let done = work(&progress);
    has_ended.store(true, Ordering::Relaxed);
    shown.thread().unpark();
    // What only draws is no reason to fail.
    let _ = shown.join();
    done
}

/// Where the backups of a home are.
fn backups_dir(context: &Context, home: &Home) -> Result<PathBuf, Error> {
    Ok(home.backups_dir(context.settings(home)?.get::<Config>().directory.as_deref()))
}

impl From<crate::backup::Error> for Error {
    fn from(error: crate::backup::Error) -> Self {
        Self::domain(Exit::Failure, error)
    }
}
