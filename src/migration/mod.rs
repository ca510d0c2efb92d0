//! Homes of other programs: found, read, and brought into the form that the migration routes take over
//! (`agentsvc_api::migration::source`).
//!
//! One file per kind of home, one line in [`KINDS`]. A kind says what it has found as plain values; reading is bounded
//! and never leaves the home, and whatever cannot be read is a warning and not the end of the rest. Keys and tokens are
//! never taken over ([`secrets`]).

pub(crate) mod cli;
mod convert;
mod history;
mod openclaw;
mod openclaw_yaml;
mod openfang;
mod secrets;
mod skill;
mod tree;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_api::migration::source::{ForeignHome, History, Item, Migration, MigrationError, Source, Taken};
use agentsvc_components::AgentId;
use agentsvc_components::agent::ImportedFrom;
use agentsvc_components::kernel::limit;
use sha2::{Digest, Sha256};

use self::tree::Tree;
use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::home::Home;
use crate::kernel::sandbox::{Workspaces, Write};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "migration",
    uses: &["manifest", "session", "agent", "skill_scan", "tool"],
    commands: &[Subcommand::group::<cli::Migrate>(
        13,
        "migrate",
        "Import agents, skills and conversations of other programs",
    )
    .examples(&[
        Example::new("migrate detect", "Find homes of other programs"),
        Example::new("migrate run ~/.other", "Show what an import would create"),
        Example::new("migrate run ~/.other --apply", "Import it"),
    ])
    .under(Group::Operations)],
    open: |opening| {
        opening.provide::<dyn Migration>(Arc::new(Migrator::new(opening.home.clone(), opening.workspaces.clone())));
        Ok(())
    },
    ..Domain::EMPTY
};

/// A kind of home.
struct Kind {
    /// Its name in answers.
    name: &'static str,
    /// Where such programs keep it, below the user's home directory.
    places: &'static [&'static str],
    /// Is this one?
    is: fn(&Tree) -> bool,
    /// Contents.
    read: fn(&Tree) -> Found,
}

/// Every kind; the first that fits counts.
const KINDS: &[Kind] = &[openclaw::KIND, openclaw_yaml::KIND, openfang::KIND];

/// What was found in a home.
#[derive(Debug, Default)]
struct Found {
    version: String,
    agents: Vec<Agent>,
    skills: Vec<Skill>,
    sessions: Vec<Session>,
    warnings: Vec<String>,
}

impl Found {
    fn warn(&mut self, text: impl Into<String>) {
        if self.warnings.len() < limit::MIGRATION_WARNINGS_MAX {
            self.warnings.push(text.into());
        }
    }

    /// Leaves out what is beyond the bounds.
    fn bound(&mut self) {
        let most = limit::MIGRATION_ITEMS_MAX;
        let over = self.agents.len().max(self.skills.len()).max(self.sessions.len()) > most;
        self.agents.truncate(most);
        self.skills.truncate(most);
        self.sessions.retain(|session| session.agent < most);
        self.sessions.truncate(most);
        if over {
            self.warn(format!("more than {most} agents, skills or conversations; the rest is skipped"));
        }
    }
}

/// An agent that was found.
#[derive(Debug)]
struct Agent {
    /// What it is called in the home: one name, one agent, whatever else of it changes.
    id: String,
    name: String,
    format: &'static str,
    /// Its manifest in TOML, or why there is none.
    manifest: Result<String, String>,
    /// Its own files: where they are in the home, and where they go in its workspace.
    files: Vec<(PathBuf, String)>,
}

/// A skill that was found.
#[derive(Debug)]
struct Skill {
    name: String,
    format: &'static str,
    /// Its directory in the home.
    dir: PathBuf,
    /// Why it cannot be taken over.
    wrong: Option<String>,
}

/// A conversation that was found.
#[derive(Debug)]
struct Session {
    /// Whose: a place in [`Found::agents`].
    agent: usize,
    /// Its file in the home.
    file: PathBuf,
    /// Its lines are read as these.
    lines: history::Lines,
}

/// Looks for such homes and takes them over into this one.
#[derive(Debug)]
pub struct Migrator {
    home: Home,
    workspaces: Workspaces,
    /// The user's home directory.
    user: Option<PathBuf>,
}

impl Migrator {
    /// Takes over into `home`, whose agents have their files in `workspaces`.
    pub fn new(home: Home, workspaces: Workspaces) -> Self {
        let user = std::env::var_os("HOME").filter(|user| !user.is_empty()).map(PathBuf::from);
        Self { home, workspaces, user }
    }
}

impl Migration for Migrator {
    fn detect(&self) -> Vec<Source> {
        let Some(user) = &self.user else { return Vec::new() };
        let mut sources: Vec<Source> = Vec::new();
        for place in KINDS.iter().flat_map(|kind| kind.places) {
            let path = user.join(place);
            let path_text = path.display().to_string();
            if sources.iter().any(|source| source.path == path_text) {
                continue;
            }
            let Ok(tree) = Tree::open(&path) else { continue };
            let Some(kind) = KINDS.iter().find(|kind| (kind.is)(&tree)) else { continue };
            let found = (kind.read)(&tree);
            sources.push(Source {
                kind: kind.name,
                path: path_text,
                version: found.version,
                agents_found: found.agents.len(),
                skills_found: found.skills.len(),
            });
        }
        sources
    }

    fn open(&self, path: &str) -> Result<Box<dyn ForeignHome>, MigrationError> {
        let wrong = |text: String| MigrationError::Wrong(text);
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err(wrong("must be an absolute path".to_owned()));
        }
        let tree = Tree::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                wrong(format!("{} is not a directory", path.display()))
            }
            std::io::ErrorKind::PermissionDenied => wrong(format!("{} is not readable", path.display())),
            _ => {
                tracing::error!(%error, path = %path.display(), "another home cannot be read");
                MigrationError::Failed
            }
        })?;
        let own = std::fs::canonicalize(self.home.root()).unwrap_or_else(|_| self.home.root().to_owned());
        if tree.root().starts_with(&own) || own.starts_with(tree.root()) {
            return Err(wrong("is or contains this daemon's own home".to_owned()));
        }
        let Some(kind) = KINDS.iter().find(|kind| (kind.is)(&tree)) else {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            return Err(wrong(format!("contains no home of a known kind ({})", names.join(", "))));
        };
        let mut found = (kind.read)(&tree);
        found.bound();
        let (skills_dir, workspaces) = (self.home.root().join("skills"), self.workspaces.clone());
        Ok(Box::new(Opened { tree, found, kind: kind.name, skills_dir, workspaces }))
    }
}

/// A home that is open.
struct Opened {
    tree: Tree,
    found: Found,
    kind: &'static str,
    skills_dir: PathBuf,
    workspaces: Workspaces,
}

impl ForeignHome for Opened {
    fn agents(&self) -> Vec<Item> {
        let item = |agent: &Agent| Item {
            name: agent.name.clone(),
            format: agent.format,
            convertible: agent.manifest.is_ok(),
            reason: agent.manifest.as_ref().err().cloned(),
        };
        self.found.agents.iter().map(item).collect()
    }

    fn manifest(&self, agent: usize) -> Option<&str> {
        self.found.agents.get(agent)?.manifest.as_deref().ok()
    }

    fn origin(&self, agent: usize) -> Option<ImportedFrom> {
        let found = self.found.agents.get(agent)?;
        let text = found.manifest.as_deref().ok()?;
        let digest = |what: &[u8]| -> [u8; 32] {
            let whole = [self.kind.as_bytes(), b"\0", found.id.as_bytes(), b"\0", what].concat();
            Sha256::digest(whole).into()
        };
        Some(ImportedFrom { place: digest(self.tree.root().as_os_str().as_bytes()), text: digest(text.as_bytes()) })
    }

    fn skills(&self) -> Vec<Item> {
        let item = |skill: &Skill| Item {
            name: skill.name.clone(),
            format: skill.format,
            convertible: skill.wrong.is_none(),
            reason: skill.wrong.clone(),
        };
        self.found.skills.iter().map(item).collect()
    }

    fn sessions(&self) -> Vec<usize> {
        self.found.sessions.iter().map(|session| session.agent).collect()
    }

    fn warnings(&self) -> Vec<String> {
        self.found.warnings.clone()
    }

    fn history(&self, session: usize) -> Result<History, String> {
        let session = self.found.sessions.get(session).ok_or("the conversation does not exist")?;
        let mut history = history::read(&self.tree, &session.file, session.lines)?;
        history.key = format!("{}/{}", self.kind, session.file.display());
        Ok(history)
    }

    fn install_skill(&self, skill: usize) -> Result<Taken, String> {
        let skill = self.found.skills.get(skill).ok_or("the skill does not exist")?;
        skill::install(&self.tree, skill, self.kind, &self.skills_dir)
    }

    fn copy_files(&self, n: usize, agent: AgentId, name: &str) -> Result<usize, String> {
        let Some(found) = self.found.agents.get(n).filter(|found| !found.files.is_empty()) else { return Ok(0) };
        let workspace = self.workspaces.open(agent, name).map_err(|error| error.to_string())?;
        let mut copied = 0;
        for (from, to) in &found.files {
            let bytes = self.tree.bytes(from, limit::MIGRATION_TEXT_BYTES_MAX)?;
            match workspace.write(to, &bytes, Write::Create) {
                Ok(_) => copied += 1,
                Err(error) => tracing::debug!(%error, file = to, "a file of an imported agent already exists and is \
                    kept"),
            }
        }
        Ok(copied)
    }
}

#[cfg(test)]
mod tests;
