//! `skill`: those of the domain of skills, and `skill search`, `skill install` and `skill remove`.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Table, field, items};
use crate::kernel::cli::{Error, Run};
use crate::skill;

/// Subcommands of `skill`.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillCommand {
    #[command(flatten)]
    Installed(skill::cli::Skills),
    /// Search the registry and skills.sh, or ClawHub
    Search(Search),
    /// Install a skill
    Install(Install),
    /// Remove an installed skill
    Remove(Remove),
}

impl Run for SkillCommand {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::Installed(skills) => skills.run(context),
            Self::Search(search) => search.run(context),
            Self::Install(install) => install.run(context),
            Self::Remove(remove) => remove.run(context),
        }
    }
}

/// Options of `skill search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to search for
    query: String,
    /// Search ClawHub instead of the registry and skills.sh
    #[arg(long)]
    clawhub: bool,
    /// Page number
    #[arg(long, default_value_t = 1)]
    page: u32,
}

/// Options of `skill install`.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Name in the registry, `clawhub:slug`, `owner/repo/path`, or the path or URL of a folder, archive or repository
    source: String,
    /// Version, of a skill of a hub [default: the newest]
    #[arg(long)]
    version: Option<String>,
    /// Skip the checksum comparison; the security scan always runs
    #[arg(long)]
    no_verify: bool,
}

/// Options of `skill remove`.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Name of an installed skill
    name: String,
}

impl Search {
    /// Prints what was found.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let path = if self.clawhub { "/api/clawhub/search" } else { "/api/marketplace/search" };
        let page = self.page.to_string();
        let asked = [("q", &*self.query), ("page", &*page)];
        let answer = context.block_on(async { context.client()?.get(path, &asked).await })?;
        for warning in items(&answer, "warnings").filter(|_| !context.json()) {
            output::note(&output::clean(warning.as_str().unwrap_or_default()));
        }
        let id = if self.clawhub { "/slug" } else { "/install_id" };
        let columns =
            [("INSTALL", id), ("VERSION", "/version"), ("AUTHOR", "/author"), ("DESCRIPTION", "/description")];
        context.print(&answer, |answer| Table::of("matching skills", items(answer, "results"), &columns))
    }
}

impl Install {
    /// Installs, and prints what was noticed.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        // The daemon may run in another directory.
        let is_path = self.source.starts_with(['.', '~']) || std::path::Path::new(&self.source).is_dir();
        let source = if is_path && !self.source.starts_with('/') {
            let path = std::path::Path::new(&self.source);
            let path = path.canonicalize().map_err(|error| Error::Failed(format!("{}: {error}", self.source)))?;
            path.to_string_lossy().into_owned()
        } else {
            self.source
        };
        let body = json!({ "source": source, "version": self.version, "verify": !self.no_verify });
        let answer = context.block_on(async { context.client()?.post("/api/skills/install", Some(&body)).await })?;
        if context.json() {
            return output::json(&answer);
        }
        for warning in items(&answer, "warnings") {
            output::note(&output::clean(&format!("{}: {}", field(warning, "/severity"), field(warning, "/message"))));
        }
        let verified = if answer["verified"] == true { ", checksums verified" } else { "" };
        let text = format!("installed {} {}{verified}", field(&answer, "/skill"), field(&answer, "/version"));
        output::line(&output::clean(&text))
    }
}

impl Remove {
    /// Removes a skill.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let body = json!({ "name": self.name });
        let answer = context.block_on(async { context.client()?.post("/api/skills/uninstall", Some(&body)).await })?;
        if context.json() {
            return output::json(&answer);
        }
        output::line(&output::clean(&format!("removed {}", field(&answer, "/skill"))))
    }
}
