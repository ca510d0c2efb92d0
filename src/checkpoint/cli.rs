//! `checkpoint`: files as they were before tools changed them, listed and restored.

use std::path::{Path, absolute};

use clap::Subcommand;
use serde_json::{Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Shown, Table};
use crate::kernel::cli::{Error, Run};

/// Subcommands of `checkpoint`.
#[derive(Debug, Subcommand)]
pub(crate) enum Checkpoint {
    /// List the checkpoints of a directory, newest first, or the directories that have any
    List {
        /// The directory, such as the workspace of an agent
        dir: Option<String>,
        /// Maximum number of rows
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Restore the files of a checkpoint; the current files become a checkpoint first
    Restore {
        /// The directory
        dir: String,
        /// First digits of the checkpoint's id, at least 4
        commit: String,
    },
}

impl Run for Checkpoint {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let answer = match &self {
            Self::List { dir, limit } => {
                let dir = dir.as_deref().map(whole);
                let limit = limit.to_string();
                let query = [("limit", Some(limit.as_str())), ("working_dir", dir.as_deref())];
                let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                context.block_on(client.get("/api/checkpoints", &query))?
            }
            Self::Restore { dir, commit } => {
                let body = json!({ "working_dir": whole(dir), "commit": commit });
                context.block_on(client.post("/api/checkpoints/restore", Some(&body)))?
            }
        };
        context.print(&answer, |answer| match self {
            Self::List { .. } => Shown::from(listed(answer)),
            Self::Restore { .. } => restored(answer).into(),
        })
    }
}

/// The path from the root: the daemon knows no other.
fn whole(dir: &str) -> String {
    absolute(Path::new(dir)).ok().and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_else(|| dir.to_owned())
}

fn listed(answer: &Value) -> Table {
    if answer["checkpoints"].is_array() {
        let columns = [("COMMIT", "/commit"), ("CREATED", "/created_at"), ("TOOL", "/tool"), ("PATH", "/path")];
        return Table::of("checkpoints", output::items(answer, "checkpoints"), &columns);
    }
    let columns = [("DIRECTORY", "/working_dir"), ("NEWEST", "/last_at")];
    Table::of("checkpoints", output::items(answer, "directories"), &columns)
}

fn restored(answer: &Value) -> String {
    let of = |name: &str| output::field(answer, name);
    let mut text = format!("Restored {} files. To undo this, restore {}.\n", of("/files"), of("/checkpoint"));
    for file in output::items(answer, "not_restored") {
        let (path, error) = (output::field(file, "/path"), output::field(file, "/error"));
        text.push_str(&format!("Not restored: {path}: {error}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_per_checkpoint_or_directory_and_what_was_not_restored() {
        let row = json!({ "commit": "abcd", "created_at": "2026-01-01", "tool": "file_write", "path": "a.txt" });
        let text = listed(&json!({ "checkpoints": [row] })).render();
        assert!(text.contains("abcd") && text.contains("a.txt") && !text.contains("DIRECTORY"), "{text}");
        let text = listed(&json!({ "directories": [{ "working_dir": "/w/ann", "last_at": null }] })).render();
        assert!(text.contains("/w/ann"), "{text}");
        let answer = json!({ "files": 1, "checkpoint": "ef01",
            "not_restored": [{ "path": "b", "error": "it is too large" }] });
        assert_eq!(
            restored(&answer),
            "Restored 1 files. To undo this, restore ef01.\nNot restored: b: it is too large\n"
        );
        assert_eq!(whole("/w/ann"), "/w/ann");
        assert!(Path::new(&whole("ann")).is_absolute());
    }
}
