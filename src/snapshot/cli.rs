//! `snapshot`: copies of the whole world, taken, listed, deleted and put back.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::names::Listed;
use crate::kernel::cli::output::{Shown, Table, field};
use crate::kernel::cli::screen::Screen;
use crate::kernel::cli::words::{count, said};
use crate::kernel::cli::{Error, Run};
use crate::kernel::percent::encoded;

/// Subcommands of `snapshot`.
#[derive(Debug, Subcommand)]
pub(crate) enum Snapshot {
    /// Copy the whole world as it is now
    Create(Create),
    /// List the snapshots
    List,
    /// Delete snapshots
    Delete {
        /// Their labels or ids
        #[arg(required = true, value_name = "SNAPSHOT")]
        snapshots: Vec<String>,
    },
    /// Put the world of a snapshot in the place of the present one
    Restore(Restore),
}

/// Options of `snapshot create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Label, which `restore` and `delete` take in place of the id
    #[arg(long)]
    label: Option<String>,
}

/// Options of `snapshot restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Its label or id
    snapshot: String,
    /// Apply the restore; without this option, only show what would change
    #[arg(long)]
    apply: bool,
}

impl Run for Snapshot {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let all = Listed::new("/api/world/snapshots", "snapshot");
        let path_of = |id: &str| format!("/api/world/snapshots/{}", encoded(id));
        let path = |snapshot: &str| Ok::<_, Error>(path_of(&context.block_on(client.id_of(&all, snapshot))?));
        let (answer, render): (Value, fn(&Value) -> Shown) = match self {
            Self::Create(Create { label }) => {
                let body = label.map_or_else(|| json!({}), |label| json!({ "label": label }));
                (context.block_on(client.post("/api/world/snapshots", Some(&body)))?, taken)
            }
            Self::List => (context.block_on(client.get("/api/world/snapshots", &[]))?, listed),
            Self::Delete { snapshots } => {
                let mut deleted = Vec::new();
                for id in context.block_on(client.ids_of(&all, &snapshots))? {
                    deleted.push(context.block_on(client.delete(&path_of(&id)))?["snapshot"].take());
                }
                (Value::Array(deleted), gone)
            }
            Self::Restore(Restore { snapshot, apply: false }) => {
                (context.block_on(client.get(&path(&snapshot)?, &[]))?, planned)
            }
            Self::Restore(Restore { snapshot, apply: true }) => {
                (context.block_on(client.post(&format!("{}/restore", path(&snapshot)?), None))?, restored)
            }
        };
        context.print(&answer, render)
    }
}

fn taken(snapshot: &Value) -> Shown {
    counted(snapshot).into()
}

fn counted(snapshot: &Value) -> String {
    let of = |noun: &str| count(snapshot["counts"][format!("{noun}s")].as_u64().unwrap_or_default(), noun);
    format!(
        "{}: {}, {}, {}, {}\n",
        field(snapshot, "/id"),
        of("agent"),
        of("session"),
        of("message"),
        said(snapshot, "/size_bytes", None)
    )
}

fn listed(answer: &Value) -> Shown {
    let mut table = Table::list("snapshots", &["ID", "LABEL", "TAKEN", "WHY", "AGENTS", "MESSAGES", "SIZE"])
        .hint("Take one with `agentsvc snapshot create`.");
    let now = Screen::of_stdout().now;
    for snapshot in answer["snapshots"].as_array().into_iter().flatten() {
        let cell = |pointer: &str| said(snapshot, pointer, now);
        let why = match snapshot["before"].as_str() {
            Some(before) => format!("before {before}"),
            None => cell("/reason"),
        };
        let label = snapshot["label"].as_str().unwrap_or_default();
        let (agents, messages) = (cell("/counts/agents"), cell("/counts/messages"));
        table.row([&cell("/id"), label, &cell("/created_at"), &why, &agents, &messages, &cell("/size_bytes")]);
    }
    table.into()
}

fn gone(deleted: &Value) -> Shown {
    let line = |snapshot: &Value| format!("deleted {}\n", field(snapshot, "/id"));
    deleted.as_array().into_iter().flatten().map(line).collect::<String>().into()
}

fn planned(snapshot: &Value) -> Shown {
    format!(
        "dry run, nothing was changed; use --apply to restore the world of {}. A snapshot of the current world is \
         created first.\n{}",
        field(snapshot, "/created_at"),
        counted(snapshot)
    )
    .into()
}

fn restored(answer: &Value) -> Shown {
    let before = match answer["before"]["id"].as_str() {
        Some(id) => format!("the previous world was saved as snapshot {id}\n"),
        None => String::new(),
    };
    format!(
        "restored {} (unavailable for {} ms)\n{before}",
        field(answer, "/snapshot/created_at"),
        field(answer, "/pause_ms")
    )
    .into()
}
