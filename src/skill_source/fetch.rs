//! Brings what a source has into a staging folder, and compares its checksums.

use std::fs::{self, File};
use std::io::{self, Seek as _};
use std::path::Path;
use std::sync::Arc;

use agentsvc_api::skill_source::sources::{SkillWarning, SourceError};
use agentsvc_systems::kernel::record::hex;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::archive::{self, LeftOut};
use super::convert::Origin;
use super::folders::{FolderError, Folders};
use super::select::{is_skill, select};
use super::staging::{FileSum, Staging};
use super::sums;
use super::tree::Tree;
use super::wire::{Whose, Wire, blocking};
use crate::kernel::disk;
use crate::kernel::home::private_file;

/// Names that a warning lists.
const LISTED_MAX: usize = 5;

/// A skill that was fetched and is not yet looked into.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Its files.
    pub(super) staging: Staging,
    /// Where it came from.
    pub(super) origin: Origin,
    /// Checksums were there, and all matched.
    pub(super) verified: bool,
    /// What was noticed on the way.
    pub(super) warnings: Vec<SkillWarning>,
}

impl Fetched {
    pub(super) fn new(staging: Staging, origin: Origin) -> Self {
        Self { staging, origin, verified: false, warnings: Vec::new() }
    }

    /// Notes something that a person should know.
    pub(super) fn warn(&mut self, message: impl Into<String>) {
        self.warnings.push(warning(message));
    }

    /// Compares the files with `SHA256SUMS` in the folder, if it has one.
    ///
    /// # Errors
    /// [`SourceError::Checksum`].
    pub(super) fn verify_folder(&mut self) -> Result<(), SourceError> {
        let text = sums::read(&self.staging.path().join(sums::SUMS_FILE)).map_err(unread_sums)?;
        let Some(text) = text else { return Ok(()) };
        let wrong = |message: String| SourceError::Checksum { message, of_hub: false };
        let expected = sums::parse(&text).map_err(wrong)?;
        let unlisted = sums::compare(&self.staging.files()?, &expected).map_err(wrong)?;
        self.verified = unlisted.is_empty();
        if !unlisted.is_empty() {
            let (names, count) = (unlisted[..unlisted.len().min(LISTED_MAX)].join(", "), unlisted.len());
            self.warn(format!("{count} files are not listed in {}: {names}", sums::SUMS_FILE));
        }
        Ok(())
    }
}

pub(super) fn warning(message: impl Into<String>) -> SkillWarning {
    SkillWarning { severity: "warning".to_owned(), message: message.into() }
}

/// A folder or an archive of this machine. Blocks on the disk.
///
/// # Errors
/// [`SourceError`].
pub(super) fn of_path(folders: &Folders, path: &Path, verify: bool) -> Result<Fetched, SourceError> {
    let found = disk::there(fs::metadata(path)).map_err(|error| unreachable_path(&error))?;
    let Some(found) = found else {
        return Err(SourceError::NotFound(format!("source: there is no {}", path.display())));
    };
    let fallback = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let origin = Origin { kind: "local", fallback, ..Origin::default() };
    let mut staging = folders.stage()?;
    if found.is_dir() {
        let tree = Tree::open(path).map_err(|error| match error {
            FolderError::Disk(error) => unreachable_path(&error),
            error => error.into(),
        })?;
        let names = tree.names()?;
        let manifests = folders.manifests();
        if !is_skill(&names.iter().map(String::as_str).collect::<Vec<_>>(), manifests) {
            let text = format!("source: the folder has no {}", manifests.join(" or "));
            return Err(SourceError::Manifest(text));
        }
        staging.copy_tree(&tree)?;
    } else {
        let mut file = disk::open(path).map_err(|error| unreachable_path(&error))?;
        let expected = match verify {
            true => sums::read(&path.with_added_extension("sha256")).map_err(unread_sums)?,
            false => None,
        };
        let verified = compare_archive(&mut file, expected.as_deref())?;
        unpack_into(file, &mut staging, None)?;
        let mut fetched = Fetched { verified, ..Fetched::new(staging, origin) };
        if verify && !verified {
            fetched.verify_folder()?;
        }
        return Ok(fetched);
    }
    let mut fetched = Fetched::new(staging, origin);
    if verify {
        fetched.verify_folder()?;
    }
    Ok(fetched)
}

fn unreachable_path(error: &io::Error) -> SourceError {
    SourceError::Wrong { field: "source", message: format!("the path cannot be read: {error}") }
}

/// Why a file of checksums could not be read.
fn unread_sums(error: io::Error) -> SourceError {
    match error.kind() {
        io::ErrorKind::InvalidData => SourceError::Checksum { message: error.to_string(), of_hub: false },
        _ => FolderError::from(error).into(),
    }
}

/// An archive of the web.
pub(super) struct Remote<'a> {
    /// Where it is.
    pub(super) url: &'a str,
    /// Whose URL that is.
    pub(super) whose: Whose,
    /// The skill in it.
    pub(super) inner: Option<String>,
    /// Compare with `<url>.sha256`, if that is there.
    pub(super) sum_beside: bool,
    /// Compare with `SHA256SUMS` in the folder, if that is there.
    pub(super) sums_within: bool,
}

/// Downloads and unpacks an archive, and finds the skill in it.
///
/// # Errors
/// [`SourceError`].
pub(super) async fn of_archive(
    wire: &Wire,
    folders: Folders,
    remote: Remote<'_>,
    mut origin: Origin,
) -> Result<Fetched, SourceError> {
    let (staging, file) = staged(&folders).await?;
    let expected = match remote.sum_beside {
        true => {
            let place = beside(remote.url);
            let found = wire.may_be_missing(&place, remote.whose, sums::SUMS_BYTES_MAX).await?;
            found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
        false => None,
    };
    let mut file = wire.archive(remote.url, remote.whose, file).await?.body;
    let Remote { inner, sum_beside, sums_within, .. } = remote;
    blocking(move || {
        let verified = compare_archive(&mut file, expected.as_deref())?;
        let mut staging = staging;
        let folder = unpack_into(file, &mut staging, inner.as_deref())?;
        if let Some(name) = folder.rsplit('/').next().filter(|name| !name.is_empty() && folder.contains('/')) {
            name.clone_into(&mut origin.fallback);
        }
        let mut fetched = Fetched { verified, ..Fetched::new(staging, origin) };
        if sums_within && !verified {
            fetched.verify_folder()?;
        }
        if sum_beside && !fetched.verified && fetched.warnings.is_empty() {
            fetched.warn("the source publishes no checksum");
        }
        Ok(fetched)
    })
    .await
}

/// `<url>.sha256`: the path with an ending more.
fn beside(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut parsed) => {
            parsed.set_path(&format!("{}.sha256", parsed.path()));
            parsed.into()
        }
        Err(_) => format!("{url}.sha256"),
    }
}

/// A folder for a skill that comes in, and a file beside it for what is downloaded.
///
/// # Errors
/// The disk's.
pub(super) async fn staged(folders: &Folders) -> Result<(Staging, File), SourceError> {
    let folders = folders.clone();
    blocking(move || {
        let staging = folders.stage()?;
        let file = private_file().read(true).write(true).create_new(true).open(staging.beside("archive"));
        Ok((staging, file.map_err(FolderError::from)?))
    })
    .await
}

/// Unpacks an archive into the staging folder and makes the folder of the skill its content. Gives its path in the archive.
///
/// # Errors
/// [`SourceError`].
pub(super) fn unpack_into(mut file: File, staging: &mut Staging, inner: Option<&str>) -> Result<String, SourceError> {
    let format = archive::format_of(&mut file).map_err(FolderError::from)?;
    let format = format.ok_or_else(|| SourceError::Unreadable("not a zip or tar.gz archive".to_owned()))?;
    let left_out: Vec<LeftOut> = archive::unpack(file, format, staging)?;
    select(staging, &left_out, inner)
}

/// Compares an archive with a sum; false without one.
fn compare_archive(file: &mut File, expected: Option<&str>) -> Result<bool, SourceError> {
    let Some(expected) = expected else { return Ok(false) };
    let wrong = |message: String| SourceError::Checksum { message, of_hub: false };
    let expected = sums::first(expected)
        .ok_or_else(|| wrong("the file of the checksum does not begin with a SHA-256 in hex".to_owned()))?;
    let mut digest = Sha256::new();
    file.rewind().map_err(FolderError::from)?;
    io::copy(file, &mut super::staging::HashInto(&mut digest)).map_err(FolderError::from)?;
    let found = hex(&digest.finalize());
    if found != expected {
        return Err(wrong(format!("the archive has the SHA-256 {found}; expected {expected}")));
    }
    Ok(true)
}

/// Files of a site, one by one.
///
/// # Errors
/// The disk's.
pub(super) async fn write(staging: Staging, path: String, bytes: Arc<[u8]>) -> Result<Staging, SourceError> {
    blocking(move || {
        let mut staging = staging;
        staging.write(&path, &mut &*bytes, false)?;
        Ok(staging)
    })
    .await
}

/// The files of a folder without that which says where they came from.
pub(super) fn without(files: Vec<FileSum>, name: &str) -> Vec<FileSum> {
    files.into_iter().filter(|file| file.path != name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_beside_the_path() {
        assert_eq!(beside("https://x.example/a.zip?v=1#b"), "https://x.example/a.zip.sha256?v=1#b");
    }

    #[test]
    fn folders_are_compared_with_their_sums() {
        let dir = tempfile::tempdir().unwrap();
        let (folders, source) = (Folders::new(dir.path().join("skills")), dir.path().join("demo"));
        let fetch = |verify| of_path(&folders, &source, verify);
        assert!(matches!(fetch(true).unwrap_err(), SourceError::NotFound(_)));
        fs::create_dir(&source).unwrap();
        assert!(matches!(fetch(true).unwrap_err(), SourceError::Manifest(_)));
        fs::write(source.join("SKILL.md"), "text").unwrap();
        let found = fetch(true).unwrap();
        assert!(!found.verified && found.warnings.is_empty() && found.origin.fallback == "demo");
        let sum = hex(&Sha256::digest(b"text"));
        fs::write(source.join("SHA256SUMS"), format!("{sum}  SKILL.md\n")).unwrap();
        assert!(fetch(true).unwrap().verified);
        fs::write(source.join("more.md"), "x").unwrap();
        let found = fetch(true).unwrap();
        assert!(!found.verified && found.warnings[0].message.contains("more.md"));
        fs::write(source.join("SKILL.md"), "other").unwrap();
        assert!(matches!(fetch(true).unwrap_err(), SourceError::Checksum { of_hub: false, .. }));
        assert!(!fetch(false).unwrap().verified);
        fs::write(source.join("SHA256SUMS"), vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(matches!(fetch(true).unwrap_err(), SourceError::Checksum { of_hub: false, .. }));
    }
}
