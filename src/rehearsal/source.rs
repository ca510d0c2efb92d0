//! The world that is forked: its records, and what its agents' turns were like. Read from a view of the store while the
//! live world goes on, or from the file of a snapshot.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use agentsvc_components::AgentId;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::session::message::{Role, text_of};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_systems::Records;
use agentsvc_systems::kernel::record;

use super::history::{CALLS_MAX, COSTS_MAX, History, TEXT_BYTES_MAX, TURNS_MAX, cost_of, played};
use crate::kernel::disk;
use crate::kernel::store;
use crate::kernel::store::load::Progress;
use crate::kernel::store::rows::{RowError, RowReader};
use crate::kernel::store::view::StoreView;

/// Answers that are read for repeating.
const TEXTS_MAX: usize = 20_000;
/// The kind byte of traces.
const TRACE: u8 = b'y';

/// A world that is to be forked.
#[derive(Default)]
pub struct Source {
    /// Its records.
    pub records: Records,
    /// What the turns of its agents were like; those without any are not in it.
    pub histories: HashMap<AgentId, History>,
}

/// Why a world cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The file of a snapshot.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A row holds no record that this release can read.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// Somebody wants it no more.
    #[error("cancelled")]
    Cancelled,
}

/// Reads the world of a view. `repeats`: turns will be repeated, so that more of them is kept than what they cost.
pub fn of_view(view: &StoreView, repeats: bool, cancel: &AtomicBool) -> Result<Source, Error> {
    let records = view.records(1, &Progress::default())?;
    let mut past = Past { repeats, ..Past::default() };
    for agent in records.iter::<AgentRecord>() {
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let rows = view.prefix(Space::Content, &record::trace_prefix(agent.id)).rev().take(COSTS_MAX);
        for row in rows {
            let (key, value) = row?;
            let trace: TraceRecord = record::decode(&key, &value)?;
            let kept = past.add(agent.id, &trace);
            if kept && past.texts < TEXTS_MAX {
                past.texts += 1;
                let text = answer(view, &trace)?;
                past.set_text(agent.id, text);
            }
        }
    }
    Ok(Source { records, histories: past.histories })
}

/// The text of a turn's last answer.
fn answer(view: &StoreView, trace: &TraceRecord) -> Result<Option<Box<str>>, Error> {
    let mut prefix = record::log_prefix(trace.log).to_vec();
    prefix.extend_from_slice(&trace.ordinal.to_be_bytes());
    for row in view.prefix(Space::Content, &prefix).rev() {
        let (key, value) = row?;
        let message: MessageRecord = record::decode(&key, &value)?;
        if message.role == Role::Assistant {
            let text = text_of(&message.blocks);
            return Ok(Some(text[..text.floor_char_boundary(TEXT_BYTES_MAX)].into()));
        }
    }
    Ok(None)
}

/// Reads the world of a snapshot's file, in one pass; answers are not repeated word for word then. The checksum is
/// looked at.
pub fn of_snapshot(path: &Path, repeats: bool, cancel: &AtomicBool) -> Result<Source, Error> {
    let file = disk::open(path).map_err(RowError::Io)?;
    let decoder = zstd::Decoder::new(file).map_err(RowError::Io)?;
    let mut records = Records::default();
    let mut past = Past { repeats, ..Past::default() };
    // The traces of one agent stand together, in the order of time.
    let mut newest: (Option<AgentId>, VecDeque<TraceRecord>) = (None, VecDeque::new());
    for row in RowReader::new(decoder)? {
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let row = row?;
        match (row.space, row.key.split_first()) {
            (Space::World, _) => records.read(&row.key, &row.value)?,
            (Space::Content, Some((&TRACE, ids))) => {
                let agent = ids.get(..16).and_then(|id| uuid::Uuid::from_slice(id).ok()).map(AgentId);
                if agent != newest.0 {
                    past.add_all(newest.0, &newest.1);
                    newest = (agent, VecDeque::new());
                }
                if newest.1.len() == COSTS_MAX {
                    newest.1.pop_front();
                }
                newest.1.push_back(record::decode(&row.key, &row.value)?);
            }
            (Space::Content, _) => {}
        }
    }
    past.add_all(newest.0, &newest.1);
    Ok(Source { records, histories: past.histories })
}

/// Histories while they are read.
#[derive(Default)]
struct Past {
    histories: HashMap<AgentId, History>,
    repeats: bool,
    calls: usize,
    texts: usize,
}

impl Past {
    fn add_all(&mut self, agent: Option<AgentId>, oldest_first: &VecDeque<TraceRecord>) {
        let Some(agent) = agent else { return };
        for trace in oldest_first.iter().rev() {
            self.add(agent, trace);
        }
    }

    /// Adds a turn; the newest comes first. True when it can be repeated.
    fn add(&mut self, agent: AgentId, trace: &TraceRecord) -> bool {
        let Some(usd) = cost_of(trace) else { return false };
        let history = self.histories.entry(agent).or_default();
        history.costs.add(usd);
        if !self.repeats || history.turns.len() >= TURNS_MAX || self.calls >= CALLS_MAX {
            return false;
        }
        let Some(turn) = played(trace) else { return false };
        self.calls += turn.calls.len();
        history.turns.push(turn);
        true
    }

    fn set_text(&mut self, agent: AgentId, text: Option<Box<str>>) {
        if let Some(turn) = self.histories.get_mut(&agent).and_then(|history| history.turns.last_mut()) {
            turn.text = text;
        }
    }
}
