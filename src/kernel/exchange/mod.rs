//! The present world, and how another one takes its place while the daemon runs.
//!
//! The listener and all of the API stay. The world ends as it does at a stop: what has arrived is carried out and stored.
//! Then its store is closed, the other store takes its place on the disk, and the world in it comes to life as after
//! a start. Commands meanwhile are refused with 503 and the code `exchanging`.
//!
//! | what holds on to the old world | how it follows |
//! |---|---|
//! | bridge | each world has a lane of its own; who waits in the old one is told |
//! | model and tool calls that are out | told to give up; their outcomes, and what their tools ask for, go to the old lane, where nobody takes them |
//! | streams, sockets | told that their turns speak no more (`exchanging`); sockets stay open |
//! | reads of content | the store of the moment ([`DeferredStore`](crate::kernel::store::deferred::DeferredStore)); the old one is closed when the last read is done |
//! | the list of agents on sockets | built anew |
//! | metrics | the probes of the old world go; those of the world loop count on |
//! | audit trail | goes on: its rows are carried over, and that the world was exchanged is an entry on it |
//! | the store's own rows, such as the number of steps | carried over |
//! | configuration, keys, files, logs | are no part of the world, and stay |
//!
//! Whatever goes wrong before the other world has come to life brings the old one back.

mod ownership;
mod reopen;
mod stats;
mod world_view;

use agentsvc_api::http::audit_kinds;
use agentsvc_components::kernel::error_codes;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_api::Api;
use agentsvc_api::http::bridge::{Intake, exchanging};
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::{Actor, Refusal, RefusalKind, Timestamp};
use agentsvc_systems::Records;
use agentsvc_systems::kernel::stored::AwaitStored;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use stats::ExchangeStats;
use tokio::runtime::Handle;
use tokio::sync::watch;
pub(crate) use world_view::WorldView;

use super::disk::remove_dir;
use super::store;
use super::store::deferred::DeferredStore;
use super::store::writer::CommitQueue;
use super::store::{Store, exchange as disk, is_full};
use super::world_loop::Clock;

/// How long the old store may take to be closed: as long as the longest read of content takes.
const CLOSE_WAIT: Duration = Duration::from_secs(20);
/// How long the first step of the other world may take before nobody waits for it any more.
const OPEN_WAIT: Duration = Duration::from_secs(60);
/// How often one who waits for that looks.
const OPEN_POLL: Duration = Duration::from_millis(1);

/// Why a world does not come to life.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Brings worlds to life.
pub(crate) trait Host: Send + Sync + 'static {
    /// Brings the world of `store` to life. `entry` goes on the trail with its first step; a `first` world gets an agent
    /// to talk to. Commands are taken from that step on.
    ///
    /// # Errors
    /// What is wrong with the world, or what the system did not give.
    fn start(&self, store: Store, intake: Intake, entry: Entry, first: bool) -> Result<Box<dyn World>, Error>;

    /// Can a world come to life from `records` at `now`?
    ///
    /// # Errors
    /// What is wrong with them.
    fn try_out(&self, records: Records, now: Timestamp) -> Result<(), String>;

    /// Puts an action that was done on the trail of the present world.
    ///
    /// # Errors
    /// The world's refusal.
    fn note(&self, actor: Actor, kind: AuditKind, details: Value) -> Result<(), Refusal>;

    /// The world has ended and another takes its place: what clients were shown of it holds no more.
    fn forget(&self);

    /// Ends the process with a cause.
    fn fatal(&self, cause: String);
}

/// A world that lives.
pub(crate) trait World: Send {
    /// The way to its writer.
    fn commits(&self) -> Option<CommitQueue>;

    /// Waits until what it began with is on the disk, at most so long; false when it is not.
    fn is_noted_within(&self, longest: Duration) -> bool;

    /// Carries out and stores what has arrived, ends its threads, and gives the store up: nobody but the receiver has it
    /// open when those who read it at this moment are done. Calls that are out are told to give up.
    fn end(self: Box<Self>) -> Store;
}

/// An action that goes on the audit trail.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Who did it.
    pub(crate) actor: Actor,
    /// What it is.
    pub(crate) kind: AuditKind,
    /// What `docs/audit.md` says.
    pub(crate) details: Value,
}

/// What every world of this process has in common.
pub(crate) struct Common {
    /// What stays when the world changes.
    pub(crate) api: Arc<Api>,
    /// The store of the present world.
    pub(crate) store: Arc<DeferredStore>,
    /// Held while the world is given other settings, so that nobody gives it older ones.
    pub(crate) telling: Arc<tokio::sync::Mutex<()>>,
    /// The runtime that waits for the world.
    pub(crate) handle: Handle,
    /// The time.
    pub(crate) clock: Clock,
    /// Where the store of the present world is.
    pub(crate) world_dir: PathBuf,
    /// Other nodes have the same world: it is not put in the place of another here.
    pub(crate) is_shared: bool,
}

/// The present world, and who may put another in its place.
pub(crate) struct Exchange {
    common: Common,
    host: Box<dyn Host>,
    /// `None` before the start and after the stop.
    current: Mutex<Option<Box<dyn World>>>,
    /// Has as many clones as there are [`WorldView`]s.
    readers: Arc<()>,
    /// Held by who builds at [`next_dir`](Self::next_dir).
    next: Mutex<()>,
    stats: Arc<ExchangeStats>,
    /// Tells those who wait that a world has come to life.
    starts: watch::Sender<()>,
    /// Was the world given up to another node, and has it not come back?
    is_given_away: watch::Sender<bool>,
}

impl Exchange {
    /// Nothing runs yet. `sources` are what worlds are restored from.
    pub(crate) fn new(common: Common, host: Box<dyn Host>, sources: &[&'static str]) -> Self {
        let stats = Arc::new(ExchangeStats::new(sources));
        common.api.add_probe(Arc::clone(&stats) as _);
        Self {
            common,
            host,
            current: Mutex::new(None),
            readers: Arc::default(),
            next: Mutex::new(()),
            stats,
            starts: watch::Sender::default(),
            is_given_away: watch::Sender::default(),
        }
    }

    /// Brings the world of the home to life; a `first` one gets an agent to talk to. `entry` goes on the trail.
    pub(crate) fn start(&self, intake: Intake, entry: Entry, first: bool) -> Result<(), Error> {
        let store = Store::open(&self.common.world_dir)?;
        *self.current.lock() = Some(self.host.start(store, intake, entry, first)?);
        self.starts.send_replace(());
        Ok(())
    }

    /// Hears of each world that comes to life from now on. It may not take commands yet.
    pub(crate) fn starts(&self) -> watch::Receiver<()> {
        self.starts.subscribe()
    }

    /// Ends the present world, after an exchange that is under way.
    pub(crate) fn stop(&self) {
        if let Some(world) = self.current.lock().take() {
            drop(world.end());
        }
    }

    /// The present world's rows as of now, with all that it has shown. Only from threads that may wait.
    pub(crate) fn view(&self) -> Result<WorldView, Refusal> {
        self.common.handle.block_on(self.common.api.bridge.ask(AwaitStored))?;
        let reader = Arc::clone(&self.readers);
        match self.common.store.store() {
            Ok(store) => Ok(WorldView { view: store.view(), reader }),
            Err(agentsvc_api::http::error::ContentError::Exchanging) => Err(exchanging()),
            Err(_) => {
                Err(Refusal::busy("the daemon is loading; try again in a moment", 1).with_code(error_codes::LOADING))
            }
        }
    }

    /// Where a store is to be built that is to take the world's place: beside it, so that a rename is enough. What
    /// stands there at a start is removed.
    pub(crate) fn next_dir(&self) -> PathBuf {
        disk::next(&self.common.world_dir)
    }

    /// The right to build there, and to remove what stands there. Whoever restores anything has it from the first look at it
    /// to the end: there is room for one, and what stands there is what takes the world's place.
    pub(crate) fn claim_next(&self) -> Result<MutexGuard<'_, ()>, Refusal> {
        let text = "another restore is running; try again later";
        self.next.try_lock().ok_or_else(|| Refusal::of(error_codes::RESTORE_UNDERWAY, text))
    }

    /// May another world take the place of the present one? To be asked before a restore does anything.
    ///
    /// # Errors
    /// Other nodes keep the same world.
    pub(crate) fn may_replace(&self) -> Result<(), Refusal> {
        let text = "other nodes keep this world, too, and they would not learn of another one. Stop all nodes, run \
                    `agentsvc cluster detach` on this one, start it, restore there, and build the cluster again from it: \
                    see \"Restore a backup\" in docs/cluster-guide.md";
        if self.common.is_shared { Err(Refusal::of(error_codes::RESTORE_IN_CLUSTER, text)) } else { Ok(()) }
    }

    /// Carries out a restore, and counts one that is refused: nothing came of it, and no world was ended for it. (One that is
    /// refused in the very moment in which the old world comes back from another one's exchange is not told from that.)
    pub(crate) fn counted<T, E>(&self, source: &'static str, restore: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let brought_back = self.stats.brought_back();
        restore().inspect_err(|_| {
            if self.stats.brought_back() == brought_back {
                self.stats.refuse(source);
            }
        })
    }

    /// Removes what stands at [`next_dir`](Self::next_dir).
    pub(crate) fn clear_next(&self) -> std::io::Result<()> {
        remove_dir(&self.next_dir())
    }

    /// Can a world come to life from `records`? Costs the memory of one more world while it is tried.
    pub(crate) fn try_out(&self, records: Records) -> Result<(), String> {
        self.host.try_out(records, (self.common.clock.wall)())
    }

    /// Puts an action that was done on record, in the present world. Only from threads that may wait.
    pub(crate) fn note(&self, actor: Actor, kind: AuditKind, details: Value) {
        if let Err(refusal) = self.record(actor, kind.clone(), details) {
            tracing::error!(%refusal, kind = kind.as_str(), "an action could not be recorded in the audit log");
        }
    }

    /// Puts an action on record, in the present world, before it is done: it must not be when this is refused. Only from
    /// threads that may wait.
    ///
    /// # Errors
    /// The world's refusal.
    pub(crate) fn record(&self, actor: Actor, kind: AuditKind, details: Value) -> Result<(), Refusal> {
        // What was done at a start is told before the world has taken its first step.
        self.wait_until_open();
        self.host.note(actor, kind, details)
    }

    /// Puts the world in the store at [`next_dir`](Self::next_dir) in the place of the present one. `finish` is called when
    /// that has ended, with its store, and may change the other store, which it leaves closed. `before_open` is called when no
    /// world runs, and may refuse; what it does is its own to take back. `entry` goes on the trail with the other world's first step, and is on the disk when this
    /// returns. Gives how long no world took commands. Only from threads that may wait; one at a time, the others wait.
    ///
    /// # Errors
    /// `Conflict` while somebody reads the whole world, `Busy` when the daemon stops or the store is not let go, `Failed`.
    /// In each case the old world is back.
    pub(crate) fn replace(
        &self,
        entry: Entry,
        finish: impl FnOnce(&Store) -> Result<(), String>,
        before_open: impl FnOnce() -> Result<(), String>,
    ) -> Result<Duration, Refusal> {
        let next = self.next_dir();
        if !disk::is_store(&next) {
            return Err(failed(&std::io::Error::other(format!("no store at {}", next.display()))));
        }
        self.replace_with(entry, finish, before_open)
    }

    /// As [`replace`](Self::replace), with a store that is only built when the old world has ended: `build` gets its store,
    /// behind which nothing is written any more, and builds the other one at [`next_dir`](Self::next_dir).
    ///
    /// # Errors
    /// Those of [`replace`](Self::replace), and `Failed` with what `build` says.
    pub(crate) fn replace_with(
        &self,
        entry: Entry,
        build: impl FnOnce(&Store) -> Result<(), String>,
        before_open: impl FnOnce() -> Result<(), String>,
    ) -> Result<Duration, Refusal> {
        let Common { api, telling, handle, .. } = &self.common;
        let mut current = self.current.lock();
        if current.is_none() || api.shutdown.is_triggered() {
            return Err(Refusal::busy("the daemon is shutting down", 5));
        }
        // The configuration stays as it is until the other world has been told of it.
        let _told_alone = handle.block_on(Arc::clone(telling).lock_owned());
        self.may_replace()?;
        if Arc::strong_count(&self.readers) > 1 {
            return Err(Refusal::conflict("a backup, snapshot or rehearsal is reading the world; try again later"));
        }
        let began = Instant::now();
        api.bridge.hold();
        let Some(world) = current.take() else { return Err(exchanging()) };
        let store = world.end();
        self.host.forget();
        let (entry, refused, still_open) = match self.swap(store, build, before_open) {
            Ok(()) => (entry, None, None),
            Err((refusal, still_open)) => (stay_entry(&refusal), Some(refusal), still_open),
        };
        match self.revive(still_open, entry) {
            Ok(world) => *current = Some(world),
            Err(error) if refused.is_none() => {
                tracing::error!(%error, "the restored world cannot be loaded; reverting to the previous world");
                let refusal =
                    Refusal::new(RefusalKind::Failed, format!("the restored world cannot be loaded: {error}"));
                *current = Some(self.go_back(&refusal)?);
                self.wait_until_open();
                self.stats.count(false, began.elapsed());
                return Err(refusal);
            }
            Err(error) => return Err(self.give_up(&error)),
        }
        self.wait_until_open();
        let pause = began.elapsed();
        self.stats.count(refused.is_none(), pause);
        // Nobody hears of it before it is on the trail: a kill behind the answer must not lose the entry.
        if !current.as_ref().is_some_and(|world| world.is_noted_within(OPEN_WAIT)) {
            tracing::error!("the restore could not be recorded in the audit log");
        }
        self.sweep_leftover();
        refused.map_or(Ok(pause), Err)
    }

    /// Hands on what does not go with the world, closes the old store, and has the directories change places. On an
    /// error the old store is in its place; it is given back when it could not be closed.
    fn swap(
        &self,
        store: Store,
        build: impl FnOnce(&Store) -> Result<(), String>,
        before_open: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), (Refusal, Option<Store>)> {
        if let Err(text) = build(&store) {
            return Err((Refusal::new(RefusalKind::Failed, text), Some(store)));
        }
        let next_dir = self.next_dir();
        if !disk::is_store(&next_dir) {
            // Opening it would make an empty one.
            return Err((failed(&store::Error::missing(&next_dir)), Some(store)));
        }
        let carried = Store::open(next_dir).and_then(|next| {
            let rows = next.carry_over(&store)?;
            Ok((rows, next.watch()))
        });
        let (rows, next) = match carried {
            Ok(carried) => carried,
            Err(error) => return Err((failed(&error), Some(store))),
        };
        let old = store.watch();
        drop(store);
        if !old.is_closed_within(CLOSE_WAIT) || !next.is_closed_within(CLOSE_WAIT) {
            return Err((Refusal::busy("the previous world is still being read; try again", 10), old.store()));
        }
        tracing::info!(rows, "the audit log was copied to the restored world");
        before_open().map_err(|text| (Refusal::new(RefusalKind::Failed, text), None))?;
        disk::exchange(&self.common.world_dir).map_err(|error| (failed(&error), None))
    }

    /// Brings the world of the store in the world's place to life; `still_open` is that store, if it never was closed.
    fn revive(&self, still_open: Option<Store>, entry: Entry) -> Result<Box<dyn World>, Error> {
        let dir = &self.common.world_dir;
        let store = match still_open {
            Some(store) => store,
            None if disk::is_store(dir) => Store::open(dir)?,
            // An empty one is not to be made in its place: the next start may find what belongs there.
            None => return Err(store::Error::missing(dir).into()),
        };
        let watch = store.watch();
        let world = self.host.start(store, self.common.api.bridge.next_world(), entry, false);
        if world.is_err() && !watch.is_closed_within(CLOSE_WAIT) {
            tracing::warn!("the store of the failed world is still open");
        }
        self.starts.send_replace(());
        world
    }

    /// Puts the old store back and brings its world to life.
    fn go_back(&self, refusal: &Refusal) -> Result<Box<dyn World>, Refusal> {
        disk::exchange(&self.common.world_dir).map_err(|error| self.give_up(&error))?;
        self.revive(None, stay_entry(refusal)).map_err(|error| self.give_up(&error))
    }

    /// There is no world any more: the process ends, and the next start restores what is on the disk.
    fn give_up(&self, error: &dyn std::fmt::Display) -> Refusal {
        self.host.fatal(format!("the previous world cannot be loaded again: {error}"));
        Refusal::busy("the daemon is shutting down", 5)
    }

    /// Removes what an exchange has left, out of the way of the next one. What stays is removed by a start.
    fn sweep_leftover(&self) {
        let aside = disk::draft(&self.common.world_dir);
        if remove_dir(&aside).and_then(|()| fs::rename(self.next_dir(), &aside)).is_err() {
            return;
        }
        let _in_its_own_time = std::thread::Builder::new().name("world-sweeper".to_owned()).spawn(move || {
            if let Err(error) = remove_dir(&aside) {
                tracing::warn!(%error, "the store of the previous world will be removed at the next start");
            }
        });
    }

    /// Waits until the world has taken its first step.
    fn wait_until_open(&self) {
        let api = &self.common.api;
        let until = Instant::now() + OPEN_WAIT;
        while !api.bridge.is_open() && !api.shutdown.is_triggered() && Instant::now() < until {
            std::thread::sleep(OPEN_POLL);
        }
    }
}

/// The world was to be exchanged, and is not.
fn stay_entry(refusal: &Refusal) -> Entry {
    let details = json!({ "reason": refusal.message });
    Entry { actor: Actor::System, kind: audit_kinds::WORLD_EXCHANGE_FAILED, details }
}

/// The disk's or the store's error as a client sees it; where it is stays in the log.
fn failed(error: &(dyn std::error::Error + 'static)) -> Refusal {
    tracing::error!(%error, "the world cannot be restored");
    if is_full(error) {
        return Refusal::of(error_codes::STORAGE_FULL, "not enough disk space for the restored world");
    }
    Refusal::new(RefusalKind::Failed, "the world could not be restored; see the daemon's log for the reason")
}

#[cfg(test)]
mod tests;
