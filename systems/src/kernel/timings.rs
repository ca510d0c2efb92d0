//! How long each system takes. The clock is given in by whoever drives the world; without one, as in tests and replays,
//! nothing is measured and nothing differs. What is measured never reaches a decision of the world.
//!
//! One reading of the clock lies between two systems: the end of one is the beginning of the next. So a step costs about
//! fifteen readings, and the time that the schedules themselves take counts for the system that follows.

use std::sync::Arc;
use std::time::Duration;

use bevy_ecs::prelude::{Resource, SystemSet, World};
use bevy_ecs::schedule::{IntoScheduleConfigs, Schedule, ScheduleLabel};

use super::domain::System;
use super::stage::Stage;

/// Time since some fixed moment, which never goes back.
pub type Stopwatch = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Upper ends of the buckets of [`Timing::buckets`], in nanoseconds; the last bucket has no end.
pub const TIMING_BOUNDS_NS: [u64; 6] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// The place of what has arrived: commands and outcomes, carried out before the first round.
const ARRIVALS: usize = 0;

/// What one system took so far.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The system's name.
    pub name: &'static str,
    /// The stage that it runs in, in lower case.
    pub stage: &'static str,
    /// How often it ran.
    pub runs: u64,
    /// Nanoseconds in all.
    pub total_ns: u64,
    /// Nanoseconds of the longest run.
    pub max_ns: u64,
    /// Runs by their time, not cumulative; see [`TIMING_BOUNDS_NS`].
    pub buckets: [u64; TIMING_BOUNDS_NS.len() + 1],
    /// Nanoseconds in the step that is numbered so.
    step_ns: u64,
    step: u64,
}

impl Timing {
    const fn new(name: &'static str, stage: &'static str) -> Self {
        Self {
            name,
            stage,
            runs: 0,
            total_ns: 0,
            max_ns: 0,
            buckets: [0; TIMING_BOUNDS_NS.len() + 1],
            step_ns: 0,
            step: 0,
        }
    }

    fn add(&mut self, ns: u64, step: u64) {
        self.runs += 1;
        self.total_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.buckets[TIMING_BOUNDS_NS.iter().take_while(|bound| **bound < ns).count()] += 1;
        self.step_ns = if self.step == step { self.step_ns + ns } else { ns };
        self.step = step;
    }
}

/// The clock and what was measured.
#[derive(Resource)]
pub(crate) struct Timings {
    clock: Option<Stopwatch>,
    /// The last reading.
    at: Duration,
    /// Counts steps, so that nothing is cleared between two.
    step: u64,
    timings: Vec<Timing>,
}

impl Default for Timings {
    fn default() -> Self {
        let timings = vec![Timing::new("arrivals", "intake")];
        Self { clock: None, at: Duration::ZERO, step: 0, timings }
    }
}

impl Timings {
    /// Measures from here on.
    pub(crate) fn set_clock(&mut self, clock: Stopwatch) {
        self.clock = Some(clock);
    }

    /// A step begins.
    pub(crate) fn begin(&mut self) {
        self.step += 1;
        self.start();
    }

    /// What follows is measured from here.
    pub(crate) fn start(&mut self) {
        if let Some(clock) = &self.clock {
            self.at = clock();
        }
    }

    /// What has arrived is carried out.
    pub(crate) fn arrived(&mut self) {
        self.measure(ARRIVALS);
    }

    /// The system at `place` has run.
    fn measure(&mut self, place: usize) {
        let Some(clock) = &self.clock else { return };
        let now = clock();
        let ns = now.saturating_sub(self.at).as_nanos() as u64;
        self.at = now;
        self.timings[place].add(ns, self.step);
    }

    /// Every system, in the order in which they run.
    pub(crate) fn all(&self) -> &[Timing] {
        &self.timings
    }

    /// What the systems took in the step that began last, those that took most first.
    pub(crate) fn of_step(&self) -> Vec<(&'static str, Duration)> {
        let ran = self.timings.iter().filter(|timing| timing.step == self.step && timing.step_ns > 0);
        let mut ran: Vec<_> = ran.map(|timing| (timing.name, Duration::from_nanos(timing.step_ns))).collect();
        ran.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        ran
    }
}

/// A system as a schedule runs it.
pub type BoxedSystem = Box<dyn FnMut(&mut World) + Send + Sync>;

/// Says which system runs under a name: the one that it is given, or another in its place or around it. The live world
/// has every system unchanged; a replay can ask what would differ if one were another.
pub type Override<'c> = dyn FnMut(&'static str, BoxedSystem) -> BoxedSystem + 'c;

/// Every system unchanged.
pub(crate) fn unchanged(_: &'static str, system: BoxedSystem) -> BoxedSystem {
    system
}

/// Builds the schedules of a world from the systems of all domains.
pub(crate) struct StageBuilder<'w, 'c> {
    pub(crate) world: &'w mut World,
    pub(crate) replace: &'w mut Override<'c>,
}

impl StageBuilder<'_, '_> {
    /// The schedule of some stages: each runs its systems in the order of the domains, behind the stage before.
    pub(crate) fn schedule(&mut self, label: impl ScheduleLabel, stages: &[Stage]) -> Schedule {
        let mut schedule = Schedule::new(label);
        for (before, after) in stages.iter().zip(&stages[1..]) {
            schedule.configure_sets((*before, *after).chain());
        }
        for stage in stages {
            let systems =
                super::SYSTEMS.iter().chain(crate::kernel::domain::all().iter().flat_map(|domain| domain.systems));
            let mut last = None;
            for system in systems.filter(|system| system.stage == *stage) {
                let place = Place(system.name);
                let timed = self.timed(system).in_set(*stage).in_set(place);
                match last.replace(place) {
                    Some(before) => schedule.add_systems(timed.after(before)),
                    None => schedule.add_systems(timed),
                };
            }
        }
        schedule
    }

    /// `system`, or what is put in its place, timed under its name.
    fn timed(&mut self, system: &System) -> impl FnMut(&mut World) + Send + Sync + 'static + use<> {
        let mut timings = self.world.resource_mut::<Timings>();
        let place = timings.timings.len();
        timings.timings.push(Timing::new(system.name, system.stage.as_str()));
        let mut system = (self.replace)(system.name, Box::new(system.run));
        move |world: &mut World| {
            system(world);
            world.resource_mut::<Timings>().measure(place);
        }
    }
}

/// Where one system stands in its schedule.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place(&'static str);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::testing::TestWorld;

    /// A clock that moves on by so much with each reading.
    fn ticking(ns: u64) -> Stopwatch {
        let readings = AtomicU64::new(0);
        Arc::new(move || Duration::from_nanos(ns * readings.fetch_add(1, Ordering::Relaxed)))
    }

    #[test]
    fn every_system_is_measured_once_a_run_and_a_step_knows_its_own() {
        let mut world = TestWorld::new();
        world.spawn("before");
        assert!(world.engine.timings().iter().all(|timing| timing.runs == 0), "no clock, no measuring");
        world.engine.time_systems(ticking(20_000));
        world.engine.set_now(world.now.plus_ms(1));
        world.engine.beat();
        world.engine.step();
        let timings = world.engine.timings().to_vec();
        let stages: Vec<&str> = timings.iter().map(|timing| timing.stage).collect();
        for stage in ["time", "intake", "match", "decide", "persist"] {
            assert!(stages.contains(&stage), "{stage}");
        }
        for timing in &timings {
            assert_eq!(
                (timing.runs, timing.total_ns, timing.max_ns, timing.buckets[1]),
                (1, 20_000, 20_000, 1),
                "{}",
                timing.name
            );
        }
        let names: std::collections::BTreeSet<&str> = timings.iter().map(|timing| timing.name).collect();
        assert_eq!(names.len(), timings.len(), "each has a name of its own");
        let of_step = world.engine.timings_of_step();
        assert_eq!(of_step.len(), timings.len());
        world.engine.set_now(world.now.plus_ms(2));
        world.engine.step();
        let of_step = world.engine.timings_of_step();
        assert!(
            of_step.len() < timings.len() && of_step.iter().all(|(name, _)| !name.ends_with("_beat")),
            "{of_step:?}"
        );
    }

    #[test]
    fn a_cast_sees_every_system_once_by_its_name_and_may_put_another_in_its_place() {
        use crate::{Engine, Settings};
        let (mut seen, ran) = (Vec::new(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&ran);
        let mut engine = Engine::with_systems(Settings::default(), [1; 32], &mut |name, mut system| {
            seen.push(name);
            let counted = Arc::clone(&counted);
            if name != "settle" {
                return system;
            }
            Box::new(move |world| {
                counted.fetch_add(1, Ordering::Relaxed);
                system(world);
            })
        });
        engine.beat();
        engine.step();
        assert_eq!(ran.load(Ordering::Relaxed), 1, "one round");
        let names: Vec<_> = engine.timings().iter().skip(1).map(|timing| timing.name).collect();
        assert_eq!(seen, names);
    }

    #[test]
    fn measuring_changes_nothing_in_the_world() {
        let ops = |clock: Option<Stopwatch>| {
            let mut world = TestWorld::new();
            if let Some(clock) = clock {
                world.engine.time_systems(clock);
            }
            world.spawn("one");
            world.begin(crate::testing::spawn_command("two"));
            world.step()
        };
        assert_eq!(ops(None), ops(Some(ticking(1))));
    }
}
