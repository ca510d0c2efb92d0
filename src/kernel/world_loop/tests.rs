//! The loop over a real store, with clocks that the test moves.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use agentsvc_api::agent::texts::ManifestTexts;
use agentsvc_api::http::bridge::bridge;
use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::{Refusal, RefusalKind};
use agentsvc_systems::agent::SpawnAgent;
use agentsvc_systems::kernel::clock::Now;
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::world::GetStats;
use agentsvc_systems::{Answer, Command, Place, Records, Settings, manifest};
use bevy_ecs::prelude::World;
use crossbeam_channel::{Receiver, Sender};
use futures_util::FutureExt;

use super::*;
use crate::kernel::store::Store;
use crate::kernel::store::journal::{Journal, Local};
use crate::kernel::store::load::{Progress, load};
use crate::kernel::store::writer::{Outlets, Writer};

mod fenced;

/// Clocks that stand still until the test moves them.
#[derive(Clone, Default)]
struct Hands {
    wall_ms: Arc<AtomicI64>,
    running_ms: Arc<AtomicU64>,
}

impl Hands {
    fn clock(&self) -> Clock {
        let (wall, running) = (self.wall_ms.clone(), self.running_ms.clone());
        Clock {
            wall: Arc::new(move || Timestamp(wall.load(Ordering::SeqCst))),
            running: Arc::new(move || Duration::from_millis(running.load(Ordering::SeqCst))),
        }
    }
}

/// A running world and all that it stands on.
struct Harness {
    home: tempfile::TempDir,
    writer: Writer,
    world: WorldLoop,
    bridge: Bridge,
    hands: Hands,
    stats: Arc<LoopStats>,
    fatal: Receiver<String>,
}

/// A harness at 20 beats a second, open to commands.
fn harness() -> Harness {
    harness_with(None)
}

fn fresh_engine() -> Engine {
    let mut engine = Engine::new(Settings::default(), [7; 32]);
    engine.restore(Records::default(), Timestamp(1_000_000)).unwrap();
    engine
}

fn harness_with(renewal: Option<Box<dyn Renew>>) -> Harness {
    harness_over(renewal, Box::new(Local))
}

fn harness_over(renewal: Option<Box<dyn Renew>>, journal: Box<dyn Journal>) -> Harness {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path().join("world")).unwrap();
    let (cause, fatal) = crossbeam_channel::unbounded();
    let die: Arc<dyn Fn(String) + Send + Sync> = Arc::new(move |text| cause.send(text).unwrap());
    let outlets = Outlets {
        effects: Arc::new(|_| {}),
        told: Arc::new(|_| {}),
        reopen: Arc::new(drop),
        fenced: Arc::new(|_| ()),
        fatal: die.clone(),
    };
    let writer = Writer::start_with(store, outlets, None, journal).unwrap();
    let hands = Hands::default();
    hands.wall_ms.store(1_000_000, Ordering::SeqCst);
    let (bridge, intake) = bridge();
    let stats = Arc::<LoopStats>::default();
    let parts = Parts {
        renewal,
        engine: Arc::new(parking_lot::Mutex::new(fresh_engine())),
        intake,
        commits: writer.queue(),
        clock: hands.clock(),
        tick_hz: 20,
        stats: stats.clone(),
        on_beat: Arc::new(|_| ()),
        fatal: die,
    };
    let world = WorldLoop::start(parts).unwrap();
    while !bridge.is_open() {
        std::thread::yield_now();
    }
    Harness { home, writer, world, bridge, hands, stats, fatal }
}

impl Harness {
    /// Asks and waits for the reply.
    fn ask<C: Command>(&self, command: C) -> Result<C::Reply, Refusal> {
        block_on(self.bridge.ask(command))
    }

    fn close(self) {
        self.world.stop(&self.bridge);
        self.writer.stop();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Holds the store writer in a release until the returned sender is dropped.
fn hold(writer: &Writer) -> Sender<()> {
    let (go, wait) = crossbeam_channel::bounded::<()>(0);
    let (there, arrived) = crossbeam_channel::bounded(1);
    let release = move || {
        there.send(()).unwrap();
        let _ = wait.recv();
    };
    writer.queue().send(Commit { releases: vec![Box::new(release)], ..Commit::default() });
    arrived.recv().unwrap();
    go
}

/// Reads the world's time.
struct ReadNow;

impl Command for ReadNow {
    type Reply = Timestamp;
    const NAME: &'static str = "read_now";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::Any;

    fn run(self, world: &mut World) -> Answer<Timestamp> {
        Answer::read(world.resource::<Now>().0)
    }
}

/// Answers when its step is on disk.
struct Write(u32);

impl Command for Write {
    type Reply = u32;
    const NAME: &'static str = "write";
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::Any;

    fn run(self, _world: &mut World) -> Answer<u32> {
        Answer::Stored(self.0)
    }
}

/// Panics.
struct Break;

impl Command for Break {
    type Reply = ();
    const NAME: &'static str = "break";
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::Any;

    fn run(self, _world: &mut World) -> Answer<()> {
        panic!("broken on purpose")
    }
}

/// Holds the world in a step until the sender of the channel is dropped; tells when it is there.
struct Hold(Sender<()>, Receiver<()>);

impl Command for Hold {
    type Reply = ();
    const NAME: &'static str = "hold";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::Any;

    fn run(self, _world: &mut World) -> Answer<()> {
        self.0.send(()).unwrap();
        let _ = self.1.recv();
        Answer::read(())
    }
}

/// An agent of this name.
fn spawn(name: &str) -> SpawnAgent {
    let text = format!("name = {name:?}");
    let parsed = manifest::parse(&text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

#[test]
fn reads_are_answered_at_once_and_writes_when_stored() {
    let harness = harness();
    assert_eq!(harness.ask(GetStats).unwrap().agents, 0);
    assert_eq!(harness.ask(Write(7)), Ok(7));
    let held = hold(&harness.writer);
    block_on(async {
        let write = harness.bridge.ask(Write(8));
        tokio::pin!(write);
        // The write waits for the writer while reads go on.
        tokio::select! {
            biased;
            reply = &mut write => panic!("too early: {reply:?}"),
            reply = harness.bridge.ask(ReadNow) => assert_eq!(reply, Ok(Timestamp(1_000_000))),
        }
        drop(held);
        assert_eq!(write.await, Ok(8));
    });
    assert_eq!(harness.stats.commands.load(Ordering::Relaxed), 4);
    assert_eq!(harness.bridge.waiting(), 0);
    harness.close();
}

#[test]
fn a_full_backlog_refuses_writes_and_lets_reads_pass() {
    let harness = harness();
    let held = hold(&harness.writer);
    let value = Some(vec![0; limit::STORE_BACKLOG_BYTES_MAX]);
    let op = Op { space: Space::Content, key: b"r".to_vec(), value };
    harness.writer.queue().send(Commit { ops: vec![op], ..Commit::default() });
    let refusal = harness.ask(Write(1)).unwrap_err();
    assert_eq!((refusal.kind, refusal.retry_after_secs), (RefusalKind::Busy, Some(1)));
    assert!(harness.ask(ReadNow).is_ok());
    assert_eq!(harness.stats.writes_refused.load(Ordering::Relaxed), 1);
    drop(held);
    harness.writer.queue().flush().unwrap();
    assert_eq!(harness.ask(Write(2)), Ok(2));
    harness.close();
}

#[test]
fn what_begins_of_itself_waits_while_the_store_is_behind() {
    let harness = harness();
    let held = hold(&harness.writer);
    let fill = |bytes| {
        let op = Op { space: Space::Content, key: b"r".to_vec(), value: Some(vec![0; bytes]) };
        harness.writer.queue().send(Commit { ops: vec![op], ..Commit::default() });
    };
    // A step that had begun does not look again.
    let comes_to = |held| {
        (0..10_000).any(|_| {
            harness.ask(ReadNow).unwrap();
            harness.stats.held.load(Ordering::Relaxed) == held
        })
    };
    assert!(comes_to(0));
    fill(limit::STORE_BACKLOG_FIRES_MAX);
    assert!(comes_to(1));
    // Clients are heard all the same.
    let mut write = Box::pin(harness.bridge.ask(Write(1)));
    assert!((&mut write).now_or_never().is_none());
    fill(limit::STORE_BACKLOG_CALLS_MAX);
    assert!(comes_to(2));
    drop(held);
    assert_eq!(block_on(write), Ok(1));
    harness.writer.queue().flush().unwrap();
    assert!(comes_to(0));
    harness.close();
}

/// Puts another engine in the place of one at every step, and says what the one before held.
struct Always(Sender<HoldWork>);

impl Renew for Always {
    fn look(&mut self, engine: &mut Engine) -> bool {
        let _nobody_waits = self.0.send(engine.held());
        *engine = fresh_engine();
        true
    }
}

#[test]
fn an_engine_that_takes_the_place_of_another_holds_what_that_held() {
    let (note, held_before) = crossbeam_channel::unbounded();
    let harness = harness_with(Some(Box::new(Always(note))));
    let held = hold(&harness.writer);
    let op = Op { space: Space::Content, key: b"r".to_vec(), value: Some(vec![0; limit::STORE_BACKLOG_FIRES_MAX]) };
    harness.writer.queue().send(Commit { ops: vec![op], ..Commit::default() });
    while harness.stats.held.load(Ordering::Relaxed) == 0 {
        harness.ask(ReadNow).unwrap();
    }
    while held_before.try_recv().is_ok() {}
    (0..3).for_each(|_| drop(harness.ask(ReadNow)));
    assert!(held_before.try_iter().all(|held| held.fires), "every engine did");
    drop(held);
    harness.close();
}

#[test]
fn beats_follow_the_clock_and_missed_ones_are_counted() {
    let harness = harness();
    // A write is answered after its step has closed, so what is asked next is in a later step.
    harness.ask(Write(0)).unwrap();
    assert_eq!(harness.stats.beats.load(Ordering::Relaxed), 0);
    harness.hands.running_ms.store(50, Ordering::SeqCst);
    harness.ask(Write(1)).unwrap();
    assert_eq!(harness.stats.beats.load(Ordering::Relaxed), 1);
    harness.hands.running_ms.store(310, Ordering::SeqCst);
    harness.ask(Write(2)).unwrap();
    assert_eq!(harness.stats.beats.load(Ordering::Relaxed), 2);
    assert_eq!(harness.stats.beats_missed.load(Ordering::Relaxed), 4);
    assert_eq!(harness.stats.beat_time.snapshot().count, 2);
    harness.close();
}

#[test]
fn the_worlds_time_stands_through_small_steps_back_and_follows_large_ones() {
    let harness = harness();
    for (wall_ms, now_ms) in [(1_000_000, 1_000_000), (1_000_500, 1_000_500), (999_500, 1_000_500), (900_000, 900_000)]
    {
        harness.hands.wall_ms.store(wall_ms, Ordering::SeqCst);
        assert_eq!(harness.ask(ReadNow), Ok(Timestamp(now_ms)));
        // Closes the step.
        harness.ask(Write(0)).unwrap();
    }
    harness.close();
}

#[test]
fn a_panic_in_a_step_is_fatal_and_closes_the_door() {
    let harness = harness();
    assert_eq!(harness.ask(Write(1)), Ok(1));
    assert_eq!(harness.ask(Break).unwrap_err().kind, RefusalKind::Busy);
    let cause = harness.fatal.recv().unwrap();
    assert!(cause.contains("broken on purpose"), "{cause}");
    harness.world.join();
    assert_eq!(block_on(harness.bridge.ask(ReadNow)).unwrap_err().kind, RefusalKind::Busy);
    harness.writer.stop();
}

#[test]
fn of_a_step_that_panics_nothing_is_stored() {
    let Harness { home, writer, world, bridge, fatal, .. } = harness();
    let spawned = block_on(bridge.ask(spawn("first"))).unwrap();
    let (there, arrived) = crossbeam_channel::bounded(1);
    let (go, wait) = crossbeam_channel::bounded(0);
    block_on(async {
        // All three arrive while the world is held, so that one step takes them.
        let mut hold = Box::pin(bridge.ask(Hold(there, wait)));
        assert!((&mut hold).now_or_never().is_none());
        arrived.recv().unwrap();
        let mut second = Box::pin(bridge.ask(spawn("second")));
        let mut broken = Box::pin(bridge.ask(Break));
        assert!((&mut second).now_or_never().is_none() && (&mut broken).now_or_never().is_none());
        drop(go);
        hold.await.unwrap();
        assert_eq!(second.await.unwrap_err().kind, RefusalKind::Busy);
        assert_eq!(broken.await.unwrap_err().kind, RefusalKind::Busy);
    });
    fatal.recv().unwrap();
    world.join();
    writer.stop();
    let store = Store::open(home.path().join("world")).unwrap();
    let records = load(&store, 2, &Progress::default()).unwrap();
    let agents: Vec<_> =
        records.iter::<agentsvc_components::agent::record::AgentRecord>().map(|agent| agent.id).collect();
    assert_eq!(agents, [spawned.agent]);
    assert_eq!(store.manifest_text(spawned.agent).unwrap().as_deref(), Some("name = \"first\""));
    // And the world comes to life again from what is there.
    let mut engine = Engine::new(Settings::default(), [8; 32]);
    engine.restore(records, Timestamp(2_000_000)).unwrap();
    assert_eq!(engine.stats().agents, 1);
}

#[test]
fn the_metrics_page_shows_the_world() {
    let harness = harness();
    harness.ask(spawn("scout")).unwrap();
    harness.hands.running_ms.store(50, Ordering::SeqCst);
    harness.ask(Write(1)).unwrap();
    let mut out = MetricsText::default();
    harness.stats.gather(&mut out);
    for line in ["agentsvc_agents 1", "agentsvc_world_beats_total 1", "agentsvc_world_commands_total 2"] {
        assert!(out.as_str().lines().any(|l| l == line), "{line}\n{}", out.as_str());
    }
    harness.close();
}

#[test]
fn stopping_answers_what_has_arrived() {
    const WRITES: u32 = 2_000;
    let harness = harness();
    let held = hold(&harness.writer);
    block_on(async {
        let mut replies = Vec::new();
        for number in 0..WRITES {
            let mut reply = Box::pin(harness.bridge.ask(Write(number)));
            // Polled once, so that it is on its way.
            assert!((&mut reply).now_or_never().is_none());
            replies.push(reply);
        }
        harness.bridge.stop();
        drop(held);
        for (number, reply) in (0..WRITES).zip(replies) {
            assert_eq!(reply.await, Ok(number));
        }
    });
    harness.world.join();
    assert!(harness.fatal.is_empty());
    harness.writer.stop();
}

#[test]
fn the_world_ends_when_nobody_can_ask_any_more() {
    let harness = harness();
    drop(harness.bridge);
    harness.world.join();
    harness.writer.stop();
}
