//! Time travel: the rows of the world as it was at a step, for a restore or a fork.
//!
//! The records of the world come from a replay, exactly. The content written since the beginning of the step's epoch
//! comes from the replay too. Older content is taken from the store as it is now, as far as the world of the step knows
//! it. What cannot come back is counted in [`Lost`]: rows that were erased since, and rows that were overwritten or
//! removed since and whose value of then nobody has.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use agentsvc_components::record::{Space, StepMark};
use agentsvc_components::{AgentId, LogId, TurnId};
use agentsvc_systems::record::{self, Stored};
use agentsvc_systems::replay::Player;
use serde::Serialize;

use super::Error;
use super::folder::epochs;
use super::read::Entries;
use super::replay::{Range, Report, replay};
use crate::snapshot::rows::{RowTotals, RowWriter};
use crate::store::view::StoreView;

/// What of the content of then cannot come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Logs of conversations that were cleared or removed since, and whose messages are erased.
    pub logs: u64,
    /// Manifests as written, and entries of memory, that were changed or removed since and not written in this epoch
    /// before. The agent's settings are whole all the same: they are records of the world.
    pub overwritten: u64,
}

/// The world at a step.
pub struct Travelled {
    /// The step.
    pub step: StepMark,
    /// How the replay went.
    pub report: Report,
    /// What is missing.
    pub lost: Lost,
    /// What was written.
    pub totals: RowTotals,
}

/// Writes all rows of the world as it was at `step` to `out`. `now` is the store as it is now. The replay must be equal:
/// a world that would be another one is not given out.
///
/// # Errors
/// There are no inputs of the step, the replay differs, or a disk fails.
pub fn write_at<W: Write>(inputs: &Path, step: u64, now: &StoreView, out: W) -> Result<(W, Travelled), Error> {
    let (report, player) = replay(inputs, Range { to: Some(step), ..Range::default() }, None)?;
    if !report.equal {
        let why = report.stopped.clone().unwrap_or_else(|| {
            let first = report.first_difference.as_ref().map_or(0, |difference| difference.step);
            format!("this release does something else than the one that ran it, first in step {first}")
        });
        return Err(Error::NotKept(format!("the world at step {step} cannot be rebuilt: {why}")));
    }
    let after = touched_after(inputs, &report, step)?;
    let known = Known::of(&player);
    let path = inputs.to_owned();
    let failed = |source| Error::Io { path: path.clone(), source };
    let mut writer = RowWriter::new(out).map_err(failed)?;
    for (key, value) in player.world() {
        writer.push(Space::World, key, value).map_err(failed)?;
    }
    let mut lost = Lost::default();
    let mut logs = HashSet::new();
    let mut replayed = player.content().iter().peekable();
    for row in now.rows(Space::Content) {
        let (key, value) = row?;
        while let Some((key, written)) = replayed.next_if(|(written, _)| **written < key) {
            put(&mut writer, key, written.as_deref()).map_err(failed)?;
        }
        if let Some((key, written)) = replayed.next_if(|(written, _)| **written == key) {
            put(&mut writer, key, written.as_deref()).map_err(failed)?;
        } else if after.contains(&key) {
            lost.overwritten += u64::from(known.overwrites(&key));
        } else if known.knows(&key) {
            put(&mut writer, &key, Some(&value)).map_err(failed)?;
        }
        if key[0] == b'r' {
            logs.extend(log_of(&key));
        }
    }
    for (key, written) in replayed {
        put(&mut writer, key, written.as_deref()).map_err(failed)?;
    }
    let has_rows = |log: &LogId| logs.contains(log) || player.content().keys().any(|key| log_of(key) == Some(*log));
    lost.logs = known.logs.iter().filter(|(log, said)| said.rows > 0 && !has_rows(log)).count() as u64;
    let (out, totals) = writer.finish().map_err(failed)?;
    let step = StepMark { number: report.to, at: report.at };
    Ok((out, Travelled { step, report, lost, totals }))
}

fn put<W: Write>(writer: &mut RowWriter<W>, key: &[u8], value: Option<&[u8]>) -> std::io::Result<()> {
    value.map_or(Ok(()), |value| writer.push(Space::Content, key, value))
}

/// The keys of content that steps behind `step` wrote or removed, as far as the log goes.
fn touched_after(inputs: &Path, report: &Report, step: u64) -> Result<BTreeSet<Vec<u8>>, Error> {
    let last = report.epochs.last().map(|epoch| epoch.name.clone());
    let mut touched = BTreeSet::new();
    for folder in epochs(inputs)?.into_iter().skip_while(|folder| Some(folder.name()) != last) {
        let mut entries = Entries::of(&folder)?;
        while let Some(entry) = entries.next()? {
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
    logs: HashMap<LogId, Said>,
    open: HashSet<TurnId>,
    audit: (u64, u64),
    now_ms: u64,
}

impl Known {
    fn of(player: &Player) -> Self {
        let mut known = Self {
            agents: HashSet::new(),
            logs: HashMap::new(),
            open: HashSet::new(),
            audit: (0, 0),
            now_ms: u64::try_from(player.engine().newest().at.0).unwrap_or(0),
        };
        let mut sessions = HashMap::new();
        let mut turns = Vec::new();
        for (key, value) in player.world() {
            match record::decode_world(key, value) {
                Ok(Stored::Agent(agent)) => {
                    known.agents.insert(agent.id);
                }
                Ok(Stored::Session(session)) => {
                    sessions.insert(session.id, session.log);
                    let (ordinal, rows) = (session.next_ordinal, session.message_count);
                    let said = Said { ordinal, open: BTreeMap::new(), compacted: session.compacted, rows };
                    known.logs.insert(session.log, said);
                }
                Ok(Stored::Turn(turn)) => turns.push(turn),
                Ok(Stored::Audit(head)) => known.audit = (head.first, head.last + 1),
                _ => {}
            }
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
        let agent = || id.get(..16).and_then(|id| uuid::Uuid::from_slice(id).ok()).map(AgentId);
        let has_agent = || agent().is_some_and(|agent| self.agents.contains(&agent));
        match kind {
            b'r' | b'q' => {
                let Some(said) = log_of(key).and_then(|log| self.logs.get(&log)) else { return false };
                let (Some(ordinal), Some(index)) = (number(8), number(12)) else { return false };
                said.open.get(&ordinal).map_or(ordinal < said.ordinal, |next| index < *next)
            }
            b'u' => log_of(key)
                .and_then(|log| self.logs.get(&log))
                .is_some_and(|said| number(8).is_some_and(|upto| upto <= said.compacted)),
            b'x' | b'k' => has_agent(),
            b'y' => {
                let turn = id.get(16..32).and_then(|id| uuid::Uuid::from_slice(id).ok()).map(TurnId);
                has_agent() && turn.is_some_and(|turn| !self.open.contains(&turn) && self.is_past(turn.0))
            }
            b'z' => id.get(..8).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes).is_some_and(|entry| {
                (self.audit.0..self.audit.1).contains(&entry)
            }),
            b'b' => self.knows_usage(id),
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

    /// Could the row have been there with another value?
    fn overwrites(&self, key: &[u8]) -> bool {
        matches!(key.first(), Some(b'x' | b'k')) && self.knows(key)
    }
}

/// The log that a row of a conversation belongs to.
fn log_of(key: &[u8]) -> Option<LogId> {
    let is_of_log = matches!(key.first(), Some(b'r' | b'q' | b'u'));
    let id = key.get(1..9).filter(|_| is_of_log)?;
    Some(LogId(u64::from_be_bytes(id.try_into().ok()?)))
}
