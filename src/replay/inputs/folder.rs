//! One directory per epoch: `{inputs}/<begin in ms>-<step before>/` with `epoch`, `base.rows.zst` and its segments.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agentsvc_components::kernel::record::Space;
use agentsvc_systems::replay::{Epoch, Rows};

use super::Error;
use crate::kernel::disk;
use crate::kernel::store::rows::{RowError, RowReader, RowWriter};
use crate::kernel::store::view::StoreView;

/// How the world began.
const EPOCH: &str = "epoch";
/// Its rows then. Written in the background: an epoch without it cannot be replayed.
const BASE: &str = "base.rows.zst";
/// The same while it is written.
const BASE_BEING_WRITTEN: &str = "base.rows.zst.part";
/// The compression of the base: quick, for it is written while the world runs.
const LEVEL: i32 = 1;

/// One epoch on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochFolder {
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// The newest step before it.
    pub after: u64,
    /// Its directory.
    pub path: PathBuf,
}

impl EpochFolder {
    /// Makes the directory of an epoch that begins at `now_ms`.
    pub fn create(inputs: &Path, now_ms: u64, epoch: &Epoch, release: &str) -> Result<Self, Error> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder.recursive(true).create(inputs).map_err(Error::io(inputs))?;
        builder.recursive(false);
        let after = epoch.after.number;
        for began_ms in now_ms.. {
            let path = inputs.join(format!("{began_ms:015}-{after:020}"));
            match builder.create(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Io { path, source }),
                Ok(()) => {
                    let folder = Self { began_ms, after, path };
                    folder.write_epoch(epoch, release)?;
                    return Ok(folder);
                }
            }
        }
        Err(Error::NotKept("no name is left for an epoch".to_owned()))
    }

    /// Writes how its world began, where nothing says it yet.
    pub(crate) fn write_epoch(&self, epoch: &Epoch, release: &str) -> Result<(), Error> {
        let path = self.path.join(EPOCH);
        let mut text = format!("agentsvc epoch 1 {release}\n").into_bytes();
        text.extend(epoch.to_bytes());
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(&text)).map_err(Error::io(&path))
    }

    /// How its world began, and the release that ran it.
    pub fn epoch(&self) -> Result<(Epoch, String), Error> {
        let path = self.path.join(EPOCH);
        let bytes = disk::read(&path).map_err(Error::io(&path))?;
        let damaged = |reason: String| Error::Damaged { path: path.clone(), reason };
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("it is empty".to_owned()))?;
        let line = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let Some(release) = line.strip_prefix("agentsvc epoch 1 ") else {
            return Err(damaged("written by another release".to_owned()));
        };
        let epoch = Epoch::from_bytes(&bytes[end + 1..]).map_err(|error| damaged(error.to_string()))?;
        Ok((epoch, release.to_owned()))
    }

    /// Writes the rows of the world as of `view`.
    pub fn write_base(&self, view: &StoreView) -> Result<(), Error> {
        let (part, path) = (self.path.join(BASE_BEING_WRITTEN), self.path.join(BASE));
        let failed = |source| Error::Io { path: part.clone(), source };
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
        let encoder = zstd::Encoder::new(file.map_err(failed)?, LEVEL).map_err(failed)?;
        let mut writer = RowWriter::new(encoder).map_err(failed)?;
        for row in view.rows(Space::World) {
            let (key, value) = row?;
            writer.push(Space::World, &key, &value).map_err(failed)?;
        }
        let (encoder, _) = writer.finish().map_err(failed)?;
        encoder.finish().map_err(failed)?;
        fs::rename(&part, &path).map_err(Error::io(&path))
    }

    /// Is the base there? Without it the epoch cannot be replayed.
    pub fn has_base(&self) -> bool {
        self.path.join(BASE).is_file()
    }

    /// The rows its world began with.
    pub fn base(&self) -> Result<Rows, Error> {
        let path = self.path.join(BASE);
        let file = disk::open(&path).map_err(Error::io(&path))?;
        let decoder = zstd::Decoder::new(file).map_err(Error::io(&path))?;
        let failed = |source: RowError| Error::Rows { path: path.clone(), source };
        let rows = RowReader::new(decoder).map_err(failed)?;
        rows.map(|row| row.map(|row| (row.key, row.value)).map_err(failed)).collect()
    }

    /// Its segments in order: the first step number in each name, and the file.
    pub fn segments(&self) -> Result<Vec<(u64, PathBuf)>, Error> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(Error::io(&self.path))? {
            let path = entry.map_err(Error::io(&self.path))?.path();
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            if let (Some(number), Some("log")) = (number, path.extension().and_then(|extension| extension.to_str())) {
                found.push((number, path));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Where the segment whose first entry is of step `number` is written.
    pub fn segment(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:020}.log"))
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        let Ok(entries) = fs::read_dir(&self.path) else { return 0 };
        entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|file| file.len()).sum()
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// All epochs of an inputs directory, the oldest first. None when it is not there.
pub fn epochs(inputs: &Path) -> Result<Vec<EpochFolder>, Error> {
    let mut found = Vec::new();
    for path in disk::entries(inputs).map_err(Error::io(inputs))? {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
        if let Some((began, after)) = name
            && let (Ok(began_ms), Ok(after)) = (began.parse(), after.parse())
        {
            found.push(EpochFolder { began_ms, after, path });
        }
    }
    found.sort_unstable();
    Ok(found)
}
