//! A copy of the world and its virtual time.
//!
//! All moments lie on a grid. [`Pace::Jump`] goes from one moment at which anything is due to the next one: a slot, an
//! outcome, an injected event, or what else the world says is due ([`Engine::next_due`]). [`Pace::Beat`] goes through
//! every moment of the grid, as a live world does; both have exactly the same fires, because a beat at which nothing is
//! due changes nothing.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use agentsvc_api::rehearsal::runs::{Injected, InjectedKind};
use agentsvc_components::event::EventEnvelope;
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, Refusal, Timestamp};
use agentsvc_systems::config::auto_dream::AutoDreamSettings;
use agentsvc_systems::event::PublishEvent;
use agentsvc_systems::event::told::events_of;
use agentsvc_systems::kernel::record;
use agentsvc_systems::rehearsal::Note;
use agentsvc_systems::turn::{NewMessage, PostMessage};
use agentsvc_systems::{Engine, Records, ReplySlot, Settings};
use parking_lot::Mutex;

use super::performer::Performer;
use super::script::Script;

/// Milliseconds between two moments of the grid: the beat of a world at 20 Hz.
pub const TICK_MS: i64 = 50;

/// How a fork's time moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// To the next moment at which anything is due.
    Jump,
    /// To the next moment of the grid.
    Beat,
}

/// What one step of the fork came to.
pub struct Step {
    /// When, in virtual time.
    pub now: Timestamp,
    /// An event.
    pub events: Vec<EventEnvelope>,
    /// What fires came to.
    pub notes: Vec<Note>,
}

/// Looks at the steps of a fork.
pub trait Watcher {
    /// One step. `Break` ends the run; the fork stays as it is.
    fn step(&mut self, step: Step, engine: &mut Engine) -> ControlFlow<()>;
}

/// Results of the injected events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Number accepted.
    pub told: u64,
    /// Those it did not, by their place in the request, with the reason.
    pub refused: Vec<(usize, String)>,
}

/// A copy of the world that nothing of the outside hears of.
pub struct Fork {
    engine: Engine,
    performer: Performer,
    now: Timestamp,
    tick_ms: i64,
    /// What is still to be injected, with its place in the request, in the order of time.
    events: VecDeque<(usize, Injected)>,
    fate: Arc<Mutex<Fate>>,
}

impl Fork {
    /// Brings `records` to life at `from`, with everything that was under way in them. `seed` is all the randomness.
    pub fn new(
        settings: Settings,
        records: Records,
        from: Timestamp,
        seed: u64,
        script: Script,
    ) -> Result<Self, record::Error> {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        // Nobody waits for what an agent would make of its memory, and the script knows nothing of it.
        let auto_dream = AutoDreamSettings { enabled: false, ..settings.auto_dream };
        let mut engine = Engine::new(Settings { auto_dream, ..settings }, bytes);
        engine.watch();
        let now = on_grid(from, TICK_MS);
        engine.restore(records, now)?;
        // Calls that were out are asked again; what a restart notes of them is not the rehearsal's.
        engine.take_notes();
        let events = VecDeque::new();
        Ok(Self { engine, performer: Performer::new(script), now, tick_ms: TICK_MS, events, fate: Arc::default() })
    }

    /// Lets the grid have another distance, in milliseconds.
    pub fn with_tick(mut self, tick_ms: i64) -> Self {
        self.tick_ms = tick_ms.max(1);
        self.now = on_grid(self.now, self.tick_ms);
        self
    }

    /// Lets these things happen on the way.
    pub fn with_events(mut self, events: Vec<Injected>) -> Self {
        let mut events: Vec<_> = events.into_iter().enumerate().collect();
        events.sort_by_key(|(_, event)| event.at);
        self.events = events.into();
        self
    }

    /// Current virtual time.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Its world.
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What became of the injected events so far.
    pub fn fate(&self) -> Fate {
        self.fate.lock().clone()
    }

    /// Runs through every moment before `until`, or until `watcher` has seen enough.
    pub fn run(&mut self, until: Timestamp, pace: Pace, watcher: &mut impl Watcher) {
        while self.now < until {
            if self.moment(watcher).is_break() {
                return;
            }
            self.now = self.next(pace).unwrap_or(until).min(until);
        }
    }

    /// The moment after this one.
    fn next(&self, pace: Pace) -> Option<Timestamp> {
        let soonest = self.now.plus_ms(self.tick_ms);
        if pace == Pace::Beat {
            return Some(soonest);
        }
        let injected = self.events.front().map(|(_, event)| event.at);
        let due = [self.engine.next_due(), self.performer.next(), injected];
        let due = due.into_iter().flatten().min()?;
        Some(on_grid(due, self.tick_ms).max(soonest))
    }

    /// One moment: a beat, then steps until nothing is left to do in it.
    fn moment(&mut self, watcher: &mut impl Watcher) -> ControlFlow<()> {
        self.engine.set_now(self.now);
        self.engine.beat();
        loop {
            self.arrive();
            let commit = self.engine.step();
            let events: Vec<_> = commit.told.into_iter().flat_map(events_of).collect();
            self.performer.hear(&events);
            for effect in commit.effects {
                self.performer.perform(self.now, effect);
            }
            commit.releases.into_iter().for_each(|release| release());
            let notes = self.engine.take_notes();
            watcher.step(Step { now: self.now, events, notes }, &mut self.engine)?;
            let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= self.now);
            let injected = self.events.front().map(|(_, event)| event.at);
            if !self.engine.has_work() && !is_due(self.performer.next()) && !is_due(injected) {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Takes in what has arrived by now, as much as a step takes.
    fn arrive(&mut self) {
        let mut left = limit::STEP_ARRIVALS_MAX;
        while left > 0
            && let Some((number, event)) = self.events.pop_front_if(|(_, event)| event.at <= self.now)
        {
            self.inject(number, event);
            left -= 1;
        }
        while left > 0
            && let Some(outcome) = self.performer.take(self.now)
        {
            self.engine.outcome(outcome);
            left -= 1;
        }
    }

    fn inject(&mut self, number: usize, event: Injected) {
        match event.what {
            InjectedKind::Custom { event_type, payload, agent } => {
                let slot = self.slot(number);
                self.engine.command(Actor::Api, PublishEvent { event_type, payload, agent, by: None }, slot);
            }
            InjectedKind::Message { agent, text } => {
                let slot = self.slot(number);
                let message = NewMessage::text(text);
                self.engine.command(Actor::Api, PostMessage { agent, session: None, message }, slot);
            }
        }
    }

    /// Where the world answers what was injected.
    fn slot<R: 'static>(&self, number: usize) -> ReplySlot<R> {
        let fate = Arc::clone(&self.fate);
        ReplySlot::new(move |reply: Result<R, Refusal>| {
            let mut fate = fate.lock();
            match reply {
                Ok(_) => fate.told += 1,
                Err(refusal) => fate.refused.push((number, refusal.message)),
            }
        })
    }
}

/// The first moment of the grid that is not before `at`.
fn on_grid(at: Timestamp, tick_ms: i64) -> Timestamp {
    let behind = at.0.rem_euclid(tick_ms);
    if behind == 0 { at } else { at.plus_ms(tick_ms - behind) }
}
