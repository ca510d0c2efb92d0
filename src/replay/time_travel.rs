//! Time travel: the rows of the world as it was at a step, for a restore or a fork.
//!
//! The records of the world come from a replay, exactly. The content written since the beginning of the step's epoch
//! comes from the replay too. Older content is taken from the store as it is now, as far as the world of the step knows
//! it. What cannot come back is counted in [`Lost`]: rows that were erased since, and rows that were overwritten or
//! removed since and whose value of then nobody has.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, btree_map};
use std::iter::Peekable;
use std::path::Path;

use agentsvc_api::snapshot::store::Lost;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::history::MinuteRecord;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::kernel::step::StepMark;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::{AgentId, LogId, TurnId};
use agentsvc_systems::history::{parse_hour_key, parse_minute};
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::read_as;
use agentsvc_systems::proactive_memory::keys::parse_lead;
use agentsvc_systems::replay::Player;

use super::report::Report;
use crate::kernel::store;
use crate::kernel::store::rows::Row;
use crate::kernel::store::view::{Rows as StoredRows, StoreView};
use crate::replay::inputs::Error;
use crate::replay::inputs::folder::{EpochFolder, epochs};
use crate::replay::inputs::read::Entries;
use crate::replay::{Range, replay};

/// A row's key and value.
type Pair = (Vec<u8>, Vec<u8>);

/// The world at a step: its rows in the order of a rows file. What is lost is known when all were read.
pub struct Past {
    /// The step.
    pub step: StepMark,
    /// How the replay went.
    pub report: Report,
    lost: Lost,
    world: btree_map::IntoIter<Vec<u8>, Vec<u8>>,
    replayed: Peekable<btree_map::IntoIter<Vec<u8>, Option<Vec<u8>>>>,
    now: Peekable<StoredRows>,
    /// Content that later steps wrote or removed.
    after: BTreeSet<Vec<u8>>,
    known: Known,
    /// Logs that have rows.
    said: HashSet<LogId>,
}

impl Past {
    /// The world as it was at `step`, with the content that is in the store as of `now`.
    ///
    /// # Errors
    /// There are no inputs of the step, the replay differs (a world that would be another one is not given out), or the
    /// disk fails.
    pub fn at(inputs: &Path, step: u64, now: &StoreView) -> Result<Self, Error> {
        let (report, player) = replay(inputs, Range { to: Some(step), ..Range::default() }, None)?;
        if !report.equal {
            let why = report.stopped.clone().unwrap_or_else(|| {
                let first = report.first_difference.as_ref().map_or(0, |difference| difference.step);
                format!("this release produces a different result, first in step {first}")
            });
            return Err(Error::NotKept(format!("the world at step {step} cannot be rebuilt: {why}")));
        }
        let known = Known::of(&player);
        let (world, content) = player.into_rows();
        Ok(Self {
            step: StepMark { number: report.to, at: report.at },
            after: touched_after(inputs, &report, step)?,
            report,
            lost: Lost::default(),
            world: world.into_iter(),
            replayed: content.into_iter().peekable(),
            now: now.rows(Space::Content).peekable(),
            known,
            said: HashSet::new(),
        })
    }

    /// Bytes of the largest epoch: how much of the log one replay reads at most.
    ///
    /// # Errors
    /// The disk.
    pub fn log_bytes(inputs: &Path) -> Result<u64, Error> {
        Ok(epochs(inputs)?.iter().map(EpochFolder::bytes).max().unwrap_or(0))
    }

    /// What cannot come back; to be asked when all rows were read.
    pub fn lost(&self) -> Lost {
        let silent = |(log, said): &(&LogId, &Said)| said.rows > 0 && !self.said.contains(log);
        Lost { logs: self.known.logs.iter().filter(silent).count() as u64, ..self.lost }
    }

    /// The next row of content that the world of then had.
    fn content(&mut self) -> Option<Result<Pair, store::Error>> {
        loop {
            let is_replayed_next = match (self.replayed.peek(), self.now.peek()) {
                (None, None) => return None,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(_), Some(Err(_))) => false,
                (Some((written, _)), Some(Ok((stored, _)))) => written <= stored,
            };
            if is_replayed_next {
                let (key, value) = self.replayed.next()?;
                // What the replay knows holds, whatever is stored now.
                let _same = self.now.next_if(|row| matches!(row, Ok((stored, _)) if *stored == key));
                if let Some(value) = value {
                    return Some(Ok((key, value)));
                }
                continue;
            }
            let (key, value) = match self.now.next()? {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            if self.after.contains(&key) {
                self.lost.overwritten += u64::from(self.known.overwrites(&key));
            } else if self.known.knows(&key) {
                return Some(Ok((key, value)));
            }
        }
    }
}

impl Iterator for Past {
    type Item = Result<Row, store::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((key, value)) = self.world.next() {
            return Some(Ok(Row { space: Space::World, key, value }));
        }
        let row = self.content()?;
        Some(row.map(|(key, value)| {
            self.said.extend(log_of(&key).filter(|_| key[0] == b'r'));
            Row { space: Space::Content, key, value }
        }))
    }
}

/// The keys of content that steps behind `step` wrote or removed, as far as the log goes.
fn touched_after(inputs: &Path, report: &Report, step: u64) -> Result<BTreeSet<Vec<u8>>, Error> {
    let last = report.epochs.last().map(|epoch| epoch.name.clone());
    let mut touched = BTreeSet::new();
    for folder in epochs(inputs)?.into_iter().skip_while(|folder| Some(folder.name()) != last) {
        let mut entries = Entries::of(&folder)?;
        while let Some(entry) = entries.next_entry()? {
            let is_later = entry.step.number > step || Some(folder.name()) != last;
            if is_later {
                let marks = entry.step.marks.into_iter();
                touched.extend(marks.filter(|mark| mark.is_content).map(|mark| mark.key));
            }
        }
    }
    Ok(touched)
}

/// How much of a log a world knows.
#[derive(Default)]
struct Said {
    /// Turns with a smaller ordinal have ended: all their rows are known.
    ordinal: u32,
    /// Rows of turns that are open: up to which index, by ordinal.
    open: BTreeMap<u32, u32>,
    /// Summaries reach up to this ordinal.
    compacted: u32,
    rows: u32,
}

/// What content a world knows of.
struct Known {
    agents: HashSet<AgentId>,
    /// Those of them that the epoch began with: what they had before it is not in the log.
    elders: HashSet<AgentId>,
    logs: HashMap<LogId, Said>,
    open: HashSet<TurnId>,
    audit: (u64, u64),
    /// The number of the hour that was under way.
    hour: u64,
    now_ms: u64,
}

impl Known {
    fn of(player: &Player) -> Self {
        let mut known = Self {
            agents: HashSet::new(),
            elders: HashSet::new(),
            logs: HashMap::new(),
            open: HashSet::new(),
            audit: (0, 0),
            hour: 0,
            now_ms: u64::try_from(player.engine().newest().at.0).unwrap_or(0),
        };
        let mut sessions = HashMap::new();
        let mut turns = Vec::new();
        for (key, value) in player.world() {
            if let Some(agent) = read_as::<AgentRecord>(key, value) {
                known.agents.insert(agent.id);
                known.elders.extend(player.elders().get(&agent.id));
            } else if let Some(session) = read_as::<SessionRecord>(key, value) {
                sessions.insert(session.id, session.log);
                let (ordinal, rows) = (session.next_ordinal, session.message_count);
                let said = Said { ordinal, open: BTreeMap::new(), compacted: session.compacted, rows };
                known.logs.insert(session.log, said);
            } else if *key == record::AUDIT_HEAD_KEY
                && let Ok(head) = record::decode::<AuditHead>(key, value)
            {
                known.audit = (head.first, head.last + 1);
            } else if parse_minute(key).is_some()
                && let Ok(minute) = record::decode::<MinuteRecord>(key, value)
            {
                known.hour = known.hour.max(minute.number);
            }
            turns.extend(read_as::<TurnRecord>(key, value));
        }
        for turn in turns {
            known.open.insert(turn.id);
            if let Some(said) = sessions.get(&turn.session).and_then(|log| known.logs.get_mut(log)) {
                said.open.insert(turn.ordinal, turn.next_index);
            }
        }
        known
    }

    /// Is the row one of the world's own?
    fn knows(&self, key: &[u8]) -> bool {
        let Some((kind, id)) = key.split_first() else { return false };
        let number = |at: usize| Some(u32::from_be_bytes(id.get(at..at + 4)?.try_into().ok()?));
        let has_agent = || agent_of(key).is_some_and(|agent| self.agents.contains(&agent));
        match kind {
            b'r' | b'q' => {
                let Some(said) = log_of(key).and_then(|log| self.logs.get(&log)) else { return false };
                let (Some(ordinal), Some(index)) = (number(8), number(12)) else { return false };
                said.open.get(&ordinal).map_or(ordinal < said.ordinal, |next| index < *next)
            }
            b'u' => log_of(key)
                .and_then(|log| self.logs.get(&log))
                .is_some_and(|said| number(8).is_some_and(|upto| upto <= said.compacted)),
            b'x' | b'k' | b'e' => has_agent(),
            b'i' | b'j' => parse_lead(key).is_some_and(|(agent, _)| self.agents.contains(&agent)),
            b'y' => {
                let turn = id.get(16..32).and_then(|id| uuid::Uuid::from_slice(id).ok()).map(TurnId);
                has_agent() && turn.is_some_and(|turn| !self.open.contains(&turn) && self.is_past(turn.0))
            }
            b'z' => id
                .get(..8)
                .and_then(|id| id.try_into().ok())
                .map(u64::from_be_bytes)
                .is_some_and(|entry| (self.audit.0..self.audit.1).contains(&entry)),
            b'b' => self.knows_usage(id),
            b'6' => parse_hour_key(key).is_some_and(|(_, number)| number < self.hour),
            _ => false,
        }
    }

    /// Usage events begin with their time; the marks of active days with 255 and the day.
    fn knows_usage(&self, id: &[u8]) -> bool {
        let time = id.get(..8).and_then(|time| time.try_into().ok()).map(u64::from_be_bytes);
        id.first() == Some(&255) || time.is_some_and(|time| time <= self.now_ms)
    }

    fn is_past(&self, id: uuid::Uuid) -> bool {
        let ms = id.as_u128() >> 80;
        ms <= u128::from(self.now_ms)
    }

    /// Could the row have been there with another value that is not in the log?
    fn overwrites(&self, key: &[u8]) -> bool {
        matches!(key.first(), Some(b'x' | b'k' | b'e'))
            && agent_of(key).is_some_and(|agent| self.elders.contains(&agent))
    }
}

/// The agent whose id a key begins with.
fn agent_of(key: &[u8]) -> Option<AgentId> {
    let id = key.get(1..17)?;
    uuid::Uuid::from_slice(id).ok().map(AgentId)
}

/// The log that a row of a conversation belongs to.
fn log_of(key: &[u8]) -> Option<LogId> {
    let is_of_log = matches!(key.first(), Some(b'r' | b'q' | b'u'));
    let id = key.get(1..9).filter(|_| is_of_log)?;
    Some(LogId(u64::from_be_bytes(id.try_into().ok()?)))
}
