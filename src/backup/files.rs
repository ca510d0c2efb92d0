//! The files of a home that go into a backup.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::limit::{BACKUP_DEPTH_MAX, BACKUP_LINKED_MAX, BACKUP_WARNINGS_MAX};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::component::{CONFIG, Component, TREES};
use super::error::{Error, io};
use super::name::{check_entry, is_aside, is_reserved};
use super::write::counted;
use crate::kernel::home::Home;
use crate::kernel::settings::ReadConfig;
use crate::kernel::{disk, openat2};

/// How files are opened.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// What a home has that goes into no backup, or otherwise than as it lies there.
const OWN: [&str; 11] = [
    "api_key.set",
    "clock.json",
    "vault",
    "logs",
    "backups",
    "config.lock",
    "daemon.lock",
    "daemon.json",
    "chat_history",
    "restore.json",
    "restored.json",
];

/// Where the files of a home are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The home.
    pub home: Home,
    /// Its data directory.
    pub data: PathBuf,
    /// Where its backups are, which are in no backup.
    pub backups: PathBuf,
    /// Do files of agents go along?
    pub workspaces: bool,
    /// The data directory as the configuration names it.
    pub data_dir: Option<PathBuf>,
    /// Reads the configuration of an archive.
    pub read: ReadConfig,
}

impl Places {
    /// Is the path the home's, or that of the backups? Where the data directory is the home, that is none of its own.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        let home = self.home.root();
        let trees = TREES.iter().map(|(tree, _)| *tree);
        let mut names = trees.chain([CONFIG]).chain(OWN);
        path == home || *path == self.backups || names.any(|name| path == home.join(name))
    }

    /// What lies in the data directory and belongs into a backup as such: neither the store and what is beside it, nor what
    /// is the home's or nobody's.
    pub(super) fn stored(&self) -> Result<Vec<(String, PathBuf)>, Error> {
        let mut found = children(&self.data).map_err(io("list", &self.data))?;
        found.retain(|(name, path)| !is_reserved(name) && !is_aside(name) && !self.is_own(path));
        Ok(found)
    }

    /// The directories of the home that go into a backup.
    pub(super) fn trees(&self) -> impl Iterator<Item = (&'static str, &'static [Component])> {
        let workspaces = self.workspaces;
        TREES.into_iter().filter(move |(tree, _)| workspaces || *tree != "workspaces")
    }

    /// Where an entry that is no rows file has its file.
    pub(super) fn target(&self, entry: &str) -> PathBuf {
        let (base, rest) = self.base(entry);
        base.join(rest)
    }

    /// Opens what stands where an entry belongs, following no link beneath its directory.
    pub(super) fn open(&self, entry: &str) -> Result<File, Errno> {
        let (base, rest) = self.base(entry);
        let base = File::open(base).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        openat2::no_links(base.as_fd(), rest, READ).map(File::from)
    }

    /// The directory that an entry is from, and its path in it.
    fn base<'a>(&'a self, entry: &'a str) -> (&'a Path, &'a str) {
        match entry.strip_prefix("data/") {
            Some(rest) => (&self.data, rest),
            None => (self.home.root(), entry),
        }
    }
}

/// A device and a file on it.
pub(super) type Inode = (u64, u64);

/// What is known of the files of agents before they are packed.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The names that files with several hard links have in their workspaces.
    linked: HashMap<(String, Inode), u64>,
    /// As how many entries the files of each workspace count.
    counted: HashMap<String, usize>,
    /// As how many all other files do.
    others: usize,
}

impl Names {
    /// Counts a file, and the names of one that an agent owns and that has others. Of more than [`BACKUP_LINKED_MAX`] files
    /// none is counted.
    pub(super) fn add(&mut self, found: &Found<'_>) {
        let entries = counted(found.entry);
        let Some(workspace) = workspace_of(found.entry) else {
            self.others += entries;
            return;
        };
        match self.counted.get_mut(workspace) {
            Some(counted) => *counted += entries,
            None => drop(self.counted.insert(workspace.to_owned(), entries)),
        }
        let key = (workspace.to_owned(), found.inode);
        if found.links > 1 && (self.linked.len() < BACKUP_LINKED_MAX || self.linked.contains_key(&key)) {
            *self.linked.entry(key).or_default() += 1;
        }
    }

    /// The entries that each workspace may have where a backup has at most `max`: all where they fit in, and otherwise so
    /// many that only the largest workspaces lose some.
    pub(super) fn share(&self, max: usize) -> usize {
        let mut counts: Vec<usize> = self.counted.values().copied().collect();
        counts.sort_unstable();
        let mut room = max.saturating_sub(self.others);
        for (n, count) in counts.iter().enumerate() {
            let share = room / (counts.len() - n);
            if *count > share {
                return share;
            }
            room -= count;
        }
        max
    }

    /// Are so many names of a file all in its workspace?
    pub(super) fn are_all_in(&self, entry: &str, inode: Inode, links: u64) -> bool {
        let names = workspace_of(entry).and_then(|workspace| self.linked.get(&(workspace.to_owned(), inode)));
        names == Some(&links)
    }
}

/// The workspace that an entry is from.
pub(super) fn workspace_of(entry: &str) -> Option<&str> {
    let rest = is_agents(entry).then(|| entry.split_once('/'))??.1;
    rest.split('/').next()
}

/// A file that was found. Its directory is open as long as it is looked at: nobody can put another in its place.
pub(super) struct Found<'a> {
    pub(super) entry: &'a str,
    /// Where it was found, for messages.
    pub(super) path: &'a Path,
    /// Bytes, when it was found.
    pub(super) size: u64,
    /// Which file it was, and how many names it had.
    pub(super) inode: Inode,
    pub(super) links: u64,
    parent: BorrowedFd<'a>,
    name: &'a str,
}

impl Found<'_> {
    /// Opens what has its name now: a link is not followed, and nobody waits at a pipe.
    pub(super) fn open(&self) -> Result<File, Errno> {
        openat2::no_links(self.parent, self.name, READ).map(File::from)
    }
}

/// Warnings up to a bound; of the rest only the number.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    list: Vec<String>,
    more: usize,
}

impl Warnings {
    pub(super) fn add(&mut self, text: impl Into<String>) {
        if self.list.len() < BACKUP_WARNINGS_MAX { self.list.push(text.into()) } else { self.more += 1 }
    }

    pub(super) fn into_list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("and {} more", self.more));
        }
        self.list
    }
}

/// What is done with each file. Gives why it is left out, if it is.
type Each<'a> = dyn FnMut(&Found<'_>) -> Result<Option<String>, Error> + 'a;

/// Visits the files of a home that a backup holds. Gives what is left out.
pub(super) fn visit(places: &Places, each: &mut Each<'_>) -> Result<Warnings, Error> {
    let mut walk = Walk { warnings: Warnings::default(), skip: &places.backups, each };
    let vault = places.home.vault_dir();
    let mut roots = vec![(CONFIG.to_owned(), places.home.config_file())];
    // Encrypted ones only: their key, and the key of the audit trail, stay here.
    let sealed =
        children(&vault).map_err(io("list", &vault))?.into_iter().filter(|(name, _)| name.ends_with(".sealed"));
    roots.extend(sealed.map(|(name, path)| (format!("vault/{name}"), path)));
    roots.retain(|(_, path)| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()));
    roots.extend(places.stored()?.into_iter().map(|(name, path)| (format!("data/{name}"), path)));
    roots.extend(places.trees().map(|(tree, _)| (tree.to_owned(), places.home.root().join(tree))));
    roots.sort_unstable();
    for (entry, path) in roots {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let parent = File::open(parent).map_err(io("open", parent))?;
        walk.add(parent.as_fd(), &entry, &path, 0)?;
    }
    Ok(walk.warnings)
}

/// The names in a directory that are text; none when there is none.
pub(super) fn children(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(disk::entries(dir)?.into_iter().map(|path| (name(&path), path)).collect())
}

/// A walk over directories that agents may change meanwhile: each name is opened from its directory, which stays open
/// until all that is in it is done. At most [`BACKUP_DEPTH_MAX`] of them are.
struct Walk<'a> {
    warnings: Warnings,
    /// A directory that is left out.
    skip: &'a Path,
    each: &'a mut Each<'a>,
}

impl Walk<'_> {
    /// A file or a directory with all that is in it. Links are not followed.
    fn add(&mut self, parent: BorrowedFd<'_>, entry: &str, path: &Path, depth: usize) -> Result<(), Error> {
        let Some(name) = path.file_name().and_then(OsStr::to_str) else {
            self.skipped(entry, "its name is not UTF-8");
            return Ok(());
        };
        let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return self.failed("look at", entry, path, error),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if path == self.skip => Ok(()),
            FileType::Directory if depth >= BACKUP_DEPTH_MAX => {
                self.skipped(entry, "it is nested too deeply");
                Ok(())
            }
            FileType::Directory => self.directory(parent, name, entry, path, depth),
            FileType::RegularFile => {
                let size = u64::try_from(stat.st_size).unwrap_or_default();
                let (inode, links) = ((stat.st_dev, stat.st_ino), stat.st_nlink as u64);
                self.file(&Found { entry, path, size, inode, links, parent, name })
            }
            _ => {
                self.skipped(entry, "not a regular file");
                Ok(())
            }
        }
    }

    fn directory(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &str,
        entry: &str,
        path: &Path,
        depth: usize,
    ) -> Result<(), Error> {
        let listed = openat2::directory(parent, name).and_then(|here| Ok((openat2::names(here.as_fd())?, here)));
        let (mut names, here) = match listed {
            Ok(listed) => listed,
            Err(error) => return self.failed("list", entry, path, error),
        };
        names.sort_unstable();
        // Some file systems list a name twice that is deleted and made again meanwhile.
        names.dedup();
        for name in names {
            let name = OsStr::from_bytes(name.to_bytes());
            self.add(here.as_fd(), &format!("{entry}/{}", name.to_string_lossy()), &path.join(name), depth + 1)?;
        }
        Ok(())
    }

    fn file(&mut self, found: &Found<'_>) -> Result<(), Error> {
        if is_passing(found.entry) {
            // Written beside and renamed: it is part of no state.
            return Ok(());
        }
        let skipped = match check_entry(found.entry) {
            Ok(()) => (self.each)(found)?,
            Err(reason) => Some(format!("its name {reason}")),
        };
        if let Some(why) = skipped {
            self.skipped(found.entry, &why);
        }
        Ok(())
    }

    fn skipped(&mut self, entry: &str, why: &str) {
        self.warnings.add(format!("{entry:?} was skipped: {why}"));
    }

    fn failed(&mut self, what: &'static str, entry: &str, path: &Path, error: Errno) -> Result<(), Error> {
        match error {
            // It went while the directory was read.
            Errno::NOENT => {}
            error if is_agents_doing(entry, error) => self.skipped(entry, &format!("it cannot be read: {error}")),
            error => return Err(io(what, path)(error.into())),
        }
        Ok(())
    }
}

/// Is it a file on its way in?
fn is_passing(entry: &str) -> bool {
    let is_ours = ["data/", "uploads/", "agent-types/"].iter().any(|root| entry.starts_with(root));
    is_ours && (entry.ends_with(".new") || entry.ends_with(".part"))
}

/// Is it an agent's doing that something of its workspace cannot be read: it was closed, is leased, or is something else by
/// now? That is no reason to have no backup. What the disk or the system fails at is one.
pub(super) fn is_agents_doing(entry: &str, error: Errno) -> bool {
    let is_of_the_system =
        [Errno::IO, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::NOSPC, Errno::NODEV, Errno::UCLEAN]
            .contains(&error);
    // What plugins keep is theirs, too.
    (is_agents(entry) || entry.starts_with("data/plugins/")) && !is_of_the_system
}

/// Does an agent own what has this entry?
pub(super) fn is_agents(entry: &str) -> bool {
    entry.starts_with("workspaces/")
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
