//! Homes of other programs as this room sees them: what is in them, and what of it can be taken over (spec 2, Migration).
//! Implemented where the disk is known.

use agentsvc_components::AgentId;
use agentsvc_components::agent::ImportedFrom;
use agentsvc_components::session::message::{Block, Role};
use agentsvc_systems::session::ImportedMessage;
use schemars::JsonSchema;
use serde::Serialize;

/// A home of another program on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Source {
    /// Kind: `openclaw`, `openclaw-yaml` or `openfang`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Where it is.
    pub path: String,
    /// Version that wrote it; empty if unknown.
    pub version: String,
    /// Agents in it.
    pub agents_found: usize,
    /// Skills in it.
    pub skills_found: usize,
}

/// An agent or skill of such a home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Item {
    /// Name after the import.
    pub name: String,
    /// Source format, such as `agent.yaml`.
    pub format: &'static str,
    /// Whether it can be imported.
    pub convertible: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A conversation as it was held there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Names it for ever: the same conversation has the same key.
    pub key: String,
    /// What it is called there; may be empty.
    pub title: String,
    /// What was said, in order.
    pub messages: Vec<ImportedMessage>,
    /// What of it could not be read, in words.
    pub warnings: Vec<String>,
}

impl History {
    /// Does anyone say anything in it?
    #[must_use]
    pub fn says_something(&self) -> bool {
        let says = |block: &Block| matches!(block, Block::Text { text } if !text.trim().is_empty());
        self.messages.iter().any(|message| message.role != Role::Tool && message.blocks.iter().any(says))
    }
}

/// What became of a skill or file that was to be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is here now.
    Now,
    /// It, or another of its name, was here before; nothing was written.
    Before,
}

/// Why a path is no home that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The path is none that is looked at (400).
    #[error("{0}")]
    Wrong(String),
    /// The disk failed (500); the reason is in the log.
    #[error("the directory could not be read; see the daemon's log for the reason")]
    Failed,
}

/// Looks for such homes and opens them. Every call touches the disk: on a tokio worker use `spawn_blocking`.
pub trait Migration: Send + Sync + 'static {
    /// The homes at the places where such programs keep them.
    fn detect(&self) -> Vec<Source>;

    /// Opens the home at `path`, an absolute path.
    ///
    /// # Errors
    /// [`MigrationError`].
    fn open(&self, path: &str) -> Result<Box<dyn ForeignHome>, MigrationError>;
}

/// One such home, read as far as its lists; its conversations and files are read one by one. Every call but those of the
/// lists touches the disk.
pub trait ForeignHome: Send + Sync + 'static {
    /// Its agents.
    fn agents(&self) -> Vec<Item>;

    /// The manifest of the n-th agent in TOML; `None` when it is not convertible.
    fn manifest(&self, agent: usize) -> Option<&str>;

    /// Where the n-th agent comes from; `None` when it is not convertible.
    fn origin(&self, agent: usize) -> Option<ImportedFrom>;

    /// Its skills.
    fn skills(&self) -> Vec<Item>;

    /// Whose each conversation is: places in [`Self::agents`].
    fn sessions(&self) -> Vec<usize>;

    /// What could not be read or has no place here, in words.
    fn warnings(&self) -> Vec<String>;

    /// Reads the n-th conversation.
    ///
    /// # Errors
    /// Why it cannot be read, in words.
    fn history(&self, session: usize) -> Result<History, String>;

    /// Takes over the n-th skill.
    ///
    /// # Errors
    /// Why not, in words.
    fn install_skill(&self, skill: usize) -> Result<Taken, String>;

    /// Copies the n-th agent's own files into the workspace of `agent`, which is called `name`; files that are there stay.
    /// Gives how many were written.
    ///
    /// # Errors
    /// Why not, in words.
    fn copy_files(&self, n: usize, agent: AgentId, name: &str) -> Result<usize, String>;
}
