//! How a world came to life: what a replay begins with, beside the records.

use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::step::StepMark;
use agentsvc_components::{AgentId, Timestamp};

use crate::config::Settings;
use crate::kernel::engine::Engine;
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::inputs::table;
use crate::kernel::inputs::wire::Malformed;
use crate::kernel::record;
use crate::kernel::restore::Records;
use crate::kernel::timings::{self, Override};
use crate::memory;

/// How a world came to life. With the records as of `after` it gives the same world again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Epoch {
    /// The newest step before it.
    pub after: StepMark,
    /// The world's time when it was restored.
    pub now: Timestamp,
    /// All the randomness it has.
    pub seed: [u8; 32],
    /// The settings it began with.
    pub settings: Settings,
    /// How many changes of memory writers had seen, by agent; empty after a start of the daemon.
    pub memory: Vec<(AgentId, u64)>,
    /// The first log that no session has had; 0 after a start of the daemon, when the records alone say it. While the
    /// daemon runs, the erasing of a log may be under way when the log is in no record any more.
    #[serde(default)]
    pub next_log: u64,
    /// Since when ids have a slot; 0 in an epoch of a release whose ids had none.
    #[serde(default)]
    pub born: Timestamp,
}

impl Epoch {
    /// The epoch that begins at a quiet moment of `engine`, without a restart.
    #[must_use]
    pub fn of(engine: &Engine, seed: [u8; 32]) -> Self {
        let world = engine.world();
        Self {
            after: engine.newest(),
            now: world.resource::<crate::kernel::clock::Now>().0,
            seed,
            settings: world.resource::<Settings>().clone(),
            memory: memory::revisions(world),
            next_log: world.resource::<IdGenerator>().next_log(),
            born: world.resource::<IdGenerator>().born(),
        }
    }

    /// Brings a world of `records` to life: the only way, for the daemon and for a replay.
    ///
    /// # Errors
    /// The records contradict each other.
    pub fn begin(&self, records: Records) -> Result<Engine, record::Error> {
        self.begin_with(records, &mut timings::unchanged)
    }

    /// The same with the systems that `replace` chooses: for a replay that asks what another one would do.
    ///
    /// # Errors
    /// Those of [`Epoch::begin`].
    pub fn begin_with(&self, records: Records, replace: &mut Override<'_>) -> Result<Engine, record::Error> {
        let mut engine = Engine::with_systems(self.settings.clone(), self.seed, replace);
        engine.world_mut().resource_mut::<IdGenerator>().set_born(self.born);
        engine.restore(records, self.now)?;
        engine.number_behind(self.after);
        memory::carry(engine.world_mut(), &self.memory);
        engine.carry_logs(self.next_log);
        Ok(engine)
    }

    /// Its form in a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        table::encode_into(self, &mut bytes);
        bytes
    }

    /// Reads that form.
    ///
    /// # Errors
    /// [`Malformed`]: it is not what was written, or a later release wrote it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        table::decode("the start of an epoch", bytes)
    }
}
