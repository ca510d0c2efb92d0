//! What can be read of a damaged store becomes a new one; the old one stays, beside it (`agentsvc doctor --repair`).
//!
//! The files of the old store are read without the engine ([`raw`]), which would make some damage worse. A store that is
//! intact, that the engine opens and whose records make a world is left alone.
//!
//! Everything that is lost is told. The rows of the copy make a world that restores: that is tried before it takes the
//! old one's place. The old one's files get second names beside it first, and then the two change places in one step: a
//! kill at any point leaves one of them whole, and never the old one lost.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::record::Space;

use super::raw::{self, Salvage};
use super::{Error, FORMAT, FORMAT_KEY, Store, exchange};
use crate::kernel::disk::remove_dir;
use crate::kernel::store::rows::Row;

/// What a repair came to.
#[derive(Debug)]
pub struct Repaired {
    /// Records of the world.
    pub world: u64,
    /// Rows of content.
    pub content: u64,
    /// What was damaged, one sentence each.
    pub damage: Vec<String>,
    /// What is lost, one sentence each.
    pub lost: Vec<String>,
    /// Where the old store is; nothing when the store was intact and nothing was changed.
    pub aside: Option<PathBuf>,
}

/// Gives the rows that make a world of those that can be read. It is also given the content rows, which it only looks at, and
/// where it says what is lost.
pub type Mend =
    fn(Vec<Pair>, &mut dyn Iterator<Item = Pair>, &mut Vec<String>) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, String>;

/// A row's key and value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Copies what can be read of the store at `path` into a new one, which takes its place; an intact store is left alone.
/// Nobody may use the store. `mend` knows what the rows of the world need.
///
/// # Errors
/// [`Error::Unrepairable`] when what is left makes no world, [`Error::Newer`] when a later release wrote it,
/// [`Error::InUse`] when another process has it open, [`Error::Io`] when the disk fails. The store is as it was then.
pub fn repair(path: &Path, mend: Mend) -> Result<Repaired, Error> {
    let unrepairable = |reason| Error::Unrepairable { path: path.to_owned(), reason };
    repaired(path, mend).map_err(|error| match error {
        Error::Corrupted { reason, .. } | Error::Record { reason, .. } => unrepairable(reason),
        error => error,
    })
}

fn repaired(path: &Path, mend: Mend) -> Result<Repaired, Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let corrupted = |reason| Error::Corrupted { path: path.to_owned(), reason };
    let _lock = raw::lock(path)?;
    let Salvaged { salvage, world, has_format } = salvaged(path)?;
    let (mut damage, mut lost) = (salvage.damage.clone(), salvage.lost.clone());
    let mut count = 0;
    let mut content = salvage.rows(Space::Content).map_err(failed)?.map_while(Result::ok).inspect(|_| count += 1);
    let rows = mend(world, &mut content, &mut lost).map_err(corrupted)?;
    content.for_each(drop);
    if !has_format {
        damage.push("the format record is missing".to_owned());
    }
    if damage.is_empty() && lost.is_empty() {
        match trial(path) {
            Ok(()) => return Ok(Repaired { world: rows.len() as u64, content: count, damage, lost, aside: None }),
            Err(Error::Corrupted { reason, .. }) => damage.push(format!("the storage engine cannot open it: {reason}")),
            Err(error) => return Err(error),
        }
    }
    let made = exchange::next(path);
    remove(&made)?;
    let row = |space| move |(key, value)| Row { space, key, value };
    let world = rows.into_iter().map(row(Space::World)).map(Ok);
    let content = salvage.rows(Space::Content).map_err(failed)?.map(|pair| pair.map(row(Space::Content)));
    let kept = Store::build(&made, world.chain(content))?;
    let aside = free_name(path);
    let exchanged = exchange::keep_aside(path, &aside).and_then(|()| exchange::exchange(path));
    exchanged.map_err(failed)?;
    // The old store has its other names; what cannot be removed is removed by a start.
    let _ = remove_dir(&made);
    Ok(Repaired { world: kept.world, content: kept.content, damage, lost, aside: Some(aside) })
}

/// What can be read of a store, and the rows of its world.
struct Salvaged {
    salvage: Salvage,
    world: Vec<Pair>,
    has_format: bool,
}

fn salvaged(path: &Path) -> Result<Salvaged, Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let salvage = Salvage::read(path).map_err(failed)?;
    let mut world = Vec::new();
    let (mut is_empty, mut has_format) = (true, false);
    for row in salvage.rows(Space::World).map_err(failed)? {
        let (key, value) = row.map_err(failed)?;
        is_empty = false;
        if key == FORMAT_KEY
            && let Ok(bytes) = value.as_slice().try_into()
        {
            let found = u32::from_be_bytes(bytes);
            if found > FORMAT {
                return Err(Error::Newer { path: path.to_owned(), found, supported: FORMAT });
            }
            has_format = true;
        }
        // The store's own rows are written anew.
        if key.first().is_some_and(|kind| *kind != 0) {
            world.push((key, value));
        }
    }
    if is_empty && salvage.rows(Space::Content).map_err(failed)?.next().is_none() {
        let reason = "nothing in it can be read".to_owned();
        return Err(Error::Unrepairable { path: path.to_owned(), reason });
    }
    Ok(Salvaged { salvage, world, has_format })
}

/// Opens a copy of the store with the engine.
fn trial(path: &Path) -> Result<(), Error> {
    // A start removes what a kill leaves of it.
    let trial = beside(path, "next.new-trial");
    remove(&trial)?;
    let copied = copy_files(path, &trial).map_err(|source| Error::Io { path: trial.clone(), source });
    let opened = copied.and_then(|()| Store::open(&trial).map(drop));
    remove(&trial)?;
    opened
}

/// Copies a store. Tables are never written again, so that a link is as good as a copy.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_files(&path, &target)?;
        } else if raw::is_journal(&path) {
            fs::write(&target, raw::written(&path)?)?;
        } else if !from.ends_with("tables") || fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// A name beside the store.
fn beside(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{word}"))
}

/// The first name for the old store that nothing has.
fn free_name(path: &Path) -> PathBuf {
    let mut names = (1..).map(|number| beside(path, &format!("damaged-{number}")));
    names.find(|name| !name.exists()).unwrap_or_else(|| beside(path, "damaged"))
}

fn remove(path: &Path) -> Result<(), Error> {
    remove_dir(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}
