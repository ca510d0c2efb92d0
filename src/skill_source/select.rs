//! The folder of the skill in what was fetched: an archive of a repository has many.

use std::collections::BTreeSet;
use std::io::Read as _;

use agentsvc_api::skill_source::sources::SourceError;

use super::archive::LeftOut;
use super::staging::Staging;
use crate::kernel::disk;

/// The file that makes a folder a Node package.
const PACKAGE: &str = "package.json";
/// Names of skills that an error lists.
const NAMES_MAX: usize = 20;
/// Texts that are looked into for the name of a skill.
const LOOKED_INTO_MAX: usize = 500;
/// Bytes of a text that are looked at.
const HEAD_BYTES: u64 = 4 << 10;

/// Makes the folder of the skill the content of the staging: the one at the path `inner`, or of this name, or the only one.
/// Gives its path in what was fetched.
///
/// # Errors
/// [`SourceError::Manifest`] when there is none or several, [`SourceError::NotFound`] when there is none at `inner`,
/// [`SourceError::Blocked`] when something in it was left out.
pub(super) fn select(staging: &mut Staging, left_out: &[LeftOut], inner: Option<&str>) -> Result<String, SourceError> {
    let paths = staging.paths()?;
    let tree = Tree::new(&paths, staging.manifests());
    let folder = match inner {
        Some(inner) => tree.at(staging, inner)?,
        None => tree.only()?,
    };
    let within = |path: &str| folder.is_empty() || path.strip_prefix(&folder).is_some_and(|rest| rest.starts_with('/'));
    let findings: Vec<String> =
        left_out.iter().filter(|left| within(&left.path)).take(NAMES_MAX).map(|left| left.why.clone()).collect();
    if let Some(first) = findings.first() {
        return Err(SourceError::Blocked { message: format!("it is refused: {first}"), findings });
    }
    staging.narrow(&folder)?;
    Ok(folder)
}

/// Has the folder with these files a manifest in it?
pub(super) fn is_skill(names: &[&str], manifests: &[&str]) -> bool {
    let has = |name: &str| names.contains(&name);
    let may_be_package = manifests.contains(&"SKILL.md");
    let is_package = may_be_package && has(PACKAGE) && (has("index.js") || has("dist/index.js"));
    is_package || manifests.iter().any(|name| has(name))
}

struct Tree<'a> {
    paths: &'a [String],
    /// The folder above all files; empty when there is none.
    root: String,
    /// Folders with a manifest.
    skills: BTreeSet<&'a str>,
    manifests: &'static [&'static str],
}

impl<'a> Tree<'a> {
    fn new(paths: &'a [String], manifests: &'static [&'static str]) -> Self {
        let tops: BTreeSet<&str> = paths.iter().map(|path| path.split('/').next().unwrap_or_default()).collect();
        let is_folder = paths.iter().all(|path| path.contains('/'));
        let root = match (tops.first(), tops.len(), is_folder) {
            (Some(top), 1, true) => (*top).to_owned(),
            _ => String::new(),
        };
        let skills = paths.iter().filter_map(|path| {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            manifests.contains(&name).then_some(folder)
        });
        Self { paths, root, skills: skills.collect(), manifests }
    }

    fn is_skill(&self, folder: &str) -> bool {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let names: Vec<&str> = self.paths.iter().filter_map(|path| path.strip_prefix(&prefix)).collect();
        is_skill(&names, self.manifests)
    }

    /// The skill of something that has one only.
    fn only(&self) -> Result<String, SourceError> {
        if self.is_skill("") {
            return Ok(String::new());
        }
        if self.is_skill(&self.root) {
            return Ok(self.root.clone());
        }
        let ranked = ranked(self.skills.iter().copied().collect());
        match ranked.as_slice() {
            [] => Err(SourceError::Manifest(format!("there is no {} in it", self.manifests.join(" or ")))),
            [only] => Ok((*only).to_owned()),
            several => {
                let names: BTreeSet<&str> = several.iter().map(|folder| last(folder)).collect();
                let names: Vec<&str> = names.into_iter().take(NAMES_MAX).collect();
                Err(SourceError::Manifest(format!(
                    "it contains several of them; add the name of one to the source: {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// The skill at a path below the root, or with this name.
    fn at(&self, staging: &Staging, inner: &str) -> Result<String, SourceError> {
        let inner = inner.trim_matches('/');
        let exact = if self.root.is_empty() { inner.to_owned() } else { format!("{}/{inner}", self.root) };
        if self.is_skill(&exact) {
            return Ok(exact);
        }
        let wanted = last(inner);
        let missing = || SourceError::NotFound(format!("it does not contain {inner:?}"));
        let named: Vec<&str> = self.skills.iter().copied().filter(|folder| last(folder) == wanted).collect();
        if let Some(folder) = ranked(named).first() {
            return Ok((*folder).to_owned());
        }
        let looked_into = self.skills.iter().copied().take(LOOKED_INTO_MAX);
        let named: Vec<&str> = looked_into.filter(|folder| declares(staging, folder, wanted)).collect();
        ranked(named).first().map(|folder| (*folder).to_owned()).ok_or_else(missing)
    }
}

/// The folders in which people look first: not those whose names begin with a dot, and not far down. Only those of the best
/// kind.
fn ranked(folders: Vec<&str>) -> Vec<&str> {
    let is_hidden = |folder: &str| folder.split('/').any(|name| name.starts_with('.'));
    let mut shown: Vec<&str> = folders.iter().copied().filter(|folder| !is_hidden(folder)).collect();
    if shown.is_empty() {
        shown = folders;
    }
    shown.sort_by_key(|folder| (folder.matches('/').count(), folder.to_string()));
    shown
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Does the text in this folder give the skill the name?
fn declares(staging: &Staging, folder: &str, name: &str) -> bool {
    let text = |manifest: &&str| {
        let file = disk::open(&staging.path().join(folder).join(manifest)).ok()?;
        let mut head = Vec::new();
        file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
        Some(String::from_utf8_lossy(&head).into_owned())
    };
    let is_name = |line: &str| {
        let value = line.strip_prefix("name:").or_else(|| line.strip_prefix("name ="));
        value.is_some_and(|value| value.trim().trim_matches(['"', '\'']) == name)
    };
    staging.manifests().iter().find_map(text).is_some_and(|text| text.lines().any(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill_source::folders::Folders;

    fn selected(files: &[(&str, &str)], inner: Option<&str>) -> Result<(String, Vec<String>), SourceError> {
        let dir = tempfile::tempdir().unwrap();
        let mut staging = Folders::new(dir.path().to_owned()).stage().unwrap();
        for (path, text) in files {
            staging.write(path, &mut text.as_bytes(), false).unwrap();
        }
        let left_out = [LeftOut { path: BAD.to_owned(), why: "\"link\" is a link".to_owned() }];
        let is_there = files.iter().any(|(path, _)| path.starts_with("r/skills/bad/"));
        let folder = select(&mut staging, if is_there { &left_out[..] } else { &[] }, inner)?;
        // What is written next does not meet what was there before.
        staging.write("skill.toml.new", &mut &b""[..], false).unwrap();
        Ok((folder, staging.paths()?))
    }

    const BAD: &str = "r/skills/bad/link";

    const REPO: &[(&str, &str)] = &[
        ("r/README.md", "x"),
        ("r/skills/a/SKILL.md", "---\nname: alpha\n---\n"),
        ("r/skills/a/x/y.md", "x"),
        ("r/skills/b/SKILL.md", "---\nname: \"beta\"\n---\n"),
        ("r/skills/bad/SKILL.md", "x"),
        ("r/.claude/skills/a/SKILL.md", "x"),
    ];

    #[test]
    fn a_skill_of_a_repository_is_found_by_path_name_and_text() {
        for (inner, folder) in
            [("skills/a", "r/skills/a"), ("a", "r/skills/a"), ("b", "r/skills/b"), ("beta", "r/skills/b")]
        {
            let (found, files) = selected(REPO, Some(inner)).unwrap();
            assert_eq!((found.as_str(), files.contains(&"SKILL.md".to_owned())), (folder, true), "{inner}");
        }
        let error = selected(REPO, Some("skills/c")).unwrap_err();
        assert!(matches!(error, SourceError::NotFound(_)), "{error}");
        let error = selected(REPO, None).unwrap_err().to_string();
        assert!(error.contains("a, b, bad"), "{error}");
        let error = selected(REPO, Some("bad")).unwrap_err();
        assert!(matches!(&error, SourceError::Blocked { findings, .. } if findings.len() == 1), "{error}");
    }

    #[test]
    fn the_only_skill_needs_no_name() {
        for (files, folder) in [
            (&[("SKILL.md", "x"), ("examples/e/SKILL.md", "x")][..], ""),
            (&[("top/skill.toml", "x"), ("top/more/x", "x")], "top"),
            (&[("r/README.md", "x"), ("r/skills/a/SKILL.md", "x")], "r/skills/a"),
            (&[("p/package.json", "{}"), ("p/dist/index.js", "x")], "p"),
        ] {
            assert_eq!(selected(files, None).unwrap().0, folder);
        }
        for files in [&[("README.md", "x")][..], &[("package.json", "{}")], &[]] {
            assert!(matches!(selected(files, None).unwrap_err(), SourceError::Manifest(_)));
        }
    }
}
