//! `migrate`: find, inspect and import homes of other programs.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Shown, Table, field, items};
use crate::kernel::cli::{Error, Run};

/// Subcommands of `migrate`.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Find homes of other programs
    Detect,
    /// Show what a home contains and what can be imported
    Scan {
        /// The home directory, on the daemon's machine
        path: String,
    },
    /// Import a home; without --apply, only show what would change
    Run(Import),
}

/// Options of `migrate run`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The home directory, on the daemon's machine
    path: String,
    /// Import agents [default: agents, skills and sessions]
    #[arg(long)]
    agents: bool,
    /// Import skills
    #[arg(long)]
    skills: bool,
    /// Import conversations of imported agents
    #[arg(long)]
    sessions: bool,
    /// Apply the import; without this option, only show what would change
    #[arg(long)]
    apply: bool,
}

impl Run for Migrate {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let (answer, render): (Value, fn(&Value) -> Shown) = match self {
            Self::Detect => (context.block_on(client.get("/api/migrate/detect", &[]))?, detected),
            Self::Scan { path } => {
                let body = json!({ "path": absolute(&path)? });
                (context.block_on(client.post("/api/migrate/scan", Some(&body)))?, scanned)
            }
            Self::Run(run) => {
                let all = !(run.agents || run.skills || run.sessions);
                let body = json!({
                    "source": absolute(&run.path)?,
                    "import_agents": all || run.agents,
                    "import_skills": all || run.skills,
                    "import_sessions": all || run.sessions,
                    "dry_run": !run.apply,
                });
                (context.block_on(client.post("/api/migrate", Some(&body)))?, migrated)
            }
        };
        context.print(&answer, render)
    }
}

/// The path as the daemon must have it.
fn absolute(path: &str) -> Result<String, Error> {
    let absolute = std::path::absolute(path).map_err(Error::io(format!("cannot find {path}")))?;
    absolute.into_os_string().into_string().map_err(|_| Error::Usage(format!("{path}: not UTF-8")))
}

fn detected(answer: &Value) -> Shown {
    let columns = [("KIND", "/type"), ("PATH", "/path"), ("AGENTS", "/agents_found"), ("SKILLS", "/skills_found")];
    let hint = "Name one yourself: `agentsvc migrate scan <PATH>`.";
    Table::of("homes of other programs", items(answer, "sources"), &columns).hint(hint).into()
}

fn scanned(answer: &Value) -> Shown {
    let mut table = Table::list("items", &["WHAT", "NAME", "FORMAT", "CONVERTIBLE"]);
    for (what, key) in [("agent", "agents"), ("skill", "skills")] {
        for item in items(answer, key) {
            let convertible = item["convertible"].as_bool().unwrap_or_default();
            let verdict = if convertible { "yes".to_owned() } else { format!("no: {}", field(item, "/reason")) };
            table.row([what, &field(item, "/name"), &field(item, "/format"), &verdict]);
        }
    }
    table.row(["", &format!("{} conversations", field(answer, "/sessions")), "", ""]);
    Shown::from(table).and(warnings(answer))
}

fn migrated(answer: &Value) -> Shown {
    let count = |key: &str| field(answer, &format!("/{key}"));
    let head =
        if answer["status"] == "dry_run" { "dry run, nothing was changed (use --apply to import): " } else { "" };
    let line = |end: &str| {
        format!(
            "{} agents, {} skills, {} conversations",
            count(&format!("agents_{end}")),
            count(&format!("skills_{end}")),
            count(&format!("sessions_{end}"))
        )
    };
    format!("{head}{} imported, {} unchanged\n{}", line("imported"), line("skipped"), warnings(answer)).into()
}

fn warnings(answer: &Value) -> String {
    items(answer, "warnings").map(|warning| format!("warning: {}\n", field(warning, ""))).collect()
}
