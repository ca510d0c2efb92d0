//! The world and its step. The world loop drives it; tests drive it just the same, in virtual time.

use bevy_ecs::prelude::World;
use bevy_ecs::schedule::{IntoScheduleConfigs, Schedule};

use agentsvc_components::audit::Actor;
use agentsvc_components::effect::Effect;
use agentsvc_components::event::Happened;
use agentsvc_components::outcome::OutcomeKind;
use agentsvc_components::record::Op;
use agentsvc_components::{Refusal, Timestamp, limit};

use crate::agent::Family;
use crate::audit::Acting;
use crate::clock::Now;
use crate::command::{Answer, Command, ReplySlot};
use crate::index::{self, Index};
use crate::interner::Manifests;
use crate::memory::Memories;
use crate::mint::Mint;
use crate::outbox::Outbox;
use crate::restore::{self, Records};
use crate::settings::Settings;
use crate::stage::{Beat, Close, Round, Stage};
use crate::stats::{Counters, WorldStats};
use crate::{
    approval, audit, automation, budget, compaction, persist, record, schedule, taint, trigger, turn, usage, workflow,
};

/// Something to do once a step is on disk: usually the sending of a reply. Must not block.
pub type Release = Box<dyn FnOnce() + Send>;

/// What one step leaves for the outside. The store writes `ops` as one atomic batch; then the releases run
/// and the effects start, in that order.
#[derive(Default)]
pub struct Commit {
    /// Records, in order; of two with the same key the later one holds.
    pub ops: Vec<Op>,
    /// Work for the outside.
    pub effects: Vec<Effect>,
    /// What happened.
    pub events: Vec<Happened>,
    /// Replies that waited for this step.
    pub releases: Vec<Release>,
}

impl Commit {
    /// Nothing to write, to tell or to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.effects.is_empty() && self.events.is_empty() && self.releases.is_empty()
    }
}

/// One world and the schedules that move it.
pub struct Engine {
    world: World,
    round: Schedule,
    close: Schedule,
    beat: Schedule,
}

impl Engine {
    /// An empty world. `seed` is all the randomness it will ever have.
    #[must_use]
    pub fn new(settings: Settings, seed: [u8; 32]) -> Self {
        let mut world = World::new();
        index::register(&mut world);
        let mint = Mint::new(seed);
        world.insert_resource(Index::new(mint.hash_key()));
        world.insert_resource(mint);
        world.insert_resource(settings);
        world.init_resource::<Outbox>();
        world.init_resource::<Manifests>();
        world.init_resource::<Counters>();
        world.init_resource::<Family>();
        world.init_resource::<Memories>();
        world.insert_resource(Now::default());
        turn::install(&mut world);
        compaction::install(&mut world);
        approval::install(&mut world);
        taint::install(&mut world);
        automation::install(&mut world);
        usage::install(&mut world);
        budget::install(&mut world);
        audit::install(&mut world);

        let mut round = Schedule::new(Round);
        round.configure_sets((Stage::Intake, Stage::Match, Stage::Decide, Stage::Apply).chain());
        round.add_systems((
            (turn::settle, automation::tell).chain().in_set(Stage::Intake),
            (automation::meet, schedule::fire, trigger::deliver, workflow::advance).chain().in_set(Stage::Match),
            (turn::admit, turn::send).chain().in_set(Stage::Decide),
        ));
        let mut close = Schedule::new(Close);
        close.configure_sets((Stage::Persist, Stage::Release).chain());
        close.add_systems(
            (trigger::keep_waiting, trigger::keep_bursts, persist::record_dirty, usage::store_dirty, audit::close)
                .chain()
                .in_set(Stage::Persist),
        );
        let mut beat = Schedule::new(Beat);
        beat.configure_sets(Stage::Time);
        beat.add_systems((automation::beat, approval::beat, usage::beat, budget::beat).chain().in_set(Stage::Time));
        Self { world, round, close, beat }
    }

    /// Fills an empty world from its records and resumes what was under way; the next step emits the effects
    /// of that. The only way a stored world comes to life, after a crash and after a graceful stop alike.
    pub fn restore(&mut self, records: Records, now: Timestamp) -> Result<(), record::Error> {
        self.set_now(now);
        restore::restore(&mut self.world, records)
    }

    /// The world, for reading in tests and statistics.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The world, for a look at the whole of it ([`check`](crate::check)): queries need `&mut`, and change nothing.
    pub(crate) const fn whole(&mut self) -> &mut World {
        &mut self.world
    }

    /// The world, for tests that do what no command does or look into what commands do not show.
    #[cfg(test)]
    pub(crate) const fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Sets the moment of the next step.
    pub fn set_now(&mut self, now: Timestamp) {
        let before = std::mem::replace(&mut self.world.resource_mut::<Now>().0, now);
        if now.plus_ms(limit::CLOCK_FAULT_MS) < before {
            schedule::reanchor(&mut self.world);
        }
        if now.plus_ms(limit::CLOCK_JITTER_MS) < before {
            workflow::clock_set_back(&mut self.world);
        }
    }

    /// Carries out one command that `actor` sent. Reads and refusals are answered before this returns.
    pub fn command<C: Command>(&mut self, actor: Actor, command: C, slot: ReplySlot<C::Reply>) {
        self.world.resource_mut::<Acting>().0 = actor;
        match command.run(&mut self.world) {
            Answer::Now(reply) => slot.send(reply),
            Answer::Stored(reply) => self.world.resource_mut::<Outbox>().reply(slot, Ok(reply)),
            Answer::Later(park) => park(&mut self.world, slot),
        }
        self.world.resource_mut::<Acting>().0 = Actor::System;
    }

    /// Carries out a quick read between two steps. `None` when the command is none.
    pub fn read<C: Command>(&mut self, command: C) -> Option<Result<C::Reply, Refusal>> {
        match command.run(&mut self.world) {
            Answer::Now(reply) if C::QUICK && !C::WRITES => Some(reply),
            _ => None,
        }
    }

    /// Takes in what came back from the outside; the next step settles it.
    pub fn outcome(&mut self, outcome: OutcomeKind) {
        turn::take_in(&mut self.world, outcome);
    }

    /// Lets time-driven systems see what is due. Followed by a step.
    pub fn beat(&mut self) {
        self.beat.run(&mut self.world);
    }

    /// Runs everything that follows from the arrivals to quiescence and closes the step.
    pub fn step(&mut self) -> Commit {
        self.rounds();
        self.close.run(&mut self.world);
        self.world.resource_mut::<automation::Budget>().refill();
        self.world.clear_trackers();
        let mut outbox = self.world.resource_mut::<Outbox>();
        Commit {
            ops: std::mem::take(&mut outbox.ops),
            effects: std::mem::take(&mut outbox.effects),
            events: outbox.take_events(),
            releases: std::mem::take(outbox.releases.get()),
        }
    }

    /// Runs rounds until nothing more follows in this step.
    fn rounds(&mut self) {
        for _ in 0..limit::STEP_ROUNDS_MAX {
            self.round.run(&mut self.world);
            if !(turn::has_work(&self.world) || automation::has_work(&self.world)) {
                return;
            }
        }
        // The rounds ran out; what began a turn hears of its end in the commit of that end all the same.
        automation::tell(&mut self.world);
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

    /// Is anything left over for another step, because a step's rounds or fires ran out?
    #[must_use]
    pub fn has_work(&self) -> bool {
        turn::has_work(&self.world) || automation::has_work(&self.world) || automation::is_waiting(&self.world)
    }

    /// Counts and totals; costs the same however large the world is.
    #[must_use]
    pub fn stats(&self) -> WorldStats {
        WorldStats::of(&self.world)
    }
}
