//! The registry: a repository of skills and more, kept under `{home}/registry` (facts 1.4).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use agentsvc_api::skill_source::sources::{RegistrySkill, SourceError};
use reqwest::Url;
use tokio::sync::{Mutex, Semaphore};

use super::archive;
use super::config::Registry as Settings;
use super::convert::Origin;
use super::fetch::{self, Fetched};
use super::folders::{FolderError, Folders, Leftovers, Put, check_name};
use super::wire::{Whose, Wire, blocking};
use crate::kernel::disk;
use crate::kernel::home::Home;
use crate::skill;

/// How long the copy is taken as it is.
const FRESH: Duration = Duration::from_secs(3_600);
/// Its name in the home.
const NAME: &str = "registry";
/// Where the skills are in it.
const SKILLS: &str = "skills";
/// The file that says where the copy is from. A directory without it is the operator's and stays as it is.
const MARK: &str = ".fetched";
/// Skills that are listed.
const SKILLS_MAX: usize = 2_000;
/// Where the archive of a repository is.
const ARCHIVE: &str = "/archive/refs/heads/main.tar.gz";

/// Where the hands are in it.
const HANDS: &str = "hands";
/// How long a failure is the answer, before the registry is asked again.
const FAILED: Duration = Duration::from_secs(60);
/// Requests that wait for the first copy; the next one is refused.
const WAITING_MAX: usize = 32;

/// The copy of the registry.
pub(super) struct Registry {
    folders: Folders,
    /// Held while it is fetched: one at a time.
    fetching: Arc<Mutex<()>>,
    /// For the requests that wait for that.
    waiting: Semaphore,
    failure: parking_lot::Mutex<Option<Failure>>,
}

/// A fetch that failed.
struct Failure {
    url: String,
    at: Instant,
    why: String,
}

impl Registry {
    pub(super) fn new(home: &Home) -> Arc<Self> {
        let (fetching, waiting) = (Arc::new(Mutex::new(())), Semaphore::new(WAITING_MAX));
        Arc::new(Self {
            folders: Folders::new(home.root().to_owned()),
            fetching,
            waiting,
            failure: parking_lot::Mutex::default(),
        })
    }

    /// What a kill left behind.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn leftovers(&self) -> io::Result<Leftovers> {
        self.folders.leftovers()
    }

    /// Where the registry is. A copy that is older than an hour answers at once, while a newer one is fetched in the background;
    /// a failure is remembered for a minute.
    ///
    /// # Errors
    /// [`SourceError`]: there is no copy, and it cannot be fetched, or too many requests wait for that.
    pub(super) async fn place(self: &Arc<Self>, wire: &Wire, settings: &Settings) -> Result<PathBuf, SourceError> {
        if settings.url.starts_with('/') {
            return Ok(PathBuf::from(&*settings.url));
        }
        let (place, url) = (self.folders.path(NAME), archive_of(&settings.url));
        match self.copy(&url).await? {
            Copy::Fresh | Copy::Operators => return Ok(place),
            Copy::Old => {
                self.refresh(wire, url);
                return Ok(place);
            }
            Copy::None => self.failed_before(&url)?,
        }
        let too_many = |_| SourceError::TooMany(WAITING_MAX);
        let _waiting = self.waiting.try_acquire().map_err(too_many)?;
        let _one = self.fetching.lock().await;
        // The one before may have fetched it, or failed.
        if self.copy(&url).await? == Copy::None {
            self.failed_before(&url)?;
            self.fetch_noted(wire, url).await?;
        }
        Ok(place)
    }

    /// Fetches it in the background, unless that is under way or has just failed.
    fn refresh(self: &Arc<Self>, wire: &Wire, url: String) {
        if self.failed_before(&url).is_err() {
            return;
        }
        let Ok(one) = Arc::clone(&self.fetching).try_lock_owned() else { return };
        let (registry, wire) = (Arc::clone(self), wire.clone());
        tokio::spawn(async move {
            if let Err(error) = registry.fetch_noted(&wire, url).await {
                tracing::warn!(%error, "the registry could not be fetched; the copy of before is used");
            }
            drop(one);
        });
    }

    async fn copy(&self, url: &str) -> Result<Copy, SourceError> {
        let (place, url) = (self.folders.path(NAME), url.to_owned());
        blocking(move || Ok(copy_of(&place, &url).map_err(FolderError::from)?)).await
    }

    /// Has a fetch of this URL just failed?
    fn failed_before(&self, url: &str) -> Result<(), SourceError> {
        match &*self.failure.lock() {
            Some(failure) if failure.url == url && failure.at.elapsed() < FAILED => {
                Err(SourceError::Failed(format!("{}; it is not asked again for a minute", failure.why)))
            }
            _ => Ok(()),
        }
    }

    async fn fetch_noted(&self, wire: &Wire, url: String) -> Result<(), SourceError> {
        let fetched = self.fetch(wire, url.clone()).await;
        let failure = fetched.as_ref().err().map(|error| Failure { url, at: Instant::now(), why: error.to_string() });
        *self.failure.lock() = failure;
        fetched
    }

    async fn fetch(&self, wire: &Wire, url: String) -> Result<(), SourceError> {
        let (staging, file) = fetch::staged(&self.folders).await?;
        let file = wire.archive(&url, Whose::Hub, file).await?.body;
        let folders = self.folders.clone();
        blocking(move || {
            let mut staging = staging;
            unpack(file, &mut staging)?;
            staging.replace(MARK, url.as_bytes())?;
            let lock = folders.lock(NAME)?;
            let put = if lock.installed().map_err(FolderError::from)?.is_some() { Put::Replace } else { Put::New };
            staging.put(&lock, put)?;
            Ok(())
        })
        .await
    }
}

/// Unpacks the archive of a repository: what is in its one directory.
fn unpack(mut file: File, staging: &mut super::staging::Staging) -> Result<(), SourceError> {
    let format = archive::format_of(&mut file).map_err(FolderError::from)?;
    let format = format.ok_or_else(|| SourceError::Failed("the registry is not a zip or tar.gz archive".to_owned()))?;
    archive::unpack(file, format, staging)?;
    let skills = disk::entries(&staging.path()).map_err(FolderError::from)?;
    let inner = match skills.as_slice() {
        [only] if has_content(only) => only.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
        _ => "",
    };
    staging.narrow(inner)?;
    if has_content(&staging.path()) {
        Ok(())
    } else {
        Err(SourceError::Failed("the registry has neither skills/ nor hands/".to_owned()))
    }
}

/// Is this a registry?
fn has_content(place: &Path) -> bool {
    [SKILLS, HANDS].iter().any(|name| place.join(name).is_dir())
}

/// The copy in the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copy {
    Fresh,
    /// From there, but of before.
    Old,
    /// Not fetched by the daemon.
    Operators,
    /// None, or from elsewhere.
    None,
}

fn copy_of(place: &Path, url: &str) -> io::Result<Copy> {
    let mark = place.join(MARK);
    let Some(from) = disk::there(disk::read_text(&mark))? else {
        return Ok(if has_content(place) { Copy::Operators } else { Copy::None });
    };
    if from.trim() != url {
        return Ok(Copy::None);
    }
    let fetched = mark.metadata()?.modified()?;
    // A clock that was set back makes no copy fresh for years.
    let age = SystemTime::now().duration_since(fetched).unwrap_or(FRESH);
    Ok(if age < FRESH { Copy::Fresh } else { Copy::Old })
}

/// The archive of a registry's URL: itself, or that of the repository there.
fn archive_of(url: &str) -> String {
    let path = Url::parse(url).map(|url| url.path().to_ascii_lowercase()).unwrap_or_default();
    let is_archive = [".tar.gz", ".tgz", ".zip", ".tar"].into_iter().any(|end| path.ends_with(end));
    if is_archive { url.to_owned() } else { format!("{}{ARCHIVE}", url.trim_end_matches(".git")) }
}

/// The skills of a registry, by name. What is no skill is left out. Blocks on the disk.
///
/// # Errors
/// The disk's.
pub(super) fn list(registry: &Path) -> io::Result<Vec<RegistrySkill>> {
    let folders = disk::there(disk::entries(&registry.join(SKILLS)))?.unwrap_or_default();
    let names = |folder: PathBuf| Some((folder.file_name()?.to_str()?.to_owned(), folder));
    let named = folders.into_iter().filter_map(names).filter(|(name, _)| check_name(name).is_ok());
    let read = named.take(SKILLS_MAX).filter_map(|(name, folder)| {
        let found =
            skill::read(&folder).inspect_err(|error| tracing::debug!(%error, name, "no skill of the registry")).ok()?;
        let text = |text: &str| super::wire::one_line(text, 1_000);
        let tags = found.tags.iter().take(30).map(|tag| super::wire::one_line(tag, 60)).collect();
        let (description, version, author) = (text(&found.description), text(&found.version), text(&found.author));
        Some(RegistrySkill { name, description, version, author, tags, is_installed: false })
    });
    Ok(read.collect())
}

/// The skill of this name. Blocks on the disk.
///
/// # Errors
/// [`SourceError::NotFound`], and those of a path.
pub(super) fn fetch_skill(
    folders: &Folders,
    registry: &Path,
    name: &str,
    verify: bool,
) -> Result<Fetched, SourceError> {
    check_name(name)?;
    let folder = registry.join(SKILLS).join(name);
    if !folder.is_dir() {
        return Err(SourceError::NotFound(format!("the registry has no skill {name:?}")));
    }
    let mut fetched = fetch::of_path(folders, &folder, verify)?;
    fetched.origin = Origin { kind: "local", fallback: name.to_owned(), ..Origin::default() };
    Ok(fetched)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_repository_is_fetched_as_an_archive() {
        assert_eq!(archive_of("https://x/o/r"), "https://x/o/r/archive/refs/heads/main.tar.gz");
        assert_eq!(archive_of("https://x/o/r.git"), "https://x/o/r/archive/refs/heads/main.tar.gz");
        assert_eq!(archive_of("https://x/r.tar.gz"), "https://x/r.tar.gz");
    }

    #[test]
    fn only_what_was_fetched_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join(NAME);
        let copy = |url: &str| copy_of(&place, url).unwrap();
        assert_eq!(copy("u"), Copy::None);
        fs::create_dir_all(place.join(SKILLS)).unwrap();
        assert_eq!(copy("u"), Copy::Operators);
        fs::write(place.join(MARK), "u").unwrap();
        assert_eq!((copy("u"), copy("other")), (Copy::Fresh, Copy::None));
        let old = SystemTime::now() - 2 * FRESH;
        File::open(place.join(MARK)).unwrap().set_modified(old).unwrap();
        assert_eq!(copy("u"), Copy::Old);
    }

    #[test]
    fn skills_are_listed_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let skills = dir.path().join(SKILLS);
        for (name, text) in [
            ("b", "---\nname: b\ndescription: Does x\nversion: 1.2.0\nauthor: me\ntags: [t]\n---\n"),
            ("a", "---\nname: a\ndescription: Does y\n---\n"),
        ] {
            fs::create_dir_all(skills.join(name)).unwrap();
            fs::write(skills.join(name).join("SKILL.md"), text).unwrap();
        }
        fs::create_dir(skills.join("none")).unwrap();
        let found = list(dir.path()).unwrap();
        let names: Vec<_> = found.iter().map(|skill| (skill.name.as_str(), skill.version.as_str())).collect();
        assert_eq!(names, [("a", "0.1.0"), ("b", "1.2.0")]);
        assert_eq!((found[1].author.as_str(), found[1].tags.len()), ("me", 1));
        let folders = Folders::new(dir.path().join("home"));
        assert_eq!(fetch_skill(&folders, dir.path(), "b", true).unwrap().origin.fallback, "b");
        assert!(matches!(fetch_skill(&folders, dir.path(), "c", true).unwrap_err(), SourceError::NotFound(_)));
        assert!(matches!(fetch_skill(&folders, dir.path(), "..", true).unwrap_err(), SourceError::Blocked { .. }));
    }
}
