//! A world that is fed from the log and compared with it.

use std::collections::{BTreeMap, HashSet};

use agentsvc_components::AgentId;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::kernel::record::{Op, Space};

use super::epoch::Epoch;
use crate::kernel::engine::Engine;
use crate::kernel::inputs::entry::{Arrival, Entry, Mark};
use crate::kernel::inputs::hash::{quick_hash, world_hash};
use crate::kernel::inputs::wire::Malformed;
use crate::kernel::record;
use crate::kernel::restore::Records;
use crate::kernel::timings::{self, Override};

/// Rows by key.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// One record that a step stored or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its key.
    pub key: Vec<u8>,
    /// Where it lives.
    pub space: Space,
    /// What it was; `None` when there was none, or when it is content from before the epoch.
    pub before: Option<Vec<u8>>,
    /// What it is; `None` when it was removed.
    pub after: Option<Vec<u8>>,
}

impl Change {
    fn mark(&self) -> Mark {
        let hash = self.after.as_deref().map(quick_hash);
        Mark { is_content: self.space == Space::Content, key: self.key.clone(), hash }
    }
}

/// What came of an entry.
#[derive(Debug, Default)]
pub struct Played {
    /// The records of the step, in the order of its marks.
    pub changes: Vec<Change>,
    /// The marks of the log that the step did not make.
    pub missing: Vec<Mark>,
    /// The marks that the step made and the log does not have.
    pub surplus: Vec<Mark>,
    /// The step has another number than in the log.
    pub number: Option<u64>,
}

impl Played {
    /// Did it do what the log says?
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.missing.is_empty() && self.surplus.is_empty() && self.number.is_none()
    }
}

/// A world that is fed from the log. It keeps the rows a store would have: all of the world, and of the content what
/// was written since the beginning of the epoch.
pub struct Player {
    engine: Engine,
    /// The agents that were there at the beginning of the epoch.
    elders: HashSet<AgentId>,
    world: Rows,
    /// `None` is a row that was removed.
    content: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Player {
    /// The world of an epoch at its beginning. `world` are its rows.
    ///
    /// # Errors
    /// A row cannot be decoded, or the rows contradict each other.
    pub fn new(epoch: &Epoch, world: Rows) -> Result<Self, record::Error> {
        Self::with_systems(epoch, world, &mut timings::unchanged)
    }

    /// The same with the systems that `replace` chooses.
    ///
    /// # Errors
    /// Those of [`Player::new`].
    pub fn with_systems(epoch: &Epoch, world: Rows, replace: &mut Override<'_>) -> Result<Self, record::Error> {
        let (mut records, mut elders) = (Records::default(), HashSet::new());
        for (key, value) in &world {
            records.read(key, value)?;
        }
        elders.extend(records.iter::<AgentRecord>().map(|agent| agent.id));
        Ok(Self { engine: epoch.begin_with(records, replace)?, elders, world, content: BTreeMap::new() })
    }

    /// Runs the quiet beats and the step of an entry, and compares what they leave with what it says.
    ///
    /// # Errors
    /// [`Malformed`]: a command cannot be read. Nothing after it makes sense.
    pub fn feed(&mut self, entry: &Entry<'_>) -> Result<Played, Malformed> {
        let mut ops = Vec::new();
        for now in &entry.quiet {
            self.engine.set_now(*now);
            self.engine.beat();
            ops.append(&mut self.engine.step().ops);
        }
        let step = &entry.step;
        if let Some(before) = step.set_back_from {
            self.engine.set_now(before);
        }
        self.engine.set_now(step.now);
        // The order of a step: the beat, then what arrived.
        if step.beat {
            self.engine.beat();
        }
        for arrival in &step.arrivals {
            match arrival {
                Arrival::Command(command) => command.carry_out(&mut self.engine)?,
                Arrival::Outcome(outcome) => self.engine.outcome(outcome.clone()),
                Arrival::Time(now) => self.engine.set_now(*now),
                Arrival::Beat => self.engine.beat(),
            }
        }
        let commit = self.engine.step();
        ops.extend(commit.ops);
        let changes = self.apply(ops);
        let made = changes.iter().map(Change::mark).collect::<Vec<_>>();
        let missing = step.marks.iter().filter(|mark| made.binary_search(mark).is_err()).cloned().collect();
        let surplus = made.iter().filter(|mark| step.marks.binary_search(mark).is_err()).cloned().collect();
        let number = Some(commit.step.number).filter(|number| *number != step.number);
        Ok(Played { changes, missing, surplus, number })
    }

    /// Puts the records of a step in their places; gives them sorted, of each key only the last.
    fn apply(&mut self, ops: Vec<Op>) -> Vec<Change> {
        let mut last = BTreeMap::new();
        for Op { space, key, value } in ops {
            last.insert((space == Space::Content, key), value);
        }
        let apply = |((is_content, key), after): ((bool, Vec<u8>), Option<Vec<u8>>)| {
            let (space, before) = if is_content {
                (Space::Content, self.content.insert(key.clone(), after.clone()).flatten())
            } else {
                let before = match &after {
                    Some(value) => self.world.insert(key.clone(), value.clone()),
                    None => self.world.remove(&key),
                };
                (Space::World, before)
            };
            Change { key, space, before, after }
        };
        last.into_iter().map(apply).collect()
    }

    /// The world, to look into or to go on with.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The agents that were there at the beginning of the epoch: others have no content from before it.
    #[must_use]
    pub const fn elders(&self) -> &HashSet<AgentId> {
        &self.elders
    }

    /// All rows of the world space.
    #[must_use]
    pub const fn world(&self) -> &Rows {
        &self.world
    }

    /// Rows of the content space that were written since the beginning of the epoch; `None` is one that was removed.
    #[must_use]
    pub const fn content(&self) -> &BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        &self.content
    }

    /// The rows, without the world: those of the world space, and those of the content space that were written since
    /// the beginning of the epoch.
    #[must_use]
    pub fn into_rows(self) -> (Rows, BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        (self.world, self.content)
    }

    /// The hash of the world as it is now.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        world_hash(self.world.iter().map(|(key, value)| (key.as_slice(), value.as_slice())))
    }
}
