//! Sources of skills as the daemon has them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::error_codes;
use crate::http::error::Error;
use crate::http::error_codes::TOO_MANY;
use crate::http::files::FilesError;
use crate::http::timestamp::Moment;

/// Something that a scan noticed in a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillWarning {
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// What, as a sentence.
    pub message: String,
}

/// A name of a tool in the skill and what it is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolTranslation {
    /// Name in the skill, such as `Bash`.
    pub from: String,
    /// Name of the tool here, such as `shell_exec`.
    pub to: String,
}

/// A hub that speaks the protocol of ClawHub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hub {
    /// The hub of `[clawhub]`.
    ClawHub,
    /// The mirror of `[clawhub_cn]`.
    ClawHubCn,
}

/// Where a skill comes from, and how it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The key of the body that says it, for errors.
    pub field: &'static str,
    /// As clients write it.
    pub source: String,
    /// Of a hub, the version; `None` is the newest.
    pub version: Option<String>,
    /// Compare checksums where the source has some.
    pub verify: bool,
}

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name of the skill, that of its folder.
    pub name: String,
    /// Version.
    pub version: String,
    /// What it was converted from: `skill_md`, `openclaw_node` or `skill_toml`.
    pub converted_from: &'static str,
    /// One SHA-256 for all files, of the lines `path:sha256` sorted by path.
    pub sha256: String,
    /// Checksums were there, and all matched.
    pub verified: bool,
    /// It has instructions and no code.
    pub is_prompt_only: bool,
    /// What the scan and other checks noticed.
    pub warnings: Vec<SkillWarning>,
    /// Names of tools that mean others here.
    pub tool_translations: Vec<ToolTranslation>,
}

/// A skill that was fetched, verified and scanned and waits for its place. Dropped, nothing of it stays.
pub trait Prepared: Send {
    /// What it is.
    fn description(&self) -> &Description;

    /// Installs it. Blocks on the disk.
    ///
    /// # Errors
    /// [`SourceError::Exists`] and those of the disk.
    fn install(self: Box<Self>) -> Result<Description, SourceError>;
}

/// Why a skill or a list is not to be had. The texts are for clients: no path of the home stands in them.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SourceError {
    /// A value of the request is wrong (400).
    #[error("{field}: {message}")]
    Wrong {
        /// The key or parameter.
        field: &'static str,
        /// Reason.
        message: String,
    },
    /// It is no skill: the manifest is wrong, or there is none (400).
    #[error("{0}")]
    Manifest(String),
    /// The scan refuses it (403).
    #[error("{message}")]
    Blocked {
        /// Summary.
        message: String,
        /// What was found.
        findings: Vec<String>,
    },
    /// It belongs to the program (403).
    #[error("skill \"{0}\" is bundled with the daemon and cannot be uninstalled")]
    Bundled(String),
    /// There is none (404).
    #[error("{0}")]
    NotFound(String),
    /// One of this name is installed (409).
    #[error("skill \"{0}\" is already installed; uninstall it first")]
    Exists(String),
    /// Another change is under way, or the name is not unique (409).
    #[error("{0}")]
    Busy(String),
    /// The hub has removed it (410).
    #[error("{0}")]
    Gone(String),
    /// A checksum does not match (422; 502 of a hub).
    #[error("{message}")]
    Checksum {
        /// Which file, and both sums.
        message: String,
        /// The hub sent files that it does not list so.
        of_hub: bool,
    },
    /// It is larger than skills may be (422).
    #[error("{0}")]
    TooLarge(String),
    /// An archive is damaged, or of an unknown kind (422).
    #[error("{0}")]
    Unreadable(String),
    /// There is no git (422).
    #[error("{0}")]
    NoGit(String),
    /// The source asks to wait (429).
    #[error("{message}")]
    Limited {
        /// Its words.
        message: String,
        /// Seconds to wait.
        retry_after_secs: u32,
    },
    /// Too many requests to sources are under way (429).
    #[error("{0} requests to sources of skills are under way; try again later")]
    TooMany(usize),
    /// The source failed (502).
    #[error("{0}")]
    Failed(String),
    /// The source did not answer in time (504).
    #[error("{0}")]
    Late(String),
    /// The disk has no space (507) or failed (500).
    #[error("{0}")]
    Files(FilesError),
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        let text = error.to_string();
        match error {
            SourceError::Wrong { field, .. } => Self::bad_field(field, text),
            SourceError::Manifest(_) => Self::bad_request(text),
            SourceError::Blocked { findings, .. } => {
                Self::of(error_codes::SECURITY_BLOCKED, text).with("findings", findings)
            }
            SourceError::Bundled(_) => Self::of(error_codes::SKILL_BUNDLED, text),
            SourceError::NotFound(_) => Self::not_found(text),
            SourceError::Exists(_) => Self::of(error_codes::ALREADY_INSTALLED, text),
            SourceError::Busy(_) => Self::of(error_codes::SKILL_BUSY, text),
            SourceError::Gone(_) => Self::of(error_codes::SKILL_GONE, text),
            SourceError::Checksum { of_hub, .. } => {
                let status = if of_hub { StatusCode::BAD_GATEWAY } else { StatusCode::UNPROCESSABLE_ENTITY };
                Self::new(status, text).code(error_codes::CHECKSUM_MISMATCH)
            }
            SourceError::TooLarge(_) => Self::of(error_codes::SKILL_TOO_LARGE, text),
            SourceError::Unreadable(_) => Self::of(error_codes::SKILL_UNREADABLE, text),
            SourceError::NoGit(_) => Self::of(error_codes::GIT_UNAVAILABLE, text),
            SourceError::Limited { retry_after_secs, .. } => {
                Self::of(error_codes::SOURCE_LIMITED, text).retry_after(retry_after_secs)
            }
            SourceError::TooMany(_) => Self::of(TOO_MANY, text).retry_after(1),
            SourceError::Failed(_) => Self::of(error_codes::SOURCE_FAILED, text),
            SourceError::Late(_) => Self::of(error_codes::SOURCE_TIMEOUT, text),
            SourceError::Files(error) => Self::from(error),
        }
    }
}

/// A skill of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegistrySkill {
    /// Name to install it by.
    pub name: String,
    /// Description.
    pub description: String,
    /// Version.
    pub version: String,
    /// Author.
    pub author: String,
    /// Tags.
    pub tags: Vec<String>,
    /// A skill of this name is installed.
    pub is_installed: bool,
}

/// A skill that a marketplace offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MarketplaceSkill {
    /// Name.
    pub name: String,
    /// Author.
    pub author: String,
    /// Description.
    pub description: String,
    /// Installs that the marketplace counts; 0 where it counts none.
    pub downloads: u64,
    /// Version; empty where the marketplace has none.
    pub version: String,
    /// `source` of `POST /api/skills/install`.
    pub install_id: String,
}

/// What a marketplace found.
#[derive(Clone, Debug, Default)]
pub struct MarketplacePage {
    /// The rows of the page.
    pub results: Vec<MarketplaceSkill>,
    /// Rows in all.
    pub total: usize,
    /// Marketplaces that could not be asked, and why.
    pub warnings: Vec<String>,
}

/// A skill in a list of a hub.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HubItem {
    /// Id to install it by.
    pub slug: String,
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Newest version; empty if the hub does not say.
    pub version: String,
    /// Downloads that the hub counts.
    pub downloads: u64,
    /// Stars that the hub counts.
    pub stars: u64,
    /// Time of the last change; null if the hub does not say.
    pub updated_at: Option<Moment>,
    /// Handle of the owner; empty if the hub does not say.
    pub author: String,
    /// Topics and tags.
    pub tags: Vec<String>,
}

/// A part of a list of a hub.
#[derive(Clone, Debug, Default)]
pub struct HubPage {
    /// The rows of the page.
    pub items: Vec<HubItem>,
    /// Continues the list behind the rows that are known.
    pub next_cursor: Option<String>,
    /// Rows that are known so far: hubs do not count theirs.
    pub total: usize,
}

/// Which part of a list of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Browse {
    /// Topic or tag; `None` for all.
    pub category: Option<String>,
    /// Page, from 1.
    pub page: usize,
    /// Continue here instead of at a page.
    pub cursor: Option<String>,
    /// Order: `trending`, `updated`, `downloads`, `stars`, `installs` or `newest`.
    pub sort: Option<String>,
}

/// A skill of a hub.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HubSkill {
    /// Id at the hub.
    pub slug: String,
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Version.
    pub version: String,
    /// Handle of the owner.
    pub author: String,
    /// Display name of the owner.
    pub author_name: String,
    /// URL of the owner's image; empty if there is none.
    pub author_image: String,
    /// Downloads that the hub counts.
    pub downloads: u64,
    /// Stars that the hub counts.
    pub stars: u64,
    /// Tags.
    pub tags: Vec<String>,
    /// Time of the last change; null if the hub does not say.
    pub updated_at: Option<Moment>,
    /// A skill of this hub and slug is installed.
    pub is_installed: bool,
    /// What the hub says against it.
    pub warnings: Vec<String>,
}

/// The text of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HubCode {
    /// Id at the hub.
    pub slug: String,
    /// File that it is, `SKILL.md`.
    pub filename: String,
    /// Its text, as the hub has it.
    pub code: String,
}

/// The sources of skills.
pub trait Sources: Send + Sync {
    /// Fetches a skill, compares its checksums and scans it.
    fn prepare(self: Arc<Self>, request: Request) -> BoxFuture<'static, Result<Box<dyn Prepared>, SourceError>>;

    /// May the skill be removed? Blocks on the disk.
    ///
    /// # Errors
    /// [`SourceError::NotFound`], [`SourceError::Bundled`], or the name is none.
    fn removable(&self, name: &str) -> Result<(), SourceError>;

    /// Removes a skill. Blocks on the disk.
    ///
    /// # Errors
    /// As [`removable`](Self::removable), and those of the disk.
    fn remove(&self, name: &str) -> Result<(), SourceError>;

    /// The skills of the registry.
    fn registry(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<RegistrySkill>, SourceError>>;

    /// Searches the registry and skills.sh. `page` counts from 1.
    fn marketplace(
        self: Arc<Self>,
        query: String,
        page: usize,
    ) -> BoxFuture<'static, Result<MarketplacePage, SourceError>>;

    /// Searches a hub. `page` counts from 1.
    fn search(
        self: Arc<Self>,
        hub: Hub,
        query: String,
        page: usize,
    ) -> BoxFuture<'static, Result<HubPage, SourceError>>;

    /// A part of the list of a hub.
    fn browse(self: Arc<Self>, hub: Hub, browse: Browse) -> BoxFuture<'static, Result<HubPage, SourceError>>;

    /// A skill of a hub.
    fn skill(self: Arc<Self>, hub: Hub, slug: String) -> BoxFuture<'static, Result<HubSkill, SourceError>>;

    /// The text of a skill of a hub.
    fn code(self: Arc<Self>, hub: Hub, slug: String) -> BoxFuture<'static, Result<HubCode, SourceError>>;
}
