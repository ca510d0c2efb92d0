//! The thread of a node: it follows the journal, takes the world over when it is due, and gives it up when another node has it.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use agentsvc_api::Api;
use agentsvc_api::cluster::{ClusterError, Moved, NodeRole};
use agentsvc_api::http::bridge::Intake;
use crossbeam_channel::{Receiver, Sender};
use tokio::sync::oneshot;

use super::join::{Joining, Problem, is_alone, tail_of};
use super::lease::Lease;
use super::members::Members;
use super::moment::boot_time;
use super::nats::{NotReady, Wire};
use super::panics;
use super::progress::ALONE;
use super::synced::Synced;
use super::trim::Trimming;
use super::watch::Watch;
use crate::kernel::exchange::{Entry, Exchange};
use crate::kernel::store::journal::Marked;
use crate::kernel::store::journal::entry::{Body, Position};
use crate::kernel::store::{Error, Store};

/// How long one look for entries takes, and so how soon everything else is noticed.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// The pause after something failed.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
/// Milliseconds for which a stop waits for servers that do not answer.
const STOP_MS: u64 = 5_000;
/// Milliseconds between two comparisons of all stores.
const CHECK_MS: u64 = 60 * 60 * 1_000;

/// What the thread is told.
pub(super) enum Event {
    /// Another node owns the world, or this one cannot go on with it: look.
    Look,
    /// The store found no room on the disk.
    Stuck,
    /// What a node cannot do without has panicked, says the text.
    Panicked(String),
    /// Hand the world to this node.
    Move { to: String, done: oneshot::Sender<Result<Moved, ClusterError>> },
}

/// What a node is made of.
pub(super) struct Node {
    pub(super) wire: Arc<Wire>,
    pub(super) members: Arc<Members>,
    pub(super) exchange: Arc<Exchange>,
    /// Where changes are counted that were begun.
    pub(super) api: Arc<Api>,
    /// Where the store is.
    pub(super) world_dir: PathBuf,
    /// What goes on the audit trail when this node takes the world over.
    pub(super) entry: Box<dyn Fn() -> Entry + Send>,
    /// The way into the first world of this process.
    pub(super) intake: Option<Intake>,
    /// This home is new: where the whole world is, too, it gets an agent to talk to.
    pub(super) is_first_run: bool,
    pub(super) events: Receiver<Event>,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) fatal: Box<dyn Fn(String) + Send>,
    pub(super) trimming: Trimming,
    /// How often it was tried to go on behind an entry that the journal has lost.
    pub(super) tries: Cell<u32>,
    /// Owners wait until this node has on its disk what they append.
    pub(super) is_eager: bool,
    /// Where rows go that are to be compared with those of other nodes.
    pub(super) marked: Sender<Marked>,
    /// When they were last compared; `None` when they are not.
    pub(super) checking: Option<u64>,
}

/// A node that runs.
pub(crate) struct Running {
    pub(super) events: Sender<Event>,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) members: Arc<Members>,
    pub(super) thread: JoinHandle<()>,
}

impl Running {
    /// From now on nothing waits long for servers that do not answer.
    pub(crate) fn begin_stop(&self) {
        self.members.standing.ends.store(boot_time() + STOP_MS, Ordering::Release);
    }

    /// Takes nothing over and gives nothing up any more. The world goes on until it is ended, and its end frees it for the others.
    pub(crate) fn stop(self) {
        self.stopping.store(true, Ordering::Release);
        self.members.drain();
        self.begin_stop();
        let _ended = self.events.send(Event::Look);
        if self.thread.join().is_err() {
            tracing::error!("the thread of the cluster panicked");
        }
    }
}

/// Why following ended.
enum Followed {
    /// It is for this node to take over.
    Due,
    /// The store is not one that the journal goes on from any more.
    Lost(Option<(String, Position)>),
    /// The journal has lost this entry, and has others behind it.
    Hole(u64),
    /// This node must end, says the text, such as because another one has its name.
    Ends(String),
    /// The daemon stops.
    Stopped,
}

/// Why owning ended.
enum Owned {
    /// Another node has the world, or may have it.
    Given {
        /// This node could not go on; others come first.
        has_failed: bool,
    },
    /// The daemon stops; its world still runs.
    Stopped,
}

impl Node {
    /// Runs until the daemon stops.
    pub(super) fn run(mut self) {
        let ended = panics::caught(|| self.live(), panics::end_in_time);
        if let Err(cause) = ended {
            (self.fatal)(cause);
        }
    }

    fn live(&mut self) -> Result<(), String> {
        if !self.wait_until_ready()? {
            return Ok(());
        }
        let Some(mut store) = self.join()? else { return Ok(()) };
        let mut has_failed = false;
        while !self.is_stopping() {
            match self.follow(&store, has_failed).map_err(|error| error.to_string())? {
                Followed::Stopped => break,
                Followed::Ends(text) => return Err(text),
                Followed::Lost(rebase) => {
                    store = match self.rebuild(store, rebase)? {
                        Some(store) => store,
                        None => break,
                    };
                }
                Followed::Hole(index) => {
                    store = match self.past_hole(store, index)? {
                        Some(store) => store,
                        None => break,
                    };
                }
                Followed::Due => match self.take_over(store)? {
                    Some(back) => (store, has_failed) = (back, true),
                    None => match self.own()? {
                        Owned::Stopped => break,
                        Owned::Given { has_failed: failed } => {
                            let Some(given) = self.exchange.give_away() else { break };
                            (store, has_failed) = (given, failed);
                        }
                    },
                },
            }
        }
        Ok(())
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until the journal can be used; false when the daemon stops before.
    fn wait_until_ready(&self) -> Result<bool, String> {
        while !self.is_stopping() {
            match self.wire.wait(self.wire.ready()) {
                Ok(()) => {
                    self.members.set_problem("journal", None);
                    return Ok(true);
                }
                Err(NotReady::Refused(text)) => return Err(text),
                Err(NotReady::Unavailable(text)) => self.members.set_problem("journal", Some(text)),
            }
            std::thread::sleep(PAUSE);
        }
        Ok(false)
    }

    /// Does what may fail for a while until it does not; `None` when the daemon stops before.
    fn again<T>(&self, work: impl Fn(&Joining<'_>) -> Result<T, Problem>) -> Result<Option<T>, String> {
        self.members.set_role(NodeRole::Joining);
        let Self { wire, members, exchange, world_dir, .. } = self;
        let joining = Joining { wire, members, exchange, world_dir };
        while !self.is_stopping() {
            if let Some(text) = members.must_give_way() {
                return Err(text);
            }
            match work(&joining) {
                Ok(done) => {
                    self.members.set_problem("joining", None);
                    return Ok(Some(done));
                }
                Err(Problem::Refused(text)) => return Err(text),
                Err(Problem::Failed(error @ Error::Journal(_))) => {
                    self.members.set_problem("joining", Some(error.to_string()));
                    std::thread::sleep(PAUSE);
                }
                Err(Problem::Failed(error)) => return Err(error.to_string()),
            }
        }
        Ok(None)
    }

    fn join(&self) -> Result<Option<Store>, String> {
        self.again(|joining| joining.join(None))
    }

    pub(super) fn rebuild(&self, store: Store, rebase: Option<(String, Position)>) -> Result<Option<Store>, String> {
        if !Exchange::is_store_free(store) {
            return Err("the store of this node is still being read, and must be built anew".to_owned());
        }
        self.again(|joining| joining.join(rebase.as_ref().map(|(name, position)| (name.as_str(), *position))))
    }

    /// Applies entries as they come, until something else is to be done.
    fn follow(&self, store: &Store, has_failed: bool) -> Result<Followed, Error> {
        let Self { wire, members, .. } = self;
        let mut tail = match tail_of(store, wire) {
            Ok(tail) => tail,
            Err(Error::Journal(_) | Error::Lost { .. } | Error::Trimmed { .. }) => return Ok(Followed::Lost(None)),
            Err(error) => return Err(error),
        };
        store.watch_marks(self.marked.clone());
        let mut watch = Watch::new(has_failed, boot_time());
        let mut synced = Synced::new(store, members, self.is_eager)?;
        members.standing.note(&store.position()?);
        members.set_role(NodeRole::Standby);
        // A world of a daemon that was alone stays as it is until the journal goes on from it.
        let mut is_alone = is_alone(store)?;
        loop {
            if self.is_stopping() {
                return Ok(Followed::Stopped);
            }
            if let Some(text) = members.must_give_way() {
                return Ok(Followed::Ends(text));
            }
            while let Ok(event) = self.events.try_recv() {
                if let Event::Panicked(text) = event {
                    return Ok(Followed::Ends(text));
                }
                refuse(event);
            }
            match tail.next_within(LOOK) {
                Ok(Some(entry)) => {
                    match &entry.body {
                        Body::Open { .. } | Body::Close if is_alone => {}
                        // Joining refuses it: two worlds cannot be joined.
                        Body::Step { .. } if is_alone => return Ok(Followed::Lost(None)),
                        _ => {
                            match store.apply(&entry) {
                                Err(Error::Rebased { snapshot }) => {
                                    return Ok(Followed::Lost(Some((snapshot, entry.position))));
                                }
                                applied => applied?,
                            }
                            is_alone = false;
                        }
                    }
                    members.standing.note(&entry.position);
                    watch.note(&entry, boot_time());
                    members.set_problem("reading", None);
                    self.tries.set(0);
                    members.lacks_nothing();
                }
                Ok(None) => {}
                Err(error @ Error::Journal(_)) => {
                    members.set_problem("reading", Some(error.to_string()));
                    std::thread::sleep(PAUSE);
                }
                Err(Error::Lost { index }) => return Ok(Followed::Hole(index.max(store.position()?.index + 1))),
                // Joining says what is to be done.
                Err(Error::Diverged { .. } | Error::Trimmed { .. }) => return Ok(Followed::Lost(None)),
                Err(error) => return Err(error),
            }
            synced.look(store, wire, members)?;
            if watch.is_due(members) {
                return Ok(Followed::Due);
            }
        }
    }

    /// Opens the world and brings it to life. Gives the store back when that did not succeed.
    fn take_over(&mut self, store: Store) -> Result<Option<Store>, String> {
        let began = boot_time();
        self.members.set_role(NodeRole::Moving);
        let watch = store.watch();
        let taken = self.exchange.take_over(store, self.intake.take(), (self.entry)(), self.is_first_run);
        match taken {
            Ok(()) => {
                self.is_first_run = false;
                self.members.set_next(None);
                self.members.set_role(NodeRole::Owner);
                // Standbys refuse requests until they know where to send them.
                if let Err(error) = self.wire.wait(super::talk::say(&self.wire, &self.members)) {
                    tracing::debug!(%error, "the other nodes will be told soon that this one owns the world");
                }
                let epoch = self.members.standing.epoch.load(Ordering::Acquire);
                tracing::info!(epoch, ms = boot_time() - began, "this node owns the world");
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(%error, "this node could not take the world over");
                while !watch.is_closed_within(PAUSE) {
                    if self.is_stopping() {
                        return Err("the daemon stops while its store is being read".to_owned());
                    }
                }
                Store::open(&*self.world_dir).map(Some).map_err(|error| error.to_string())
            }
        }
    }

    /// Runs the world until another node has it.
    ///
    /// # Errors
    /// This node must end, such as because another one has its name.
    fn own(&mut self) -> Result<Owned, String> {
        let lease = Lease::new(self.exchange.commits());
        let owned = loop {
            if self.is_stopping() {
                break Owned::Stopped;
            }
            if let Some(text) = self.members.must_give_way() {
                return Err(text);
            }
            let event = self.events.recv_timeout(LOOK);
            if let Ok(Event::Panicked(text)) = event {
                return Err(text);
            }
            let own = self.members.standing.epoch.load(Ordering::Acquire);
            self.look_for_newer();
            if let Some(epoch) = self.members.standing.newer() {
                tracing::warn!(own, epoch, "another node owns the world: this one becomes a standby");
                self.members.set_role(NodeRole::Moving);
                if let Ok(event) = event {
                    refuse(event);
                }
                break Owned::Given { has_failed: false };
            }
            match event {
                Ok(Event::Stuck) => {
                    tracing::error!("the store has no room on the disk: the world is left to another node");
                    self.members.set_role(NodeRole::Moving);
                    break Owned::Given { has_failed: true };
                }
                Ok(Event::Move { to, done }) => {
                    if self.hand_over(to, done) {
                        break Owned::Given { has_failed: true };
                    }
                }
                Ok(Event::Look | Event::Panicked(_)) | Err(_) => {}
            }
            lease.look(&self.members);
            self.members.set_problem(ALONE, if self.is_eager { self.members.why_alone() } else { None });
            self.trimming.look(&self.wire, &self.exchange, &self.members);
            self.check_now_and_then();
        };
        self.members.set_problem(ALONE, None);
        Ok(owned)
    }

    /// Compares the stores of all nodes when it is time.
    fn check_now_and_then(&mut self) {
        if self.checking.is_none_or(|last| boot_time() - last < CHECK_MS) {
            return;
        }
        self.checking = Some(boot_time());
        let (wire, members, exchange) = (Arc::clone(&self.wire), Arc::clone(&self.members), Arc::clone(&self.exchange));
        self.wire.spawn(async move {
            match super::verify::verify(wire, members, exchange).await {
                Ok(verified) => tracing::info!(problems = ?verified.problems, "the stores of the nodes were compared"),
                Err(error) => tracing::warn!(%error, "the stores of the nodes could not be compared"),
            }
        });
    }
}

/// Answers what only an owner does.
fn refuse(event: Event) {
    if let Event::Move { done, .. } = event {
        drop(done.send(Err(ClusterError::NotOwner)));
    }
}
