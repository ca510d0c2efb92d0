//! Makes the store of a node one that the journal goes on from.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_components::kernel::record::Space;

use super::members::Members;
use super::moment::boot_time;
use super::nats::{NatsJournal, Tail, Wire};
use crate::kernel::disk::remove_dir;
use crate::kernel::exchange::Exchange;
use crate::kernel::store::journal::entry::{Body, Position};
use crate::kernel::store::journal::{Journal, Origin};
use crate::kernel::store::rows::read::{self, Copied};
use crate::kernel::store::{Error, Store, exchange as disk};
use crate::snapshot::write;

/// How long a journal may seem to end before the store does.
const LOST_MS: u64 = 15_000;
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Why a node cannot join.
#[derive(Debug)]
pub(super) enum Problem {
    /// It must not; the text says why.
    Refused(String),
    /// The servers or the disk failed; it may be tried again.
    Failed(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Who joins.
pub(super) struct Joining<'a> {
    pub(super) wire: &'a Arc<Wire>,
    pub(super) members: &'a Members,
    pub(super) exchange: &'a Exchange,
    /// Where the store is.
    pub(super) world_dir: &'a Path,
}

impl Joining<'_> {
    /// Gives a store that the journal goes on from, built anew if need be. Nothing else has it open. `rebase` is the copy from which
    /// the entry goes on that comes next, and where that stands.
    pub(super) fn join(&self, rebase: Option<(&str, Position)>) -> Result<Store, Problem> {
        let store = Store::open(self.world_dir)?;
        if rebase.is_some() && !is_alone(&store)? {
            return self.rebuild(store, rebase, false);
        }
        if is_alone(&store)? {
            if self.has_world()? {
                return Err(Problem::Refused(format!(
                    "the journal holds a world already, and this node has another one of its own in {}; two worlds cannot \
                     be joined: move that directory away to join the cluster",
                    self.world_dir.display()
                )));
            }
            return Ok(store);
        }
        let position = store.position()?;
        let began = boot_time();
        loop {
            match self.wire.wait(self.wire.goes_on_from(&position)) {
                Ok(()) => return Ok(store),
                Err(Error::Trimmed { .. }) => return self.rebuild(store, None, false),
                Err(Error::Diverged { .. }) => return self.rebuild(store, None, true),
                // A new leader of the stream catches up first.
                Err(Error::Lost { .. }) if boot_time() - began < LOST_MS => std::thread::sleep(PAUSE),
                Err(error @ Error::Lost { .. }) => {
                    let text = format!("{error}. This node has entry {}; see docs/cluster.md", position.index);
                    return Err(Problem::Refused(text));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Is there anything in the journal but nodes that opened and closed an empty world?
    fn has_world(&self) -> Result<bool, Error> {
        let start = Position::default();
        let journal = NatsJournal::new(self.wire, &self.members.standing, &start, None);
        let entries = match journal.read(&start) {
            Err(Error::Trimmed { .. }) => return Ok(true),
            entries => entries?,
        };
        for entry in entries {
            if matches!(entry?.body, Body::Step { .. } | Body::Rebase { .. }) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Builds the store anew: of the copy that an entry names, else of the newest one that the journal goes on from, else of
    /// nothing. What was there is kept when it was another world.
    fn rebuild(&self, store: Store, rebase: Option<(&str, Position)>, is_other: bool) -> Result<Store, Problem> {
        if is_other {
            tracing::warn!("the store of this node is that of another world, and is built anew");
        } else {
            tracing::info!("the journal does not go back to the store of this node, which is built anew");
        }
        if !Exchange::is_store_free(store) {
            return Err(Problem::Failed(Error::Journal("the old store is still being read".to_owned())));
        }
        let next = self.exchange.next_dir();
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        self.exchange.clear_next().map_err(io(&next))?;
        self.build(&next, rebase)?;
        disk::exchange(self.world_dir).map_err(io(self.world_dir))?;
        if is_other {
            let aside = aside(self.world_dir);
            std::fs::rename(&next, &aside).map_err(io(&aside))?;
            tracing::warn!(path = %aside.display(), "the store of another world was kept");
        } else {
            remove_dir(&next).map_err(io(&next))?;
        }
        Ok(Store::open(self.world_dir)?)
    }

    /// The newest copy that the journal goes on from. Others may be of a journal that is gone.
    fn fitting_copy(&self) -> Result<Option<String>, Error> {
        let mut is_short = false;
        for copy in self.wire.wait(self.wire.copies())?.into_iter().rev() {
            match self.wire.wait(self.wire.goes_on_from(&copy.position)) {
                Ok(()) => return Ok(Some(copy.snapshot)),
                Err(Error::Lost { .. }) => is_short = true,
                Err(Error::Trimmed { .. } | Error::Diverged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // A new leader of the stream catches up first.
        let text = "it ends before every copy of the world, or a new leader of the stream catches up";
        if is_short { Err(Error::Journal(text.to_owned())) } else { Ok(None) }
    }

    fn build(&self, next: &Path, rebase: Option<(&str, Position)>) -> Result<(), Problem> {
        let (first, _) = self.wire.wait(self.wire.bounds())?;
        let name = match rebase {
            Some((name, _)) => Some(name.to_owned()),
            // The journal has everything.
            None if first <= 1 => None,
            None => self.fitting_copy()?,
        };
        let Some(name) = name else {
            if first > 1 {
                let text = format!("the journal begins at entry {first}, and there is no copy of the world before it");
                return Err(Problem::Refused(text));
            }
            drop(Store::open(next)?);
            return Ok(());
        };
        let file = copy_file(self.world_dir);
        let _removed = std::fs::remove_file(&file);
        let origin = self.wire.wait(self.wire.get_copy(&name, &file))?;
        let rows = read::open(&file).map_err(|error| Error::Rows { source: error.into() })?;
        Store::build(next, rows)?;
        let _removed = std::fs::remove_file(&file);
        let position = rebase.map_or(origin.position, |(_, position)| position);
        Store::open(next)?.set_origin(&Origin { position, ..origin })?;
        tracing::info!(name, index = position.index, "the store was built of a copy");
        Ok(())
    }
}

/// The journal of the world in `store`. That of a daemon that was alone goes into the object store first.
pub(super) fn journal_of(store: &Store, wire: &Arc<Wire>, members: &Members) -> Result<NatsJournal, Error> {
    let position = store.position()?;
    let origin = if is_alone(store)? {
        let origin = store.view().origin(format!("origin-{}-{}", members.node(), boot_time()))?;
        copy(store, wire, &origin)?;
        store.set_origin(&origin)?;
        Some(origin.snapshot)
    } else {
        None
    };
    members.standing.epoch.fetch_max(position.epoch, Ordering::AcqRel);
    Ok(NatsJournal::new(wire, &members.standing, &position, origin))
}

/// Writes all rows of `store`, in which nothing changes meanwhile, into the object store.
fn copy(store: &Store, wire: &Arc<Wire>, origin: &Origin) -> Result<(), Error> {
    let file = copy_file(store.path());
    let _removed = std::fs::remove_file(&file);
    write::write(&store.view(), &file, &Copied::default())?;
    let put = wire.wait(wire.put_copy(&file, origin));
    let _removed = std::fs::remove_file(&file);
    put
}

/// Where a copy is written on its way.
pub(super) fn copy_file(world_dir: &Path) -> PathBuf {
    world_dir.with_extension("copy")
}

fn aside(world_dir: &Path) -> PathBuf {
    let name = world_dir.file_name().unwrap_or_default().to_string_lossy();
    world_dir.with_file_name(format!("{name}.diverged-{}", agentsvc_api::http::timestamp::timestamp_now().0))
}

/// Is the world in `store` one of a daemon that was alone, which the journal does not hold?
pub(super) fn is_alone(store: &Store) -> Result<bool, Error> {
    Ok(store.position()? == Position::default() && has_rows(store)?)
}

fn has_rows(store: &Store) -> Result<bool, Error> {
    Ok(store.view().rows(Space::World).next().transpose()?.is_some())
}

/// Reads behind the newest entry of `store`.
pub(super) fn tail_of(store: &Store, wire: &Arc<Wire>) -> Result<Tail, Error> {
    Tail::new(wire, &store.position()?)
}
