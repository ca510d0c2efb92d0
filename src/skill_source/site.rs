//! Sites that list their skills at `/.well-known/skills/index.json`, with the files of each in a folder beside it.

use agentsvc_api::skill_source::sources::SourceError;
use reqwest::Url;
use serde::Deserialize;

use super::convert::Origin;
use super::entry;
use super::fetch::{self, Fetched};
use super::folders::{Folders, check_name};
use super::wire::{Whose, Wire, blocking};

/// Skills of a list that are looked at.
const SKILLS_MAX: usize = 1_000;
/// Files of a skill.
const FILES_MAX: usize = 200;
/// Bytes of a file, and of all of a skill.
const FILE_BYTES_MAX: u64 = 8 << 20;
const SKILL_BYTES_MAX: u64 = 50 << 20;
/// Names that an error lists.
const NAMES_MAX: usize = 20;

/// The list.
#[derive(Deserialize)]
struct Index {
    skills: Vec<Listed>,
}

/// A skill in it.
#[derive(Deserialize)]
struct Listed {
    name: String,
    #[serde(default)]
    files: Vec<String>,
}

/// Fetches the skill of this name, or the only one.
///
/// # Errors
/// [`SourceError`].
pub(super) async fn fetch(
    wire: &Wire,
    folders: Folders,
    (index, name): (&Url, Option<&str>),
    field: &'static str,
) -> Result<Fetched, SourceError> {
    let whose = Whose::Client(field);
    let Index { mut skills } = wire.json(index.as_str(), whose).await?;
    skills.truncate(SKILLS_MAX);
    let Listed { name, files } = chosen(skills, name)?;
    let files = if files.is_empty() { vec!["SKILL.md".to_owned()] } else { files };
    if files.len() > FILES_MAX {
        return Err(SourceError::TooLarge(format!("the skill has more than {FILES_MAX} files")));
    }
    let mut staging = blocking(move || Ok(folders.stage()?)).await?;
    let mut bytes = 0;
    for file in &files {
        if entry::leaves(file) {
            let finding = format!("{file:?} leads out of the folder of the skill");
            return Err(SourceError::Blocked { message: finding.clone(), findings: vec![finding] });
        }
        let url = place(index, &name, file)?;
        let content = wire.bytes(url.as_str(), whose, FILE_BYTES_MAX).await?;
        bytes += content.len() as u64;
        if bytes > SKILL_BYTES_MAX {
            return Err(SourceError::TooLarge(format!("the skill has more than {SKILL_BYTES_MAX} bytes")));
        }
        staging = fetch::write(staging, file.clone(), content.into()).await?;
    }
    let origin = Origin { kind: "local", fallback: name, ..Origin::default() };
    let mut fetched = Fetched::new(staging, origin);
    fetched.warn("the site publishes no checksums");
    Ok(fetched)
}

fn chosen(skills: Vec<Listed>, name: Option<&str>) -> Result<Listed, SourceError> {
    let names: Vec<&str> = skills.iter().take(NAMES_MAX).map(|skill| skill.name.as_str()).collect();
    let names = super::wire::one_line(&names.join(", "), 1_000);
    let found = match name {
        Some(name) => skills.into_iter().find(|skill| skill.name == name),
        None if skills.len() > 1 => {
            let text = format!("the site has several skills; add `#` and the name of one to the source: {names}");
            return Err(SourceError::Manifest(text));
        }
        None => skills.into_iter().next(),
    };
    let found = found.ok_or_else(|| SourceError::NotFound(format!("the site has no such skill; it has: {names}")))?;
    check_name(&found.name)?;
    Ok(found)
}

/// Where a file of a skill is.
fn place(index: &Url, name: &str, file: &str) -> Result<Url, SourceError> {
    let mut url = index.clone();
    let wrong = || SourceError::Failed("the site lists a file whose URL cannot be made".to_owned());
    let mut segments = url.path_segments_mut().map_err(|()| wrong())?;
    segments.pop().push(name).extend(file.split('/').filter(|part| !matches!(*part, "" | ".")));
    drop(segments);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_beside_the_list() {
        let index = Url::parse("https://x.example/docs/.well-known/skills/index.json").unwrap();
        let url = place(&index, "a", "references/b c?.md").unwrap();
        assert_eq!(url.as_str(), "https://x.example/docs/.well-known/skills/a/references/b%20c%3F.md");
    }

    #[test]
    fn one_of_several_must_be_named() {
        let skills = |names: &[&str]| {
            names.iter().map(|name| Listed { name: (*name).to_owned(), files: Vec::new() }).collect::<Vec<_>>()
        };
        assert_eq!(chosen(skills(&["a", "b"]), Some("b")).unwrap().name, "b");
        assert_eq!(chosen(skills(&["a"]), None).unwrap().name, "a");
        let error = chosen(skills(&["a", "b"]), None).err().unwrap();
        assert!(matches!(&error, SourceError::Manifest(text) if text.contains("a, b")), "{error}");
        assert!(matches!(chosen(skills(&["a"]), Some("c")).err(), Some(SourceError::NotFound(_))));
        assert!(matches!(chosen(skills(&["../x"]), None).err(), Some(SourceError::Blocked { .. })));
    }
}
