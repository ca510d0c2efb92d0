//! Keeps the files of working directories before tools change them.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::kernel::record::hex;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;

use super::object::{FileEntry, Files, Kind, ObjectId};
use super::repository::Repository;
use super::rules::{FILE_BYTES_MAX, is_kept};
use super::sizes::Sizes;
use crate::kernel::disk;
use crate::kernel::free_space;
use crate::kernel::home::create_private_dir;
use crate::kernel::sandbox::{Error, Workspace, WorkspacePath, Workspaces};

/// Files of a working directory that are kept. Of more, those that a call does not change are left out.
const FILES_MAX: usize = 2_000;
/// Repositories that stay open, so that what is in them is not read again.
const OPEN_MAX: usize = 128;
/// Bytes of the objects of all repositories. More: those of the directories that were not used for longest are deleted.
const TOTAL_BYTES_MAX: u64 = 4 << 30;
/// How long a tool waits for a restore of its directory, or for another tool there. Longer: it goes on without a checkpoint.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Deleted agents that wait for the deletion of their checkpoints.
const GONE_MAX: usize = 10_000;
/// How long a tool waits for a look at files that it does not change. The others stay as they were last seen.
const LOOK_TIME_MAX: Duration = Duration::from_millis(500);
/// Bytes that must be free for a checkpoint.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// Characters of a path in a message.
const PATH_CHARS_MAX: usize = 80;
/// A file that changed less long ago may change again and look the same.
const SETTLED: Duration = Duration::from_secs(2);
/// The bit of a mode that lets the owner run a file.
const EXECUTABLE: u32 = 0o100;

/// What is about to change files.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// `file_write`, for instance.
    pub(crate) tool: &'static str,
    /// Whose files, if that is known.
    pub(crate) agent: Option<AgentId>,
    /// `None` where there is no conversation.
    pub(crate) session: Option<SessionId>,
    /// Of whose share the checkpoints are; `None`: of who had them before.
    pub(crate) holder: Option<Holder>,
}

impl Change {
    /// The subject, and whose change it is (spec 2, Checkpoint manager 2).
    fn message(&self, paths: &[String]) -> String {
        let (first, more) = (paths.first().map_or("", String::as_str), paths.len().saturating_sub(1));
        let path: String = first.chars().take(PATH_CHARS_MAX).collect();
        let more = if more == 0 { String::new() } else { format!(" (+{more})") };
        let agent = self.agent.map(|agent| format!("agent: {agent}\n")).unwrap_or_default();
        let session = self.session.map(|session| format!("session: {session}\n")).unwrap_or_default();
        format!("{}: {path}{more}\n\n{agent}{session}", self.tool)
    }
}

/// The repositories of all working directories. Copies share them; the default has none and keeps nothing. All calls block
/// on the disk.
#[derive(Clone, Default)]
pub(crate) struct CheckpointStore(Option<Arc<Shared>>);

struct Shared {
    root: PathBuf,
    limits: Limits,
    places: Mutex<HashMap<PathBuf, Place>>,
    sizes: Mutex<Sizes>,
    /// Deleted agents whose checkpoints are still to be deleted.
    gone: Mutex<Gone>,
}

/// What the repositories are kept within.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of the objects of all repositories.
    pub(super) total_bytes: u64,
    /// How long a tool waits for a restore, or for another tool that changes files.
    pub(super) wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total_bytes: TOTAL_BYTES_MAX, wait: WAIT_MAX }
    }
}

/// See [`Shared::gone`].
#[derive(Default)]
struct Gone {
    agents: Vec<AgentId>,
    /// A thread deletes them.
    is_worked_on: bool,
}

/// Locked by what changes a working directory or its repository.
pub(super) type Place = Arc<Mutex<Option<Open>>>;

/// A repository, and its files as they were last seen.
pub(super) struct Open {
    pub(super) repository: Repository,
    /// `None`: it is about to be made.
    files: BTreeMap<String, Option<Seen>>,
}

#[derive(Clone, Copy)]
struct Seen {
    file: FileEntry,
    /// What the file looked like, unless it had changed too shortly before.
    stamp: Option<Stamp>,
}

/// A file that looks the same has not changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: u64,
    size: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Option<Self> {
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(found.ctime()).ok()?);
        let is_settled = changed.elapsed().is_ok_and(|ago| ago > SETTLED);
        let changed = (found.ctime(), found.ctime_nsec());
        is_settled.then(|| Self { file: found.ino(), size: found.size(), mode: found.mode(), changed })
    }
}

impl CheckpointStore {
    /// The repositories under `root`, `{home}/checkpoints`.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self::within(root, Limits::default())
    }

    /// The same, within other limits.
    pub(super) fn within(root: PathBuf, limits: Limits) -> Self {
        let (places, sizes, gone) = Default::default();
        Self(Some(Arc::new(Shared { root, limits, places, sizes, gone })))
    }

    /// Keeps the files at `paths` of the workspace as they are, and then makes the change. What cannot be kept is logged; the
    /// change is made all the same (spec 2, Checkpoint manager 6). Says whether it waited too long for its turn and was made
    /// without a checkpoint.
    pub(crate) fn around<T>(
        &self,
        workspace: &Workspace,
        (by, paths): (&Change, &[&str]),
        make: impl FnOnce() -> T,
    ) -> (T, bool) {
        let (Some(dir), Some(working_dir)) = (self.dir(workspace.path()), workspace.path().to_str()) else {
            return (make(), false);
        };
        let place = self.place(&dir);
        let Some(mut open) = place.try_lock_for(self.limits().wait) else {
            tracing::warn!(tool = by.tool, %working_dir, "no checkpoint was made: files there are being changed for too long");
            return (make(), true);
        };
        if paths.iter().any(|path| is_kept(path)) {
            let kept = keep(&mut open, (&dir, working_dir), workspace, (by, paths));
            match (kept, &*open) {
                (Err(error), _) => {
                    tracing::warn!(%error, tool = by.tool, %working_dir, "no checkpoint could be made");
                }
                (Ok(_), Some(open)) => self.note_size(&dir, &open.repository, by.holder),
                (Ok(_), None) => {}
            }
        }
        (make(), false)
    }

    fn limits(&self) -> Limits {
        self.0.as_ref().map_or_else(Limits::default, |shared| shared.limits)
    }

    /// Notes how much the repository in `dir` takes now. While those of its holder take more than a share, or all more than they may,
    /// those go that were not used for longest; one that is being used stays.
    pub(super) fn note_size(&self, dir: &Path, repository: &Repository, holder: Option<Holder>) {
        let Some(shared) = &self.0 else { return };
        let over = {
            let mut sizes = shared.sizes.lock();
            sizes.read(&shared.root);
            if let Some(holder) = holder.filter(|_| sizes.holder(dir) != holder)
                && let Err(error) = repository.note_holder(holder)
            {
                tracing::warn!(%error, path = %dir.display(), "it could not be noted whose checkpoints these are");
            }
            sizes.set(dir, repository.objects().bytes(), holder);
            sizes.oldest_over(shared.limits.total_bytes, dir)
        };
        for dir in over {
            tracing::warn!(path = %dir.display(), "deleted checkpoints: all of them, or those of one share, take too much space");
            self.delete(&dir);
        }
    }

    /// Deletes the repository in `dir`, unless it is being used.
    fn delete(&self, dir: &Path) {
        let Some(shared) = &self.0 else { return };
        let place = self.place(dir);
        let Some(mut open) = place.try_lock() else { return };
        *open = None;
        match disk::there(fs::remove_dir_all(dir)) {
            Ok(_) => shared.sizes.lock().forget(dir),
            Err(error) => tracing::warn!(%error, path = %dir.display(), "checkpoints could not be deleted"),
        }
    }

    /// Deletes the checkpoints of a deleted agent's workspace, soon. Never waits.
    pub(crate) fn forget(&self, agent: AgentId, workspaces: &Workspaces, handle: &Handle) {
        let Some(shared) = &self.0 else { return };
        let mut gone = shared.gone.lock();
        // What is left out here goes when all take too much space.
        if gone.agents.len() < GONE_MAX {
            gone.agents.push(agent);
        }
        if !std::mem::replace(&mut gone.is_worked_on, true) {
            let (store, workspaces) = (self.clone(), workspaces.clone());
            drop(handle.spawn_blocking(move || store.delete_gone(&workspaces)));
        }
    }

    fn delete_gone(&self, workspaces: &Workspaces) {
        let Some(shared) = &self.0 else { return };
        loop {
            let next = {
                let mut gone = shared.gone.lock();
                let next = gone.agents.pop();
                gone.is_worked_on = next.is_some();
                next
            };
            let Some(agent) = next else { return };
            if let Some(dir) = workspaces.path_of(agent).and_then(|path| self.dir(&path)).filter(|dir| dir.exists()) {
                self.delete(&dir);
            }
        }
    }

    /// Are checkpoints of deleted agents still to be deleted?
    #[cfg(test)]
    pub(super) fn is_forgetting(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.gone.lock().is_worked_on)
    }

    /// Where the repository of a working directory is.
    pub(super) fn dir(&self, working_dir: &Path) -> Option<PathBuf> {
        let digest = Sha256::digest(working_dir.to_str()?.as_bytes());
        Some(self.0.as_ref()?.root.join(hex(&digest[..8])))
    }

    /// Where all repositories are.
    pub(super) fn root(&self) -> Option<&Path> {
        self.0.as_ref().map(|shared| shared.root.as_path())
    }

    /// The place of the repository in `dir`. Many that are not in use are forgotten.
    pub(super) fn place(&self, dir: &Path) -> Place {
        let Some(shared) = &self.0 else { return Place::default() };
        let mut places = shared.places.lock();
        if places.len() >= OPEN_MAX && !places.contains_key(dir) {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(places.entry(dir.to_owned()).or_default())
    }
}

/// Commits the files at `paths` and all that were kept before, as they are now.
///
/// # Errors
/// The disk's. The repository is opened anew the next time.
pub(super) fn keep(
    open: &mut Option<Open>,
    (dir, working_dir): (&Path, &str),
    workspace: &Workspace,
    (by, paths): (&Change, &[&str]),
) -> io::Result<ObjectId> {
    free_space::check(dir.parent().filter(|root| root.exists()).unwrap_or(workspace.path()), FREE_BYTES_MIN)?;
    let mut taken = match open.take() {
        Some(open) => open,
        None => Open::new(dir, working_dir)?,
    };
    let paths = paths.iter().filter_map(|path| Some(WorkspacePath::parse(path).ok()?.as_str().to_owned()));
    let paths: Vec<String> = paths.collect();
    taken.look_at_all(workspace, &paths)?;
    let files: Files =
        taken.files.iter().filter_map(|(path, seen)| Some((path.clone(), seen.as_ref()?.file))).collect();
    let commit =
        taken.repository.commit(&files, agentsvc_api::http::timestamp::now().timestamp(), by.message(&paths))?;
    *open = Some(taken);
    Ok(commit)
}

impl Open {
    fn new(dir: &Path, working_dir: &str) -> io::Result<Self> {
        create_private_dir(dir).map_err(io::Error::other)?;
        Self::of(Repository::open(dir, working_dir)?)
    }

    /// The repository in `dir` with the files of its newest commit; `None` when there is none.
    pub(super) fn find(dir: &Path) -> io::Result<Option<Self>> {
        Repository::find(dir)?.map(Self::of).transpose()
    }

    fn of(repository: Repository) -> io::Result<Self> {
        let files = match repository.head() {
            Some(head) => {
                let tree = repository.objects().commit(head)?.tree;
                // Damage of the newest tree costs the files that are not changed from now on.
                repository.objects().files(tree, &mut |_| {}).unwrap_or_default()
            }
            None => Files::new(),
        };
        let seen = |(path, file)| (path, Some(Seen { file, stamp: None }));
        let mut files: BTreeMap<String, Option<Seen>> = files.into_iter().map(seen).collect();
        for path in repository.written()? {
            files.entry(path).or_default();
        }
        Ok(Self { repository, files })
    }

    /// Is the file in the newest commit as it is?
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(Option::is_some)
    }

    /// Looks at the files at `paths`, and at those that are kept already.
    fn look_at_all(&mut self, workspace: &Workspace, paths: &[String]) -> io::Result<()> {
        let begun = Instant::now();
        for path in paths.iter().filter(|path| is_kept(path)) {
            self.look_at(workspace, path)?;
            if !self.files.contains_key(path) {
                self.repository.note_written(path)?;
                self.files.insert(path.clone(), None);
            }
        }
        let others: Vec<String> = self.files.keys().filter(|path| !paths.contains(path)).cloned().collect();
        // Of those that are about to be made, it is not known whether they are there.
        let mut too_many = self.files.values().flatten().count().saturating_sub(FILES_MAX);
        for path in &others {
            if too_many > 0 && self.files.get(path).is_some_and(Option::is_some) {
                self.files.remove(path);
                too_many -= 1;
            } else if begun.elapsed() > LOOK_TIME_MAX {
                tracing::debug!(path = %workspace.path().display(), "a checkpoint has files as they were last seen");
                break;
            } else {
                self.look_at(workspace, path)?;
            }
        }
        Ok(())
    }

    /// Keeps one file as it is; what is no file, not there, or too large is not kept.
    fn look_at(&mut self, workspace: &Workspace, path: &str) -> io::Result<()> {
        let file = match workspace.open_file(path) {
            Ok((file, _)) => file,
            // Perhaps only now: what was seen last stays.
            Err(Error::Io { .. }) => return Ok(()),
            Err(_) => {
                self.files.remove(path);
                return Ok(());
            }
        };
        let found = file.metadata()?;
        let stamp = Stamp::of(&found);
        if stamp.is_some() && self.files.get(path).is_some_and(|seen| seen.is_some_and(|seen| seen.stamp == stamp)) {
            return Ok(());
        }
        match whole(&file)? {
            Some(content) => {
                let id = self.repository.objects().put(Kind::Blob, &content)?;
                let file = FileEntry { id, is_executable: found.mode() & EXECUTABLE != 0 };
                self.files.insert(path.to_owned(), Some(Seen { file, stamp }));
            }
            None => {
                tracing::debug!(%path, bytes = found.size(), "a file is too large for a checkpoint");
                self.files.remove(path);
            }
        }
        Ok(())
    }
}

/// The content of a file that is not too large.
fn whole(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= FILE_BYTES_MAX).then_some(content))
}
