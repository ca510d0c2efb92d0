//! The world thread: takes what arrives, steps the world, hands each step's commit to the store writer.
//!
//! It parks until something arrives or the next beat is due. Arrivals are taken in batches of at most
//! [`limit::STEP_ARRIVALS_MAX`] and stepped at once; a reader never waits for a beat. A beat that is missed under
//! load is skipped and counted, never made up for. The thread never waits for the disk: when too much waits to be
//! stored, writing commands are refused and reads go on.
//!
//! The wall clock enters the daemon here. Small steps back are stood through; when the clock is set back further, the
//! world's time follows it, for a world whose time stands still would keep no deadline.
//!
//! A panic in a step ends the process: nothing of that step is stored, and the next start restores the world as of
//! the last step that was.

mod clock;
pub mod config;
mod hold_told;
mod slow;
pub mod stats;

use agentsvc_components::kernel::error_codes;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::{Arrival, Bridge, Envelope, Intake, moving};
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, Refusal, Timestamp};
use agentsvc_systems::Room;
use agentsvc_systems::kernel::command::ReplySlot;
use agentsvc_systems::kernel::engine::Engine;
use agentsvc_systems::kernel::fires::HoldWork;
use crossbeam_channel::RecvTimeoutError;
use parking_lot::Mutex;

use crate::kernel::store::writer::CommitQueue;
use clock::Pace;
use hold_told::HoldTold;
use slow::SlowSteps;

pub use clock::Clock;
pub use stats::LoopStats;

/// Steps that a stop waits for at most before it leaves the rest to the next start.
const DRAIN_STEPS_MAX: usize = 4 * limit::BRIDGE_COMMANDS_MAX / limit::STEP_ARRIVALS_MAX;

/// How often the world looks whether the store has caught up, while what begins of itself waits for that.
const HELD_LOOK: Duration = Duration::from_millis(5);

/// Seconds after which one who was refused for want of room on the disk may try again.
const READ_ONLY_RETRY_SECS: u32 = 5;

/// Puts another engine in the place of one, where that changes nothing.
pub trait Renew: Send {
    /// Between two steps. True when `engine` is another one now.
    fn look(&mut self, engine: &mut Engine) -> bool;
}

/// What the world loop works with.
pub struct Parts {
    /// The restored world. Locked for the length of a step; in between, quick reads look at it.
    pub engine: Arc<Mutex<Engine>>,
    /// The world's end of the bridge; opened once the world has taken its first step.
    pub intake: Intake,
    /// The way to the store writer.
    pub commits: CommitQueue,
    /// The clocks.
    pub clock: Clock,
    /// Beats a second (`[world] tick_hz`).
    pub tick_hz: u32,
    /// Counters, shared with the metrics page.
    pub stats: Arc<LoopStats>,
    /// Looks at the world between two steps, and may put another engine with the same world in its place.
    pub renewal: Option<Box<dyn Renew>>,
    /// Looks at the world after each beat.
    pub on_beat: Arc<dyn Fn(&Engine) + Send + Sync>,
    /// Ends the process with a cause: a step panicked.
    pub fatal: Arc<dyn Fn(String) + Send + Sync>,
}

/// The running world thread.
pub struct WorldLoop {
    thread: JoinHandle<()>,
}

impl WorldLoop {
    /// Starts the thread. Its first step starts the effects of whatever was under way when the world was stored;
    /// then the bridge is opened.
    pub fn start(parts: Parts) -> std::io::Result<Self> {
        let thread = std::thread::Builder::new().name("world".to_owned()).spawn(move || Running::new(parts).run())?;
        Ok(Self { thread })
    }

    /// Closes the bridge to commands, steps what has arrived, waits until all of it is stored and let go, and ends
    /// the thread.
    pub fn stop(self, bridge: &Bridge) {
        bridge.stop();
        self.join();
    }

    /// Waits for the thread's end.
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the world thread panicked");
        }
    }
}

/// Why the thread woke.
enum Wake {
    /// This arrived.
    For(Arrival),
    /// A beat is due, or work was left over.
    Time,
}

/// Which writing commands a step takes.
#[derive(Clone, Copy)]
enum Gate {
    /// All.
    Open,
    /// Those that need no more room on the disk than there is.
    ReadOnly(Room),
    /// None: the store is behind.
    Closed,
    /// None, and no reads either: another node owns the world.
    Fenced,
}

impl Gate {
    /// Why the command is refused, if it is.
    fn refusal(self, command: &dyn Envelope) -> Option<Refusal> {
        match self {
            Self::Fenced => Some(moving()),
            _ if !command.writes() => None,
            Self::Closed => {
                let text = "the store backlog is full; try again later";
                Some(Refusal::busy(text, 1).with_code(error_codes::STORE_BACKLOG))
            }
            Self::ReadOnly(room) if command.room() > room => {
                let text = "the disk is full and the daemon is read-only; free disk space and try again";
                Some(Refusal::busy(text, READ_ONLY_RETRY_SECS).with_code(error_codes::READ_ONLY))
            }
            _ => None,
        }
    }
}

/// The state of the world thread.
struct Running {
    parts: Parts,
    pace: Pace,
    slow: SlowSteps,
    now: Timestamp,
    /// What waits until the store has caught up.
    hold: HoldWork,
    /// What is said of that.
    told: HoldTold,
    stopping: bool,
}

impl Running {
    fn new(parts: Parts) -> Self {
        let pace = Pace::new(parts.tick_hz, (parts.clock.running)());
        let slow = SlowSteps::new(parts.tick_hz);
        // The counters may be those of a world that held something when it ended.
        parts.stats.held.store(0, Ordering::Relaxed);
        let (hold, told) = (HoldWork::default(), HoldTold::default());
        Self { parts, pace, slow, now: Timestamp::default(), hold, told, stopping: false }
    }

    fn run(mut self) {
        let fatal = self.parts.fatal.clone();
        let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| self.run_until_stop())) else { return };
        self.parts.intake.close();
        let cause = format!("a step of the world panicked: {}", panic_text(&*panic));
        tracing::error!(%cause, "the step was not stored; the next start resumes from the state before it");
        fatal(cause);
    }

    fn run_until_stop(&mut self) {
        self.step(None);
        // The metrics page names everything from the first request on, not from the first beat.
        self.parts.engine.lock().read_metrics(&mut self.parts.stats.metrics.lock());
        self.parts.intake.open_with(&self.parts.engine);
        while !self.stopping {
            if let Wake::For(arrival) = self.wait() {
                self.step(Some(arrival));
            } else {
                self.step(None);
            }
        }
        self.drain();
    }

    /// Parks until there is something to do.
    fn wait(&self) -> Wake {
        if self.parts.engine.lock().has_work() {
            return Wake::Time;
        }
        let mut until_due = self.pace.until_due((self.parts.clock.running)());
        if self.hold != HoldWork::default() {
            until_due = until_due.min(HELD_LOOK);
        }
        match self.parts.intake.arrivals.recv_timeout(until_due) {
            Ok(arrival) => Wake::For(arrival),
            Err(RecvTimeoutError::Timeout) => Wake::Time,
            // Every bridge is gone: nobody can ask any more.
            Err(RecvTimeoutError::Disconnected) => Wake::For(Arrival::Stop),
        }
    }

    /// One step: the beat when it is due, what has arrived, and everything that follows from it.
    fn step(&mut self, first: Option<Arrival>) {
        let started = Instant::now();
        let _span = tracing::debug_span!("step", count = self.parts.stats.steps.load(Ordering::Relaxed) + 1).entered();
        self.now = follow(self.now, (self.parts.clock.wall)());
        let world = Arc::clone(&self.parts.engine);
        let mut engine = world.lock();
        if let Some(renewal) = &mut self.parts.renewal {
            renewal.look(&mut engine);
        }
        engine.set_now(self.now);
        self.hold_or_let_go(&mut engine);
        if let Some(missed) = self.pace.take((self.parts.clock.running)()) {
            self.beat(&mut engine, missed);
        }
        let arrivals = self.take_arrivals(&mut engine, first);
        let commit = engine.step_without_writing();
        let took = started.elapsed();
        self.slow.note(&engine, took, arrivals);
        self.parts.stats.step.store(commit.step.number, Ordering::Relaxed);
        drop(engine);
        if !commit.is_empty() {
            self.parts.commits.send(commit);
        }
        self.parts.stats.steps.fetch_add(1, Ordering::Relaxed);
        self.parts.stats.step_time.observe(took);
        self.parts.stats.step_window.observe(took);
    }

    /// Lets what begins of itself wait while the store is behind: one message may fire thousands of triggers, and would else fill
    /// the backlog until the commands of all are refused. An engine that has taken the place of another knows of nothing that is held.
    fn hold_or_let_go(&mut self, engine: &mut Engine) {
        let waiting = self.parts.commits.backlog_bytes();
        let is_behind = |held, most: usize| waiting >= if held { most / 2 } else { most };
        let hold = HoldWork {
            fires: is_behind(self.hold.fires, limit::STORE_BACKLOG_FIRES_MAX),
            calls: is_behind(self.hold.calls, limit::STORE_BACKLOG_CALLS_MAX),
        };
        if hold != engine.held() {
            engine.command(Actor::System, hold, ReplySlot::new(drop));
        }
        if hold != self.hold {
            self.hold = hold;
            self.parts.stats.held.store(u64::from(hold.fires) + u64::from(hold.calls), Ordering::Relaxed);
            self.told.note(hold, waiting, Instant::now());
        }
    }

    fn beat(&self, engine: &mut Engine, missed: u64) {
        let started = Instant::now();
        // What is due waits for room on the disk.
        if !self.parts.commits.is_read_only() {
            engine.beat();
        }
        let stats = &self.parts.stats;
        stats.beats.fetch_add(1, Ordering::Relaxed);
        stats.beats_missed.fetch_add(missed, Ordering::Relaxed);
        engine.read_metrics(&mut stats.metrics.lock());
        stats.read_timings(engine.timings());
        (self.parts.on_beat)(engine);
        let took = started.elapsed();
        stats.beat_time.observe(took);
        stats.beat_window.observe(took);
    }

    /// Carries out `first` and what else has arrived, up to the bound of a step; gives how many there were.
    fn take_arrivals(&mut self, engine: &mut Engine, first: Option<Arrival>) -> usize {
        // Once per step: what this step adds is known only when it closes.
        let gate = self.gate();
        let mut next = first;
        for taken in 0..limit::STEP_ARRIVALS_MAX {
            let Some(arrival) = next.take().or_else(|| self.next_arrival()) else { return taken };
            self.take(engine, arrival, gate);
        }
        limit::STEP_ARRIVALS_MAX
    }

    fn next_arrival(&self) -> Option<Arrival> {
        self.parts.intake.arrivals.try_recv().ok()
    }

    fn take(&mut self, engine: &mut Engine, arrival: Arrival, gate: Gate) {
        match arrival {
            Arrival::Command(envelope) => self.command(engine, envelope, gate),
            Arrival::Outcome(outcome) => {
                engine.outcome(outcome);
                self.parts.stats.outcomes.fetch_add(1, Ordering::Relaxed);
            }
            Arrival::Stop => {
                self.parts.intake.close();
                self.stopping = true;
            }
        }
    }

    fn gate(&self) -> Gate {
        match &self.parts.commits {
            commits if commits.is_fenced() => Gate::Fenced,
            commits if commits.is_full() => Gate::Closed,
            commits if !commits.is_read_only() => Gate::Open,
            commits if commits.has_last_room() => Gate::ReadOnly(Room::Last),
            // What were taken would wait until somebody makes room.
            _ => Gate::ReadOnly(Room::None),
        }
    }

    fn command(&self, engine: &mut Engine, envelope: Box<dyn Envelope>, gate: Gate) {
        self.parts.intake.took_command();
        let stats = &self.parts.stats;
        stats.commands.fetch_add(1, Ordering::Relaxed);
        match gate.refusal(&*envelope) {
            Some(refusal) => {
                stats.writes_refused.fetch_add(1, Ordering::Relaxed);
                envelope.refuse(refusal);
            }
            None => envelope.run(engine),
        }
    }

    /// Steps what waits and lets the writer finish.
    fn drain(&mut self) {
        for _ in 0..DRAIN_STEPS_MAX {
            let next = self.next_arrival();
            if next.is_none() && !self.parts.engine.lock().has_work() {
                break;
            }
            self.step(next);
        }
        self.parts.commits.wait_no_more();
        if let Err(error) = self.parts.commits.flush() {
            tracing::error!(%error, "the world stopped before its last step was confirmed as stored");
        }
    }
}

/// The world's time once the clock shows `wall`.
fn follow(now: Timestamp, wall: Timestamp) -> Timestamp {
    let is_set_back = wall.plus_ms(limit::CLOCK_JITTER_MS) < now;
    if is_set_back { wall } else { now.max(wall) }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else {
        panic.downcast_ref::<String>().map_or("no message", String::as_str)
    }
}

#[cfg(test)]
mod told_tests;

#[cfg(test)]
mod tests;
