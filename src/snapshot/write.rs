//! Writes a view of the store into a file: rows, compressed on a second thread, whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use agentsvc_api::snapshot::store::SnapshotCounts;
use agentsvc_components::kernel::record::Space;
use crossbeam_channel::Sender;

use crate::kernel::free_space::Sparing;
use crate::kernel::home::private_file;
use crate::kernel::store;
use crate::kernel::store::rows::read::Copied;
use crate::kernel::store::rows::{Row, RowTotals, RowWriter};
use crate::kernel::store::view::StoreView;

/// How hard zstd tries. The least: the rows shrink to a third already, and the processor is the world's.
const LEVEL: i32 = 1;
/// Pieces that wait for the compressing thread, of 64 KiB or one long row.
const PIECES: usize = 16;
/// Rows between two looks of those who watch the progress.
const COUNT_EVERY: u64 = 1_024;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Contents.
    pub counts: SnapshotCounts,
    /// As the file's end says.
    pub totals: RowTotals,
    /// Bytes of the file.
    pub size_bytes: u64,
}

/// Copies all rows of `view` into a new file at `path`, and syncs it.
///
/// # Errors
/// Those of reading the store and of the disk; then there is no file.
pub fn write(view: &StoreView, path: &Path, copied: &Copied) -> Result<Written, store::Error> {
    write_rows(view.all(), path, copied)
}

/// Writes `rows`, which stand in the order of a rows file, into a new file at `path`, and syncs it.
///
/// # Errors
/// Those of the rows and of the disk; then there is no file.
pub fn write_rows(
    rows: impl IntoIterator<Item = Result<Row, store::Error>>,
    path: &Path,
    copied: &Copied,
) -> Result<Written, store::Error> {
    let failed = |source| store::Error::Io { path: path.to_owned(), source };
    let written = copy(rows, path, copied);
    if written.is_err() {
        // What cannot be removed is swept with the next start.
        let _ = fs::remove_file(path);
    }
    let (counts, totals) = written?;
    let size_bytes = fs::metadata(path).map_err(failed)?.len();
    Ok(Written { counts, totals, size_bytes })
}

fn copy(
    rows: impl IntoIterator<Item = Result<Row, store::Error>>,
    path: &Path,
    copied: &Copied,
) -> Result<(SnapshotCounts, RowTotals), store::Error> {
    let failed = |source| store::Error::Io { path: path.to_owned(), source };
    let file = private_file().write(true).create_new(true).open(path).map_err(failed)?;
    let file = Sparing::new(file, path).map_err(failed)?;
    let (pieces, thread) = compress(file).map_err(failed)?;
    let mut counts = SnapshotCounts::default();
    let totals = (|| {
        let mut writer = RowWriter::new(pieces).map_err(failed)?;
        for row in rows {
            let row = row?;
            writer.push(row.space, &row.key, &row.value).map_err(failed)?;
            count(&mut counts, &row);
            if counts.rows.is_multiple_of(COUNT_EVERY) {
                tell(copied, &counts);
            }
        }
        let (_pieces, totals) = writer.finish().map_err(failed)?;
        tell(copied, &counts);
        Ok(totals)
    })();
    // The other thread knows why it took no more.
    let compressed = thread.join().unwrap_or_else(|_| Err(io::Error::other("the compressing thread panicked")));
    compressed.map_err(failed)?;
    totals.map(|totals| (counts, totals))
}

fn tell(copied: &Copied, counts: &SnapshotCounts) {
    copied.rows.store(counts.rows, Ordering::Relaxed);
    copied.bytes.store(counts.bytes, Ordering::Relaxed);
}

/// The way to the compressing thread.
struct Pieces(Sender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.send(piece.to_vec()).map_err(|_| io::Error::other("the compressing thread has ended"))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the thread that compresses what comes into `file`, and syncs the file at the end.
fn compress(file: Sparing<File>) -> io::Result<(Pieces, JoinHandle<io::Result<()>>)> {
    let (pieces, incoming) = crossbeam_channel::bounded::<Vec<u8>>(PIECES);
    let run = move || {
        let mut encoder = zstd::Encoder::new(BufWriter::with_capacity(1 << 20, file), LEVEL)?;
        encoder.include_checksum(true)?;
        for piece in incoming {
            encoder.write_all(&piece)?;
        }
        encoder.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.into_inner().sync_all()
    };
    let thread = thread::Builder::new().name("snapshot".to_owned()).spawn(run)?;
    Ok((Pieces(pieces), thread))
}

/// Counts a row as what it is; the table of kinds is in `components/src/kernel/record.rs`.
fn count(counts: &mut SnapshotCounts, row: &Row) {
    counts.rows += 1;
    counts.bytes += row.bytes();
    let kind = match (row.space, row.key.first()) {
        (Space::World, Some(b'a')) => &mut counts.agents,
        (Space::World, Some(b's')) => &mut counts.sessions,
        (Space::World, Some(b't')) => &mut counts.turns,
        (Space::World, Some(b'g')) => &mut counts.triggers,
        (Space::World, Some(b'd')) => &mut counts.schedules,
        (Space::World, Some(b'f')) => &mut counts.workflows,
        (Space::World, Some(b'o')) => &mut counts.goals,
        (Space::World, Some(b'j')) => &mut counts.tasks,
        (Space::Content, Some(b'r')) => &mut counts.messages,
        (Space::Content, Some(b'k' | b'e')) => &mut counts.memories,
        _ => return,
    };
    *kind += 1;
}
