//! Reads the file of a snapshot back: as records, or into a new store, with every row looked at on the way.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_components::kernel::record::Space;
use agentsvc_systems::Records;

use crate::kernel::store;
use crate::kernel::store::Store;
use crate::kernel::store::rows::{RowError, RowReader, RowTotals};

/// How far a copy is; read by those who ask while it runs.
#[derive(Debug, Default)]
pub struct Copied {
    /// Rows so far.
    pub rows: AtomicU64,
    /// Bytes of their keys and values.
    pub bytes: AtomicU64,
}

/// The rows of a compressed rows file.
pub type Rows = RowReader<zstd::Decoder<'static, BufReader<File>>>;

/// Opens a compressed rows file.
///
/// # Errors
/// [`RowError`]: it cannot be read, is none, or a later release wrote it.
pub fn open(path: &Path) -> Result<Rows, RowError> {
    RowReader::new(zstd::Decoder::new(File::open(path)?)?)
}

/// The world of a snapshot without its content, so that an engine can be restored from it. The whole file is read and
/// checked.
///
/// # Errors
/// [`RowError`]: the first thing that is wrong with the file.
pub fn records(path: &Path) -> Result<Records, RowError> {
    let mut records = Records::default();
    for row in open(path)? {
        let row = row?;
        if row.space == Space::World {
            records.read(&row.key, &row.value)?;
        }
    }
    Ok(records)
}

/// Makes a store at `to` of a snapshot's file. Every record of it was decoded then, and the checksum is right; those of
/// the world are given back.
///
/// # Errors
/// [`store::Error::Rows`] when something is wrong with the file, others when the disk fails; then there is no store.
pub fn build(file: &Path, to: &Path, copied: &Copied) -> Result<(Records, RowTotals), store::Error> {
    let rows = open(file).map_err(|error| store::Error::Rows { source: error.into() })?;
    let mut records = Records::default();
    let checked = rows.map(|row| {
        let row = row?;
        match row.space {
            Space::World => records.read(&row.key, &row.value)?,
            Space::Content => Records::check(Space::Content, &row.key, &row.value)?,
        }
        copied.rows.fetch_add(1, Ordering::Relaxed);
        copied.bytes.fetch_add(row.bytes(), Ordering::Relaxed);
        Ok::<_, RowError>(row)
    });
    let totals = Store::build(to, checked)?;
    Ok((records, totals))
}
