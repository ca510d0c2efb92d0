//! The list of fires, in a file: 60 bytes each, so that any page is found at once. Reasons are few and stand in a table in
//! memory; names come from the directory.
//!
//! | bytes | |
//! |---|---|
//! | 1, 1, 1, 1 | kind of source, outcome, queued, kind of event (255: none) |
//! | 16 | id of the source |
//! | 8, 8 | nominal and fired moment, milliseconds, big-endian |
//! | 4, 4 | how many slots; place in the table of reasons |
//! | 16 | the agent |

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use agentsvc_api::rehearsal::runs::{Fire, FirePage, FireRange, OUTCOMES};
use agentsvc_components::event::EventKind;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Timestamp};
use uuid::Uuid;

use super::directory::{Directory, SourceKind};
use crate::kernel::home::private_file;

/// Bytes of a row.
const ROW_BYTES: usize = 60;
/// No event.
const NO_EVENT: u8 = u8::MAX;
/// Reasons that are told apart; further ones are all the last.
const REASONS_MAX: usize = 1_000;
/// Stands for reasons beyond the bound.
const OTHER: &str = "(one of many reasons)";
/// Rows that one page looks at when only some outcomes are wanted.
const LOOKED_AT_MAX: u64 = 100_000;

/// One fire as it is noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What fired.
    pub kind: SourceKind,
    /// Which.
    pub id: Uuid,
    /// Agent.
    pub agent: AgentId,
    /// Slot, or time of the event.
    pub nominal: Timestamp,
    /// End time.
    pub fired: Timestamp,
    /// Its place in [`OUTCOMES`].
    pub outcome: u8,
    /// Whether it waited for the previous run.
    pub queued: bool,
    /// How many slots.
    pub count: u32,
    /// Its place in the table of reasons; 0 is none.
    pub reason: u32,
    /// Event kind of a trigger.
    pub event: Option<EventKind>,
}

impl Row {
    fn encode(&self) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        let event = self.event.map_or(NO_EVENT, |event| event as u8);
        bytes[..4].copy_from_slice(&[self.kind as u8, self.outcome, u8::from(self.queued), event]);
        bytes[4..20].copy_from_slice(self.id.as_bytes());
        bytes[20..28].copy_from_slice(&self.nominal.0.to_be_bytes());
        bytes[28..36].copy_from_slice(&self.fired.0.to_be_bytes());
        bytes[36..40].copy_from_slice(&self.count.to_be_bytes());
        bytes[40..44].copy_from_slice(&self.reason.to_be_bytes());
        bytes[44..].copy_from_slice(self.agent.0.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let long = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(i64::from_be_bytes).map(Timestamp);
        let short = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let uuid = |at: usize| Uuid::from_slice(bytes.get(at..at + 16)?).ok();
        Some(Self {
            kind: *SourceKind::ALL.get(usize::from(bytes[0]))?,
            outcome: bytes[1],
            queued: bytes[2] != 0,
            event: EventKind::ALL.get(usize::from(bytes[3])).copied(),
            id: uuid(4)?,
            nominal: long(20)?,
            fired: long(28)?,
            count: short(36)?,
            reason: short(40)?,
            agent: AgentId(uuid(44)?),
        })
    }
}

/// The table of reasons.
#[derive(Clone, Debug)]
pub struct Reasons {
    texts: Vec<Box<str>>,
    places: HashMap<Box<str>, u32>,
}

impl Default for Reasons {
    fn default() -> Self {
        Self { texts: vec!["".into()], places: HashMap::from([("".into(), 0)]) }
    }
}

impl Reasons {
    /// The place of a reason.
    pub fn place(&mut self, reason: &str) -> u32 {
        if let Some(place) = self.places.get(reason) {
            return *place;
        }
        let reason = if self.texts.len() < REASONS_MAX { reason } else { OTHER };
        if let Some(place) = self.places.get(reason) {
            return *place;
        }
        let place = u32::try_from(self.texts.len()).unwrap_or_default();
        self.texts.push(reason.into());
        self.places.insert(reason.into(), place);
        place
    }

    /// The reason at a place.
    pub fn text(&self, place: u32) -> &str {
        self.texts.get(place as usize).map_or("", |text| text)
    }
}

/// The list while it is written.
pub struct Spool {
    out: BufWriter<File>,
    rows: u64,
    left_out: u64,
}

impl Spool {
    /// Begins a list at `path`, where nothing may be.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = private_file().write(true).create_new(true).open(path)?;
        Ok(Self { out: BufWriter::with_capacity(256 << 10, file), rows: 0, left_out: 0 })
    }

    /// Adds a fire; one beyond the bound is only counted.
    pub fn push(&mut self, row: &Row) -> io::Result<()> {
        if self.rows >= limit::REHEARSAL_FIRES_LISTED_MAX {
            self.left_out += 1;
            return Ok(());
        }
        self.rows += 1;
        self.out.write_all(&row.encode())
    }

    /// Fires so far: those in the list, and those beyond it.
    pub const fn counts(&self) -> (u64, u64) {
        (self.rows, self.left_out)
    }

    /// Writes what waits.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A list that is whole; its file goes with it.
#[derive(Debug)]
pub struct Listing {
    /// The file.
    pub path: PathBuf,
    /// How many fires it has.
    pub rows: u64,
    /// Why some of them began nothing.
    pub reasons: Reasons,
    /// Who is who.
    pub directory: Directory,
}

impl Listing {
    /// A page of it.
    pub fn page(&self, range: FireRange) -> io::Result<FirePage> {
        let wanted = range.outcome.and_then(|word| OUTCOMES.iter().position(|known| *known == word));
        let mut page = FirePage { fires: Vec::new(), next: None, total: self.rows };
        let (mut at, last) = (range.after, self.rows.min(range.after.saturating_add(LOOKED_AT_MAX)));
        if at >= self.rows {
            return Ok(page);
        }
        let file = File::open(&self.path)?;
        let mut bytes = Vec::new();
        while at < last && page.fires.len() < range.limit {
            let count = (last - at).min(range.limit.max(1) as u64).min(1_000);
            bytes.resize(usize::try_from(count).unwrap_or_default() * ROW_BYTES, 0);
            file.read_exact_at(&mut bytes, at * ROW_BYTES as u64)?;
            for row in bytes.chunks_exact(ROW_BYTES) {
                if page.fires.len() == range.limit {
                    break;
                }
                at += 1;
                let row = Row::decode(row).ok_or_else(|| io::Error::other("the list of fires is damaged"))?;
                if wanted.is_none_or(|wanted| usize::from(row.outcome) == wanted) {
                    page.fires.push(self.fire(at, &row));
                }
            }
        }
        page.next = (at < self.rows).then_some(at);
        Ok(page)
    }

    fn fire(&self, number: u64, row: &Row) -> Fire {
        let reason = self.reasons.text(row.reason);
        Fire {
            number,
            kind: row.kind.as_str(),
            id: row.id,
            name: self.directory.sources.get(&row.id).and_then(|card| card.name.clone()),
            agent: row.agent,
            agent_name: self.directory.name(row.agent).into(),
            nominal_at: row.nominal,
            fired_at: row.fired,
            outcome: OUTCOMES.get(usize::from(row.outcome)).copied().unwrap_or_default(),
            queued: row.queued,
            count: row.count,
            reason: (!reason.is_empty()).then(|| reason.into()),
            event: row.event.map(EventKind::as_str),
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "a list of fires could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u64, outcome: u8) -> Row {
        Row {
            kind: SourceKind::Trigger,
            id: Uuid::from_u128(7),
            agent: AgentId(Uuid::from_u128(8)),
            nominal: Timestamp(n.cast_signed()),
            fired: Timestamp(-1),
            outcome,
            queued: true,
            count: 3,
            reason: 1,
            event: Some(EventKind::Custom),
        }
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let there = row(1 << 40, 11);
        assert_eq!(Row::decode(&there.encode()), Some(there));
        let none = Row { event: None, kind: SourceKind::Cron, ..row(0, 0) };
        assert_eq!(Row::decode(&none.encode()), Some(none));
    }

    #[test]
    fn pages_join_to_the_list_and_filters_leave_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.fires");
        let mut spool = Spool::create(&path).unwrap();
        (0..2_500).for_each(|n| spool.push(&row(n, u8::try_from(n % 3).unwrap())).unwrap());
        spool.flush().unwrap();
        assert_eq!(spool.counts(), (2_500, 0));
        let mut reasons = Reasons::default();
        assert_eq!((reasons.place("full"), reasons.place("full"), reasons.place("")), (1, 1, 0));
        let listing = Listing { path: path.clone(), rows: 2_500, reasons, directory: Directory::default() };
        for (outcome, expected) in [(None, 2_500), (Some("missed"), 833), (Some("waiting"), 0)] {
            let (mut after, mut found) = (Some(0), Vec::new());
            while let Some(from) = after {
                let page = listing.page(FireRange { after: from, limit: 700, outcome }).unwrap();
                assert!(page.fires.len() <= 700);
                found.extend(page.fires.into_iter().map(|fire| fire.number));
                after = page.next;
            }
            assert_eq!(found.len(), expected);
            assert!(found.is_sorted());
        }
        drop(listing);
        assert!(!path.exists());
    }

    #[test]
    fn reasons_are_bounded() {
        let mut reasons = Reasons::default();
        let places: Vec<u32> = (0..2_000).map(|n| reasons.place(&format!("reason {n}"))).collect();
        assert_eq!(places[1_500], places[1_999]);
        assert_eq!(reasons.text(places[1_999]), OTHER);
        assert_eq!(reasons.text(places[5]), "reason 5");
    }
}
