//! The folders of installed skills, changed whole: a kill at any point leaves the old skill or the new one.
//!
//! ```text
//! {home}/skills/
//!   <name>/                 an installed skill
//!   .staging-<id>/unnamed/  what is to take a name; removed at the next start when it was left behind
//!   .before-<name>/         where the file system cannot exchange two names in one step: the old skill, between two steps
//! ```
//!
//! The way of each change:
//!
//! ```text
//! let staging = folders.stage()?;              // an empty folder that no one else sees
//! staging.copy_tree(&Tree::open(path)?)?;      // what is to be in it
//! staging.write("SKILL.md", text, false)?;     // checked paths, bounded bytes
//! check(staging.path())?;                      // scan, read as a skill
//! let lock = folders.lock(name)?;              // one change of a name at a time
//! staging.put(&lock, Put::New)?;               // durable when it returns; dropped before, nothing of it stays
//! ```
//!
//! All calls block on the disk.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::staging::Staging;
use crate::kernel::disk::{entries, remove_dir, sync_dir};
use crate::kernel::free_space;
use crate::kernel::home::create_private_dir;
use crate::kernel::store::exchange::in_one_step;

/// Files that make a folder a skill.
const SKILL_MANIFESTS: &[&str] = &["SKILL.md", "skill.md", "skills.md", "skill.toml"];
/// How names of folders begin that wait for their place.
const STAGING: &str = ".staging-";
/// How the name begins under which a skill stands between two steps.
const BEFORE: &str = ".before-";
/// The folder in a staging that takes the place of the skill.
pub(super) const CONTENT: &str = "unnamed";
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 200;
/// How long a change waits for another one of the same skill.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Changes that are being prepared at once. Each may take 512 MiB of disk.
const STAGINGS_MAX: usize = 8;

/// Why a skill was not changed. The texts are for clients: no path of the machine stands in them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// The content breaks a rule, or the name does.
    #[error("{0}")]
    Refused(String),
    /// What should be unpacked is damaged, or of a kind that is not known.
    #[error("{0}")]
    Unreadable(String),
    /// More bytes or files than a skill may have.
    #[error("{0}")]
    TooLarge(String),
    /// A skill of this name is installed.
    #[error("skill \"{0}\" is already installed; uninstall it first")]
    Exists(String),
    /// No skill of this name is installed.
    #[error("skill \"{0}\" is not installed")]
    Missing(String),
    /// Another change of this skill, or too many changes, are under way.
    #[error("{0}")]
    Busy(String),
    /// The disk has no space.
    #[error("no space left for the skill")]
    Full,
    /// The disk failed.
    #[error("the folder of the skill could not be read or written")]
    Disk(#[source] io::Error),
}

impl From<io::Error> for FolderError {
    fn from(error: io::Error) -> Self {
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return Self::Full;
        }
        tracing::error!(%error, "a skill could not be read or written");
        Self::Disk(error)
    }
}

/// What may be in the place of a skill that is put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// Nothing: [`FolderError::Exists`] otherwise.
    New,
    /// A skill of this name: [`FolderError::Missing`] otherwise.
    Replace,
}

/// The folders of all installed skills. Copies share their locks.
#[derive(Clone, Debug)]
pub(crate) struct Folders(Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    root: PathBuf,
    /// The files one of which makes a folder what belongs here.
    manifests: &'static [&'static str],
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Names that are being changed, in lower case.
    names: HashSet<String>,
    stagings: usize,
}

/// The folders, as domains find them in the settings: `settings.get::<SkillFolders>()`. `None` before the domains are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkillFolders(pub(crate) Option<Folders>);

/// What [`Folders::leftovers`] found.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// A skill is in its place again.
    pub(crate) is_restored: bool,
    remove: Vec<PathBuf>,
}

impl Leftovers {
    /// Removes what is left. Blocks on the disk, perhaps for long.
    pub(crate) fn remove(self) {
        for path in self.remove {
            if let Err(error) = remove_dir(&path) {
                tracing::warn!(%error, "what is left of a skill could not be removed");
            }
        }
    }
}

impl Folders {
    /// The folders under `root`, `{home}/skills`. There must be one of these for all who change them.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self::with(root, SKILL_MANIFESTS)
    }

    /// The folders of plugins, `{home}/plugins`, which are installed as skills are.
    pub(crate) fn of_plugins(root: PathBuf) -> Self {
        Self::with(root, &["plugin.toml"])
    }

    fn with(root: PathBuf, manifests: &'static [&'static str]) -> Self {
        Self(Arc::new(Shared { root, manifests, state: Mutex::default(), freed: Condvar::new() }))
    }

    /// The files one of which makes a folder what belongs here.
    pub(super) fn manifests(&self) -> &'static [&'static str] {
        self.0.manifests
    }

    /// Where the folders are.
    pub(crate) fn root(&self) -> &Path {
        &self.0.root
    }

    /// Where the skill of this name is or would be.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.root.join(name)
    }

    /// What a kill left behind: brings back a skill that was between two steps, and finds the folders that are to be removed.
    /// For the start of the daemon, before anything is staged.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn leftovers(&self) -> io::Result<Leftovers> {
        let mut found = Leftovers::default();
        for path in entries(&self.0.root)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(STAGING) {
                found.remove.push(path);
            } else if let Some(name) = name.strip_prefix(BEFORE) {
                let place = self.path(name);
                if fs::symlink_metadata(&place).is_ok() {
                    found.remove.push(path);
                } else {
                    fs::rename(&path, &place)?;
                    sync_dir(&self.0.root)?;
                    found.is_restored = true;
                }
            }
        }
        Ok(found)
    }

    /// An empty folder for a skill that is being prepared. It is removed with the value, unless it was [put](Staging::put).
    ///
    /// # Errors
    /// [`FolderError::Busy`] while eight are there, [`FolderError::Full`], or the disk failed.
    pub(crate) fn stage(&self) -> Result<Staging, FolderError> {
        let path = self.0.root.join(format!("{STAGING}{}", unique()?));
        {
            let mut state = self.0.state.lock();
            if state.stagings >= STAGINGS_MAX {
                return Err(FolderError::Busy(format!("{STAGINGS_MAX} skills are being prepared; try again later")));
            }
            state.stagings += 1;
        }
        let place = Place { shared: Arc::clone(&self.0), path, is_removed: false };
        create_private_dir(&place.path.join(CONTENT)).map_err(|error| FolderError::from(io::Error::other(error)))?;
        free_space::check(&self.0.root, 0)?;
        Ok(Staging::new(place))
    }

    /// Takes the name: no other change of this skill is made while the value lives. Waits up to ten seconds.
    ///
    /// # Errors
    /// [`FolderError::Refused`]: it can be no name of a folder. [`FolderError::Busy`]: another change is under way.
    pub(crate) fn lock(&self, name: &str) -> Result<NameLock, FolderError> {
        check_name(name)?;
        let (key, end) = (name.to_lowercase(), Instant::now() + WAIT_MAX);
        let mut state = self.0.state.lock();
        while state.names.contains(&key) {
            if self.0.freed.wait_until(&mut state, end).timed_out() {
                return Err(FolderError::Busy(format!(
                    "another change of skill \"{name}\" is under way; try again later"
                )));
            }
        }
        state.names.insert(key.clone());
        Ok(NameLock { shared: Arc::clone(&self.0), name: name.to_owned(), key })
    }
}

/// A name that no other staging has.
fn unique() -> io::Result<Uuid> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(uuid::Builder::from_random_bytes(random).into_uuid())
}

/// May a folder of a skill have this name?
///
/// # Errors
/// [`FolderError::Refused`]: it is empty, longer than 200 bytes, or has other characters than `A-Z a-z 0-9 . _ -`, the first
/// of them a letter or digit.
pub(crate) fn check_name(name: &str) -> Result<(), FolderError> {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_sound) {
        return Ok(());
    }
    let name: String = name.chars().take(80).collect();
    let rule = "up to 200 of A-Z, a-z, 0-9, `.`, `_` and `-`, the first a letter or digit";
    Err(FolderError::Refused(format!("{name:?} cannot be the name of a skill; use {rule}")))
}

/// A staging folder, removed with the value.
#[derive(Debug)]
pub(super) struct Place {
    shared: Arc<Shared>,
    pub(super) path: PathBuf,
    is_removed: bool,
}

impl Place {
    /// The files one of which makes a folder what belongs here.
    pub(super) fn manifests(&self) -> &'static [&'static str] {
        self.shared.manifests
    }

    /// Removes it now. Blocks on the disk.
    pub(super) fn remove(&mut self) {
        self.is_removed = true;
        remove(&self.shared, &self.path);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let (shared, path) = (Arc::clone(&self.shared), std::mem::take(&mut self.path));
        // A future may be what drops it.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove(&shared, &path))),
            Err(_) => remove(&shared, &path),
        }
    }
}

fn remove(shared: &Shared, path: &Path) {
    if let Err(error) = remove_dir(path) {
        tracing::warn!(%error, "a staged skill could not be removed; the next start removes it");
    }
    shared.state.lock().stagings -= 1;
}

/// Proof that no one else changes the skill of this name.
#[derive(Debug)]
pub(crate) struct NameLock {
    shared: Arc<Shared>,
    name: String,
    key: String,
}

impl NameLock {
    /// The folder of an installed skill whose name differs in case at most.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn installed(&self) -> io::Result<Option<PathBuf>> {
        let is_same =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().to_lowercase() == self.key);
        Ok(entries(&self.shared.root)?.into_iter().find(is_same))
    }

    /// Removes the skill. Durable when it returns.
    ///
    /// # Errors
    /// [`FolderError::Missing`], or the disk failed; the skill is whole then, or gone.
    pub(crate) fn remove(&self) -> Result<(), FolderError> {
        let path = self.shared.root.join(&self.name);
        if fs::symlink_metadata(&path).is_err() {
            return Err(FolderError::Missing(self.name.clone()));
        }
        let gone = self.shared.root.join(format!("{STAGING}{}", unique()?));
        fs::rename(&path, &gone)?;
        sync_dir(&self.shared.root)?;
        // It has no name any more; what cannot be removed now is removed at the next start.
        remove_dir(&gone).unwrap_or_else(|error| tracing::warn!(%error, "the files of a skill could not be removed"));
        Ok(())
    }

    /// Puts the folder at `content` in the place of the skill. Where one is replaced, it stands at `content` afterwards, or
    /// nothing does.
    pub(super) fn put(&self, content: &Path, put: Put) -> Result<PathBuf, FolderError> {
        let place = self.shared.root.join(&self.name);
        match (self.installed()?, put) {
            (Some(_), Put::New) => return Err(FolderError::Exists(self.name.clone())),
            (Some(there), Put::Replace) if there == place => self.exchange(content, &place)?,
            (_, Put::Replace) => return Err(FolderError::Missing(self.name.clone())),
            (None, Put::New) => fs::rename(content, &place)?,
        }
        sync_dir(&self.shared.root)?;
        Ok(place)
    }

    fn exchange(&self, content: &Path, place: &Path) -> io::Result<()> {
        if in_one_step(content, place)?.is_some() {
            return Ok(());
        }
        self.in_two_steps(content, place)
    }

    /// The same where the file system cannot do it in one. A kill between the steps is undone by [`Folders::leftovers`].
    fn in_two_steps(&self, content: &Path, place: &Path) -> io::Result<()> {
        let before = self.shared.root.join(format!("{BEFORE}{}", self.name));
        remove_dir(&before)?;
        fs::rename(place, &before)?;
        sync_dir(&self.shared.root)?;
        fs::rename(content, place).inspect_err(|_| drop(fs::rename(&before, place)))?;
        sync_dir(&self.shared.root)?;
        remove_dir(&before)
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        self.shared.state.lock().names.remove(&self.key);
        self.shared.freed.notify_all();
    }
}

#[cfg(test)]
#[path = "folders_tests.rs"]
mod tests;
