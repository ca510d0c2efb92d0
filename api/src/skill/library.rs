//! Skills as the daemon has them.

use std::collections::BTreeMap;

use agentsvc_components::manifest::Manifest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::http::files::FilesError;

/// A skill in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkillRow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `PromptOnly`, `Python`, `Node`, `Shell`, `Wasm` or `Builtin`.
    pub runtime: &'static str,
    /// What it is for; may be empty.
    pub description: String,
    /// Empty if it is not known.
    pub author: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// First tag that names no platform, or `general`.
    pub category: String,
    /// Number of its tools.
    pub tools_count: usize,
    /// Tools that the agent needs.
    pub required_tools: Vec<String>,
    /// Number of those tools.
    pub required_tools_count: usize,
    /// Capabilities that it declares, such as `NetConnect(api.example.com)`.
    pub required_capabilities: Vec<String>,
    /// Whether agents see it: false while needs are unmet.
    pub enabled: bool,
    /// Whether it has instructions.
    pub has_prompt_context: bool,
    /// Whether this machine has what the skill needs.
    pub requirements_met: bool,
    /// What is missing, in sentences.
    pub unmet: Vec<String>,
    /// What is odd about its files, in sentences.
    pub warnings: Vec<String>,
    /// Where it came from.
    pub source: SourceKind,
}

/// Where a skill came from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceKind {
    /// `local`, `native`, `open_claw`, `claw_hub`, `claw_hub_cn` or `skillhub`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// Its version there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A folder that is no skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedFolder {
    /// The folder's name.
    pub folder: String,
    /// Why it was not loaded.
    pub error: String,
}

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct SkillRows {
    /// By name.
    pub skills: Vec<SkillRow>,
    /// Folders that are no skills.
    pub failed: Vec<FailedFolder>,
}

/// A tool of a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ToolRow {
    /// Its name.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// JSON schema of the input.
    pub input_schema: Value,
}

/// A setting of a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SettingRow {
    /// Key under `[skills.config]`.
    pub key: String,
    /// What it is for; may be empty.
    pub description: String,
    /// Value if the configuration has none.
    pub default: Option<String>,
    /// Whether the configuration has a value. It is never shown.
    pub is_set: bool,
}

/// Versions of a skill.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Evolution {
    /// Newest last.
    pub versions: Vec<Version>,
    /// How often agents read it.
    pub use_count: u64,
    /// How often it was changed.
    pub evolution_count: u64,
}

/// One version of a skill.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Version {
    /// Its version.
    pub version: String,
    /// When it was made.
    pub timestamp: String,
    /// What changed.
    pub changelog: String,
    /// SHA-256 of its files, in hex.
    pub content_hash: String,
}

/// A skill with all that is known of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkillDetail {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// As in the list.
    pub runtime: &'static str,
    /// What it is for; may be empty.
    pub description: String,
    /// Its author; empty if it is not known.
    pub author: String,
    /// Empty if it is not known.
    pub license: String,
    /// Empty if it is not known.
    pub homepage: String,
    /// What it needs of the product that uses it, in words; may be empty.
    pub compatibility: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// First tag that names no platform, or `general`.
    pub category: String,
    /// Its tools.
    pub tools: Vec<ToolRow>,
    /// Number of its tools.
    pub tools_count: usize,
    /// Tools that the agent needs.
    pub required_tools: Vec<String>,
    /// Number of those tools.
    pub required_tools_count: usize,
    /// Capabilities that it declares, such as `NetConnect(api.example.com)`.
    pub required_capabilities: Vec<String>,
    /// Tools that its instructions use (`allowed-tools`).
    pub allowed_tools: Vec<String>,
    /// Environment variables of the daemon that it asks for.
    pub env_passthrough: Vec<String>,
    /// Its settings.
    pub config_vars: Vec<SettingRow>,
    /// Whether agents see it: false while needs are unmet.
    pub enabled: bool,
    /// Whether it has instructions.
    pub has_prompt_context: bool,
    /// Bytes of the instructions.
    pub prompt_context_length: usize,
    /// Its instructions.
    pub prompt_context: String,
    /// Whether `/name` in a chat invokes it.
    pub user_invocable: bool,
    /// Whether the model sees it in the list of skills.
    pub model_invocable: bool,
    /// Whether this machine has what the skill needs.
    pub requirements_met: bool,
    /// What is missing, in sentences.
    pub unmet: Vec<String>,
    /// What is odd about its files, in sentences.
    pub warnings: Vec<String>,
    /// `Local`, `Native`, `OpenClaw`, `ClawHub`, `ClawHubCn` or `Skillhub`.
    pub source: &'static str,
    /// Where it came from.
    pub source_detail: SourceKind,
    /// Its folder.
    pub path: String,
    /// Paths of its files by their first folder, such as `references` and `scripts`; those of no folder are under `files`.
    pub linked_files: BTreeMap<String, Vec<String>>,
    /// SHA-256 of all files, in hex.
    pub content_hash: String,
    /// Its versions.
    pub evolution: Evolution,
    /// `metadata` of `SKILL.md`.
    pub metadata: Map<String, Value>,
}

/// A file of a skill.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkillText {
    /// The skill.
    pub name: String,
    /// Path in the skill's folder.
    pub path: String,
    /// Its text, 256 KiB at most; bytes that are not UTF-8 are replaced.
    pub content: String,
    /// Whether the file is longer.
    pub truncated: bool,
}

/// What a reload changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReloadedSkills {
    /// `reloaded`.
    pub status: &'static str,
    /// Names of new skills.
    pub added: Vec<String>,
    /// Names of skills whose files changed.
    pub updated: Vec<String>,
    /// Names of skills that are gone.
    pub removed: Vec<String>,
    /// Skills that there are now.
    pub total: usize,
    /// Folders that are no skills.
    pub failed: Vec<FailedFolder>,
}

/// The skills of this home. Calls block on the disk, and for a moment after a start.
pub trait Skills: Send + Sync {
    /// All skills.
    fn list(&self) -> SkillRows;

    /// The skill of this name.
    fn get(&self, name: &str) -> Option<SkillDetail>;

    /// The text of a file of a skill; `None` when there is no such skill.
    ///
    /// # Errors
    /// [`FilesError::NotFound`], or the disk failed.
    fn file(&self, name: &str, path: &str) -> Option<Result<SkillText, FilesError>>;

    /// Reads what is new or changed.
    fn reload(&self) -> ReloadedSkills;

    /// The message that `/name` and what follows it stand for in a chat with such an agent; `None` when it is no skill that
    /// the agent has and people may invoke.
    fn invoked(&self, name: &str, rest: &str, manifest: &Manifest) -> Option<String>;
}
