//! A world with a store, its writer and its log, driven step by step in virtual time.

use agentsvc_api::world::audit_kinds;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_components::kernel::record::Space;
use agentsvc_components::{Actor, Refusal, SessionId, Timestamp};
use agentsvc_systems::replay::{Entry, Epoch, names, world_hash};
use agentsvc_systems::session::SetLabel;
use agentsvc_systems::{Command, Engine, Place, ReplySlot, Settings};
use parking_lot::Mutex;

use super::fuzz::Fuzz;
use crate::kernel::store::Store;
use crate::kernel::store::journal::Local;
use crate::kernel::store::load::Progress;
use crate::kernel::store::rows::Row;
use crate::kernel::store::writer::{Outlets, Writer};
use crate::kernel::world_loop::Renew as _;
use crate::replay::inputs::log::{InputLog, InputQueue};
use crate::replay::inputs::renew::Renewal;
use crate::replay::inputs::segment::{Frame, SegmentReader, SegmentWriter};
use crate::replay::inputs::{InputSettings, folder_of};

/// More than this at once is no time that was lived through.
const LEAP_MS: i64 = 60_000;

/// What runs between two starts.
struct Running {
    engine: Engine,
    store: Store,
    writer: Writer,
    log: InputLog,
    renewal: Renewal,
}

/// The whole of it.
pub(super) struct Harness {
    dir: tempfile::TempDir,
    running: Option<Running>,
    pub(super) now: Timestamp,
    pub(super) fuzz: Fuzz,
    starts: u8,
    /// Milliseconds that went by without those that the clock leapt over.
    pub(super) lived_ms: i64,
}

impl Harness {
    pub(super) fn new(seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp(1_700_000_000_000);
        let mut harness = Self { dir, running: None, now, fuzz: Fuzz::new(seed), starts: 0, lived_ms: 0 };
        harness.start();
        harness
    }

    pub(super) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn world_dir(&self) -> PathBuf {
        self.root().join("world")
    }

    pub(super) fn inputs(&self) -> PathBuf {
        folder_of(self.root())
    }

    fn start(&mut self) {
        self.starts = self.starts.wrapping_add(1);
        let store = Store::open(self.world_dir()).unwrap();
        let view = store.view();
        let records = view.records(2, &Progress::default()).unwrap();
        let settings = Settings {
            claim_timeout_secs: 60,
            approval_timeout_ms: 120_000,
            prompt_intelligence: true,
            ..Settings::default()
        };
        let after = view.step().unwrap();
        let epoch = Epoch {
            after,
            now: self.now,
            seed: [self.starts; 32],
            settings,
            memory: Vec::new(),
            next_log: 0,
            born: Timestamp(0),
        };
        let mut engine = epoch.begin(records).unwrap();
        let keep = InputSettings { keep: Duration::from_secs(1_000_000), max_bytes: 1 << 40 };
        let log = InputLog::start(self.inputs(), keep).unwrap();
        log.queue().prepare(epoch, view);
        log.queue().open();
        engine.record(true);
        let nothing = Outlets {
            effects: Arc::new(drop),
            told: Arc::new(drop),
            reopen: Arc::new(drop),
            fenced: Arc::new(|_| ()),
            fatal: Arc::new(|why| panic!("{why}")),
        };
        let writer = Writer::start_with(store.clone(), nothing, Some(Box::new(log.queue())), Box::new(Local)).unwrap();
        let renewal = Renewal::new(log.queue(), writer.queue(), store.clone());
        self.fuzz.forget_effects();
        self.running = Some(Running { engine, store, writer, log, renewal });
        // A start tells of itself before its first step.
        let entry = agentsvc_systems::audit::NoteAction {
            kind: audit_kinds::DAEMON_STARTED,
            agent: None,
            details: serde_json::json!({ "start": self.starts }),
        };
        self.running().engine.command(Actor::System, entry, ReplySlot::new(drop));
        self.now = self.now.plus_ms(17);
        let now = self.now;
        self.running().engine.set_now(now);
        self.running().engine.beat();
        self.step();
    }

    fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("it runs")
    }

    /// Ends the threads as a kill would: nothing is told to the world.
    pub(super) fn close(&mut self) {
        if let Some(Running { engine, store, writer, log, renewal }) = self.running.take() {
            writer.stop();
            log.stop();
            drop((engine, store, renewal));
        }
    }

    pub(super) fn restart(&mut self) {
        self.close();
        self.now = self.now.plus_ms(60_000);
        self.start();
    }

    /// Another world takes the place of this one, as in a restore: that of `rows`, with this one's trail and numbers
    /// unless it is to be `numbered_on` from nothing.
    pub(super) fn become_world(&mut self, rows: Vec<Row>, numbered_on: bool) {
        self.flush();
        self.close();
        let (world, next) = (self.world_dir(), self.root().join("next"));
        // The store's own rows are not a world's.
        let own = |row: &Row| row.space == Space::World && row.key[0] == 0;
        let rows = rows.into_iter().filter(|row| !own(row));
        Store::build(&next, rows.map(Ok::<_, crate::kernel::store::Error>)).unwrap();
        if numbered_on {
            let (old, new) = (Store::open(&world).unwrap(), Store::open(&next).unwrap());
            new.carry_over(&old).unwrap();
            let watches = [old.watch(), new.watch()];
            drop((old, new));
            assert!(watches.iter().all(|watch| watch.is_closed_within(Duration::from_secs(60))));
        }
        std::fs::remove_dir_all(&world).unwrap();
        std::fs::rename(&next, &world).unwrap();
        self.now = self.now.plus_ms(60_000);
        self.start();
    }

    pub(super) fn store(&mut self) -> Store {
        self.running().store.clone()
    }

    pub(super) fn queue(&mut self) -> InputQueue {
        self.running().log.queue()
    }

    pub(super) fn newest(&mut self) -> u64 {
        self.running().engine.newest().number
    }

    /// The only segment of the only epoch.
    pub(super) fn segment(&mut self) -> PathBuf {
        self.flush();
        let epochs = crate::replay::inputs::folder::epochs(&self.inputs()).unwrap();
        let segments = epochs[0].segments().unwrap();
        assert_eq!((epochs.len(), segments.len()), (1, 1));
        segments[0].1.clone()
    }

    /// Waits until all is stored and in the log.
    pub(super) fn flush(&mut self) {
        self.running().writer.queue().flush().unwrap();
        self.running().log.queue().flush();
    }

    pub(super) fn hash(&mut self) -> [u8; 32] {
        self.flush();
        hash_of(&self.store())
    }

    /// Everything in the store.
    pub(super) fn rows(&mut self) -> Vec<Row> {
        self.flush();
        self.store().view().all().map(Result::unwrap).collect()
    }

    fn step(&mut self) {
        let Self { running, fuzz, .. } = self;
        let running = running.as_mut().expect("it runs");
        let commit = running.engine.step();
        fuzz.note(&commit);
        if !commit.is_empty() {
            running.writer.queue().send(commit);
        }
    }

    /// So many steps of everything.
    pub(super) fn load(&mut self, steps: u64) {
        for _ in 0..steps {
            let (before, now) = (self.now, self.fuzz.next_moment(self.now));
            let went_by = now.0 - before.0;
            self.lived_ms += if (0..LEAP_MS).contains(&went_by) { went_by } else { 0 };
            self.now = now;
            let Self { running, fuzz, .. } = self;
            let engine = &mut running.as_mut().expect("it runs").engine;
            engine.set_now(now);
            fuzz.arrive(engine, now);
            self.step();
        }
    }

    /// Answers what is out until the world is quiet.
    pub(super) fn rest(&mut self) {
        for look in 0..5_000 {
            self.now = self.now.plus_ms(50);
            let now = self.now;
            let Self { running, fuzz, .. } = self;
            let engine = &mut running.as_mut().expect("it runs").engine;
            if engine.is_quiet() {
                return;
            }
            engine.set_now(now);
            if look == 0 {
                fuzz.calm(engine);
            }
            fuzz.settle(engine);
            engine.beat();
            self.step();
        }
        let rows = self.rows();
        let open: Vec<_> = rows.iter().filter(|row| row.space == Space::World && row.key[0] == b't').collect();
        let turns = open.iter().map(|row| {
            agentsvc_systems::kernel::record::read_as::<agentsvc_components::turn::record::TurnRecord>(
                &row.key, &row.value,
            )
        });
        let turns: Vec<_> = turns.take(9).collect();
        panic!("the world never came to rest: {:?}, {turns:#?}", self.running().engine.stats());
    }

    /// Comes to rest and goes on in another epoch, as a running daemon does.
    pub(super) fn renew(&mut self) {
        self.rest();
        self.queue().want_epoch();
        // The other epoch is made on a thread of its own, which first waits for the disk.
        assert!(self.renews_within(Duration::from_secs(300)), "no other epoch began");
    }

    /// Does another epoch begin within `time`, when one is wanted and nothing happens?
    pub(super) fn renews_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let Running { engine, renewal, .. } = self.running();
            if renewal.look(engine) {
                return true;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        false
    }

    /// A command comes that cannot be written down.
    pub(super) fn lose(&mut self) {
        struct Unknown;
        impl Command for Unknown {
            type Reply = ();
            const NAME: &'static str = "unknown";
            const WRITES: bool = true;
            const PLACE: Place<Self> = Place::Any;
            fn run(self, _: &mut bevy_ecs::prelude::World) -> agentsvc_systems::Answer<()> {
                agentsvc_systems::Answer::Stored(())
            }
        }
        self.running().engine.command(Actor::Api, Unknown, ReplySlot::new(drop));
        self.step();
        self.flush();
    }

    /// Labels a session in a step of its own; gives the step.
    pub(super) fn set_label(&mut self, label: &str) -> u64 {
        // Hidden sessions take none.
        let is_set = (0..100).any(|_| self.try_label(label));
        assert!(is_set, "the label was set");
        self.newest()
    }

    fn try_label(&mut self, label: &str) -> bool {
        let session = self.fuzz.any_session().expect("there is a session");
        let (label, now) = (label.to_owned(), self.now.plus_ms(1));
        self.now = now;
        let came = Arc::new(Mutex::new(None));
        let to = Arc::clone(&came);
        let slot = ReplySlot::new(move |reply: Result<_, Refusal>| *to.lock() = Some(reply.is_ok()));
        let engine = &mut self.running().engine;
        engine.set_now(now);
        engine.command(Actor::Api, SetLabel { session: SessionId(session), label }, slot);
        self.step();
        self.flush();
        *came.lock() == Some(true)
    }

    /// How often each command came, of those that did.
    pub(super) fn kinds(&mut self) -> BTreeMap<String, u64> {
        self.flush();
        let mut kinds = BTreeMap::new();
        for folder in crate::replay::inputs::folder::epochs(&self.inputs()).unwrap() {
            for (_, path) in folder.segments().unwrap() {
                let mut reader = SegmentReader::open(&path).unwrap();
                while let Some(frame) = reader.next_frame().unwrap() {
                    let Frame::Entry(bytes) = frame else { continue };
                    for arrival in Entry::read(&bytes).unwrap().step.arrivals {
                        if let agentsvc_systems::replay::Arrival::Command(command) = arrival {
                            *kinds.entry(command.name.to_owned()).or_default() += 1;
                        }
                    }
                }
            }
        }
        assert!(kinds.len() * 10 > names().count() * 7, "the load knows most commands: {kinds:?}");
        kinds
    }
}

/// The hash of the world in a store.
pub(super) fn hash_of(store: &Store) -> [u8; 32] {
    let rows: Vec<_> = store.view().rows(Space::World).map(Result::unwrap).collect();
    world_hash(rows.iter().map(|(key, value)| (key.as_slice(), value.as_slice())))
}

/// Writes a segment anew with its entries changed.
pub(super) fn rewrite(path: &Path, mut change: impl FnMut(Vec<u8>) -> Vec<u8>) {
    let mut reader = SegmentReader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame);
    }
    std::fs::remove_file(path).unwrap();
    let mut writer = SegmentWriter::create(path).unwrap();
    for frame in frames {
        match frame {
            Frame::Entry(entry) => writer.entry(&change(entry)).unwrap(),
            Frame::Gap(why) => writer.gap(&why).unwrap(),
        }
    }
}

/// `bytes` with `other` in the place of `text`, which is as long.
pub(super) fn replaced(mut bytes: Vec<u8>, text: &[u8], other: &[u8]) -> Vec<u8> {
    if let Some(at) = bytes.windows(text.len()).position(|part| part == text) {
        bytes[at..at + text.len()].copy_from_slice(other);
    }
    bytes
}

impl Drop for Harness {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.close();
        }
    }
}
