//! The repository of one working directory: `{home}/checkpoints/<16 hex digits>/.git`, as Git itself would have it.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agentsvc_components::kernel::holder::Holder;

use super::object::{self, Commit, Files, ID_DIGITS, ObjectId, Objects};
use crate::kernel::disk;
use crate::kernel::home::{create_private_dir, private_file};

/// Commits that are kept.
pub(super) const COMMITS_MAX: usize = 1_000;
/// Commits more than [`COMMITS_MAX`] at which the oldest are deleted: not at each commit.
const COMMITS_SLACK: usize = 100;
/// Bytes of the objects of a repository. More: the older half of its commits is deleted.
const BYTES_MAX: u64 = 256 << 20;
/// The branch.
const BRANCH: &str = "refs/heads/main";
/// What a repository says of itself.
const CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n";
/// The names of files that tools have made, one a line.
const WRITTEN: &str = "written";
/// How many bytes its objects take, as text.
const SIZE: &str = "size";
/// Of whose share of the space it is, as JSON.
const HOLDER: &str = "holder";
/// Bytes of the names.
const WRITTEN_BYTES_MAX: u64 = 1 << 20;
/// Bytes of them that are read: one name comes on top.
const WRITTEN_READ_MAX: u64 = WRITTEN_BYTES_MAX + (64 << 10);
/// Bytes of the path that a repository is of.
const WORKING_DIR_BYTES_MAX: u64 = 8 << 10;

/// Why a commit was not found by its digits.
#[derive(Debug)]
pub(super) enum NotFound {
    /// No commit begins with them.
    None,
    /// More than one does.
    Ambiguous,
    /// The disk failed.
    Failed(io::Error),
}

/// Says which file of the repository it was.
fn named(name: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// A repository. All calls block on the disk; one caller at a time.
#[derive(Debug)]
pub(super) struct Repository {
    git: PathBuf,
    objects: Objects,
    head: Option<ObjectId>,
    /// Commits from the head on.
    commits: usize,
}

impl Repository {
    /// The repository in `dir`; `None` when there is none.
    pub(super) fn find(dir: &Path) -> io::Result<Option<Self>> {
        let git = dir.join(".git");
        if disk::there(fs::metadata(git.join("HEAD")))?.is_none() {
            return Ok(None);
        }
        let head = match disk::there(disk::read_small_text(&git.join(BRANCH))).map_err(named(BRANCH))? {
            Some(text) => ObjectId::parse(text.trim()),
            None => None,
        };
        let mut found = Self { objects: object::of(&git), git, head, commits: 0 };
        if found.head.is_some_and(|head| found.objects.commit(head).is_err()) {
            // A machine that lost its power: begin anew. Commits that can be read are still found by their ids.
            tracing::warn!(path = %dir.display(), "the newest checkpoint cannot be read; a new history begins");
            found.head = None;
        }
        found.commits = found.log().count();
        found.objects.measure()?;
        Ok(Some(found))
    }

    /// The repository in `dir`, made when there is none.
    pub(super) fn open(dir: &Path, working_dir: &str) -> io::Result<Self> {
        if let Some(found) = Self::find(dir)? {
            return Ok(found);
        }
        let git = dir.join(".git");
        for below in ["objects", "refs/heads"] {
            create_private_dir(&git.join(below)).map_err(io::Error::other)?;
        }
        disk::replace(&git.join("config"), CONFIG.as_bytes())?;
        disk::replace(&git.join("description"), format!("{working_dir}\n").as_bytes())?;
        // With it the repository is whole.
        disk::replace(&git.join("HEAD"), format!("ref: {BRANCH}\n").as_bytes())?;
        Ok(Self { objects: object::of(&git), git, head: None, commits: 0 })
    }

    /// The newest commit of the repository in `dir`, if it can be read.
    pub(super) fn newest(dir: &Path) -> Option<Commit> {
        let git = dir.join(".git");
        let head = ObjectId::parse(disk::read_small_text(&git.join(BRANCH)).ok()?.trim())?;
        object::of(&git).commit(head).ok()
    }

    /// The working directory that the repository in `dir` is of.
    pub(super) fn working_dir(dir: &Path) -> Option<String> {
        let path = dir.join(".git/description");
        let text = String::from_utf8(disk::read_small(&path, WORKING_DIR_BYTES_MAX).ok()?).ok()?;
        text.strip_suffix('\n').filter(|text| text.starts_with('/')).map(str::to_owned)
    }

    /// Bytes of the objects of the repository in `dir`, about, and when it was last used; `None` when there is none.
    pub(super) fn size(dir: &Path) -> Option<(u64, SystemTime)> {
        let git = dir.join(".git");
        let used = fs::metadata(git.join(BRANCH)).or_else(|_| fs::metadata(&git)).ok()?.modified().ok()?;
        let noted = disk::read_small_text(&git.join(SIZE)).ok().and_then(|text| text.trim().parse().ok());
        let measured = || {
            let objects = object::of(&git);
            objects.measure().ok().map(|()| objects.bytes())
        };
        Some((noted.or_else(measured)?, used))
    }

    /// Of whose share the repository in `dir` is, as far as that was noted.
    pub(super) fn holder(dir: &Path) -> Option<Holder> {
        let text = disk::read_small_text(&dir.join(".git").join(HOLDER)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Notes of whose share it is.
    pub(super) fn note_holder(&self, holder: Holder) -> io::Result<()> {
        self.write("holder.new", HOLDER, &serde_json::to_string(&holder)?)
    }

    /// Commits that there are.
    pub(super) const fn commits(&self) -> usize {
        self.commits
    }

    /// Files that tools have made: no checkpoint has them before they are written again, or others are.
    pub(super) fn written(&self) -> io::Result<Vec<String>> {
        let text = disk::there(disk::read_small(&self.git.join(WRITTEN), WRITTEN_READ_MAX)).map_err(named(WRITTEN))?;
        let text = String::from_utf8_lossy(text.as_deref().unwrap_or_default());
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Notes a file that a tool is about to make.
    pub(super) fn note_written(&self, path: &str) -> io::Result<()> {
        let mut file = private_file().append(true).create(true).open(self.git.join(WRITTEN))?;
        if file.metadata()?.len() > WRITTEN_BYTES_MAX {
            // Those that are still there are in the newest commit.
            file.set_len(0)?;
        }
        writeln!(file, "{path}")
    }

    /// Its objects.
    pub(super) const fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The newest commit.
    pub(super) const fn head(&self) -> Option<ObjectId> {
        self.head
    }

    /// The commits, newest first, as far as they can be read.
    pub(super) fn log(&self) -> impl Iterator<Item = (ObjectId, Commit)> {
        let mut next = self.head;
        std::iter::from_fn(move || {
            let id = next.take()?;
            let commit = self.objects.commit(id).ok()?;
            next = commit.parent;
            Some((id, commit))
        })
        .take(COMMITS_MAX + COMMITS_SLACK)
    }

    /// Commits these files.
    pub(super) fn commit(&mut self, files: &Files, at: i64, message: String) -> io::Result<ObjectId> {
        let tree = self.objects.put_tree(files)?;
        let id = self.objects.put_commit(&Commit { tree, parent: self.head, at, message })?;
        self.point(id)?;
        self.head = Some(id);
        self.commits += 1;
        if self.commits >= COMMITS_MAX + COMMITS_SLACK {
            self.forget_old(COMMITS_MAX)?;
        } else if self.objects.bytes() > BYTES_MAX && self.commits > 1 {
            self.forget_old(self.commits / 2)?;
        }
        self.write("size.new", SIZE, &self.objects.bytes().to_string())?;
        Ok(id)
    }

    /// Makes this commit the newest. Without waiting for the disk: what the tool is about to write does not wait either.
    fn point(&self, id: ObjectId) -> io::Result<()> {
        self.write("head.new", BRANCH, &id.to_string())
    }

    /// Writes a line to the file `to`, by way of the file `fresh`.
    fn write(&self, fresh: &str, to: &str, line: &str) -> io::Result<()> {
        let (path, fresh) = (self.git.join(to), self.git.join(fresh));
        let mut file = private_file().write(true).create(true).truncate(true).open(&fresh)?;
        writeln!(file, "{line}")?;
        fs::rename(fresh, path)
    }

    /// The commit that these 4 to 40 digits name.
    pub(super) fn resolve(&self, digits: &str) -> Result<(ObjectId, Commit), NotFound> {
        let digits = digits.to_ascii_lowercase();
        let candidates = match digits.len() {
            ID_DIGITS => ObjectId::parse(&digits).into_iter().collect(),
            _ => self.objects.beginning_with(&digits).map_err(NotFound::Failed)?,
        };
        let mut found = candidates.into_iter().filter_map(|id| Some((id, self.objects.commit(id).ok()?)));
        match (found.next(), found.next()) {
            (Some(commit), None) => Ok(commit),
            (Some(_), Some(_)) => Err(NotFound::Ambiguous),
            (None, _) => Err(NotFound::None),
        }
    }

    /// Deletes all but the newest commits and what only the others have. Git calls a history that was cut a shallow one.
    fn forget_old(&mut self, keep: usize) -> io::Result<()> {
        let kept: Vec<(ObjectId, Commit)> = self.log().take(keep).collect();
        let Some((oldest, _)) = kept.last() else { return Ok(()) };
        disk::replace(&self.git.join("shallow"), format!("{oldest}\n").as_bytes())?;
        let mut wanted: HashSet<ObjectId> = HashSet::new();
        for (id, commit) in &kept {
            wanted.insert(*id);
            if wanted.contains(&commit.tree) {
                continue;
            }
            let mut trees = Vec::new();
            // One that is damaged cannot be restored; it keeps nothing.
            if let Ok(files) = self.objects.files(commit.tree, &mut |tree| trees.push(tree)) {
                wanted.extend(trees);
                wanted.extend(files.values().map(|file| file.id));
            }
        }
        let removed = self.objects.keep(&|id| wanted.contains(&id))?;
        tracing::debug!(removed, "deleted the oldest checkpoints of a working directory");
        self.commits = kept.len();
        Ok(())
    }
}
