//! Makes changes of skills: each is prepared beside the skill, scanned, read as a skill, and takes its place in one step.

use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_api::http::files::FilesError;
use agentsvc_api::http::timestamp::Moment;
use agentsvc_api::skill_evolution::change::{Action, Change};
use agentsvc_api::skill_evolution::evolution::Changed;
use agentsvc_api::skill_source::sources::SourceError;
use agentsvc_components::manifest::Manifest;
use parking_lot::Mutex;
use uuid::Uuid;

use super::content::{Content, small};
use super::edit::{FIRST_VERSION, create, edited, next_version, set_version};
use super::history::{FILE, History, KEPT, Version, timestamp};
use super::now;
use super::pending::Pending;
use crate::skill::{Library, Runtime, Skill, has};
use crate::skill_scan::{Finding, Scan};
use crate::skill_source::folders::{Folders, NameLock, Put};
use crate::skill_source::staging::Staging;

/// Changes skills.
pub(crate) struct Evolver {
    pub(super) library: Arc<Library>,
    pub(super) folders: Folders,
    pub(super) pending: Pending,
    /// Held while a proposal is decided on: a second decision finds none.
    pub(super) deciding: Mutex<()>,
}

/// An installed skill before a change.
pub(super) struct Present {
    /// The name of its folder.
    folder_name: String,
    folder: PathBuf,
    content: Content,
    version: String,
    pub(super) history: History,
}

/// What comes of a change.
pub(super) struct Draft {
    content: Content,
    version: String,
    /// What the scan noticed, in sentences.
    pub(super) warnings: Vec<String>,
}

impl Evolver {
    /// The skill, as it is in use.
    ///
    /// # Errors
    /// [`SourceError::NotFound`].
    fn skill(&self, name: &str) -> Result<Arc<Skill>, SourceError> {
        let shown: String = name.chars().take(80).collect();
        let none = || SourceError::NotFound(format!("there is no skill {shown:?}"));
        self.library.loaded().get(name).cloned().ok_or_else(none)
    }

    /// Refuses an agent that does not have the skill, as if there were none.
    ///
    /// # Errors
    /// [`SourceError::NotFound`].
    pub(super) fn check_grant(&self, manifest: &Manifest, change: &Change) -> Result<(), SourceError> {
        if matches!(change.action, Action::Create { .. }) {
            return Ok(());
        }
        let skill = self.skill(&change.skill)?;
        if has(manifest, &skill) {
            return Ok(());
        }
        Err(SourceError::NotFound(format!("there is no skill {:?}", skill.name)))
    }

    /// May an agent make the change by itself, where the configuration lets agents change skills? What runs, and what takes the
    /// work of others away, is for a person to decide.
    pub(super) fn is_harmless(&self, change: &Change) -> bool {
        let is_text = || self.skill(&change.skill).is_ok_and(|skill| skill.runtime == Runtime::PromptOnly);
        match &change.action {
            Action::Create { .. } => true,
            Action::Update { .. } | Action::Patch { .. } => is_text(),
            Action::WriteFile { path, .. } | Action::RemoveFile { path } => !path.starts_with("scripts/") && is_text(),
            Action::Rollback { .. } | Action::Delete => false,
        }
    }

    /// An installed skill with its files.
    ///
    /// # Errors
    /// [`SourceError::NotFound`], [`SourceError::TooLarge`], or the disk's.
    pub(super) fn present(&self, name: &str) -> Result<Present, SourceError> {
        let skill = self.skill(name)?;
        let folder = skill.folder.clone();
        let of_home = folder.parent() == Some(self.folders.root());
        let Some(folder_name) = folder.file_name().and_then(|name| name.to_str()).filter(|_| of_home) else {
            return Err(SourceError::Bundled(name.to_owned()));
        };
        let (folder_name, version) = (folder_name.to_owned(), skill.version.to_string());
        let (content, history) = (Content::read(&folder)?, History::read(&folder));
        Ok(Present { folder_name, folder, content, version, history })
    }

    /// What would come of a change, scanned.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub(super) fn draft(&self, change: &Change, author: &str) -> Result<(Draft, Option<Present>), SourceError> {
        change.check()?;
        if let Action::Create { description, prompt_context, tags } = &change.action {
            if self.library.loaded().get(&change.skill).is_some() {
                return Err(SourceError::Exists(change.skill.clone()));
            }
            let content = create(&change.skill, (description, prompt_context, tags), author);
            return Ok((scanned(content, FIRST_VERSION.to_owned())?, None));
        }
        let present = self.present(&change.skill)?;
        Ok((drafted(change, &present)?, Some(present)))
    }

    /// Makes a change, and puts it to use.
    ///
    /// # Errors
    /// Those of [`apply`](agentsvc_api::skill_evolution::evolution::SkillEvolution::apply).
    pub(super) fn make(&self, change: &Change, author: &str, proposal: Option<Uuid>) -> Result<Changed, SourceError> {
        change.check()?;
        let lock = self.lock(change)?;
        // Behind the lock: what is read is what is replaced.
        let (draft, present) = self.draft(change, author)?;
        if matches!(change.action, Action::Delete) {
            lock.remove()?;
            self.library.reload();
            let (skill, version) = (change.skill.clone(), draft.version);
            return Ok(Changed { skill, version, content_hash: String::new(), warnings: Vec::new() });
        }
        let content_hash = draft.content.hash();
        let entry = Version {
            version: draft.version.clone(),
            timestamp: timestamp(Moment(now())),
            changelog: changelog(change),
            content_hash: content_hash.clone(),
            author: author.to_owned(),
            proposal,
        };
        let staging = self.staged(change, &draft, (present.as_ref(), entry))?;
        let put = if present.is_some() { Put::Replace } else { Put::New };
        staging.put(&lock, put)?;
        self.library.reload();
        let Draft { version, warnings, .. } = draft;
        Ok(Changed { skill: change.skill.clone(), version, content_hash, warnings })
    }

    fn lock(&self, change: &Change) -> Result<NameLock, SourceError> {
        if matches!(change.action, Action::Create { .. }) {
            return Ok(self.folders.lock(&change.skill)?);
        }
        let skill = self.skill(&change.skill)?;
        let name = skill.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(self.folders.lock(&name)?)
    }

    /// The folder that is to take the place of the skill: its files, its history, and the versions that are kept.
    fn staged(
        &self,
        change: &Change,
        draft: &Draft,
        (present, entry): (Option<&Present>, Version),
    ) -> Result<Staging, SourceError> {
        let mut history = present.map(|present| present.history.clone()).unwrap_or_default();
        let is_text = matches!(change.action, Action::Update { .. } | Action::Patch { .. } | Action::Rollback { .. });
        if let Some(present) = present {
            history.note_present(present.as_version());
            history.evolution_count += u64::from(is_text);
            history.mutation_count += 1;
        }
        history.push(entry);
        let mut staging = self.folders.stage()?;
        draft.content.write(&mut staging)?;
        staging.write(FILE, &mut &history.to_json()[..], false)?;
        let mut kept: Vec<(&str, Vec<u8>)> = Vec::new();
        for version in &history.versions {
            let hash = version.content_hash.as_str();
            if !is_hash(hash) || kept.iter().any(|(other, _)| *other == hash) {
                continue;
            }
            let bytes = match present {
                _ if hash == draft.content.hash() => Some(draft.content.to_kept()),
                Some(present) if hash == present.content.hash() => Some(present.content.to_kept()),
                Some(present) => small(&present.kept_path(hash)),
                None => None,
            };
            kept.extend(bytes.map(|bytes| (hash, bytes)));
        }
        for (hash, bytes) in kept {
            staging.write(&format!("{KEPT}/{hash}.json"), &mut &bytes[..], false)?;
        }
        let read = crate::skill::read(&staging.path());
        read.map_err(|error| SourceError::Manifest(format!("the changed skill is not valid: {error}")))?;
        Ok(staging)
    }
}

impl Present {
    /// Its content hash.
    pub(super) fn hash(&self) -> String {
        self.content.hash()
    }

    /// What a change that was made before has come to.
    pub(super) fn as_changed(&self) -> Changed {
        let (skill, version, content_hash) = (self.folder_name.clone(), self.version.clone(), self.hash());
        Changed { skill, version, content_hash, warnings: Vec::new() }
    }

    fn as_version(&self) -> Version {
        let changelog = if self.history.versions.is_empty() { "installed" } else { "changed outside of this history" };
        Version {
            version: self.version.clone(),
            timestamp: timestamp(Moment(now())),
            changelog: changelog.to_owned(),
            content_hash: self.hash(),
            ..Version::default()
        }
    }

    fn kept_path(&self, hash: &str) -> PathBuf {
        self.folder.join(KEPT).join(format!("{hash}.json"))
    }

    /// The files of an earlier version, and its number.
    fn earlier(&self, version: Option<&str>) -> Result<(Content, String), SourceError> {
        let none = || match version {
            Some(version) => format!("version: the skill has no version {version:?}"),
            None => "the skill has no earlier version".to_owned(),
        };
        let target = self.history.target(version, &self.hash()).ok_or_else(|| conflict(none()))?;
        let hash = &target.content_hash;
        // The history may have been written by another program: only a hash names a file.
        let kept = is_hash(hash).then(|| small(&self.kept_path(hash))).flatten();
        let content = kept.and_then(|bytes| Content::from_kept(&bytes, hash));
        let gone = || conflict(format!("the files of version {:?} were not kept", target.version));
        Ok((content.ok_or_else(gone)?, target.version.clone()))
    }
}

/// What a change makes of an installed skill.
fn drafted(change: &Change, present: &Present) -> Result<Draft, SourceError> {
    let hash = present.hash();
    if change.content_hash.as_ref().is_some_and(|wanted| *wanted != hash) {
        let why = format!("content_hash: the skill was changed meanwhile; its content hash is {hash} now");
        return Err(conflict(why));
    }
    match &change.action {
        Action::Delete => {
            return Ok(Draft { content: Content::default(), version: present.version.clone(), warnings: Vec::new() });
        }
        Action::Rollback { version } => {
            let (content, version) = present.earlier(version.as_deref())?;
            return scanned(content, version);
        }
        _ => {}
    }
    let mut content = edited(&present.content, &change.action)?;
    if content == present.content {
        return Err(conflict("the change changes nothing"));
    }
    let known = present.history.versions.iter().map(|version| version.version.as_str());
    let version = next_version(known.chain([present.version.as_str()]));
    set_version(&mut content, &version)?;
    scanned(content, version)
}

/// A draft that the scan passes.
fn scanned(content: Content, version: String) -> Result<Draft, SourceError> {
    content.check_size()?;
    let Scan { refused, warnings } = content.scan();
    let sentence = |found: &Finding| match found.line {
        0 => format!("{}: {}", found.file, found.rule),
        line => format!("{}:{line}: {}", found.file, found.rule),
    };
    if let Some(first) = refused.first() {
        let message = format!("the scan refuses what would come of the change: {}", sentence(first));
        return Err(SourceError::Blocked { message, findings: refused.iter().map(sentence).collect() });
    }
    Ok(Draft { content, version, warnings: warnings.iter().map(sentence).collect() })
}

fn changelog(change: &Change) -> String {
    match (&change.action, change.changelog.as_str()) {
        (Action::Create { .. }, "") => "created".to_owned(),
        (Action::Rollback { version: Some(version) }, "") => format!("rolled back to {version}"),
        (Action::Rollback { version: None }, "") => "rolled back".to_owned(),
        (Action::WriteFile { path, .. }, "") => format!("wrote {path}"),
        (Action::RemoveFile { path }, "") => format!("removed {path}"),
        (_, changelog) => changelog.to_owned(),
    }
}

fn conflict(why: impl Into<String>) -> SourceError {
    SourceError::Files(FilesError::Conflict(why.into()))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
