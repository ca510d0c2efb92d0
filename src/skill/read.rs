//! Reading a skill's folder. Nothing is written into it.

use std::io;
use std::path::Path;

use agentsvc_systems::skill::limits::SKILL_NAME_BYTES_MAX;

use super::files::{Folder, Listing};
use super::review::review;
use super::skill::{Runtime, Skill};
use super::{package_json, skill_md, skill_toml};

/// The names that the text of a skill has.
pub(super) const TEXTS: &[&str] = &["SKILL.md", "skill.md", "skills.md"];
/// The manifest.
pub(super) const MANIFEST: &str = "skill.toml";
/// A text beside the manifest.
const PROMPT: &str = "prompt_context.md";
/// The manifest of Node packages.
const PACKAGE: &str = "package.json";
/// The version of a skill that names none.
const VERSION: &str = "0.1.0";

/// Why a folder is no skill.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It has none of the files that describe a skill.
    #[error("it has no SKILL.md, skill.toml or package.json")]
    NoSkill,
    /// A file is wrong; the text names it.
    #[error("{0}")]
    Invalid(String),
    /// It is larger than skills may be.
    #[error("{0}")]
    TooMuch(String),
    /// The system refused.
    #[error("it cannot be read: {0}")]
    Io(io::Error),
}

/// Reads the skill in `folder`. Blocks on the disk; writes nothing.
///
/// # Errors
/// [`ReadError`]: what is odd but harmless is a warning of the skill instead.
pub fn read(folder: &Path) -> Result<Skill, ReadError> {
    let opened = Folder::open(folder)?;
    let listing = opened.list()?;
    read_listed(folder, &opened, &listing)
}

/// As [`read`], for a folder that was listed.
pub(super) fn read_listed(path: &Path, folder: &Folder, listing: &Listing) -> Result<Skill, ReadError> {
    let base = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut skill = Skill { folder: path.to_owned(), ..Skill::default() };
    skill.warnings.extend(listing.odd.iter().cloned());
    let text = listing.first(TEXTS);
    let has_manifest = listing.has(MANIFEST);
    if let Some(name) = text {
        let content = folder.text(name)?.ok_or(ReadError::NoSkill)?;
        match skill_md::fill(&mut skill, &content) {
            Ok(()) => {}
            Err(why) if has_manifest => skill.warnings.push(format!("{name}: {why}")),
            Err(why) => return Err(ReadError::Invalid(format!("{name}: {why}"))),
        }
    }
    if has_manifest {
        let content = folder.text(MANIFEST)?.ok_or(ReadError::NoSkill)?;
        let prompt = if listing.has(PROMPT) { folder.text(PROMPT)? } else { None };
        skill_toml::fill(&mut skill, &content, prompt)
            .map_err(|why| ReadError::Invalid(format!("{MANIFEST}: {why}")))?;
    } else if listing.has(PACKAGE) {
        let content = folder.text(PACKAGE)?.ok_or(ReadError::NoSkill)?;
        let entry = listing.first(&["dist/index.js", "index.js"]);
        package_json::fill(&mut skill, &content, entry, text.is_some())
            .map_err(|why| ReadError::Invalid(format!("{PACKAGE}: {why}")))?;
    } else if text.is_none() {
        return Err(ReadError::NoSkill);
    }
    name(&mut skill, &base);
    if skill.version.is_empty() {
        skill.version = VERSION.into();
    }
    if skill.description.is_empty() && !has_manifest && skill.runtime == Runtime::PromptOnly {
        return Err(ReadError::Invalid("the description is missing".to_owned()));
    }
    entry(&mut skill, listing)?;
    skill_toml::starter_tool(&mut skill);
    review(&mut skill);
    (skill.files, skill.content_hash) = folder.sums(listing)?;
    skill.stamp = Some(listing.stamp());
    Ok(skill)
}

/// Gives the skill a name that can be used; its folder's where it has none.
fn name(skill: &mut Skill, base: &str) {
    let name = skill.name.trim();
    let is_usable =
        name.len() <= SKILL_NAME_BYTES_MAX && !name.contains(['/', '\\']) && !name.contains(char::is_control);
    if name.is_empty() || name.starts_with('.') || !is_usable {
        if !name.is_empty() {
            skill.warnings.push("the name cannot be used; the folder's name is used instead".to_owned());
        }
        skill.name = base.into();
        return;
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.len() > 64 || !name.chars().all(plain) {
        skill.warnings.push(format!("the name {name:?} is not 1 to 64 of a-z, 0-9 and -"));
    } else if name != base {
        skill.warnings.push(format!("the name {name:?} is not that of its folder {base:?}"));
    }
    skill.name = name.into();
}

/// Finds the program of a skill with code.
fn entry(skill: &mut Skill, listing: &Listing) -> Result<(), ReadError> {
    if !skill.has_code() {
        skill.entry = None;
        return Ok(());
    }
    let usual: &[&str] = match skill.runtime {
        Runtime::Python => &["main.py", "src/main.py", "skill.py", "__main__.py"],
        Runtime::Node => &["dist/index.js", "index.js", "src/index.js", "index.mjs", "main.js"],
        Runtime::Shell => &["main.sh", "run.sh", "skill.sh", "src/main.sh"],
        _ => &["skill.wasm", "main.wasm"],
    };
    let wanted = skill.entry.as_deref().map(|entry| entry.trim_start_matches("./").to_owned());
    let found = match &wanted {
        Some(wanted) => listing.has(wanted).then(|| wanted.clone()),
        None => listing.first(usual).map(str::to_owned),
    };
    let Some(found) = found else {
        let runtime = skill.runtime.as_str();
        return Err(ReadError::Invalid(match wanted {
            Some(wanted) => format!("{MANIFEST}: runtime.entry: {wanted:?} is not a file of the skill"),
            None => format!("{MANIFEST}: runtime.entry: it is missing, and the skill has no usual file for {runtime}"),
        }));
    };
    skill.entry = Some(found.into());
    Ok(())
}
