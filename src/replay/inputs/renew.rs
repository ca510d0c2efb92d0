//! Begins another epoch at a quiet moment of a running world.
//!
//! The world does at such a moment what a restart does, only that nobody notices: its records are read from the store
//! into a second engine, in the background; and if nothing has happened meanwhile, that one takes the place of the
//! first. So an epoch begins with exactly what is on disk, and a daemon that runs for months keeps a bounded window.
//!
//! Quiet is a world without an open turn, call, compaction, run, match or waiter. A world that is never quiet keeps its
//! epoch, up to `[inputs] max_mb`.

use std::time::{Duration, Instant};

use agentsvc_systems::Engine;
use agentsvc_systems::replay::Epoch;
use crossbeam_channel::{Receiver, TryRecvError};

use super::Error;
use super::log::InputQueue;
use crate::kernel::store::Store;
use crate::kernel::store::load::Progress;
use crate::kernel::store::writer::CommitQueue;
use crate::kernel::world_loop::Renew;

/// How long the world is left alone after a try that came to nothing.
const PAUSE: Duration = Duration::from_secs(30);

/// What the world's thread does about epochs.
pub struct Renewal {
    inputs: InputQueue,
    commits: CommitQueue,
    store: Store,
    building: Option<Building>,
    /// The engine writes its inputs down.
    recording: bool,
    not_before: Option<Instant>,
    /// When this one began its newest epoch.
    begun: Option<Instant>,
}

/// A second engine that is being restored.
struct Building {
    /// The activity of the first one when it began.
    activity: u64,
    done: Receiver<Option<Engine>>,
}

impl Renewal {
    /// For the world that is stored in `store`.
    pub fn new(inputs: InputQueue, commits: CommitQueue, store: Store) -> Self {
        Self { inputs, commits, store, building: None, recording: true, not_before: None, begun: None }
    }

    /// A log that has a gap as soon as an epoch has begun is left alone like a try that came to nothing: its disk takes none.
    fn has_just_failed(&self) -> bool {
        !self.inputs.is_whole() && self.begun.is_some_and(|begun| begun.elapsed() < PAUSE)
    }

    fn begin(&mut self, engine: &Engine) {
        let mut seed = [0; 32];
        if let Err(error) = getrandom::fill(&mut seed) {
            return tracing::warn!(%error, "there is no seed for another epoch");
        }
        let epoch = Epoch::of(engine, seed);
        let (sender, done) = crossbeam_channel::bounded(1);
        let (inputs, commits, store) = (self.inputs.clone(), self.commits.clone(), self.store.clone());
        let build = move || {
            let built = restored(epoch, &inputs, &commits, &store);
            if let Err(error) = &built {
                tracing::warn!(%error, "a new epoch of the input log cannot start");
            }
            let _world_has_ended = sender.send(built.unwrap_or_default());
        };
        match std::thread::Builder::new().name("inputs-epoch".to_owned()).spawn(build) {
            Ok(_) => self.building = Some(Building { activity: engine.activity(), done }),
            Err(error) => tracing::warn!(%error, "a new epoch of the input log cannot start"),
        }
    }

    fn exchange(&mut self, engine: &mut Engine, mut fresh: Engine) {
        fresh.count_on_from(engine);
        fresh.record(true);
        self.recording = true;
        self.begun = Some(Instant::now());
        self.inputs.open();
        let old = std::mem::replace(engine, fresh);
        // A large world takes a while to fall apart.
        let _dropped_here_else = std::thread::Builder::new().name("inputs-drop".to_owned()).spawn(move || drop(old));
        tracing::info!(after = engine.newest().number, "a new epoch of the input log starts");
    }
}

impl Renew for Renewal {
    /// Between two steps: stops writing down what nobody takes, looks for a quiet moment when another epoch is wanted,
    /// and puts the second engine in place when it is ready. Costs nothing as a rule. True when it has.
    fn look(&mut self, engine: &mut Engine) -> bool {
        if self.recording && !self.inputs.is_whole() {
            engine.record(false);
            self.recording = false;
        }
        if let Some(building) = &self.building {
            match building.done.try_recv() {
                Err(TryRecvError::Empty) => return false,
                Ok(Some(fresh)) if building.activity == engine.activity() && engine.is_quiet() => {
                    self.building = None;
                    self.exchange(engine, fresh);
                    return true;
                }
                // Something happened meanwhile, or it failed.
                _ => {
                    self.building = None;
                    self.inputs.forget();
                    self.not_before = Some(Instant::now() + PAUSE);
                }
            }
        } else if self.inputs.wants_epoch()
            && self.not_before.is_none_or(|then| Instant::now() >= then)
            && !self.has_just_failed()
            && engine.is_quiet()
        {
            self.begin(engine);
        }
        false
    }
}

/// The world of `epoch` from the store. `None` when the store is ahead of it already.
fn restored(epoch: Epoch, inputs: &InputQueue, commits: &CommitQueue, store: &Store) -> Result<Option<Engine>, Error> {
    commits.flush()?;
    let view = store.view();
    if view.step()? != epoch.after {
        return Ok(None);
    }
    let records = view.records(1, &Progress::default())?;
    let engine = epoch.begin(records).map_err(|source| Error::Restore { epoch: "new".to_owned(), source })?;
    inputs.prepare(epoch, view);
    Ok(Some(engine))
}
