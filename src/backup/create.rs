//! Makes a backup: rows from a view of the store, which the world goes on behind, and files as they are found.

use std::path::{Path, PathBuf};

use agentsvc_api::backup::store::BackupMade;
use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::kernel::record::Space;
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::AUDIT_HEAD_KEY;

use super::component::Part;
use super::error::{Error, io};
use super::files::{self, Names, Places};
use super::manifest::{FORMAT, KIND, Manifest, TrailEnd};
use super::name::ENDING;
use super::pack::Packer;
use super::progress::Progress;
use super::restore::files_taint;
use super::rows::{self, Size, Tally};
use super::write::{ArchiveWriter, Kind, remove_leftovers, spool_of};
use crate::agent::files_taint::FilesTaint;
use crate::kernel::home::create_private_dir;
use crate::kernel::store::view::StoreView;
use crate::upload::record::checksum_of;

/// Backups of one second that get names of their own.
const NAMES_MAX: u32 = 1_000;

/// Makes a backup of the world in `view` and of the home's files, as of `now`. The files are packed while agents write
/// them: `newest` is a later view of the same world, which says what the files were at most.
///
/// # Errors
/// [`Error`]; nothing of the backup stays.
pub fn create(
    view: &StoreView,
    places: &Places,
    now: Timestamp,
    progress: &Progress,
    newest: impl FnOnce() -> Result<StoreView, Error>,
) -> Result<BackupMade, Error> {
    let dir = &places.backups;
    create_private_dir(dir).map_err(|error| io("create", dir)(std::io::Error::other(error)))?;
    remove_leftovers(dir).map_err(io("tidy", dir))?;
    let path = free_path(dir, now)?;
    progress.begin("counting", 0);
    let tally = Tally::of(view, progress)?;
    let (mut of_files, mut names) = (0_u64, Names::default());
    files::visit(places, &mut |found| {
        names.add(found);
        of_files = of_files.saturating_add(found.size);
        Ok(None)
    })?;
    let sizes = Part::ALL.map(|part| (part, tally.size(part)));
    let of_rows: u64 = sizes.iter().map(|(_, size)| size.bytes()).sum();
    progress.begin("packing", of_files.saturating_add(of_rows));
    let mut archive = ArchiveWriter::begin(&path)?;
    for (part, size) in sizes.into_iter().filter(|(part, _)| *part != Part::Agents) {
        let rows = rows::of_view(view, part);
        archive
            .entry(part.entry(), size.bytes(), Kind::Rows(size.rows), |out| rows::pack(rows, part, out, progress))?;
    }
    let mut packer = Packer::new(&mut archive, spool_of(&path), names);
    let mut warnings = files::visit(places, &mut |found| {
        progress.add(found.size)?;
        packer.pack(found)
    })?;
    packer.left_out().for_each(|text| warnings.add(text));
    damaged_uploads(&archive, &places.home.uploads_dir()).for_each(|text| warnings.add(text));
    pack_agents(&mut archive, view, &files_taint(places, newest()?), progress)?;
    let counts = tally.counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
    let manifest = Manifest {
        kind: KIND.to_owned(),
        format: FORMAT,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: now.to_string(),
        born: view.born()?,
        step: super::step_of(view)?,
        audit: trail_end(view)?,
        counts,
        data_dir: places.data_dir.clone(),
        covers: places.trees().map(|(tree, _)| tree.to_owned()).collect(),
        warnings: warnings.into_list(),
        ..Manifest::default()
    };
    let (manifest, size_bytes) = archive.finish(manifest)?;
    let filename = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Manifest { created_at, step, components, counts, warnings, .. } = manifest;
    Ok(BackupMade { filename, size_bytes, created_at, step, components, counts, warnings })
}

/// Names the uploads that were packed and are not what came in, by the checksums that packing has made of them.
fn damaged_uploads(archive: &ArchiveWriter, dir: &Path) -> impl Iterator<Item = String> {
    let uploads = archive.entries().iter().filter_map(|entry| Some((entry.name.strip_prefix("uploads/")?, entry)));
    let damaged = uploads.filter(|(name, entry)| checksum_of(dir, name).is_some_and(|sha256| sha256 != entry.sha256));
    damaged.map(|(name, _)| {
        tracing::error!(upload = name, "a damaged upload was packed: it does not match its SHA-256");
        format!("\"uploads/{name}\" is damaged: it does not match its SHA-256; it is packed as it is")
    })
}

/// Packs the rows of agents behind the files: with the taint that the files have by now.
fn pack_agents(
    archive: &mut ArchiveWriter,
    view: &StoreView,
    taint: &FilesTaint,
    progress: &Progress,
) -> Result<(), Error> {
    let part = Part::Agents;
    let rows = || rows::of_view(view, part).map(|row| taint.raise(row?));
    let mut size = Size::default();
    for row in rows() {
        size.add(&row?);
    }
    archive.entry(part.entry(), size.bytes(), Kind::Rows(size.rows), |out| rows::pack(rows(), part, out, progress))
}

/// Where the audit trail of a view ends; `None` when it has none.
pub(super) fn trail_end(view: &StoreView) -> Result<Option<TrailEnd>, Error> {
    let Some(row) = view.get(Space::World, &AUDIT_HEAD_KEY)? else { return Ok(None) };
    let head: AuditHead =
        record::decode(&AUDIT_HEAD_KEY, &row).map_err(|error| Error::Damaged(format!("the audit log: {error}")))?;
    Ok(Some(TrailEnd { last: head.last, hash: record::hex(&head.hash) }))
}

/// A path that no backup has yet.
fn free_path(dir: &Path, now: Timestamp) -> Result<PathBuf, Error> {
    let moment: String = now.to_string().chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let moment = moment.split('.').next().unwrap_or_default();
    for n in 1..NAMES_MAX {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let path = dir.join(format!("agentsvc-{moment}Z{suffix}{ENDING}"));
        if !path.try_exists().map_err(io("look at", &path))? {
            return Ok(path);
        }
    }
    Err(Error::Unfit("too many backups were created in this second; try again".to_owned()))
}
