//! Puts what was staged in the place of what is there: all of it or nothing, whenever the process dies.
//!
//! ```text
//! {home}/restore.json            the plan; while it is there, everything staged belongs into its place
//! {home}/restored.json           the same when all is done, until the audit trail knows of it
//! {home}/.restore/new/...        files of the home that wait for it
//! {home}/.restore/old/...        what was in their place
//! {data}/.restore/new/...        the same for the data directory
//! {data}/world.next              the new store, which the plan knows by its inode
//! {data}/.restore/rows/...       rows files of an archive that is being checked
//! ```
//!
//! Everything is staged and durable before the plan is written, by rename: that is the moment of the restore. Each move is
//! two renames that can be repeated from any point. When all are done and durable the plan goes, and then the old. A start
//! that finds a plan carries it out to its end; one that finds only what is staged removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{Error, io};
use crate::kernel::disk;
use crate::kernel::home::{Home, create_private_dir};
use crate::kernel::store::exchange;

/// The directory beside what is exchanged.
pub(super) const ROOM: &str = ".restore";
/// The plan, in the home.
pub(super) const PLAN: &str = "restore.json";
/// The plan once it is carried out.
const DONE: &str = "restored.json";
/// The store, from the data directory on.
const WORLD: &str = "world";
/// The new store.
const NEXT: &str = "world.next";

/// Which directory a path is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Base {
    /// The home.
    Home,
    /// The data directory.
    Data,
}

/// A file or directory that is exchanged as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) base: Base,
    /// From the base on.
    pub(super) path: String,
    /// Nothing takes the place of what is there.
    #[serde(default)]
    pub(super) remove: bool,
    /// The inode of what stood there when it was decided; `None` when nothing did.
    #[serde(default)]
    pub(super) replaces: Option<u64>,
}

/// What is to be exchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The archive, for the log.
    pub(super) archive: String,
    /// What goes on record when all is done: a JSON object.
    #[serde(default)]
    pub(super) details: serde_json::Value,
    /// The data directory.
    pub(super) data: PathBuf,
    /// The inode of the new store; `None` when the store stays.
    #[serde(default)]
    pub(super) world: Option<u64>,
    /// In order.
    pub(super) moves: Vec<Move>,
}

/// The rooms beside a home and its data directory.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    home: PathBuf,
    data: PathBuf,
}

impl Rooms {
    pub(super) fn new(home: &Home, data: &Path) -> Self {
        Self { home: home.root().to_owned(), data: data.to_owned() }
    }

    fn base(&self, base: Base) -> &Path {
        match base {
            Base::Home => &self.home,
            Base::Data => &self.data,
        }
    }

    /// Where something waits for its place.
    pub(super) fn new_path(&self, base: Base, path: &str) -> PathBuf {
        self.base(base).join(ROOM).join("new").join(path)
    }

    /// Where what it replaces is kept until all is done.
    pub(super) fn old_path(&self, base: Base, path: &str) -> PathBuf {
        self.base(base).join(ROOM).join("old").join(path)
    }

    /// Where it belongs.
    pub(super) fn place(&self, base: Base, path: &str) -> PathBuf {
        self.base(base).join(path)
    }

    /// Where rows files of an archive are while they are needed.
    pub(super) fn rows_dir(&self) -> PathBuf {
        self.data.join(ROOM).join("rows")
    }

    /// Where an entry of an archive that is no rows file waits.
    pub(super) fn staged(&self, entry: &str) -> PathBuf {
        match entry.strip_prefix("data/") {
            Some(rest) => self.new_path(Base::Data, rest),
            None => self.new_path(Base::Home, entry),
        }
    }

    /// Where the store is.
    pub(super) fn world(&self) -> PathBuf {
        self.data.join(WORLD)
    }

    /// Where the new store is built and waits.
    pub(super) fn next_world(&self) -> PathBuf {
        self.data.join(NEXT)
    }

    /// What the new store is known by.
    pub(super) fn next_inode(&self) -> Result<u64, Error> {
        let path = self.next_world();
        inode(&path)?.ok_or_else(|| io("find", &path)(io::ErrorKind::NotFound.into()))
    }

    /// The moves with what each of them replaces, as it stands there now.
    pub(super) fn replacing(&self, moves: &[Move]) -> Result<Vec<Move>, Error> {
        let replacing = |step: &Move| -> Result<Move, Error> {
            let replaces = inode(&self.place(step.base, &step.path))?;
            Ok(Move { replaces, ..step.clone() })
        };
        moves.iter().map(replacing).collect()
    }

    /// Puts the new store in the place of the old, unless it is there. Nobody has either open.
    pub(super) fn exchange_world(&self, plan: &Plan) -> Result<(), Error> {
        let Some(wanted) = plan.world else { return Ok(()) };
        let (place, next) = (self.world(), self.next_world());
        if inode(&place)? == Some(wanted) {
            return Ok(());
        }
        if inode(&next)? != Some(wanted) {
            return Err(io("find the restored world at", &next)(io::ErrorKind::NotFound.into()));
        }
        if exists(&place)? {
            rename(&place, &free(self.old_path(Base::Data, WORLD))?)?;
        }
        rename(&next, &place)
    }

    /// Puts the old store back where the new one has taken its place. False when it is nowhere any more: then nothing was
    /// done.
    pub(super) fn return_world(&self, plan: &Plan) -> Result<bool, Error> {
        let place = self.world();
        let is_there = exists(&place)?;
        if is_there && !self.is_world_new(plan)? {
            return Ok(true);
        }
        // Where `exchange_world` and where the daemon's own exchange leaves it.
        for old in [self.old_path(Base::Data, WORLD), self.next_world()] {
            if !exchange::is_store(&old) || inode(&old)? == plan.world {
                continue;
            }
            if !is_there {
                rename(&old, &place)?;
            } else if exchange::in_one_step(&place, &old).map_err(io("move", &old))?.is_none() {
                rename(&place, &free(self.data.join(format!("{NEXT}.new-taken-back")))?)?;
                rename(&old, &place)?;
            }
            sync_dir(&self.data)?;
            return Ok(true);
        }
        // Without a new store the world was never touched.
        Ok(plan.world.is_none())
    }

    /// Is the new store in its place?
    pub(super) fn is_world_new(&self, plan: &Plan) -> Result<bool, Error> {
        Ok(plan.world.is_some() && inode(&self.world())? == plan.world)
    }

    /// Begins with empty rooms.
    pub(super) fn clear(&self) -> Result<(), Error> {
        for base in [&self.home, &self.data] {
            let room = base.join(ROOM);
            disk::remove_dir(&room).map_err(io("remove", &room))?;
        }
        // A plan that was being written.
        remove(&disk::fresh(&self.home.join(PLAN)))
    }

    /// Makes everything that is staged durable, and then the plan: from here on the restore is decided.
    pub(super) fn decide(&self, plan: &Plan) -> Result<(), Error> {
        self.sync()?;
        let path = self.home.join(PLAN);
        let text = serde_json::to_vec_pretty(plan).map_err(|error| io("write", &path)(error.into()))?;
        // One that may not be on the disk is none: what was staged for it goes.
        disk::replace(&path, &text).inspect_err(|_| drop(fs::remove_file(&path))).map_err(io("write", &path))
    }

    /// Does every move of the plan that is not done.
    pub(super) fn carry_out(&self, plan: &Plan) -> Result<(), Error> {
        for step in &plan.moves {
            let (new, old) = (self.new_path(step.base, &step.path), self.old_path(step.base, &step.path));
            let place = self.place(step.base, &step.path);
            if step.remove {
                if exists(&place)? && !exists(&old)? {
                    rename(&place, &old)?;
                }
            } else if exists(&new)? {
                if exists(&place)? {
                    rename(&place, &free(old)?)?;
                }
                rename(&new, &place)?;
            } else if step.replaces.is_some() && inode(&place)? == step.replaces {
                return Err(io("find what is to be restored at", &new)(io::ErrorKind::NotFound.into()));
            }
        }
        self.sync()
    }

    /// Undoes the moves of the plan that are done. What was never replaced stays where it is, even when what was to come is
    /// gone.
    pub(super) fn take_back(&self, plan: &Plan) -> Result<(), Error> {
        for step in plan.moves.iter().rev() {
            let (new, old) = (self.new_path(step.base, &step.path), self.old_path(step.base, &step.path));
            let place = self.place(step.base, &step.path);
            let stands = inode(&place)?;
            let is_untouched = stands.is_some() && stands == step.replaces;
            if !step.remove && stands.is_some() && !is_untouched && !exists(&new)? {
                rename(&place, &new)?;
            }
            if exists(&old)? {
                rename(&old, &place)?;
            }
        }
        self.sync()
    }

    /// Everything is where it belongs: the plan goes on record, and what is not needed any more goes.
    pub(super) fn finish(&self) -> Result<(), Error> {
        let path = self.home.join(PLAN);
        fs::rename(&path, self.home.join(DONE)).map_err(io("move", &path))?;
        sync_dir(&self.home)?;
        self.leave();
        Ok(())
    }

    /// Everything is as it was: the plan goes.
    pub(super) fn give_up(&self) -> Result<(), Error> {
        remove(&self.home.join(PLAN))?;
        sync_dir(&self.home)?;
        self.leave();
        Ok(())
    }

    /// What is in the rooms is of no use any more. It is no failure of what is done when some of it stays.
    fn leave(&self) {
        if let Err(error) = self.clear() {
            tracing::warn!(%error, "temporary files of a restore will be removed at the next start");
        }
    }

    /// The plan that was decided and not carried out to its end.
    pub(super) fn plan(home: &Path) -> Result<Option<Plan>, Error> {
        let path = home.join(PLAN);
        let Some(bytes) = disk::there(disk::read(&path)).map_err(io("read", &path))? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| io("read", &path)(error.into()))
    }

    fn sync(&self) -> Result<(), Error> {
        for base in [&self.home, &self.data] {
            if exists(base)? {
                let dir = File::open(base).map_err(io("open", base))?;
                rustix::fs::syncfs(&dir).map_err(|error| io("sync", base)(error.into()))?;
            }
        }
        Ok(())
    }
}

/// Carries out what a restore that was cut off has decided, before anything of the home is read. Gives the archive's name
/// when there was one. Nobody else may use the home meanwhile.
///
/// # Errors
/// [`Error::Unfinished`]: the disk failed, or somebody has moved what belongs to it. Nothing is lost, the next start tries
/// again, and [`mend`](super::unfinished::mend) is the other way out.
pub fn complete(home: &Home) -> Result<Option<String>, Error> {
    let unfinished = |archive: &str| {
        let archive = archive.to_owned();
        move |source| Error::Unfinished { archive, source: Box::new(source) }
    };
    let Some(plan) = Rooms::plan(home.root()).map_err(unfinished("a backup"))? else { return Ok(None) };
    let rooms = Rooms::new(home, &plan.data);
    let done = rooms.exchange_world(&plan).and_then(|()| rooms.carry_out(&plan)).and_then(|()| rooms.finish());
    done.map_err(unfinished(&plan.archive))?;
    Ok(Some(plan.archive))
}

/// Is there a plan that is not carried out to its end?
pub fn is_decided(home: &Home) -> bool {
    home.root().join(PLAN).exists()
}

/// Removes what a restore that was not decided has left.
pub fn tidy(home: &Home, data: &Path) -> Result<(), Error> {
    Rooms::new(home, data).clear()
}

/// What is to go on record of a restore that is done: a JSON object.
pub fn done(home: &Home) -> Option<serde_json::Value> {
    let plan: Plan = serde_json::from_slice(&disk::read(&home.root().join(DONE)).ok()?).ok()?;
    Some(plan.details)
}

/// It is on record.
pub fn forget_done(home: &Home) -> Result<(), Error> {
    remove(&home.root().join(DONE))
}

fn remove(path: &Path) -> Result<(), Error> {
    disk::remove_file(path).map_err(io("remove", path))
}

/// There is nothing at the path, nor can there be while something else than a directory is on the way to it.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn inode(path: &Path) -> Result<Option<u64>, Error> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata.ino())),
        Err(error) if is_nothing(&error) => Ok(None),
        Err(error) => Err(io("look at", path)(error)),
    }
}

pub(super) fn exists(path: &Path) -> Result<bool, Error> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if is_nothing(&error) => Ok(false),
        Err(error) => Err(io("look at", path)(error)),
    }
}

/// The path, or one beside it when it is taken: somebody may have made a directory anew between two renames.
pub(super) fn free(path: PathBuf) -> Result<PathBuf, Error> {
    let mut free = path.clone();
    for n in 2.. {
        if !exists(&free)? {
            break;
        }
        free = path.with_added_extension(n.to_string());
    }
    Ok(free)
}

/// Moves a file or directory, making room for it.
fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    if let Some(dir) = to.parent() {
        create_private_dir(dir).map_err(|error| io("create", dir)(io::Error::other(error)))?;
    }
    fs::rename(from, to).map_err(io("move", from))
}

pub(super) fn sync_dir(path: &Path) -> Result<(), Error> {
    disk::sync_dir(path).map_err(io("sync", path))
}

#[cfg(test)]
#[path = "place_tests.rs"]
pub(super) mod tests;
