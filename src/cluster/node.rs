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

use super::join::{Joining, Problem};
use super::lease::Lease;
use super::members::Members;
use super::moment::boot_time;
use super::nats::{NotReady, Wire};
use super::panics;
use super::progress::ALONE;
use super::trim::Trimming;
use super::watch::{AGAIN_MS, Watch};
use crate::kernel::exchange::{Entry, Exchange};
use crate::kernel::store::journal::Marked;
use crate::kernel::store::journal::entry::Position;
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
pub(super) enum Followed {
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
        self.prepare();
        let Some(mut store) = self.join()? else { return Ok(()) };
        // Others are heard all the time, also while this node joins.
        let (mut began, mut not_before, mut has_failed) = (boot_time(), 0, false);
        let mut watch = Watch::new(began, not_before);
        while !self.is_stopping() {
            watch = watch.anew(began, not_before);
            match self.follow(&store, &mut watch).map_err(|error| error.to_string())? {
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
                Followed::Due => match self.take_over(store, has_failed)? {
                    Some((back, rest_ms)) => (store, not_before, has_failed) = (back, boot_time() + rest_ms, true),
                    None => match self.own()? {
                        Owned::Stopped => break,
                        Owned::Given { has_failed: gave_up } => {
                            let Some(given) = self.exchange.give_away() else { break };
                            (store, began, has_failed) = (given, boot_time(), false);
                            not_before = if gave_up { began + AGAIN_MS } else { 0 };
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
        let began = self.members.now();
        while !self.is_stopping() {
            match self.wire.wait(self.wire.ready()) {
                Ok(()) => {
                    self.members.set_problem("journal", None);
                    return Ok(true);
                }
                Err(NotReady::Refused(text)) => return Err(text),
                Err(NotReady::Unavailable(text)) => {
                    self.members.set_problem("journal", self.members.unless_new(began, text));
                }
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
pub(super) fn refuse(event: Event) {
    if let Event::Move { done, .. } = event {
        drop(done.send(Err(ClusterError::NotOwner)));
    }
}
