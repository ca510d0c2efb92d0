//! The files of a home that go into a backup.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::limit::{BACKUP_DEPTH_MAX, BACKUP_WARNINGS_MAX};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::component::{CONFIG, Component, TREES};
use super::error::{Error, found_in, io};
use super::name::{check_entry, is_aside, is_reserved};
use super::write::{ArchiveWriter, Kind};
use crate::kernel::disk;
use crate::kernel::free_space;
use crate::kernel::home::{Home, private_file};
use crate::kernel::settings::ReadConfig;

/// Bytes of a file that is read at once; a longer one goes through a copy, so that its size is known when it begins.
const AT_ONCE_BYTES_MAX: u64 = 1 << 20;

/// What a home has that goes into no backup, or otherwise than as it lies there.
const OWN: [&str; 9] = [
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
        match entry.strip_prefix("data/") {
            Some(rest) => self.data.join(rest),
            None => self.home.root().join(entry),
        }
    }
}

/// A file and its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) entry: String,
    pub(super) path: PathBuf,
}

/// What was found, and what was left out.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: Vec<Found>,
    pub(super) warnings: Warnings,
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

/// The files of a home that a backup holds, sorted by entry.
pub(super) fn list(places: &Places) -> Result<Listing, Error> {
    let mut walk = Walk { listing: Listing::default(), skip: places.backups.clone() };
    walk.file(CONFIG.to_owned(), places.home.config_file());
    let vault = places.home.vault_dir();
    for (name, path) in children(&vault).map_err(io("list", &vault))? {
        // Encrypted ones only: their key, and the key of the audit trail, stay here.
        if name.ends_with(".sealed") {
            walk.file(format!("vault/{name}"), path);
        }
    }
    for (name, path) in places.stored()? {
        walk.add(format!("data/{name}"), path, 0)?;
    }
    for (tree, _) in places.trees() {
        walk.add(tree.to_owned(), places.home.root().join(tree), 0)?;
    }
    walk.listing.files.sort_unstable_by(|a, b| a.entry.cmp(&b.entry));
    Ok(walk.listing)
}

/// The names in a directory that are text; none when there is none.
pub(super) fn children(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(disk::entries(dir)?.into_iter().map(|path| (name(&path), path)).collect())
}

struct Walk {
    listing: Listing,
    /// A directory that is left out.
    skip: PathBuf,
}

impl Walk {
    /// A file, if it is one.
    fn file(&mut self, entry: String, path: PathBuf) {
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            self.listing.files.push(Found { entry, path });
        }
    }

    /// A file or a directory with all that is in it. Links are not followed.
    fn add(&mut self, entry: String, path: PathBuf, depth: usize) -> Result<(), Error> {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            // It went while the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if is_agents_doing(&entry, &error) => {
                self.listing.warnings.add(format!("{entry:?} was skipped: it cannot be read: {error}"));
                return Ok(());
            }
            Err(error) => return Err(io("look at", &path)(error)),
        };
        if path.file_name().is_none_or(|name| name.to_str().is_none()) {
            self.listing.warnings.add(format!("{entry:?} was skipped: its name is not UTF-8"));
        } else if metadata.is_dir() {
            if path == self.skip {
                return Ok(());
            }
            if depth >= BACKUP_DEPTH_MAX {
                self.listing.warnings.add(format!("{entry}/ was skipped: nested too deeply"));
                return Ok(());
            }
            let children = match children(&path) {
                Ok(children) => children,
                Err(error) if is_agents_doing(&entry, &error) => {
                    self.listing.warnings.add(format!("{entry}/ was skipped: it cannot be read: {error}"));
                    return Ok(());
                }
                Err(error) => return Err(io("list", &path)(error)),
            };
            for (name, path) in children {
                self.add(format!("{entry}/{name}"), path, depth + 1)?;
            }
        } else if !metadata.is_file() {
            self.listing.warnings.add(format!("{entry:?} was skipped: not a regular file"));
        } else if is_passing(&entry) {
            // Written beside and renamed: it is part of no state.
        } else if let Err(reason) = check_entry(&entry) {
            self.listing.warnings.add(format!("{entry:?} was skipped: its name {reason}"));
        } else {
            self.listing.files.push(Found { entry, path });
        }
        Ok(())
    }
}

/// Is it a file on its way in?
fn is_passing(entry: &str) -> bool {
    let is_ours = ["data/", "uploads/", "agent-types/"].iter().any(|root| entry.starts_with(root));
    is_ours && (entry.ends_with(".new") || entry.ends_with(".part"))
}

/// Is it an agent's doing that something of its workspace cannot be read: it was closed, or is something else by now? That is
/// no reason to have no backup.
fn is_agents_doing(entry: &str, error: &io::Error) -> bool {
    let is_theirs = entry.starts_with("workspaces/");
    is_theirs && matches!(Errno::from_io_error(error), Some(Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::NXIO))
}

/// Adds a file to an archive. Gives why it is left out, if it is. `spool` is where a long one is copied to first.
pub(super) fn pack(archive: &mut ArchiveWriter, found: &Found, spool: &Path) -> Result<Option<String>, Error> {
    let Found { entry, path } = found;
    // What was a file may be something else by now: a link is not followed, and nobody waits at a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Some("it was deleted during the backup".to_owned()));
        }
        Err(error) if is_agents_doing(entry, &error) => return Ok(Some(format!("it cannot be read: {error}"))),
        Err(error) => return Err(io("read", path)(error)),
    };
    let metadata = file.metadata().map_err(io("look at", path))?;
    if !metadata.is_file() {
        return Ok(Some("it is no longer a regular file".to_owned()));
    }
    let size = metadata.len();
    let kind = if metadata.permissions().mode() & 0o100 == 0 { Kind::File } else { Kind::Program };
    if size <= AT_ONCE_BYTES_MAX {
        let mut bytes = Vec::with_capacity(size as usize);
        (&mut file).take(2 * AT_ONCE_BYTES_MAX).read_to_end(&mut bytes).map_err(io("read", path))?;
        // Longer by now: what it was when it was looked at is as good.
        bytes.truncate(AT_ONCE_BYTES_MAX as usize);
        archive.entry(entry, bytes.len() as u64, kind, |out| out.write_all(&bytes).map_err(io("write", path)))?;
        return Ok(None);
    }
    let mut copy =
        private_file().read(true).write(true).create(true).truncate(true).open(spool).map_err(io("create", spool))?;
    // Nobody else needs the name.
    fs::remove_file(spool).map_err(io("remove", spool))?;
    let dir = spool.parent().unwrap_or(Path::new("."));
    free_space::check(dir, size).map_err(io("write", dir))?;
    let size = io::copy(&mut file.take(size), &mut copy).map_err(io("read", path))?;
    copy.seek(SeekFrom::Start(0)).map_err(io("read", spool))?;
    archive.entry(entry, size, kind, |mut out| {
        io::copy(&mut copy, &mut out).map(drop).map_err(|error| found_in("write", spool, error))
    })?;
    Ok(None)
}

/// Copies a stream into a file that only its owner may read. Gives its bytes.
pub(super) fn unpack(input: &mut dyn Read, path: &Path, runs: bool) -> Result<u64, Error> {
    if let Some(dir) = path.parent() {
        crate::kernel::home::create_private_dir(dir).map_err(|error| io("create", dir)(io::Error::other(error)))?;
    }
    let mode = if runs { 0o700 } else { 0o600 };
    let mut file = private_file().mode(mode).write(true).create_new(true).open(path).map_err(io("create", path))?;
    let copied = io::copy(input, &mut file).map_err(|error| found_in("write", path, error))?;
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }

    #[test]
    fn what_is_state_goes_in_and_what_is_not_stays_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in [
            "config.toml",
            "daemon.lock",
            "logs/a.log",
            "vault/vault.key",
            "vault/audit.key",
            "vault/audit.checkpoint",
            "vault/provider-x.sealed",
            "data/world/version",
            "data/world.new-1/version",
            "data/inputs/1.seg",
            "data/snapshots/1.json",
            "data/.restore/new/config.toml",
            "data/rehearsals/1.fires",
            "data/restore.damaged.2/old/bindings.json",
            "data/bindings.json",
            "data/bindings.json.new",
            "data/deep/er/file",
            "skills/s/skill.toml",
            "workspaces/a/notes/x.txt",
            "uploads/.1.part",
            "uploads/1",
            "agent-types/coder.toml",
            "backups/old.tar.zst",
        ] {
            write(root, path);
        }
        std::os::unix::fs::symlink("/etc/passwd", root.join("workspaces/a/link")).unwrap();
        write(root, "workspaces/a/new\nline");
        let home = Home::new(root);
        let mut places = Places {
            data: home.data_dir(None),
            backups: root.join("backups"),
            home,
            workspaces: true,
            data_dir: None,
            read: ReadConfig::default(),
        };
        let listing = list(&places).unwrap();
        let entries: Vec<&str> = listing.files.iter().map(|found| found.entry.as_str()).collect();
        let expected = [
            "agent-types/coder.toml",
            "config.toml",
            "data/bindings.json",
            "data/deep/er/file",
            "skills/s/skill.toml",
            "uploads/1",
            "vault/provider-x.sealed",
            "workspaces/a/notes/x.txt",
        ];
        assert_eq!(entries, expected);
        assert!(listing.files.iter().all(|found| places.target(&found.entry) == found.path));
        let warnings = listing.warnings.into_list();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().any(|text| text.contains("not a regular file")), "{warnings:?}");
        places.workspaces = false;
        assert!(!list(&places).unwrap().files.iter().any(|found| found.entry.starts_with("workspaces")));
    }

    #[test]
    fn what_agents_close_or_exchange_is_left_out() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["link", "pipe", "directory", "gone", "here"] {
            write(root, &format!("workspaces/a/{name}"));
        }
        write(root, "workspaces/b/closed/x");
        let home = Home::new(root);
        let places = Places {
            data: home.data_dir(None),
            backups: root.join("backups"),
            home,
            workspaces: true,
            data_dir: None,
            read: ReadConfig::default(),
        };
        let closed = root.join("workspaces/b/closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let may_all = fs::read_dir(&closed).is_ok();
        let Listing { files, warnings } = list(&places).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        let warnings = warnings.into_list();
        assert_eq!((files.len(), warnings.len()), if may_all { (6, 0) } else { (5, 1) }, "{warnings:?}");
        // Between the listing and the packing.
        for name in ["link", "pipe", "directory", "gone"] {
            fs::remove_file(root.join("workspaces/a").join(name)).unwrap();
        }
        symlink("here", root.join("workspaces/a/link")).unwrap();
        let _pipe = std::os::unix::net::UnixListener::bind(root.join("workspaces/a/pipe")).unwrap();
        fs::create_dir(root.join("workspaces/a/directory")).unwrap();
        let mut archive = ArchiveWriter::begin(&root.join("x.tar.zst")).unwrap();
        let ours = files.iter().filter(|found| found.entry.starts_with("workspaces/a/"));
        let packed = ours.filter(|found| pack(&mut archive, found, &root.join("spool")).unwrap().is_none());
        let packed: Vec<_> = packed.map(|found| found.entry.as_str()).collect();
        assert_eq!(packed, ["workspaces/a/here"]);
    }

    #[test]
    fn backups_among_the_data_are_not_packed_into_backups() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "data/backups/a.tar.zst");
        write(dir.path(), "data/x");
        let home = Home::new(dir.path());
        let backups = dir.path().join("data/backups");
        let places = Places {
            data: home.data_dir(None),
            backups,
            home,
            workspaces: true,
            data_dir: None,
            read: ReadConfig::default(),
        };
        let entries: Vec<_> = list(&places).unwrap().files.into_iter().map(|found| found.entry).collect();
        assert_eq!(entries, ["data/x"]);
    }

    #[test]
    fn a_data_directory_that_is_the_home_gives_no_keys_away() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["vault/vault.key", "config.toml", "world/version", "bindings.json", "skills/a", "logs/x"] {
            write(dir.path(), path);
        }
        let home = Home::new(dir.path());
        let backups = dir.path().join("backups");
        let places = Places {
            data: dir.path().to_owned(),
            backups,
            home,
            workspaces: true,
            data_dir: None,
            read: ReadConfig::default(),
        };
        let entries: Vec<_> = list(&places).unwrap().files.into_iter().map(|found| found.entry).collect();
        assert_eq!(entries, ["config.toml", "data/bindings.json", "skills/a"]);
    }

    #[test]
    fn warnings_are_bounded() {
        let mut warnings = Warnings::default();
        (0..BACKUP_WARNINGS_MAX + 5).for_each(|n| warnings.add(n.to_string()));
        let list = warnings.into_list();
        assert_eq!((list.len(), list.last().map(String::as_str)), (BACKUP_WARNINGS_MAX + 1, Some("and 5 more")));
    }
}
