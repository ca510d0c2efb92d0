//! `restore`: a backup becomes the home's state.

use std::path::Path;
use std::{fs, io};

use clap::Args;
use serde_json::{Value, json};

use super::{backups_dir, or_offline, warn, watched, with_bar};
use crate::backup::component::{Component, Selection};
use crate::backup::offline::{Offline, archive_of};
use crate::backup::{name, read};
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Table, field};
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::{create_private_dir, private_file};

/// Options of `restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup: a name from `backup list`, or a file
    file: String,
    /// Show the changes without applying them
    #[arg(long)]
    dry_run: bool,
    /// Keep config.toml and the secrets of this home
    #[arg(long)]
    keep_config: bool,
    /// Restore only these components: config, cron_jobs, hand_state, custom_models, agents, skills, workflows, data
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    components: Option<Vec<String>>,
}

impl Run for Restore {
    fn run(self, context: &Context) -> Result<(), Error> {
        let selection = self.selection()?;
        let client = context.client()?;
        // Only to see whether somebody is there: a file is not copied for nobody.
        let there = context.block_on(client.get("/api/backups/status", &[]));
        let done = match there {
            Ok(_) => {
                let filename = self.handed_over(context)?;
                let body = json!({
                    "filename": filename,
                    "keep_config": self.keep_config,
                    "components": self.components,
                    "dry_run": self.dry_run,
                });
                context.block_on(watched(&client, client.post("/api/restore", Some(&body))))
            }
            Err(error) => or_offline(context, Err(error), || self.offline(context, &selection)),
        }?;
        if context.json() {
            return output::json(&done);
        }
        warn(&done);
        output::print(&render(&done))
    }
}

impl Restore {
    fn selection(&self) -> Result<Selection, Error> {
        let parse = |name: &String| {
            let names = Component::names();
            Component::parse(name).ok_or_else(|| {
                Error::Usage(format!(
                    "--components: unknown component {name:?}; \
                expected one of {names}"
                ))
            })
        };
        let components = self.components.as_ref().map(|names| names.iter().map(parse).collect()).transpose()?;
        Ok(Selection { components, keep_config: self.keep_config })
    }

    /// The name under which the daemon finds the file; one from elsewhere is copied to its backups.
    fn handed_over(&self, context: &Context) -> Result<String, Error> {
        if name::check_filename(&self.file).is_ok() && (context.is_elsewhere() || !Path::new(&self.file).exists()) {
            return Ok(self.file.clone());
        }
        if context.is_elsewhere() {
            return Err(Error::Usage(format!("{}: use a name of `backup list`", self.file)));
        }
        let home = context.home()?;
        let dir = backups_dir(context, &home)?;
        let path = fs::canonicalize(&self.file).map_err(Error::io(format!("cannot find {}", self.file)))?;
        let filename = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name::check_filename(&filename).map_err(|reason| Error::Usage(format!("{filename}: {reason}")))?;
        let there = dir.join(&filename);
        if !there.exists() {
            create_private_dir(&dir)?;
            let fresh = dir.join(format!("{filename}.new"));
            let copied = copy(&path, &fresh).and_then(|()| fs::rename(&fresh, &there));
            if copied.is_err() {
                // The next backup removes what stays.
                let _ = fs::remove_file(&fresh);
            }
            copied.map_err(Error::io(format!("cannot copy it to {}", dir.display())))?;
            output::note(&format!("copied to {}", there.display()));
        } else if fs::canonicalize(&there).ok().as_ref() != Some(&path) {
            return Err(Error::Usage(format!("another {filename} already exists in {}", dir.display())));
        }
        Ok(filename)
    }

    fn offline(&self, context: &Context, selection: &Selection) -> Result<Value, Error> {
        let home = context.home()?;
        create_private_dir(home.root())?;
        let lock = home.lock()?;
        let archive = archive_of(&self.file, &backups_dir(context, &home)?);
        if !archive.exists() {
            return Err(Error::NotFound(format!("{} does not exist", archive.display())));
        }
        let manifest = read::manifest_of(&archive)?;
        let offline = Offline::new(&home, &context.settings(&home)?, lock, Some((&manifest, selection)))?;
        let prepared = with_bar(|progress| offline.restore(&archive, selection, self.dry_run, progress))?;
        Ok(json!(prepared.answer(self.dry_run)))
    }
}

/// Copies a backup so that only its owner can read the copy, whoever can read the file.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = private_file().write(true).create(true).truncate(true).open(to)?;
    io::copy(&mut fs::File::open(from)?, &mut copy)?;
    copy.sync_all()
}

fn render(done: &Value) -> String {
    let mut table = Table::list("components", &["COMPONENT", "ADDED", "REMOVED", "REPLACED", "UNCHANGED"]);
    for (name, of) in done["components"].as_object().into_iter().flatten() {
        for what in ["rows", "files"] {
            let count = |key: &str| field(&of[what], &format!("/{key}"));
            let counts = ["added", "removed", "replaced", "unchanged"].map(count);
            if counts.iter().any(|count| count != "0") {
                let [added, removed, replaced, unchanged] = &counts;
                table.row([&format!("{name} ({what})"), added, removed, replaced, unchanged]);
            }
        }
    }
    let head = if done["status"] == "dry_run" { "dry run, nothing was changed; would restore" } else { "restored" };
    let restart = done["restart_required"].as_array().filter(|keys| !keys.is_empty());
    let restart = restart.map(|keys| format!("takes effect with the next start: {}\n", field(&json!(keys), "")));
    let kept = done["config_kept"].as_array().filter(|keys| !keys.is_empty());
    let kept = kept.map(|keys| {
        let keys = field(&json!(keys), "");
        format!(
            "kept as they are, since clients cannot set them: {keys}; to restore these, too, stop the daemon first\n"
        )
    });
    format!(
        "{head} {} of {}\n{}{}{}",
        field(done, "/filename"),
        field(done, "/created_at"),
        table.render(),
        restart.unwrap_or_default(),
        kept.unwrap_or_default()
    )
}
