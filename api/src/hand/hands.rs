//! Hands as this crate sees them: definitions in files, and what the machine has. Implemented where the disk is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_systems::hand::definition::{HandDefinition, Requirement};
use agentsvc_systems::hand::prepare::Around;
use futures_util::future::BoxFuture;

use crate::http::error::Error;
use crate::http::files::FilesError;

/// What a list shows of a hand; the whole definition stays on the disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandSummary {
    /// The definition without agents, settings and the texts of both.
    pub definition: HandDefinition,
    /// How many settings it has.
    pub settings: usize,
    /// How many metrics it has.
    pub metrics: usize,
    /// How many agents it has.
    pub agents: usize,
    /// Where it came from.
    pub origin: HandOrigin,
}

agentsvc_components::enum_words! {
    /// Where a hand came from.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum HandOrigin [as_str] {
        /// It belongs to the installation of the daemon: clients cannot uninstall it.
        Bundled = "bundled",
        /// The registry.
        Registry = "registry",
        /// A client, or the operator.
        #[default]
        Custom = "custom",
    }
}

/// A whole hand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredHand {
    /// Its definition.
    pub definition: HandDefinition,
    /// The texts of SKILL.md, by role; that of all is under the empty role.
    pub skills: BTreeMap<String, String>,
    /// Where it came from.
    pub origin: HandOrigin,
}

/// A hand that was read and scanned, and can be installed.
#[derive(Debug)]
pub struct PreparedHand {
    /// The hand.
    pub hand: StoredHand,
    /// Its files: names and texts.
    pub files: Vec<(String, String)>,
    /// What the scan warns of.
    pub warnings: Vec<String>,
}

/// How a hand comes here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandSource {
    /// The texts of its files.
    Texts {
        /// HAND.toml.
        toml: String,
        /// SKILL.md.
        skill: Option<String>,
    },
    /// A directory with a HAND.toml, as an absolute path, or the name of a hand of the registry.
    Place(String),
}

/// Why a hand could not be had or kept.
#[derive(Debug)]
pub enum HandError {
    /// The client's request is wrong, or there is no room.
    Refused(Refusal),
    /// The disk says no.
    Files(FilesError),
    /// The registry says no.
    Registry(Error),
}

impl From<Refusal> for HandError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<FilesError> for HandError {
    fn from(error: FilesError) -> Self {
        Self::Files(error)
    }
}

impl From<HandError> for Error {
    fn from(error: HandError) -> Self {
        match error {
            HandError::Refused(refusal) => refusal.into(),
            HandError::Files(error) => error.into(),
            HandError::Registry(error) => error,
        }
    }
}

/// What a reload found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Hands that were not there before.
    pub added: usize,
    /// Hands that changed.
    pub updated: usize,
    /// Hands that are gone.
    pub removed: usize,
    /// All hands.
    pub total: usize,
    /// Folders that could not be read, and why.
    pub failed: BTreeMap<String, String>,
}

/// What came of one requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepResult {
    /// Its key.
    pub key: String,
    /// `already_installed`, `installed`, `skipped`, `no_command`, `error` or `timeout`.
    pub status: &'static str,
    /// The command that installs it here.
    pub command: Option<String>,
    /// What happened, in a sentence.
    pub message: String,
}

/// Keeps hands, and knows what the machine has. Calls block on the disk or on programs unless they give a future: on a tokio
/// worker use `spawn_blocking`.
pub trait Hands: Send + Sync + 'static {
    /// All of them, sorted by id. Waits until they were read after a start.
    fn list(&self) -> Vec<Arc<HandSummary>>;

    /// The one of this id, read anew.
    ///
    /// # Errors
    /// Its files are not valid any more, or the disk failed.
    fn find(&self, id: &str) -> Result<Option<StoredHand>, HandError>;

    /// Reads and scans a hand, and fetches the registry if that is where it is. Nothing is changed yet.
    ///
    /// # Errors
    /// 400 that names the key, 403 when the scan refuses it, 404 for a place without a hand, 409 when there is one of this id,
    /// 429 without room, and those of the registry.
    fn prepare(self: Arc<Self>, source: HandSource) -> BoxFuture<'static, Result<PreparedHand, HandError>>;

    /// Installs it; durable when it answers. A kill leaves all of it or none.
    ///
    /// # Errors
    /// 409 when there is one of this id, 429 without room, or the disk failed.
    fn install(&self, hand: PreparedHand) -> Result<StoredHand, HandError>;

    /// The hands of the registry, by id.
    ///
    /// # Errors
    /// Those of the registry.
    fn registry(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<StoredHand>, HandError>>;

    /// Removes the files of a hand. False: there is none of this id.
    ///
    /// # Errors
    /// The disk failed.
    fn remove(&self, id: &str) -> Result<bool, HandError>;

    /// Reads what changed on the disk.
    ///
    /// # Errors
    /// The disk failed.
    fn reload(&self) -> Result<Reloaded, HandError>;

    /// What is laid around the agents of a hand: agent types, and what its tools need.
    ///
    /// # Errors
    /// The disk failed.
    fn around(&self, hand: &StoredHand, settings: String) -> Result<Around, HandError>;

    /// Does the machine have each of these? `servers` are the names of MCP servers. The answer may be a minute old for programs
    /// that must be started to know.
    fn met(&self, requirements: &[Requirement], servers: &[String]) -> Vec<bool>;

    /// Is this program found?
    fn has_program(&self, name: &str) -> bool;

    /// The command that installs a requirement on this machine, as written.
    fn install_command(&self, requirement: &Requirement) -> Option<String>;

    /// The tools of these that do not exist. A pattern exists when it fits one.
    fn missing_tools(&self, tools: &[String]) -> Vec<String>;

    /// Seals a secret.
    ///
    /// # Errors
    /// Why the vault cannot be used.
    fn seal(&self, secret: &str) -> Result<String, String>;

    /// May requirements be installed (`[hands] install_deps`)?
    fn installs(&self) -> bool;

    /// Installs requirements one after the other.
    fn install_deps(self: Arc<Self>, wanted: Vec<Requirement>) -> BoxFuture<'static, Vec<DepResult>>;
}
