//! The threads behind the front: world, writer, sweeper and checkpoint signer. They begin and end together, with one store; the
//! front stays when the world of another store takes their place.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agentsvc_api::audit::trail::AuditLog;
use agentsvc_api::chat::agent_feed::AgentFeed;
use agentsvc_api::comms::hub::CommsHub;
use agentsvc_api::http::bridge::{Bridge, Intake};
use agentsvc_api::provider::calls::ProviderCalls;
use agentsvc_api::tool::toolbox::Toolbox;
use agentsvc_api::turn::hub::StreamHub;
use agentsvc_api::turn::sent::SentCalls;
use agentsvc_api::world::live_stats::LiveStats;
use agentsvc_api::world::watch::WorldWatch;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::{Actor, Refusal, Timestamp};
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::event::told::events_of;
use agentsvc_systems::replay::Epoch;
use agentsvc_systems::{Engine, Records, ReplySlot, Settings};
use crossbeam_channel::Receiver;
use serde_json::Value;
use tokio::runtime::Handle;

use super::journals::Journals;
use super::performer::{Performer, PerformerParts};
use super::probes::WorldProbes;
use super::{ApiAdapter, Error, assistant, audit, models, system};
use crate::audit::checkpoint_signer::{CheckpointSigner, SignerQueue};
use crate::checkpoint::CheckpointStore;
use crate::daemon::launch::Launch;
use crate::event::log as event_log;
use crate::event_hook::EventHooks;
use crate::kernel::disk_watch::DiskWatch;
use crate::kernel::effect::Outcomes;
use crate::kernel::exchange::{Common, Entry, Exchange, Host, World};
use crate::kernel::home::Home;
use crate::kernel::store::Store;
use crate::kernel::store::load::Progress;
use crate::kernel::store::probe::StoreProbe;
use crate::kernel::store::step_log::StepLog;
use crate::kernel::store::sweep::{SweepQueue, Sweeper};
use crate::kernel::store::view::StoreView;
use crate::kernel::store::writer::{CommitQueue, Outlets, Writer};
use crate::kernel::world_loop::{Clock, LoopStats, Parts, Renew, WorldLoop};
use crate::model::ModelSettings;
use crate::peer::AgentChanges;
use crate::plugin::Plugins;
use crate::replay::inputs;
use crate::replay::inputs::InputSettings;
use crate::replay::inputs::log::InputLog;
use crate::replay::inputs::renew::Renewal;
use crate::tool::DirectTools;
use crate::tool::toolset::ToolParts;
use crate::turn::stream::Streams;
use crate::world::pulse::{Pulse, Samples};

/// What every world of this process stands on.
pub(crate) struct WorldContext {
    pub(crate) home: Home,
    pub(crate) front: ApiAdapter,
    pub(crate) handle: Handle,
    pub(crate) clock: Clock,
    tick_hz: u32,
    /// What keeps the entries of a world.
    journals: Journals,
    /// Where inputs are kept and how long; `None` when they are not.
    inputs: Option<(PathBuf, InputSettings)>,
    /// Counted over all worlds of this process.
    stats: Arc<LoopStats>,
    samples: Arc<Samples>,
    probes: Arc<WorldProbes>,
}

impl WorldContext {
    /// The ground of a process that starts with `launch`.
    fn new(launch: &Launch, front: &ApiAdapter, handle: Handle, journals: Journals) -> Self {
        let probes = Arc::new(WorldProbes::default());
        front.api.add_probe(Arc::clone(&probes) as _);
        Self {
            home: launch.home.clone(),
            front: front.clone(),
            handle,
            clock: Clock::system(),
            tick_hz: u32::from(launch.config.world.tick_hz),
            journals,
            inputs: launch.config.inputs.enabled.then(|| {
                let data_dir = launch.home.data_dir(launch.config.data_dir.as_deref());
                (inputs::folder_of(&data_dir), launch.config.inputs.settings())
            }),
            stats: Arc::default(),
            samples: Arc::default(),
            probes,
        }
    }

    /// What puts other worlds in the place of the present one.
    pub(crate) fn exchange(launch: &Launch, front: &ApiAdapter, handle: Handle, journals: Journals) -> Exchange {
        let common = Common {
            api: Arc::clone(&front.api),
            store: Arc::clone(&front.store),
            telling: Arc::clone(&front.telling),
            handle: handle.clone(),
            clock: Clock::system(),
            world_dir: launch.home.world_dir(launch.config.data_dir.as_deref()),
            is_shared: journals.is_shared,
        };
        Exchange::new(common, Box::new(Self::new(launch, front, handle, journals)), &["snapshot", "backup"])
    }

    /// What is told of a world with this store.
    fn pulse(&self, store: &Store, writer: &Writer) -> Pulse {
        let (stats, samples) = (Arc::clone(&self.stats), Arc::clone(&self.samples));
        Pulse { stats, samples, beat_hz: self.tick_hz, store: store.shared_stats(), commits: writer.queue() }
    }
}

/// One world and its threads.
struct Threads {
    thread: WorldLoop,
    begun: Begun,
    bridge: Bridge,
    store: Store,
    /// Says when what this world began with is on its trail.
    noted: Receiver<()>,
}

/// What a world has beside its own thread, as far as it has begun. All of it ends when this is dropped, so that a world
/// that does not come to life leaves nothing behind that has its store open.
struct Begun {
    disk_watch: Option<DiskWatch>,
    checkpoint_signer: Option<CheckpointSigner>,
    sweeper: Option<Sweeper>,
    writer: Option<Writer>,
    /// What the steps take in; `None` when it is not kept.
    inputs: Option<InputLog>,
    performer: Option<Performer>,
    front: ApiAdapter,
    probes: Arc<WorldProbes>,
}

impl Begun {
    /// Nothing but the log of inputs, which is there before the world.
    fn new(ground: &WorldContext, inputs: Option<InputLog>) -> Self {
        let (front, probes) = (ground.front.clone(), Arc::clone(&ground.probes));
        Self {
            disk_watch: None,
            checkpoint_signer: None,
            sweeper: None,
            writer: None,
            inputs,
            performer: None,
            front,
            probes,
        }
    }
}

impl Drop for Begun {
    /// In this order: each of them hands on what it has to those behind it.
    fn drop(&mut self) {
        drop(self.disk_watch.take());
        self.checkpoint_signer.take().into_iter().for_each(CheckpointSigner::stop);
        self.sweeper.take().into_iter().for_each(Sweeper::stop);
        self.writer.take().into_iter().for_each(Writer::stop);
        // It may still copy rows of the store.
        self.inputs.take().into_iter().for_each(InputLog::stop);
        if let Some(performer) = &self.performer {
            performer.end();
        }
        self.front.api.services.withdraw::<dyn AuditLog>();
        self.front.api.services.withdraw::<dyn LiveStats>();
        self.probes.0.write().clear();
        self.front.store.give_up();
    }
}

impl WorldContext {
    /// Brings the world of `store` to life, see [`Host::start`].
    fn begin(&self, store: Store, intake: Intake, entry: Entry, first: bool) -> Result<Threads, Error> {
        let ground = self;
        let Self { front, handle, clock, .. } = ground;
        let (mut journal, is_new) = ground.journals.open(&store)?;
        let born = store.born((clock.wall)(), &mut *journal)?;
        let view = store.view();
        let (mut engine, epoch) = come_to_life(ground, &view, born)?;
        let inputs = ground.inputs.as_ref().and_then(|(folder, settings)| InputLog::try_start(folder, *settings));
        let mut begun = Begun::new(ground, inputs);
        let queue = begun.inputs.as_ref().map(InputLog::queue);
        if let Some(queue) = &queue {
            queue.prepare(epoch, view);
            queue.open();
            engine.record(true);
        }
        engine.time_systems(Arc::clone(&clock.running));
        let noted = note(&mut engine, entry);
        if first && is_new {
            assistant::spawn(&mut engine);
        }
        front.store.set(store.clone());
        let trail = audit::open(&ground.home, front, store.clone(), ground.journals.is_shared)?;

        // Outcomes, and what tools do, belong to this world: none of it may change another one.
        let bridge = front.api.bridge.for_effects();
        let way_back = bridge.clone();
        let outcomes: Outcomes = Arc::new(move |outcome| way_back.outcome(outcome));
        let late = Arc::new(LateThreads::default());
        let tools = ToolParts { bridge: bridge.clone(), ..front.tools.clone() };
        let performer = performer(front, tools, Arc::clone(&outcomes), Arc::clone(&late), handle);
        begun.performer = Some(performer.clone());
        front.api.services.provide::<dyn Toolbox>(Arc::new(DirectTools::new(performer.tools())));
        let outlets = outlets(ground, performer.clone());
        let step_log = queue.clone().map(|queue| Box::new(queue) as Box<dyn StepLog>);
        let writer = &*begun.writer.insert(Writer::start_with(store.clone(), outlets, step_log, journal)?);
        begun.disk_watch = Some(watch_disk(front, &store, writer.queue())?);
        let sweeper = begun.sweeper.insert(Sweeper::start(store.clone(), writer.queue(), outcomes)?);
        let _only_once = late.sweeper.set(sweeper.queue());
        let checkpoint_signer =
            begun.checkpoint_signer.insert(audit::checkpoint_signer(ground, Arc::clone(&trail), writer, bridge)?);
        let _only_once = late.checkpoint_signer.set(checkpoint_signer.queue());
        *ground.probes.0.write() = vec![
            trail,
            performer.pace() as _,
            Arc::clone(&ground.stats) as _,
            Arc::new(StoreProbe { store: store.clone(), commits: writer.queue() }),
        ];
        let renewal = queue.map(|queue| {
            ground.probes.0.write().push(queue.stats() as _);
            Box::new(Renewal::new(queue, writer.queue(), store.clone())) as Box<dyn Renew>
        });
        front.api.services.provide::<dyn SentCalls>(performer.sent());
        front.api.services.provide::<dyn ProviderCalls>(performer.pace());
        front.api.services.provide::<dyn LiveStats>(Arc::new(ground.pulse(&store, writer)));
        let (samples, loop_stats) = (Arc::clone(&ground.samples), Arc::clone(&ground.stats));
        let parts = Parts {
            engine: Arc::new(parking_lot::Mutex::new(engine)),
            intake,
            commits: writer.queue(),
            clock: clock.clone(),
            tick_hz: ground.tick_hz,
            stats: Arc::clone(&ground.stats),
            renewal,
            on_beat: Arc::new(move |engine| samples.note(engine, &loop_stats)),
            fatal: front.fatal(),
        };
        let thread = WorldLoop::start(parts).map_err(system("cannot start the world thread"))?;
        Ok(Threads { thread, begun, bridge: front.api.bridge.clone(), store, noted })
    }
}

impl WorldContext {
    /// What a world is told of the configuration in force.
    fn settings(&self) -> Settings {
        models::settings(&self.front.in_force.load(), &self.front.providers.load())
    }
}

impl Host for WorldContext {
    fn start(
        &self,
        store: Store,
        intake: Intake,
        entry: Entry,
        first: bool,
    ) -> Result<Box<dyn World>, crate::kernel::exchange::Error> {
        Ok(Box::new(self.begin(store, intake, entry, first).map_err(Error::of_world)?))
    }

    fn try_out(&self, records: Records, now: Timestamp) -> Result<(), String> {
        let seed = seed().map_err(|error| error.to_string())?;
        Engine::new(self.settings(), seed).restore(records, now).map_err(|error| error.to_string())
    }

    fn note(&self, actor: Actor, kind: AuditKind, details: Value) -> Result<(), Refusal> {
        let bridge = self.front.api.bridge.acting_as(actor);
        self.handle.block_on(bridge.ask(NoteAction { kind, agent: None, details }))
    }

    fn forget(&self) {
        self.front.api.services.state::<StreamHub>().break_off();
        self.front.api.services.state::<AgentFeed>().forget();
        self.front.api.services.state::<AgentChanges>().forget();
    }

    fn fatal(&self, cause: String) {
        (self.front.fatal())(cause);
    }
}

impl World for Threads {
    fn commits(&self) -> Option<CommitQueue> {
        self.begun.writer.as_ref().map(Writer::queue)
    }

    fn is_noted_within(&self, longest: Duration) -> bool {
        self.noted.recv_timeout(longest).is_ok()
    }

    fn end(self: Box<Self>) -> Store {
        let Self { thread, begun, bridge, store, noted: _ } = *self;
        thread.stop(&bridge);
        drop(begun);
        store
    }
}

/// The world of the rows of `view`, and how it began. The log says how long that took.
fn come_to_life(ground: &WorldContext, view: &StoreView, born: Timestamp) -> Result<(Engine, Epoch), Error> {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let (progress, began) = (Progress::default(), Instant::now());
    let records = view.records(threads, &progress)?;
    let read = began.elapsed();
    let (after, now, settings) = (view.step()?, (ground.clock.wall)(), ground.settings());
    let epoch = Epoch { after, now, seed: seed()?, settings, memory: Vec::new(), next_log: 0, born };
    let engine = epoch.begin(records)?;
    let (records, bytes) = (progress.records.into_inner(), progress.bytes.into_inner());
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (read_ms, restore_ms) = (ms(read), ms(began.elapsed().saturating_sub(read)));
    tracing::info!(records, bytes, read_ms, restore_ms, "the stored world is loaded");
    Ok((engine, epoch))
}

/// Refuses changes while the disk of the store has no room for them.
fn watch_disk(front: &ApiAdapter, store: &Store, commits: CommitQueue) -> Result<DiskWatch, Error> {
    let (api, data) = (Arc::clone(&front.api), store.path().parent().unwrap_or(store.path()));
    let waits = {
        let commits = commits.clone();
        move || commits.waits_for_room()
    };
    let watch = DiskWatch::start(data, waits, move |read_only| {
        commits.set_read_only(read_only);
        api.health.set_read_only(read_only);
        if api.shutdown.is_triggered() {
            commits.wait_no_more();
        }
    });
    watch.map_err(system("cannot watch the disk"))
}

/// The world begins with an entry on its trail; what comes back says when that is on the disk.
fn note(engine: &mut Engine, entry: Entry) -> Receiver<()> {
    let Entry { actor, kind, details } = entry;
    let (on_trail, noted) = crossbeam_channel::bounded(1);
    let told = ReplySlot::new(move |reply: Result<_, _>| {
        if reply.is_ok() {
            let _nobody_waits = on_trail.try_send(());
        }
    });
    engine.command(actor, NoteAction { kind, agent: None, details }, told);
    noted
}

/// Where the writer hands what became durable.
fn outlets(ground: &WorldContext, performer: Performer) -> Outlets {
    let WorldContext { front, stats, .. } = ground;
    let (files, stats) = (Arc::clone(&front.files), Arc::clone(stats));
    let (board, watch) = (front.api.services.state::<AgentFeed>(), front.api.services.state::<WorldWatch>());
    let (comms, peers) = (front.api.services.state::<CommsHub>(), front.api.services.state::<AgentChanges>());
    let (checkpoints, handle) = (front.settings.get::<CheckpointStore>(), ground.handle.clone());
    let hooks = front.settings.get::<EventHooks>();
    let plugins = front.settings.get::<Plugins>();
    Outlets {
        effects: Arc::new(move |effect| performer.perform(effect)),
        told: Arc::new(move |told| {
            let Some(told) = comms.take(told).and_then(|told| hooks.take(told)) else { return };
            for happened in events_of(told) {
                let event = &happened.event;
                board.note(event);
                peers.note(event);
                event_log::log(event);
                if let Event::AgentTerminated { agent, .. } = event {
                    files.forget(*agent);
                    checkpoints.forget(*agent, files.workspaces(), &handle);
                }
                hooks.note(&happened);
                plugins.note(&happened);
                stats.events.fetch_add(1, Ordering::Relaxed);
                watch.events.note(happened);
            }
        }),
        reopen: {
            let store = Arc::clone(&front.store);
            Arc::new(move |why| store.is_stuck(why))
        },
        fenced: Arc::clone(&ground.journals.fenced),
        fatal: front.fatal(),
    }
}

/// The threads that effects go to and that start after the performer.
#[derive(Default)]
struct LateThreads {
    sweeper: OnceLock<SweepQueue>,
    checkpoint_signer: OnceLock<SignerQueue>,
}

fn performer(
    front: &ApiAdapter,
    tools: ToolParts,
    outcomes: Outcomes,
    late: Arc<LateThreads>,
    handle: &Handle,
) -> Performer {
    let (files, to_signer) = (Arc::clone(&front.files), Arc::clone(&late));
    let publish = front.api.services.state::<StreamHub>();
    let watched = Arc::clone(&publish);
    Performer::new(PerformerParts {
        handle: handle.clone(),
        outcomes,
        streams: Streams {
            publish: Arc::new(move |item| publish.publish(item)),
            subscribed: Arc::new(move |session| watched.is_followed(session)),
        },
        sweep: Arc::new(move |what| {
            if let Some(queue) = late.sweeper.get() {
                queue.sweep(what);
            }
        }),
        seal_audit: Arc::new(move |head| {
            if let Some(queue) = to_signer.checkpoint_signer.get() {
                queue.seal(head);
            }
        }),
        content: Arc::clone(&front.store) as _,
        memory: Arc::clone(&front.store) as _,
        entries: Arc::clone(&front.store) as _,
        knowledge: Arc::clone(&front.store) as _,
        uploads: Arc::new(move |file, bytes_max| files.read(file, bytes_max)),
        providers: Arc::clone(&front.providers),
        model: ModelSettings::default(),
        tools,
        vault: front.vault.clone(),
    })
}

pub(crate) fn seed() -> Result<[u8; 32], Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| system("the system's random number generator failed")(std::io::Error::other(error)))?;
    Ok(seed)
}
