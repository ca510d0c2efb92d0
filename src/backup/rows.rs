//! Rows of the store, part by part: taken from a view, checked when they come from an archive.

use std::collections::BTreeMap;
use std::io::Write;

use agentsvc_components::kernel::record::Space;
use agentsvc_systems::Records;
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::{AuditKey, parse_audit_key};

use super::component::Part;
use super::error::{Error, found_in};
use super::progress::Progress;
use crate::kernel::store;
use crate::kernel::store::rows::{HEADER, Row, RowWriter};
use crate::kernel::store::view::StoreView;

/// Bytes that a rows file has around the keys and values of each row, and behind the last one.
const AROUND_BYTES: u64 = 7;
/// See [`AROUND_BYTES`].
const END_BYTES: u64 = 57;

/// How many rows a part has, and how long its rows file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: u64,
    /// Bytes of keys and values.
    content: u64,
}

impl Size {
    /// Counts a row.
    pub(super) fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.content += row.bytes();
    }

    /// Bytes of the rows file.
    pub(super) const fn bytes(self) -> u64 {
        HEADER.len() as u64 + self.content + self.rows * AROUND_BYTES + END_BYTES
    }
}

/// What a world has.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sizes: BTreeMap<Part, Size>,
    /// Rows by what they are.
    pub(super) counts: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Counts the rows of a view.
    pub(super) fn of(view: &StoreView, progress: &Progress) -> Result<Self, Error> {
        let mut tally = Self::default();
        for row in view.all() {
            let row = row?;
            tally.add(&row);
            progress.add(row.bytes())?;
        }
        Ok(tally)
    }

    fn add(&mut self, row: &Row) {
        let kind = row.key.first().copied().unwrap_or_default();
        self.sizes.entry(Part::of(row.space, kind)).or_default().add(row);
        if let Some(word) = word(row.space, kind, &row.key) {
            *self.counts.entry(word).or_default() += 1;
        }
    }

    /// The size of a part's rows file.
    pub(super) fn size(&self, part: Part) -> Size {
        self.sizes.get(&part).copied().unwrap_or_default()
    }
}

/// What is counted under which word.
fn word(space: Space, kind: u8, key: &[u8]) -> Option<&'static str> {
    Some(match (space, kind) {
        (Space::World, b'a') => "agents",
        (Space::World, b's') => "sessions",
        (Space::World, b't') => "turns_open",
        (Space::World, b'g') => "triggers",
        (Space::World, b'd') => "schedules",
        (Space::World, b'f') => "workflows",
        (Space::World, b'n') => "workflow_runs",
        (Space::World, b'o') => "goals",
        (Space::World, b'j') => "tasks",
        (Space::World, b'i') => "approvals",
        (Space::Content, b'r') => "messages",
        (Space::Content, b'k' | b'e') => "memory_entries",
        (Space::Content, b'z') if matches!(parse_audit_key(key), Some(AuditKey::Entry(_))) => "audit_entries",
        _ => return None,
    })
}

/// The rows of a part in the order of a rows file.
pub(super) fn of_view(view: &StoreView, part: Part) -> impl Iterator<Item = Result<Row, store::Error>> + 'static {
    let view = view.clone();
    let kinds =
        [Space::World, Space::Content].into_iter().flat_map(|space| (1..=u8::MAX).map(move |kind| (space, kind)));
    kinds.filter(move |(space, kind)| Part::of(*space, *kind) == part).flat_map(move |(space, kind)| {
        let row = move |row: Result<_, _>| row.map(|(key, value)| Row { space, key, value });
        view.prefix(space, &[kind]).map(row)
    })
}

/// Writes the rows file of a part.
pub(super) fn pack(
    rows: impl Iterator<Item = Result<Row, store::Error>>,
    part: Part,
    out: &mut dyn Write,
    progress: &Progress,
) -> Result<(), Error> {
    let entry = std::path::Path::new(part.entry());
    let failed = |error| found_in("write", entry, error);
    let mut writer = RowWriter::new(out).map_err(failed)?;
    for row in rows {
        let row = row?;
        writer.push(row.space, &row.key, &row.value).map_err(failed)?;
        progress.add(AROUND_BYTES + row.bytes())?;
    }
    writer.finish().map(drop).map_err(failed)
}

/// Checks that a row of an archive is a record that this release reads, and stands in the right file.
pub(super) fn check(part: Part, row: &Row) -> Result<(), Error> {
    let Row { space, key, value } = row;
    let kind = key.first().copied().unwrap_or_default();
    if kind == 0 || Part::of(*space, kind) != part {
        let text = format!("{}: row {} does not belong to it", part.entry(), record::hex(key));
        return Err(Error::Damaged(text));
    }
    Records::check(*space, key, value).map_err(|error| Error::Damaged(format!("{}: {error}", part.entry())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(space: Space, key: &[u8], value: &[u8]) -> Row {
        Row { space, key: key.to_vec(), value: value.to_vec() }
    }

    #[test]
    fn the_size_of_a_rows_file_is_known_before_it_is_written() {
        let mut tally = Tally::default();
        let rows = [row(Space::World, b"j1", b"abc"), row(Space::World, b"j2", b""), row(Space::Content, b"!x", b"d")];
        let mut writer = RowWriter::new(Vec::new()).unwrap();
        for row in &rows {
            tally.add(row);
            writer.push(row.space, &row.key, &row.value).unwrap();
        }
        let (bytes, _) = writer.finish().unwrap();
        assert_eq!(tally.size(Part::Data).bytes(), bytes.len() as u64);
        assert_eq!((tally.size(Part::Data).rows, tally.counts["tasks"]), (3, 2));
        assert_eq!(tally.size(Part::Agents), Size::default());
    }

    #[test]
    fn rows_that_are_no_records_or_stand_elsewhere_are_refused() {
        let id = [7; 16];
        let key = |kind: u8| [[kind].as_slice(), &id].concat();
        for (part, row) in [
            (Part::Agents, row(Space::World, &key(b'd'), b"\x01")),
            (Part::Agents, row(Space::World, &key(b'a'), b"\x01nonsense")),
            (Part::Agents, row(Space::World, &key(b'a'), b"\xff")),
            (Part::Agents, row(Space::World, b"m123", b"\x01")),
            (Part::Agents, row(Space::Content, b"r1", b"\x01")),
            (Part::Agents, row(Space::Content, &key(b'x'), b"\xff\xfe")),
            (Part::Data, row(Space::World, b"\0s", b"\x01")),
            (Part::Data, row(Space::World, b"!", b"\x01")),
            (Part::AuditLog, row(Space::Content, b"z1", b"\x01")),
        ] {
            assert!(matches!(check(part, &row), Err(Error::Damaged(_))), "{row:?}");
        }
        assert!(check(Part::Agents, &row(Space::Content, &key(b'x'), "name = \"ä\"".as_bytes())).is_ok());
        assert!(check(Part::Agents, &row(Space::World, &key(b'w'), b"\x01")).is_ok());
    }
}
