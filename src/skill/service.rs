//! Skills for the API.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use agentsvc_api::agent::frozen_skills::FrozenSkills;
use agentsvc_api::http::files::FilesError;
use agentsvc_api::skill::library::{
    Evolution, FailedFolder, ReloadedSkills, SettingRow, SkillDetail, SkillRow, SkillRows, SkillText, Skills,
    SourceKind, ToolRow,
};
use agentsvc_components::manifest::Manifest;
use agentsvc_systems::skill::limits::SKILL_FILE_SHOWN_BYTES_MAX;

use super::catalog::{Failed, frozen};
use super::files::Folder;
use super::library::{Library, Reloaded};
use super::skill::{Skill, Source};

/// Where versions of a skill are kept.
const EVOLUTION: &str = ".evolution.json";
/// Bytes of it.
const EVOLUTION_BYTES_MAX: u64 = 256 << 10;

/// The library, as the API asks it.
pub(super) struct Service(pub(super) Arc<Library>);

impl Skills for Service {
    fn list(&self) -> SkillRows {
        let catalog = self.0.loaded();
        let skills = catalog.iter().map(|skill| row(skill)).collect();
        SkillRows { skills, failed: failed(catalog.failed()) }
    }

    fn get(&self, name: &str) -> Option<SkillDetail> {
        self.0.loaded().get(name).map(|skill| self.detail(skill))
    }

    fn file(&self, name: &str, path: &str) -> Option<Result<SkillText, FilesError>> {
        self.0.loaded().get(name).map(|skill| text(skill, path))
    }

    fn reload(&self) -> ReloadedSkills {
        let Reloaded { added, updated, removed, total, failed: broken } = self.0.reload();
        let names = |list: Vec<Box<str>>| list.into_iter().map(Into::into).collect();
        let (added, updated, removed) = (names(added), names(updated), names(removed));
        ReloadedSkills { status: "reloaded", added, updated, removed, total, failed: failed(&broken) }
    }

    fn invoked(&self, name: &str, rest: &str, manifest: &Manifest) -> Option<String> {
        let catalog = self.0.loaded();
        let is_meant = |skill: &&Arc<Skill>| {
            skill.name.eq_ignore_ascii_case(name) && skill.invocation.by_user && skill.unmet.is_empty()
        };
        let skill = catalog.of(manifest).find(is_meant)?;
        let argument = if rest.is_empty() { String::new() } else { format!(" {rest}") };
        let how = match &skill.invocation.tool {
            Some(tool) => format!("Call the tool {tool:?} with what follows the name, as it is written"),
            None => format!("Read its instructions with skill_read_file (skill {:?}) and follow them", skill.name),
        };
        Some(format!("/{}{argument}\n\n[The user invokes the skill {:?}. {how}.]", skill.name, skill.name))
    }
}

impl FrozenSkills for Service {
    fn of(&self, manifest: &Manifest) -> Vec<Box<str>> {
        self.0.loaded().of(manifest).map(|skill| frozen(skill)).collect()
    }
}

impl Service {
    fn detail(&self, skill: &Skill) -> SkillDetail {
        let row = row(skill);
        let tools = skill.tools.iter().map(|tool| ToolRow {
            name: tool.name.to_string(),
            description: tool.description.to_string(),
            input_schema: tool.input_schema.clone(),
        });
        let settings = self.0.settings();
        let config_vars = skill.config_vars.iter().map(|variable| SettingRow {
            key: variable.key.to_string(),
            description: variable.description.to_string(),
            default: variable.default.as_deref().map(str::to_owned),
            is_set: settings.value_for(&skill.name, &variable.key).is_some(),
        });
        SkillDetail {
            name: row.name,
            version: row.version,
            runtime: row.runtime,
            description: row.description,
            author: row.author,
            license: skill.license.to_string(),
            homepage: skill.homepage.to_string(),
            compatibility: skill.compatibility.to_string(),
            tags: row.tags,
            category: row.category,
            tools: tools.collect(),
            tools_count: row.tools_count,
            required_tools: row.required_tools,
            required_tools_count: row.required_tools_count,
            required_capabilities: row.required_capabilities,
            allowed_tools: words(&skill.allowed_tools),
            env_passthrough: words(&skill.env_passthrough),
            config_vars: config_vars.collect(),
            enabled: row.enabled,
            has_prompt_context: row.has_prompt_context,
            prompt_context_length: skill.prompt_context.len(),
            prompt_context: skill.prompt_context.to_string(),
            user_invocable: skill.invocation.by_user,
            model_invocable: skill.invocation.by_model,
            requirements_met: row.requirements_met,
            unmet: row.unmet,
            warnings: row.warnings,
            source: source_name(&skill.source.kind),
            source_detail: row.source,
            path: skill.folder.display().to_string(),
            linked_files: linked_files(skill),
            content_hash: skill.content_hash.to_string(),
            evolution: Evolution { use_count: self.0.uses.of(&skill.name), ..evolution(skill) },
            metadata: skill.metadata.clone(),
        }
    }
}

fn row(skill: &Skill) -> SkillRow {
    let Source { kind, slug, version } = &skill.source;
    let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    SkillRow {
        name: skill.name.to_string(),
        version: skill.version.to_string(),
        runtime: skill.runtime.as_str(),
        description: skill.description.to_string(),
        author: skill.author.to_string(),
        tags: words(&skill.tags),
        category: skill.category().to_owned(),
        tools_count: skill.tools.len(),
        required_tools: words(&skill.requirements.tools),
        required_tools_count: skill.requirements.tools.len(),
        required_capabilities: words(&skill.requirements.capabilities),
        enabled: skill.unmet.is_empty(),
        has_prompt_context: !skill.prompt_context.trim().is_empty(),
        requirements_met: skill.unmet.is_empty(),
        unmet: skill.unmet.clone(),
        warnings: skill.warnings.clone(),
        source: SourceKind { kind: kind.to_string(), slug: text(slug), version: text(version) },
    }
}

fn words(list: &[Box<str>]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn failed(list: &[Failed]) -> Vec<FailedFolder> {
    list.iter().map(|failed| FailedFolder { folder: failed.folder.to_string(), error: failed.error.clone() }).collect()
}

/// A source in one word (spec 2, Skill).
fn source_name(kind: &str) -> &'static str {
    match kind {
        "native" => "Native",
        "open_claw" => "OpenClaw",
        "claw_hub" => "ClawHub",
        "claw_hub_cn" => "ClawHubCn",
        "skillhub" => "Skillhub",
        _ => "Local",
    }
}

/// Files by the folder that they lie in.
fn linked_files(skill: &Skill) -> BTreeMap<String, Vec<String>> {
    let mut linked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &skill.files {
        let (kind, _) = file.path.split_once('/').unwrap_or(("files", ""));
        linked.entry(kind.to_owned()).or_default().push(file.path.to_string());
    }
    linked
}

/// The versions that are kept beside a skill; none where there are none or they cannot be read.
fn evolution(skill: &Skill) -> Evolution {
    let read = Folder::open(&skill.folder).ok().and_then(|folder| folder.read(EVOLUTION, EVOLUTION_BYTES_MAX).ok());
    read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The beginning of a file that was there when the skill was read.
fn text(skill: &Skill, path: &str) -> Result<SkillText, FilesError> {
    let path = path.trim_start_matches("./");
    let missing = || {
        let shown: String = path.chars().take(120).collect();
        FilesError::NotFound(format!("skill {} has no file {shown:?}", skill.name))
    };
    if !skill.files.iter().any(|file| *file.path == *path) {
        return Err(missing());
    }
    let folder = Folder::open(&skill.folder).map_err(|_| missing())?;
    let read = folder.read(path, SKILL_FILE_SHOWN_BYTES_MAX + 1);
    let mut bytes = read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(),
        _ => {
            tracing::error!(%error, skill = &*skill.name, "a file of a skill could not be read");
            FilesError::Failed
        }
    })?;
    let truncated = bytes.len() as u64 > SKILL_FILE_SHOWN_BYTES_MAX;
    bytes.truncate(usize::try_from(SKILL_FILE_SHOWN_BYTES_MAX).unwrap_or(usize::MAX));
    let content = String::from_utf8_lossy(&bytes).into_owned();
    Ok(SkillText { name: skill.name.to_string(), path: path.to_owned(), content, truncated })
}
