//! The rows of a restored world: those of the archive for the parts that are restored, those of the live world for the
//! others, in one stream in the order of keys.
//!
//! What would point at nothing is left out: schedules and cron jobs whose agents are in neither. Everything else that
//! points from one part into another is told of its end when the world comes to life (runs whose turns are gone, approvals
//! whose calls are gone).

use std::collections::{BTreeMap, HashSet};
use std::iter::Peekable;
use std::path::PathBuf;

use agentsvc_api::backup::store::Changes;
use agentsvc_components::AgentId;
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::schedule::record::ScheduleRecord;
use agentsvc_systems::audit::parse_checkpoint;
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::{AuditKey, parse_audit_key};
use agentsvc_systems::{Engine, Records, Settings};

use super::component::Part;
use super::error::Error;
use super::progress::Progress;
use super::stage::open_rows;
use super::{rows, stage};
use crate::audit::vault::Vault as AuditVault;
use crate::kernel::store::rows::Row;
use crate::kernel::store::view::StoreView;

type Stream = Box<dyn Iterator<Item = Result<Row, Error>> + Send>;

/// Where the rows of a part come from.
#[derive(Clone)]
pub(super) enum Source {
    /// A rows file of the archive.
    Archive(PathBuf),
    /// The world that is there.
    Live(StoreView),
    /// There are none.
    Nowhere,
}

impl Source {
    /// The rows of `part` in order.
    pub(super) fn rows(&self, part: Part) -> Result<Stream, Error> {
        Ok(match self {
            Self::Archive(path) => {
                let rows = open_rows(part, path)?;
                Box::new(rows.map(move |row| row.map_err(|error| Error::of_rows(part.entry(), error))))
            }
            Self::Live(view) => Box::new(rows::of_view(view, part).map(|row| row.map_err(Error::from))),
            Self::Nowhere => Box::new(std::iter::empty()),
        })
    }
}

/// A world made of parts.
pub(super) struct Mix {
    sources: BTreeMap<Part, Source>,
    /// The agents of it, when schedules come from elsewhere than they do.
    agents: Option<HashSet<AgentId>>,
    /// Whose signatures of the trail count here, when the trail comes from the archive.
    signer: Option<AuditVault>,
}

impl Mix {
    /// The parts that `takes` says from the archive, the others from the live world. A trail that is there goes on;
    /// otherwise the archive's is taken, and of its checkpoints those that this home's key has signed.
    pub(super) fn new(
        stage: &stage::Stage,
        live: Option<&StoreView>,
        takes: impl Fn(Part) -> bool,
        signer: Option<AuditVault>,
    ) -> Result<Self, Error> {
        // One that cannot be read is not to be replaced, either.
        let has_trail = live.map(super::create::trail_end).transpose()?.flatten().is_some();
        let mut sources = BTreeMap::new();
        for part in Part::ALL {
            let from_archive = if part == Part::AuditLog { !has_trail } else { takes(part) };
            let source = match (from_archive, live) {
                (true, _) => stage.rows.get(&part).cloned().map_or(Source::Nowhere, Source::Archive),
                (false, Some(view)) => Source::Live(view.clone()),
                (false, None) => Source::Nowhere,
            };
            sources.insert(part, source);
        }
        let is_mixed =
            live.is_some() && takes(Part::Agents) != takes(Part::CronJobs) || live.is_none() && !takes(Part::Agents);
        let mut mix = Self { sources, agents: None, signer };
        if is_mixed {
            mix.agents = Some(mix.find_agents()?);
        }
        Ok(mix)
    }

    fn source(&self, part: Part) -> &Source {
        self.sources.get(&part).unwrap_or(&Source::Nowhere)
    }

    fn find_agents(&self) -> Result<HashSet<AgentId>, Error> {
        let mut agents = HashSet::new();
        for row in self.source(Part::Agents).rows(Part::Agents)? {
            let row = row?;
            // Their rows are the first of all.
            let (Space::World, Some((b'a', id))) = (row.space, row.key.split_first()) else { break };
            agents.extend(uuid::Uuid::from_slice(id).map(AgentId));
        }
        Ok(agents)
    }

    /// All rows in the order of a rows file.
    pub(super) fn rows<'a>(&'a self, progress: &'a Progress) -> Result<Merge<'a>, Error> {
        let streams = Part::ALL.into_iter().map(|part| Ok(self.source(part).rows(part)?.peekable()));
        let streams = streams.collect::<Result<_, Error>>()?;
        Ok(Merge { mix: self, streams, dropped: HashSet::new(), progress, has_ended: false })
    }

    /// Brings the world to life and lets it go again: it holds together. Gives how many schedules are left out.
    pub(super) fn prove(&self, now: Timestamp, progress: &Progress) -> Result<usize, Error> {
        let mut records = Records::default();
        let mut rows = self.rows(progress)?;
        for row in rows.by_ref() {
            let row = row?;
            if row.space != Space::World {
                break;
            }
            let unreadable = |error: record::Error| Error::Damaged(error.to_string());
            records.read(&row.key, &row.value).map_err(unreadable)?;
        }
        let dropped = rows.dropped.len();
        let mut engine = Engine::new(Settings::default(), [0; 32]);
        let broken = |error: record::Error| Error::Damaged(format!("no world can be created from it: {error}"));
        engine.restore(records, now).map_err(broken)?;
        Ok(dropped)
    }

    /// Is the row one that has no place here?
    fn is_left_out(&self, row: &Row, dropped: &mut HashSet<Vec<u8>>) -> Result<bool, Error> {
        let Some((kind, id)) = row.key.split_first() else { return Ok(false) };
        match (row.space, kind) {
            (Space::World, b'd') => {
                let Some(agents) = &self.agents else { return Ok(false) };
                let unreadable = |error: record::Error| Error::Damaged(error.to_string());
                let schedule: ScheduleRecord = record::decode(&row.key, &row.value).map_err(unreadable)?;
                let is_out = !agents.contains(&schedule.agent);
                if is_out {
                    dropped.insert(id.to_vec());
                }
                Ok(is_out)
            }
            (Space::World, b'e') => Ok(dropped.contains(id)),
            (Space::Content, b'z') if matches!(self.source(Part::AuditLog), Source::Archive(_)) => {
                let is_checkpoint = matches!(parse_audit_key(&row.key), Some(AuditKey::Checkpoint(_)));
                let is_ours = |signer: &AuditVault| {
                    parse_checkpoint(&row.value, |message, signature| signer.is_signed(message, signature)).is_some()
                };
                Ok(is_checkpoint && !self.signer.as_ref().is_some_and(is_ours))
            }
            _ => Ok(false),
        }
    }
}

/// The rows of a [`Mix`].
pub(super) struct Merge<'a> {
    mix: &'a Mix,
    streams: Vec<Peekable<Stream>>,
    /// Ids of schedules that are left out.
    dropped: HashSet<Vec<u8>>,
    progress: &'a Progress,
    has_ended: bool,
}

impl Merge<'_> {
    /// The stream whose next row comes first; an error comes before all rows.
    fn first(&mut self) -> Option<usize> {
        let mut first: Option<(usize, (bool, Vec<u8>))> = None;
        for at in 0..self.streams.len() {
            let place = match self.streams[at].peek() {
                None => continue,
                Some(Err(_)) => return Some(at),
                Some(Ok(row)) => place(row),
            };
            if first.as_ref().is_none_or(|(_, (space, key))| place < (*space, key.as_slice())) {
                first = Some((at, (place.0, place.1.to_vec())));
            }
        }
        first.map(|(at, _)| at)
    }

    fn advance(&mut self) -> Result<Option<Row>, Error> {
        loop {
            let Some(row) = self.first().and_then(|at| self.streams[at].next()).transpose()? else {
                return Ok(None);
            };
            self.progress.add(row.bytes())?;
            if !self.mix.is_left_out(&row, &mut self.dropped)? {
                return Ok(Some(row));
            }
        }
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let next = self.advance().transpose();
        self.has_ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Where a row stands in the order of a rows file.
fn place(row: &Row) -> (bool, &[u8]) {
    (row.space == Space::Content, &row.key)
}

/// Compares the rows of a part as they are with those that take their place.
pub(super) fn compare(part: Part, before: &Source, after: &Source, progress: &Progress) -> Result<Changes, Error> {
    let mut changes = Changes::default();
    let (mut before, mut after) = (before.rows(part)?, after.rows(part)?);
    let (mut old, mut new) = (before.next().transpose()?, after.next().transpose()?);
    loop {
        let order = match (&old, &new) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => place(old).cmp(&place(new)),
        };
        match order {
            std::cmp::Ordering::Less => changes.removed += 1,
            std::cmp::Ordering::Greater => changes.added += 1,
            std::cmp::Ordering::Equal if old == new => changes.unchanged += 1,
            std::cmp::Ordering::Equal => changes.replaced += 1,
        }
        progress.add(new.as_ref().map_or(0, Row::bytes))?;
        if order.is_le() {
            old = before.next().transpose()?;
        }
        if order.is_ge() {
            new = after.next().transpose()?;
        }
    }
    Ok(changes)
}
