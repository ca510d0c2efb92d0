//! The bridge into the world: bounded, and the only way in.

use agentsvc_components::kernel::error_codes;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::{Actor, Refusal, RefusalKind};
use agentsvc_systems::{Command, Engine, ReplySlot, Room};
use crossbeam_channel::{Receiver, Sender};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{oneshot, watch};
use tracing::Span;

use crate::http::error_codes::{MOVING, OUTCOME_UNKNOWN};
use crate::http::permit::{self, Permit};
use crate::http::principal;
use crate::http::trace::command_span;

/// Seconds after which one who came during an exchange may try again.
const EXCHANGE_RETRY_SECS: u32 = 2;

/// A command on its way, with the slot that its asker waits at.
pub trait Envelope: Send {
    /// The command's name, for metrics.
    fn name(&self) -> &'static str;
    /// Does it change state?
    fn writes(&self) -> bool;
    /// The room on the disk without which it is refused.
    fn room(&self) -> Room;
    /// Carries it out.
    fn run(self: Box<Self>, engine: &mut Engine);
    /// Answers it with a refusal instead.
    fn refuse(self: Box<Self>, refusal: Refusal);
}

struct QueuedCommand<C: Command> {
    actor: Actor,
    /// The span of the request that asks.
    span: Span,
    command: C,
    slot: ReplySlot<C::Reply>,
    /// What the request holds that asks; as long as the command waits, for it is made of that.
    _permit: Option<Arc<Permit>>,
    /// What else it is made of.
    _room: Option<Permit>,
}

impl<C: Command> Envelope for QueuedCommand<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn writes(&self) -> bool {
        C::WRITES
    }

    fn room(&self) -> Room {
        C::ROOM
    }

    fn run(self: Box<Self>, engine: &mut Engine) {
        let span = command_span(C::NAME, &self.span);
        // The step that carries it out, where that has a span.
        span.follows_from(Span::current());
        let _within = span.entered();
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
    Outcome(AnyOutcome),
    /// Finish: take what is queued, then end.
    Stop,
}

/// The way into one world. Each world has its own, so that nothing that was meant for one reaches another.
struct WorldQueue {
    /// The loop's end does not have it: when nobody can ask any more, the loop ends.
    sender: Sender<Arrival>,
    state: Arc<State>,
}

/// What both ends of a lane see.
struct State {
    /// Which world of this process, from 1.
    number: u64,
    waiting: AtomicUsize,
    /// One of the three below; all of it in one word, so that nobody sees a gate that is neither open nor held.
    gate: AtomicU8,
    /// Other nodes have the world when this one gives it up: what was under way may be carried out there.
    is_shared: Arc<AtomicBool>,
    /// It has taken commands before: whoever waits for the world to load need not wait any more.
    opened: watch::Sender<bool>,
    /// The loop alone keeps the world alive: when it ends, so do the replies that wait in it.
    world: OnceLock<Weak<Mutex<Engine>>>,
}

/// It takes no commands: it loads, or ends.
const CLOSED: u8 = 0;
/// It takes commands.
const OPEN: u8 = 1;
/// It takes none, because another world takes this one's place, or because this one is on its way to that place.
const HELD: u8 = 2;

impl Deref for WorldQueue {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl WorldQueue {
    fn new(number: u64, gate: u8, is_shared: Arc<AtomicBool>) -> (Arc<Self>, Intake) {
        // The channel itself has no bound, so that an outcome never waits; commands are bounded by the count and
        // outcomes by the effects that are out.
        let (sender, arrivals) = crossbeam_channel::unbounded();
        let state = Arc::new(State {
            number,
            waiting: AtomicUsize::new(0),
            gate: AtomicU8::new(gate),
            is_shared,
            opened: watch::Sender::new(false),
            world: OnceLock::new(),
        });
        let intake = Intake { arrivals, lane: Arc::clone(&state) };
        (Arc::new(Self { sender, state }), intake)
    }
}

impl State {
    fn is_at(&self, gate: u8) -> bool {
        self.gate.load(Ordering::Acquire) == gate
    }

    /// Has it never taken commands?
    fn is_new(&self) -> bool {
        !*self.opened.borrow()
    }

    /// Are commands taken? Otherwise why not.
    fn pass(&self) -> Result<(), Refusal> {
        match self.gate.load(Ordering::Acquire) {
            OPEN => Ok(()),
            HELD => Err(self.held()),
            _ => Err(Refusal::busy("the daemon is loading; try again in a moment", 1).with_code(error_codes::LOADING)),
        }
    }
}

impl State {
    /// What is said to a command that was not taken, because the world is given up or another one takes its place.
    fn held(&self) -> Refusal {
        if self.is_shared.load(Ordering::Acquire) { moving() } else { exchanging() }
    }

    /// What is said to a command that was taken, and whose world ended before it answered.
    fn lost(&self) -> Refusal {
        if self.is_shared.load(Ordering::Acquire) {
            let text = "the world went to another node before it answered; the request may have been carried out, so look \
                        before you repeat it";
            Refusal::new(RefusalKind::Failed, text).with_code(OUTCOME_UNKNOWN)
        } else if self.is_at(HELD) {
            exchanging()
        } else {
            Refusal::busy("the daemon is shutting down", 5)
        }
    }
}

/// What is said to a command that was not begun, because another node takes the world over.
#[must_use]
pub fn moving() -> Refusal {
    let text = "no node answers at the moment, because another one takes over; nothing was done";
    Refusal::busy(text, 1).with_code(MOVING)
}

/// What is said while one world takes the place of another.
#[must_use]
pub fn exchanging() -> Refusal {
    Refusal::busy("a restore is in progress; try again in a moment", EXCHANGE_RETRY_SECS)
        .with_code(error_codes::EXCHANGING)
}

/// The asker's end. Cheap to clone.
#[derive(Clone)]
pub struct Bridge {
    lane: Arc<RwLock<Arc<WorldQueue>>>,
    /// The only world it leads to; every world in turn when `None`.
    bound: Option<u64>,
    /// It may be asked before it takes the commands of clients.
    is_early: bool,
    /// Who sends commands over it.
    actor: Actor,
}

/// The world loop's end.
pub struct Intake {
    /// Arrivals in order.
    pub arrivals: Receiver<Arrival>,
    lane: Arc<State>,
}

/// A bridge and its two ends. Closed to commands until [`Intake::open`]: the world is still loading.
#[must_use]
pub fn bridge() -> (Bridge, Intake) {
    let (lane, intake) = WorldQueue::new(1, CLOSED, Arc::default());
    (Bridge { lane: Arc::new(RwLock::new(lane)), bound: None, is_early: false, actor: Actor::Api }, intake)
}

impl Bridge {
    /// The same way into the world for somebody else than a client of the API.
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { actor, ..self.clone() }
    }

    /// The same way, but into the present world only: what another one brings about must not change the next.
    #[must_use]
    pub fn of_this_world(&self) -> Self {
        Self { bound: Some(self.lane.read().number), ..self.clone() }
    }

    /// The same way, for the effects of the present world: into that world only, and already before clients may ask. What its
    /// first step lets out, as a tool call that goes on, finds it so.
    #[must_use]
    pub fn for_effects(&self) -> Self {
        Self { is_early: true, ..self.of_this_world() }
    }

    /// The way into the present world, or the next one unless it is bound to another.
    fn lane(&self) -> Result<Arc<WorldQueue>, Refusal> {
        let lane = Arc::clone(&self.lane.read());
        if self.bound.is_some_and(|bound| bound != lane.number) { Err(exchanging()) } else { Ok(lane) }
    }

    /// Sends a command and waits for its reply.
    ///
    /// Refused with `Busy` (503 with `Retry-After`) while the world loads or is exchanged, when
    /// [`limit::BRIDGE_COMMANDS_MAX`] commands wait already, and when the world has ended. A command of
    /// [its effects](Self::for_effects) waits for a world that loads.
    pub async fn ask<C: Command>(&self, command: C) -> Result<C::Reply, Refusal> {
        self.ask_holding(command, None).await
    }

    /// Does the same with a command that takes `room` beside what its request holds. The room is given back when the world has
    /// taken the command, also when nobody waits for the reply any more.
    pub(crate) async fn ask_holding<C: Command>(&self, command: C, room: Option<Permit>) -> Result<C::Reply, Refusal> {
        let lane = self.lane()?;
        let actor = if self.actor == Actor::Api { principal::actor() } else { self.actor };
        if C::QUICK && lane.is_at(OPEN) {
            // Only when the world rests: an asker never waits for it, and it hardly ever for an asker.
            let world = lane.world.get().and_then(Weak::upgrade);
            if let Some(mut resting) = world.as_ref().and_then(|world| world.try_lock()) {
                let reply = resting.read(actor, command);
                return reply.unwrap_or_else(|| Err(Refusal::new(RefusalKind::Failed, "not a quick read")));
            }
        }
        let (sender, receiver) = oneshot::channel();
        let slot = ReplySlot::new(move |reply| {
            let _gone = sender.send(reply);
        });
        let (span, _permit) = (Span::current(), permit::current());
        if !self.is_early || !lane.is_new() {
            lane.pass()?;
        }
        submit(&lane, Box::new(QueuedCommand { actor, span, command, slot, _permit, _room: room }))?;
        receiver.await.unwrap_or_else(|_| Err(lane.lost()))
    }

    /// Brings back what the outside did. Lost only when the world has ended.
    pub fn outcome(&self, outcome: impl Into<AnyOutcome>) {
        if let Ok(lane) = self.lane() {
            let _ended = lane.sender.send(Arrival::Outcome(outcome.into()));
        }
    }

    /// Asks the world loop to finish.
    pub fn stop(&self) {
        if let Ok(lane) = self.lane() {
            let _ended = lane.sender.send(Arrival::Stop);
        }
    }

    /// From now on the worlds are shared with other nodes, and what was under way in one that ends may be carried out there.
    pub fn share(&self) {
        self.lane.read().is_shared.store(true, Ordering::Release);
    }

    /// Takes no more commands, because another world is about to take the present one's place. What waits already
    /// is still carried out.
    pub fn hold(&self) {
        self.lane.read().gate.store(HELD, Ordering::Release);
    }

    /// The way into the world after the present one, which has ended; closed until that world opens it. What still
    /// comes for the present one is lost.
    #[must_use]
    pub fn next_world(&self) -> Intake {
        let mut present = self.lane.write();
        let (lane, intake) = WorldQueue::new(present.number + 1, HELD, Arc::clone(&present.is_shared));
        *present = lane;
        intake
    }

    /// Is the world loaded and taking commands?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.lane().is_ok_and(|lane| lane.is_at(OPEN))
    }

    /// Does the world take commands? Otherwise what a command would be told.
    pub(crate) fn check_open(&self) -> Result<(), Refusal> {
        self.lane()?.pass()
    }

    /// Waits until the world has loaded, at most for `time`. Ends at once for a world that has, or has ended since.
    pub(crate) async fn loaded(&self, time: Duration) {
        let _or_not = tokio::time::timeout(time, self.opened()).await;
    }

    /// Waits until the world has loaded. Ends at once for a world that has, or has ended since, and for one that takes another's
    /// place: that it does is the answer.
    pub async fn opened(&self) {
        let mut opened = {
            let lane = self.lane.read();
            if !lane.is_at(CLOSED) {
                return;
            }
            lane.opened.subscribe()
        };
        let _ended = opened.wait_for(|opened| *opened).await;
    }

    /// Is one world taking the place of another?
    #[must_use]
    pub fn is_exchanging(&self) -> bool {
        self.lane.read().is_at(HELD)
    }

    /// How it stands with the world, for a person: `running`, `exchanging` or `loading`.
    pub(crate) fn state(&self) -> &'static str {
        match self.lane.read().gate.load(Ordering::Acquire) {
            OPEN => "running",
            HELD => "exchanging",
            _ => "loading",
        }
    }

    /// Commands that wait for the world thread.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lane.read().waiting.load(Ordering::Relaxed)
    }
}

fn submit(lane: &WorldQueue, envelope: Box<dyn Envelope>) -> Result<(), Refusal> {
    if lane.waiting.fetch_add(1, Ordering::Relaxed) >= limit::BRIDGE_COMMANDS_MAX {
        lane.waiting.fetch_sub(1, Ordering::Relaxed);
        return Err(Refusal::busy("too many requests are waiting; try again later", 1).with_code(error_codes::BUSY));
    }
    lane.sender.send(Arrival::Command(envelope)).map_err(|_| {
        lane.waiting.fetch_sub(1, Ordering::Relaxed);
        if lane.is_at(HELD) { lane.held() } else { Refusal::new(RefusalKind::Busy, "the daemon is shutting down") }
    })
}

impl Intake {
    /// The world is loaded: commands may come. `world` is what the loop locks while it steps; quick reads look at
    /// it in between.
    pub fn open_with(&self, world: &Arc<Mutex<Engine>>) {
        let _only_once = self.lane.world.set(Arc::downgrade(world));
        self.open();
    }

    /// The world is loaded: commands may come, all of them through the channel.
    pub fn open(&self) {
        self.lane.gate.store(OPEN, Ordering::Release);
        self.lane.opened.send_replace(true);
    }

    /// The world ends: no more commands. One that is held stays so, and whoever asks is told of that.
    pub fn close(&self) {
        let _held = self.lane.gate.compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// A command was taken out of the channel.
    pub fn took_command(&self) {
        self.lane.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
