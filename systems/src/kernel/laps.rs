//! How long each system takes. The clock is given in by whoever drives the world; without one, as in tests and replays,
//! nothing is measured and nothing differs. What is measured never reaches a decision of the world.
//!
//! One reading of the clock lies between two systems: the end of one is the beginning of the next. So a step costs about
//! fifteen readings, and the time that the schedules themselves take counts for the system that follows.

use std::sync::Arc;
use std::time::Duration;

use bevy_ecs::prelude::{Resource, World};

/// Time since some fixed moment, which never goes back.
pub type Stopwatch = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Upper ends of the buckets of [`Lap::buckets`], in nanoseconds; the last bucket has no end.
pub const LAP_BOUNDS_NS: [u64; 6] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// The place of what has arrived: commands and outcomes, carried out before the first round.
const ARRIVALS: usize = 0;

/// What one system took so far.
#[derive(Clone, Debug)]
pub struct Lap {
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
    /// Runs by their time, not cumulative; see [`LAP_BOUNDS_NS`].
    pub buckets: [u64; LAP_BOUNDS_NS.len() + 1],
    /// Nanoseconds in the step that is numbered so.
    step_ns: u64,
    step: u64,
}

impl Lap {
    const fn new(name: &'static str, stage: &'static str) -> Self {
        Self {
            name,
            stage,
            runs: 0,
            total_ns: 0,
            max_ns: 0,
            buckets: [0; LAP_BOUNDS_NS.len() + 1],
            step_ns: 0,
            step: 0,
        }
    }

    fn add(&mut self, ns: u64, step: u64) {
        self.runs += 1;
        self.total_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.buckets[LAP_BOUNDS_NS.iter().take_while(|bound| **bound < ns).count()] += 1;
        self.step_ns = if self.step == step { self.step_ns + ns } else { ns };
        self.step = step;
    }
}

/// The clock and what was measured.
#[derive(Resource)]
pub(crate) struct Laps {
    clock: Option<Stopwatch>,
    /// The last reading.
    at: Duration,
    /// Counts steps, so that nothing is cleared between two.
    step: u64,
    laps: Vec<Lap>,
}

impl Default for Laps {
    fn default() -> Self {
        let laps = vec![Lap::new("arrivals", "intake")];
        Self { clock: None, at: Duration::ZERO, step: 0, laps }
    }
}

impl Laps {
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
        self.lap(ARRIVALS);
    }

    /// The system at `place` has run.
    fn lap(&mut self, place: usize) {
        let Some(clock) = &self.clock else { return };
        let now = clock();
        let ns = now.saturating_sub(self.at).as_nanos() as u64;
        self.at = now;
        self.laps[place].add(ns, self.step);
    }

    /// Every system, in the order in which they run.
    pub(crate) fn all(&self) -> &[Lap] {
        &self.laps
    }

    /// What the systems took in the step that began last, those that took most first.
    pub(crate) fn of_step(&self) -> Vec<(&'static str, Duration)> {
        let ran = self.laps.iter().filter(|lap| lap.step == self.step && lap.step_ns > 0);
        let mut ran: Vec<_> = ran.map(|lap| (lap.name, Duration::from_nanos(lap.step_ns))).collect();
        ran.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        ran
    }
}

/// A system as a schedule runs it.
pub type System = Box<dyn FnMut(&mut World) + Send + Sync>;

/// Says which system runs under a name: the one that it is given, or another in its place or around it. Worlds that live
/// have every system as it is; a replay can ask what would differ if one were another.
pub type Cast<'c> = dyn FnMut(&'static str, System) -> System + 'c;

/// Every system as it is.
pub(crate) fn as_they_are(_: &'static str, system: System) -> System {
    system
}

/// The systems of one stage: each is enrolled under its name as it is made.
pub(crate) struct Course<'w, 'c> {
    pub(crate) world: &'w mut World,
    pub(crate) stage: &'static str,
    pub(crate) cast: &'w mut Cast<'c>,
}

impl Course<'_, '_> {
    /// `system`, or what is cast in its place, measured as `name`.
    pub(crate) fn timed(
        &mut self,
        name: &'static str,
        system: fn(&mut World),
    ) -> impl FnMut(&mut World) + Send + Sync + 'static + use<> {
        let mut laps = self.world.resource_mut::<Laps>();
        let place = laps.laps.len();
        laps.laps.push(Lap::new(name, self.stage));
        let mut system = (self.cast)(name, Box::new(system));
        move |world: &mut World| {
            system(world);
            world.resource_mut::<Laps>().lap(place);
        }
    }
}

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
        assert!(world.engine.laps().iter().all(|lap| lap.runs == 0), "no clock, no measuring");
        world.engine.time_systems(ticking(20_000));
        world.engine.set_now(world.now.plus_ms(1));
        world.engine.beat();
        world.engine.step();
        let laps = world.engine.laps().to_vec();
        let stages: Vec<&str> = laps.iter().map(|lap| lap.stage).collect();
        for stage in ["time", "intake", "match", "decide", "persist"] {
            assert!(stages.contains(&stage), "{stage}");
        }
        for lap in &laps {
            assert_eq!((lap.runs, lap.total_ns, lap.max_ns, lap.buckets[1]), (1, 20_000, 20_000, 1), "{}", lap.name);
        }
        let names: std::collections::BTreeSet<&str> = laps.iter().map(|lap| lap.name).collect();
        assert_eq!(names.len(), laps.len(), "each has a name of its own");
        let of_step = world.engine.laps_of_step();
        assert_eq!(of_step.len(), laps.len());
        world.engine.set_now(world.now.plus_ms(2));
        world.engine.step();
        let of_step = world.engine.laps_of_step();
        assert!(of_step.len() < laps.len() && of_step.iter().all(|(name, _)| !name.ends_with("_beat")), "{of_step:?}");
    }

    #[test]
    fn a_cast_sees_every_system_once_by_its_name_and_may_put_another_in_its_place() {
        use crate::{Engine, Settings};
        let (mut seen, ran) = (Vec::new(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&ran);
        let mut engine = Engine::cast(Settings::default(), [1; 32], &mut |name, mut system| {
            seen.push(name);
            let counted = Arc::clone(&counted);
            if name != "turn_settle" {
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
        let names: Vec<_> = engine.laps().iter().skip(1).map(|lap| lap.name).collect();
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

    /// What measuring costs a step of an idle world. `cargo test -p agentsvc-systems --release -- --ignored laps::`
    #[test]
    #[ignore = "a measurement, not a test"]
    fn cost_of_measuring() {
        let time = |clock: bool| {
            let mut world = TestWorld::new();
            let start = std::time::Instant::now();
            if clock {
                world.engine.time_systems(Arc::new(move || start.elapsed()));
            }
            let best = (0..20).map(|_| {
                let before = std::time::Instant::now();
                for _ in 0..10_000 {
                    world.engine.set_now(world.now);
                    world.engine.step();
                }
                before.elapsed() / 10_000
            });
            best.min().unwrap()
        };
        let (without, with) = (time(false), time(true));
        eprintln!("a step takes {without:?} unmeasured and {with:?} measured");
    }
}
