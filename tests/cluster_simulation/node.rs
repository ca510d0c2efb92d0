//! A node: a store of its own on a disk of its own, and what its process does with both.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use agentsvc::kernel::store::journal::Journal;
use agentsvc::kernel::store::journal::shared::Shared;
use agentsvc::kernel::store::writer::{CommitQueue, Outlets, Writer};
use agentsvc::kernel::store::{Error, Store};
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::kernel::step::StepMark;
use agentsvc_systems::Commit;
use tempfile::TempDir;

use super::engine::{Engine, Way};

/// How long a process that has ended may keep its store open.
const CLOSE_WAIT: Duration = Duration::from_secs(30);

/// What a node is for the world.
pub(crate) enum Role {
    Standby,
    /// It takes the world over, or has found out that it does not.
    Candidate(thread::JoinHandle<Result<Box<dyn Journal>, Error>>),
    /// It owns the world, as far as it knows.
    Owner(Writer),
    /// It found that the journal lost something.
    Halted,
}

/// One of several nodes.
pub(crate) struct Node {
    pub(crate) number: usize,
    /// Counts the starts of its process.
    pub(crate) life: u64,
    pub(crate) role: Role,
    pub(crate) engine: Engine,
    disk: TempDir,
    store: Option<Store>,
    /// A copy of the disk as of the last sync.
    has_synced: bool,
}

impl Node {
    pub(crate) fn new(number: usize, engine: &Engine) -> Result<Self, Error> {
        let disk = tempfile::tempdir().expect("a temporary directory");
        let store = Some(Store::open(disk.path().join("world"))?);
        let engine = engine.clone();
        engine.of(number, 0, |_| ());
        Ok(Self { number, life: 0, role: Role::Standby, engine, disk, store, has_synced: false })
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("only a restart closes it")
    }

    fn way(&self) -> Way {
        Way { engine: self.engine.clone(), node: self.number, life: self.life }
    }

    /// A journal to read from.
    pub(crate) fn journal(&self) -> Result<Shared<Way>, Error> {
        Ok(Shared::new(self.way(), self.store().position()?))
    }

    /// Applies what the store lacks.
    pub(crate) fn catch_up(&self) -> Result<u64, Error> {
        self.store().catch_up(&self.journal()?)
    }

    /// Begins to take the world over.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        self.catch_up()?;
        let (mut journal, store) = (self.journal()?, self.store().clone());
        let (engine, number, life) = (self.engine.clone(), self.number, self.life);
        engine.of(number, life, |caller| caller.is_busy = true);
        self.role = Role::Candidate(thread::spawn(move || {
            let opened = journal.open(&number.to_string());
            let caught_up = opened.and_then(|()| store.catch_up(&journal));
            drop(store);
            engine.of(number, life, |caller| caller.is_busy = false);
            caught_up.map(|_| Box::new(journal) as Box<dyn Journal>)
        }));
        Ok(())
    }

    /// A takeover that came to its end: the node owns the world now, or not.
    pub(crate) fn opened(&mut self) -> Result<(), Error> {
        let is_busy = self.engine.of(self.number, self.life, |caller| caller.is_busy);
        if is_busy || !matches!(self.role, Role::Candidate(_)) {
            return Ok(());
        }
        let Role::Candidate(takeover) = std::mem::replace(&mut self.role, Role::Standby) else { return Ok(()) };
        match takeover.join().expect("a takeover does not panic") {
            Ok(journal) => {
                self.role = Role::Owner(Writer::start_with(self.store().clone(), self.outlets(), None, journal)?);
                Ok(())
            }
            Err(Error::Fenced { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn outlets(&self) -> Outlets {
        let (engine, number, life) = (self.engine.clone(), self.number, self.life);
        let over = move || engine.of(number, life, |caller| caller.is_over = true);
        let (reopen, fenced, fatal) = (over.clone(), over.clone(), over);
        Outlets {
            effects: Arc::new(drop),
            told: Arc::new(drop),
            reopen: Arc::new(move |_| reopen()),
            fenced: Arc::new(move |_| fenced()),
            fatal: Arc::new(move |_| fatal()),
        }
    }

    /// The way to the writer, when the node takes it that it owns the world.
    pub(crate) fn queue(&self) -> Option<CommitQueue> {
        match &self.role {
            Role::Owner(writer) => Some(writer.queue()),
            _ => None,
        }
    }

    /// Hands a group over, whose mark is `group`.
    pub(crate) fn commit(&self, group: u64, ops: Vec<Op>) {
        let Some(queue) = self.queue() else { return };
        let (engine, number, life) = (self.engine.clone(), self.number, self.life);
        engine.of(number, life, |caller| caller.sent += 1);
        let release = move || engine.of(number, life, |caller| caller.released.push(group));
        let step = StepMark { number: group, at: Timestamp(0) };
        queue.send(Commit { step, ops, releases: vec![Box::new(release)], ..Commit::default() });
    }

    /// The owner erases rows, as the sweeper does.
    pub(crate) fn erase(&self, keys: Vec<Vec<u8>>) {
        let Some(queue) = self.queue() else { return };
        let (engine, number, life) = (self.engine.clone(), self.number, self.life);
        engine.of(number, life, |caller| caller.is_busy = true);
        thread::spawn(move || {
            let _ = queue.erase(keys);
            drop(queue);
            engine.of(number, life, |caller| caller.is_busy = false);
        });
    }

    /// Everything that was written is on the disk.
    pub(crate) fn sync(&mut self) {
        copy(&self.disk.path().join("world"), &self.disk.path().join("synced"));
        self.has_synced = true;
    }

    /// The process ends, and starts again as a standby. What was not synced is gone when the power was.
    pub(crate) fn restart(&mut self, end: End) -> Result<(), Error> {
        self.engine.of(self.number, self.life, |caller| caller.is_dead = true);
        match std::mem::replace(&mut self.role, Role::Standby) {
            Role::Owner(writer) => writer.stop(),
            Role::Candidate(takeover) => drop(takeover.join()),
            Role::Standby | Role::Halted => {}
        }
        let closed = self.store.take().is_none_or(|store| {
            let watch = store.watch();
            drop(store);
            watch.is_closed_within(CLOSE_WAIT)
        });
        assert!(closed, "somebody keeps the store of a process that has ended");
        let (world, synced) = (self.disk.path().join("world"), self.disk.path().join("synced"));
        match end {
            End::PowerLost if self.has_synced => copy(&synced, &world),
            End::Killed => {}
            End::PowerLost | End::Wiped => {
                fs::remove_dir_all(&world).expect("a store can be removed");
                self.has_synced = false;
            }
        }
        self.life += 1;
        self.engine.of(self.number, self.life, |_| ());
        self.store = Some(Store::open(world)?);
        Ok(())
    }

    /// All rows, and the place in the journal that they are of.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, Error> {
        self.store().view().all().map(|row| row.map(|row| (row.space, row.key, row.value))).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // What still waits for the servers must not wait for ever.
        self.engine.of(self.number, self.life, |caller| caller.is_dead = true);
    }
}

/// Where a row is, its key and its value.
pub(crate) type Row = (Space, Vec<u8>, Vec<u8>);

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// What it wrote is there.
    Killed,
    /// What it synced is there.
    PowerLost,
    /// Nothing is there.
    Wiped,
}

/// Makes `to` a copy of `from`.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("it is there").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
