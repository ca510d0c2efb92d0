//! Skills of other homes: a directory with a `SKILL.md` (or a `skill.toml`) and what belongs to it (spec 2, Skill).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use agentsvc_api::migration::source::Taken;
use agentsvc_components::kernel::limit;
use agentsvc_systems::injection::{self, Level, Reason};
use agentsvc_systems::kernel::record::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toml::Table;

use super::convert::plain_name;
use super::tree::Tree;
use super::{Found, Skill};
use crate::kernel::disk;
use crate::kernel::home::{create_private_dir, private_file};
use crate::kernel::text_formats::{front_matter, word, words};

/// The text of a skill.
const TEXT: &str = "SKILL.md";
/// The manifest of a skill.
const MANIFEST: &str = "skill.toml";
/// Directories of supporting files (spec 2, Skill, linked_files).
const SUPPORTING: &[&str] = &["references", "templates", "scripts", "assets"];

/// Adds the skills in the directory `dir` to `found`. One whose name is there already is left out.
pub(super) fn find(tree: &Tree, dir: &str, found: &mut Found) {
    for entry in tree.dirs(dir) {
        let place = PathBuf::from(dir).join(&entry);
        let Some(mut skill) = look(tree, &place, &entry) else { continue };
        if found.skills.iter().any(|other| other.name == skill.name) {
            found.warn(format!("duplicate skill {:?}; {} is skipped", skill.name, place.display()));
            continue;
        }
        if skill.wrong.is_none() {
            skill.wrong = files(tree, &place).err();
        }
        found.skills.push(skill);
    }
}

fn look(tree: &Tree, place: &Path, entry: &str) -> Option<Skill> {
    let (format, read): (_, Result<String, String>) = if tree.is_file(place.join(TEXT)) {
        let head = tree.text(place.join(TEXT)).and_then(|text| front_matter(&text).0);
        (TEXT, head.map(|head| word(&head, &["name"]).unwrap_or(entry).to_owned()))
    } else if tree.is_file(place.join(MANIFEST)) {
        let parsed = tree.text(place.join(MANIFEST)).and_then(|text| manifest(&text));
        (MANIFEST, parsed.map(|parsed| name_of(&parsed).unwrap_or(entry).to_owned()))
    } else {
        return None;
    };
    let (name, wrong) = match read {
        Ok(name) => (file_name(&name), None),
        Err(why) => (file_name(entry), Some(why)),
    };
    Some(Skill { name, format, dir: place.to_owned(), wrong })
}

/// A name that is one directory.
fn file_name(name: &str) -> String {
    plain_name(name).replace(' ', "-")
}

fn manifest(text: &str) -> Result<Table, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
}

fn name_of(manifest: &Table) -> Option<&str> {
    let inner = manifest.get("skill").and_then(toml::Value::as_table).unwrap_or(manifest);
    inner.get("name")?.as_str()
}

/// The files of a skill below its directory.
fn files(tree: &Tree, dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = [TEXT, MANIFEST].map(PathBuf::from).into();
    files.retain(|file| tree.is_file(dir.join(file)));
    let mut open: Vec<PathBuf> = SUPPORTING.iter().map(PathBuf::from).collect();
    while let Some(inner) = open.pop() {
        for name in tree.names(dir.join(&inner)) {
            let path = inner.join(name);
            if tree.is_dir(dir.join(&path)) {
                open.push(path);
            } else if tree.is_file(dir.join(&path)) {
                files.push(path);
            }
            if files.len() + open.len() > limit::MIGRATION_SKILL_FILES_MAX {
                return Err(format!("it has more than {} files", limit::MIGRATION_SKILL_FILES_MAX));
            }
        }
    }
    Ok(files)
}

/// Copies a skill to `skills_dir`, whole or not at all.
pub(super) fn install(tree: &Tree, skill: &Skill, kind: &str, skills_dir: &Path) -> Result<Taken, String> {
    let place = skills_dir.join(&skill.name);
    if place.symlink_metadata().is_ok() {
        return Ok(Taken::Before);
    }
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", place.display());
    let fresh = skills_dir.join(format!(".{}.new", skill.name));
    disk::remove_dir(&fresh).map_err(failed)?;
    create_private_dir(&fresh).map_err(|error| error.to_string())?;
    if let Err(error) = fill(tree, skill, kind, &fresh) {
        disk::remove_dir(&fresh).map_err(failed)?;
        return Err(error);
    }
    fs::rename(&fresh, &place).map_err(failed)?;
    fs::File::open(skills_dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    Ok(Taken::Now)
}

/// Copies a skill's files to `dir`, and writes the manifest of one that has none.
fn fill(tree: &Tree, skill: &Skill, kind: &str, dir: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", dir.display());
    let files = files(tree, &skill.dir)?;
    for file in &files {
        let bytes = tree.bytes(skill.dir.join(file), limit::MIGRATION_TEXT_BYTES_MAX)?;
        check(file, &bytes)?;
        write(&dir.join(file), &bytes).map_err(failed)?;
    }
    if !files.iter().any(|file| file == Path::new(MANIFEST)) {
        let text = tree.text(skill.dir.join(TEXT))?;
        write(&dir.join(MANIFEST), described(skill, kind, &text)?.as_bytes()).map_err(failed)?;
    }
    Ok(())
}

/// Skills are read by models: text that tries to give them orders is not taken in (decisions, Catalog).
fn check(file: &Path, bytes: &[u8]) -> Result<(), String> {
    let report = injection::scan(&String::from_utf8_lossy(bytes));
    if report.level < Level::Hostile {
        return Ok(());
    }
    let reasons: Vec<&str> = report.reasons().into_iter().map(Reason::as_str).collect();
    Err(format!("{} looks like prompt injection ({})", file.display(), reasons.join(", ")))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        create_private_dir(parent).map_err(std::io::Error::other)?;
    }
    let mut file = private_file().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The manifest of a skill that is a text alone.
fn described(skill: &Skill, kind: &str, text: &str) -> Result<String, String> {
    let head = front_matter(text).0.unwrap_or(Value::Null);
    let mut table = Table::new();
    table.insert("name".to_owned(), skill.name.as_str().into());
    table.insert("version".to_owned(), word(&head, &["version"]).unwrap_or("0.1.0").into());
    table.insert("runtime".to_owned(), "PromptOnly".into());
    for (key, value) in [("description", word(&head, &["description"])), ("author", word(&head, &["author"]))] {
        value.map(|value| table.insert(key.to_owned(), value.into()));
    }
    let tags = words(&head, &["tags"]);
    if !tags.is_empty() {
        table.insert("tags".to_owned(), tags.into());
    }
    let sha256 = hex(&Sha256::digest(text.as_bytes()));
    let source: Table = [("type", "local"), ("converted_from", kind), ("sha256", &sha256)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    table.insert("source".to_owned(), source.into());
    toml::to_string(&table).map_err(|error| error.to_string())
}
