//! The world and its step. The world loop drives it; tests drive it just the same, in virtual time.

use std::any::Any;

use bevy_ecs::prelude::World;
use bevy_ecs::schedule::Schedule;

use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::kernel::step::StepMark;
use agentsvc_components::{Actor, LogId, Refusal, Timestamp};

use crate::kernel::acting::Acting;
use crate::kernel::arrivals::Arrived;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Command, ReplySlot};
use crate::kernel::domain::Domain;
use crate::kernel::fires::{Fires, HoldWork};
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::index::Index;
use crate::kernel::inputs::recorder::{Inputs, Recorder};
use crate::kernel::job::Jobs;
use crate::kernel::outbox::{Outbox, take_whole};
#[cfg(test)]
use crate::kernel::persist;
use crate::kernel::record::{self, BoxedRecord};
use crate::kernel::restore::{self, Records};
use crate::kernel::stage::{Beat, Close, Round, Stage};
use crate::kernel::timings::{Override, StageBuilder, Stopwatch, Timing, Timings};

/// Something that listeners are told once a step is on disk, in the form of the domain that tells it.
pub type Told = Box<dyn Any + Send>;

/// Something to do once a step is on disk: usually the sending of a reply. Must not block.
pub type Release = Box<dyn FnOnce() + Send>;

/// What one step leaves for the outside. The store writes `ops` as one atomic batch; then the releases run
/// and the effects start, in that order.
#[derive(Default)]
pub struct Commit {
    /// Records, in order; of two with the same key the later one holds.
    pub ops: Vec<Op>,
    /// More records, behind those in `ops`, that [`write_late`](Self::write_late) is yet to write.
    pub late: Vec<BoxedRecord>,
    /// Work for the outside.
    pub effects: Vec<AnyEffect>,
    /// What listeners are told.
    pub told: Vec<Told>,
    /// Replies that waited for this step.
    pub releases: Vec<Release>,
    /// The newest step that stored something, this one if it did; 0 for what is no step.
    pub step: StepMark,
    /// What the step took in, when inputs are recorded and there is something to replay.
    pub inputs: Option<Box<Inputs>>,
}

impl Commit {
    /// Nothing to write, to tell or to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.has_left_nothing() && self.inputs.is_none()
    }

    /// Writes the records that the world has left to whoever stores the commit. Nothing but `ops` has records then.
    pub fn write_late(&mut self) {
        self.ops.reserve(self.late.len());
        self.ops.extend(std::mem::take(&mut self.late).into_iter().map(|late| late.write()));
    }

    /// Has it records?
    #[must_use]
    pub fn stores(&self) -> bool {
        !(self.ops.is_empty() && self.late.is_empty())
    }

    /// Nothing but perhaps its inputs.
    fn has_left_nothing(&self) -> bool {
        !self.has_moved() && self.releases.is_empty()
    }

    /// Did the world move? A reply alone does not say so: a read may wait for the store too.
    fn has_moved(&self) -> bool {
        self.stores() || !self.effects.is_empty() || !self.told.is_empty()
    }
}

/// One world and the schedules that move it.
pub struct Engine {
    world: World,
    round: Schedule,
    close: Schedule,
    beat: Schedule,
    /// The newest step that stored something.
    newest: StepMark,
    activity: u64,
}

impl Engine {
    /// An empty world of the systems that `replace` chooses. `settings` puts in what its domains are set to, `seed` is all
    /// the randomness that it will ever have.
    pub(crate) fn build(settings: impl FnOnce(&mut World), seed: [u8; 32], replace: &mut Override<'_>) -> Self {
        let mut world = World::new();
        let mint = IdGenerator::new(seed);
        world.insert_resource(Index::new(mint.hash_key()));
        world.insert_resource(mint);
        settings(&mut world);
        world.init_resource::<Outbox>();
        world.init_resource::<Recorder>();
        world.init_resource::<Fires>();
        world.init_resource::<Acting>();
        world.init_resource::<Arrived>();
        world.init_resource::<Timings>();
        world.insert_resource(Now::default());
        for domain in crate::kernel::domain::all() {
            domain.totals.iter().for_each(|totals| (totals.init)(&mut world));
            domain.per_step.iter().for_each(|it| it.begin(&mut world));
            (domain.install)(&mut world);
        }
        // Beats first: that is the order in which the systems run.
        let mut builder = StageBuilder { world: &mut world, replace };
        let beat = builder.schedule(Beat, &[Stage::Time]);
        let round = builder.schedule(Round, &[Stage::Intake, Stage::Match, Stage::Fire, Stage::Decide]);
        let close = builder.schedule(Close, &[Stage::Collect, Stage::Persist, Stage::Seal]);
        Self { world, round, close, beat, newest: StepMark::default(), activity: 0 }
    }

    /// Fills an empty world from its records and resumes what was under way; the next step emits the effects
    /// of that. The only way a stored world comes to life, after a crash and after a graceful stop alike.
    pub fn restore(&mut self, records: Records, now: Timestamp) -> Result<(), record::Error> {
        self.set_now(now);
        restore::restore(&mut self.world, records)
    }

    /// The newest step that stored something.
    #[must_use]
    pub const fn newest(&self) -> StepMark {
        self.newest
    }

    /// Numbers the next step that stores something behind `newest`: numbers grow over restarts.
    pub const fn number_behind(&mut self, newest: StepMark) {
        self.newest = newest;
    }

    /// Writes down the inputs of every step from here on, or no longer. To be switched between two steps.
    pub fn record(&mut self, on: bool) {
        self.world.resource_mut::<Recorder>().switch(on);
    }

    /// Grows with every step that leaves records, effects or events, with every write that was not refused and with every
    /// clock set back. While it stays, so does the world.
    #[must_use]
    pub const fn activity(&self) -> u64 {
        self.activity
    }

    /// Nothing is under way: no turn, call, run or match, and nobody waits for a reply. Restored from its records now,
    /// the world would miss nothing.
    #[must_use]
    pub fn is_quiet(&mut self) -> bool {
        !self.has_work() && crate::kernel::domain::all().iter().all(|domain| (domain.is_quiet)(&mut self.world))
    }

    /// Takes over from a world of the same records what only statistics read: its counters, and the clock that its
    /// systems are timed by with what was measured.
    pub fn count_on_from(&mut self, other: &mut Self) {
        let totals = crate::kernel::domain::all().iter().flat_map(|domain| domain.totals);
        totals.for_each(|totals| (totals.count_on)(&other.world, &mut self.world));
        self.world.resource_mut::<Jobs>().count_on_from(other.world.resource::<Jobs>());
        let timings = std::mem::take(&mut *other.world.resource_mut::<Timings>());
        self.world.insert_resource(timings);
    }

    /// The world, for reading in tests and statistics.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Gives no log out before `next`.
    pub(crate) fn carry_logs(&mut self, next: u64) {
        self.world.resource_mut::<IdGenerator>().reserve_log(LogId(next.saturating_sub(1)));
    }

    /// The world, for a look at the whole of it ([`check`](crate::kernel::check)): queries need `&mut`, and change nothing.
    pub(crate) const fn whole(&mut self) -> &mut World {
        &mut self.world
    }

    /// The world, for what a domain does to the whole of it.
    pub(crate) const fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Sets the moment of the next step.
    pub fn set_now(&mut self, now: Timestamp) {
        self.world.resource_mut::<Timings>().begin();
        let before = std::mem::replace(&mut self.world.resource_mut::<Now>().0, now);
        let is_set_back = now.plus_ms(limit::CLOCK_JITTER_MS) < before;
        if is_set_back {
            crate::kernel::domain::all().iter().for_each(|domain| (domain.clock_set_back)(&mut self.world));
            self.activity += 1;
        }
        if now.plus_ms(limit::CLOCK_FAULT_MS) < before {
            crate::kernel::domain::all().iter().for_each(|domain| (domain.clock_reset)(&mut self.world));
        }
        self.world.resource_mut::<Recorder>().time(now, is_set_back.then_some(before));
    }

    /// Carries out one command that `actor` sent. Reads and refusals are answered before this returns.
    pub fn command<C: Command>(&mut self, actor: Actor, command: C, slot: ReplySlot<C::Reply>) {
        let now = self.world.resource::<Now>().0;
        self.world.resource_mut::<Recorder>().command(now, actor, &command);
        self.world.resource_mut::<Acting>().0 = actor;
        match command.run(&mut self.world) {
            Answer::Now(reply) => slot.send(reply),
            Answer::Stored(reply) => {
                // What it changed may be in no record, as the settings are.
                self.activity += u64::from(C::WRITES);
                self.world.resource_mut::<Outbox>().reply(slot, Ok(reply));
            }
            Answer::Later(park) => park(&mut self.world, slot),
        }
        self.world.resource_mut::<Acting>().0 = Actor::System;
    }

    /// Carries out a quick read of `actor` between two steps. `None` when the command is none: then it was not carried out.
    pub fn read<C: Command>(&mut self, actor: Actor, command: C) -> Option<Result<C::Reply, Refusal>> {
        const { assert!(!(C::QUICK && C::WRITES), "a command that writes cannot be quick: nobody would record it") };
        if !C::QUICK {
            return None;
        }
        self.world.resource_mut::<Acting>().0 = actor;
        let answer = command.run(&mut self.world);
        self.world.resource_mut::<Acting>().0 = Actor::System;
        if let Answer::Now(reply) = answer { Some(reply) } else { None }
    }

    /// Takes in what came back from the outside; the next step settles it.
    pub fn outcome(&mut self, outcome: impl Into<AnyOutcome>) {
        let outcome = outcome.into();
        let now = self.world.resource::<Now>().0;
        self.world.resource_mut::<Recorder>().outcome(now, &outcome);
        self.world.resource_mut::<Arrived>().0.push_back(outcome);
    }

    /// Lets time-driven systems see what is due. Followed by a step.
    pub fn beat(&mut self) {
        let now = self.world.resource::<Now>().0;
        self.world.resource_mut::<Recorder>().beat(now);
        self.world.resource_mut::<Timings>().start();
        self.beat.run(&mut self.world);
    }

    /// Runs everything that follows from the arrivals to quiescence and closes the step.
    pub fn step(&mut self) -> Commit {
        let mut commit = self.step_without_writing();
        commit.write_late();
        commit
    }

    /// The same, for a thread that has another one store the commit: that one writes what is [late](Commit::late).
    pub fn step_without_writing(&mut self) -> Commit {
        self.world.resource_mut::<Timings>().arrived();
        self.rounds();
        self.close.run(&mut self.world);
        self.world.resource_mut::<Fires>().refill();
        for domain in crate::kernel::domain::all() {
            domain.per_step.iter().for_each(|it| it.begin(&mut self.world));
        }
        self.world.clear_trackers();
        let told = crate::kernel::domain::all().iter().filter_map(|domain| (domain.told)(&mut self.world)).collect();
        let mut outbox = self.world.resource_mut::<Outbox>();
        let mut commit = Commit {
            told,
            ops: take_whole(&mut outbox.ops),
            late: take_whole(&mut outbox.late),
            effects: std::mem::take(&mut outbox.effects),
            releases: std::mem::take(outbox.releases.get()),
            ..Commit::default()
        };
        self.close_recording(&mut commit);
        commit
    }

    /// Numbers the step and hands out what was written down of it.
    fn close_recording(&mut self, commit: &mut Commit) {
        let now = self.world.resource::<Now>().0;
        let stored = commit.stores();
        if stored {
            self.newest = StepMark { number: self.newest.number + 1, at: now };
        }
        commit.step = self.newest;
        let (left, continues) = (commit.has_moved(), self.has_work());
        self.activity += u64::from(left || continues);
        let mut recorder = self.world.resource_mut::<Recorder>();
        commit.inputs = recorder.close(now, self.newest.number, (stored, left, continues));
    }

    /// Runs rounds until nothing more follows in this step.
    fn rounds(&mut self) {
        for _ in 0..limit::STEP_ROUNDS_MAX {
            self.round.run(&mut self.world);
            if self.moves_on() {
                continue;
            }
            self.react_to_what_happened();
            if !self.moves_on() {
                return;
            }
        }
        // The rounds ran out; what fired a turn hears of its end in the commit of that end all the same.
        crate::kernel::domain::all().iter().for_each(|domain| (domain.rounds_ran_out)(&mut self.world));
        self.react_to_what_happened();
    }

    /// Shows domains what happened in the step that they have not seen.
    fn react_to_what_happened(&mut self) {
        crate::kernel::domain::all().iter().for_each(|domain| (domain.before_close)(&mut self.world));
    }

    /// Would a further round of this step move anything?
    fn moves_on(&self) -> bool {
        let can_fire = !self.world.resource::<Fires>().is_spent();
        self.is_left(can_fire)
    }

    /// Is something left to do, fires only when they count?
    fn is_left(&self, with_fires: bool) -> bool {
        let world = &self.world;
        let is_left = |domain: &Domain| (domain.has_work)(world) || (with_fires && (domain.has_fires)(world));
        !world.resource::<Arrived>().0.is_empty() || crate::kernel::domain::all().iter().any(is_left)
    }

    /// A step, and with it what the record of every changed entity must be: the audit of the dirty marks.
    /// Only here `Changed` is asked, and only in tests.
    #[cfg(test)]
    pub(crate) fn step_audited(&mut self) -> (Commit, Vec<Op>) {
        self.rounds();
        let changed = persist::changed(&mut self.world);
        let commit = self.step();
        (commit, persist::expected(&self.world, &changed))
    }

    /// The earliest moment at which a beat would find something to do; it may have passed. Until then beats change
    /// nothing but the sums of past minutes. `None` when time alone brings nothing about.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        crate::kernel::domain::all().iter().filter_map(|domain| (domain.next_due)(&self.world)).min()
    }

    /// Is anything left over for another step, because a step's rounds or fires ran out?
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.is_left(!self.world.resource::<Fires>().is_held())
    }

    /// What waits until the store has caught up. A new engine holds nothing.
    #[must_use]
    pub fn held(&self) -> HoldWork {
        self.world.resource::<Fires>().held()
    }

    /// Measures how long each system takes, by `clock`, from here on. What is measured reaches no decision of the world.
    pub fn time_systems(&mut self, clock: Stopwatch) {
        self.world.resource_mut::<Timings>().set_clock(clock);
    }

    /// What each system took so far, in the order in which they run.
    #[must_use]
    pub fn timings(&self) -> &[Timing] {
        self.world.resource::<Timings>().all()
    }

    /// What the systems took in the step that [`set_now`](Self::set_now) began, those that took most first.
    #[must_use]
    pub fn timings_of_step(&self) -> Vec<(&'static str, std::time::Duration)> {
        self.world.resource::<Timings>().of_step()
    }
}
