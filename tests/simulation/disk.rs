//! The disk: what is synced stays, what is only written may be lost from its end. The writer commits batches whole; a torn
//! one is found by its checksum and dropped, so that what is there after a kill are the first so many batches.

use std::collections::{BTreeMap, VecDeque};

use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_systems::kernel::engine::Told;
use agentsvc_systems::kernel::record;
use agentsvc_systems::{Commit, Records, Release};

use super::rng::Rng;

/// Rows of one space.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// How the process comes to its end. Nobody was told anything of the steps that wait for a sync; how many of them are there
/// at the next start, always the first few, depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is killed: any number of them is there.
    Kill,
    /// One finds no room: those before it are synced and told of, it and those behind it are gone.
    FullDisk,
    /// A sync fails: none of them is certain, none is told of, and any number is there.
    SyncFailed,
    /// The last one is torn: it is dropped, and those before it are there.
    Torn,
}

impl End {
    /// Those that are the disk's doing.
    pub(crate) const FAULTS: [Self; 3] = [Self::FullDisk, Self::SyncFailed, Self::Torn];

    /// How many of the steps that wait are there afterwards.
    pub(crate) fn kept(self, waiting: usize, rng: &mut Rng) -> usize {
        match self {
            Self::Kill | Self::SyncFailed => rng.below(waiting + 1),
            Self::FullDisk => rng.below(waiting),
            Self::Torn => waiting.saturating_sub(1),
        }
    }
}

/// A step that was written and not yet synced.
pub(crate) struct Batch {
    ops: Vec<Op>,
    effects: Vec<AnyEffect>,
    releases: Vec<Release>,
    told: Vec<Told>,
}

/// What a step that is on disk sets free.
#[derive(Default)]
pub(crate) struct Landed {
    /// Effects, which start.
    pub(crate) effects: Vec<AnyEffect>,
    /// Replies, which leave.
    pub(crate) releases: Vec<Release>,
    /// What those hear of who listen.
    pub(crate) told: Vec<Told>,
}

/// The store of a world.
#[derive(Default)]
pub(crate) struct Disk {
    /// The world space as it is after the last sync.
    pub(crate) world: Rows,
    /// The content space likewise.
    pub(crate) content: Rows,
    /// The world space as it is after the last step.
    pub(crate) seen: Rows,
    tail: VecDeque<Batch>,
}

impl Disk {
    /// A step is written.
    pub(crate) fn write(&mut self, commit: Commit) {
        for op in commit.ops.iter().filter(|op| op.space == Space::World) {
            put(&mut self.seen, op);
        }
        let Commit { ops, effects, releases, told, .. } = commit;
        self.tail.push_back(Batch { ops, effects, releases, told });
    }

    /// Steps that wait for a sync.
    pub(crate) fn waiting(&self) -> usize {
        self.tail.len()
    }

    /// The oldest so many steps are on disk: gives what they release.
    pub(crate) fn sync(&mut self, count: usize) -> Vec<Landed> {
        let count = count.min(self.tail.len());
        let batches: Vec<Batch> = self.tail.drain(..count).collect();
        batches.into_iter().map(|batch| self.land(batch)).collect()
    }

    fn land(&mut self, batch: Batch) -> Landed {
        for op in &batch.ops {
            put(if op.space == Space::World { &mut self.world } else { &mut self.content }, op);
        }
        Landed { effects: batch.effects, releases: batch.releases, told: batch.told }
    }

    /// The process dies; of what waits, the first so many steps made it to the disk, and nobody heard of it. Was there something
    /// to hear?
    pub(crate) fn die(&mut self, kept: usize) -> bool {
        let mut is_missed = false;
        for batch in std::mem::take(&mut self.tail).into_iter().take(kept) {
            is_missed |= !self.land(batch).told.is_empty();
        }
        self.seen = self.world.clone();
        is_missed
    }

    /// What a start reads.
    pub(crate) fn records(&self) -> Result<Records, record::Error> {
        let mut records = Records::default();
        for (key, value) in &self.world {
            records.read(key, value)?;
        }
        Ok(records)
    }

    /// Erases the rows that begin so, as the sweeper does.
    pub(crate) fn erase(&mut self, prefix: &[u8]) {
        self.content.retain(|key, _| !key.starts_with(prefix));
    }
}

fn put(rows: &mut Rows, op: &Op) {
    match &op.value {
        Some(value) => drop(rows.insert(op.key.clone(), value.clone())),
        None => drop(rows.remove(&op.key)),
    }
}
