//! The bridge into the world: bounded, and the only way in.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use agentsvc_components::audit::Actor;
use agentsvc_components::outcome::OutcomeKind;
use agentsvc_components::{Refusal, RefusalKind, limit};
use agentsvc_systems::{Command, Engine, ReplySlot};

/// A command on its way, with the slot that its asker waits at.
pub trait Envelope: Send {
    /// The command's name, for metrics.
    fn name(&self) -> &'static str;
    /// Does it change state?
    fn writes(&self) -> bool;
    /// Carries it out.
    fn run(self: Box<Self>, engine: &mut Engine);
    /// Answers it with a refusal instead.
    fn refuse(self: Box<Self>, refusal: Refusal);
}

struct Sealed<C: Command> {
    actor: Actor,
    command: C,
    slot: ReplySlot<C::Reply>,
}

impl<C: Command> Envelope for Sealed<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn writes(&self) -> bool {
        C::WRITES
    }

    fn run(self: Box<Self>, engine: &mut Engine) {
        engine.command(self.actor, self.command, self.slot);
    }

    fn refuse(self: Box<Self>, refusal: Refusal) {
        self.slot.send(Err(refusal));
    }
}

/// What reaches the world loop.
pub enum Arrival {
    /// A command. Counted: [`Intake::took_command`] must follow when it has been taken.
    Command(Box<dyn Envelope>),
    /// Something came back from the outside; bounded by the effects that are out.
    Outcome(OutcomeKind),
    /// Finish: take what is queued, then end.
    Stop,
}

struct Shared {
    waiting: AtomicUsize,
    open: AtomicBool,
    /// The loop alone keeps the world alive: when it ends, so do the replies that wait in it.
    world: OnceLock<Weak<Mutex<Engine>>>,
}

/// The asker's end. Cheap to clone.
#[derive(Clone)]
pub struct Bridge {
    sender: Sender<Arrival>,
    shared: Arc<Shared>,
    /// Who sends commands over it.
    actor: Actor,
}

/// The world loop's end.
pub struct Intake {
    /// Arrivals in order.
    pub arrivals: Receiver<Arrival>,
    shared: Arc<Shared>,
}

/// A bridge and its two ends. Closed to commands until [`Intake::open`]: the world is still loading.
#[must_use]
pub fn bridge() -> (Bridge, Intake) {
    // The channel itself has no bound, so that an outcome never waits; commands are bounded by the count and
    // outcomes by the effects that are out.
    let (sender, arrivals) = crossbeam_channel::unbounded();
    let shared =
        Arc::new(Shared { waiting: AtomicUsize::new(0), open: AtomicBool::new(false), world: OnceLock::new() });
    (Bridge { sender, shared: Arc::clone(&shared), actor: Actor::Api }, Intake { arrivals, shared })
}

impl Bridge {
    /// The same way into the world for somebody else than a client of the API.
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { actor, ..self.clone() }
    }

    /// Sends a command and waits for its reply.
    ///
    /// Refused with `Busy` (503 with `Retry-After`) while the world loads, when
    /// [`limit::BRIDGE_COMMANDS_MAX`] commands wait already, and when the world has ended.
    pub async fn ask<C: Command>(&self, command: C) -> Result<C::Reply, Refusal> {
        if C::QUICK && self.is_open() {
            // Only when the world rests: an asker never waits for it, and it hardly ever for an asker.
            let world = self.shared.world.get().and_then(Weak::upgrade);
            if let Some(mut resting) = world.as_ref().and_then(|world| world.try_lock()) {
                let reply = resting.read(command);
                return reply.unwrap_or_else(|| Err(Refusal::new(RefusalKind::Failed, "not a quick read")));
            }
        }
        let (sender, receiver) = oneshot::channel();
        let slot = ReplySlot::new(move |reply| {
            let _gone = sender.send(reply);
        });
        self.submit(Box::new(Sealed { actor: self.actor, command, slot }))?;
        receiver.await.unwrap_or_else(|_| Err(Refusal::busy("the daemon is shutting down", 5)))
    }

    fn submit(&self, envelope: Box<dyn Envelope>) -> Result<(), Refusal> {
        if !self.shared.open.load(Ordering::Acquire) {
            return Err(Refusal::busy("the world is loading", 1).with_code("loading"));
        }
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) >= limit::BRIDGE_COMMANDS_MAX {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Refusal::busy("too many requests wait for the world", 1).with_code("busy"));
        }
        self.sender.send(Arrival::Command(envelope)).map_err(|_| {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            Refusal::new(RefusalKind::Busy, "the daemon is shutting down")
        })
    }

    /// Brings back what the outside did. Lost only when the world has ended.
    pub fn outcome(&self, outcome: OutcomeKind) {
        let _ended = self.sender.send(Arrival::Outcome(outcome));
    }

    /// Asks the world loop to finish.
    pub fn stop(&self) {
        let _ended = self.sender.send(Arrival::Stop);
    }

    /// Is the world loaded and taking commands?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.shared.open.load(Ordering::Acquire)
    }

    /// Commands that wait for the world thread.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }
}

impl Intake {
    /// The world is loaded: commands may come. `world` is what the loop locks while it steps; quick reads look at
    /// it in between.
    pub fn open_with(&self, world: &Arc<Mutex<Engine>>) {
        let _only_once = self.shared.world.set(Arc::downgrade(world));
        self.open();
    }

    /// The world is loaded: commands may come, all of them through the channel.
    pub fn open(&self) {
        self.shared.open.store(true, Ordering::Release);
    }

    /// The world ends: no more commands.
    pub fn close(&self) {
        self.shared.open.store(false, Ordering::Release);
    }

    /// A command was taken out of the channel.
    pub fn took_command(&self) {
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
