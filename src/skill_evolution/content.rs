//! The files of a skill as one value: read, hashed, scanned, kept and written whole.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agentsvc_api::skill_source::sources::SourceError;
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::skill_evolution::limits::{SKILL_CHANGED_BYTES_MAX, SKILL_CHANGED_FILES_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::kernel::disk;
use crate::skill::is_left_out;
use crate::skill_scan::Scan;
use crate::skill_source::folders::FolderError;
use crate::skill_source::staging::{self, Staging};

/// Bytes of a kept version: those of its files, some of them in base64, and their names.
const KEPT_BYTES_MAX: u64 = 2 * SKILL_CHANGED_BYTES_MAX as u64;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    /// Its owner may run it.
    pub(super) runs: bool,
}

impl File {
    fn read(path: &Path) -> io::Result<Self> {
        let runs = path.symlink_metadata()?.permissions().mode() & 0o100 != 0;
        Ok(Self { bytes: disk::read(path)?, runs })
    }
}

/// The files of a skill by path, without those of version control and of its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content(BTreeMap<String, File>);

/// A file of a kept version.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    runs: bool,
}

impl Content {
    /// The files in a folder.
    ///
    /// # Errors
    /// [`SourceError::TooLarge`] with more files or bytes than can be changed, or the disk's.
    pub(super) fn read(folder: &Path) -> Result<Self, SourceError> {
        let mut content = Self::default();
        let mut bytes = 0_u64;
        for file in staging::files(folder)?.into_iter().filter(|file| !is_left_out(&file.path)) {
            bytes += file.bytes;
            if bytes > SKILL_CHANGED_BYTES_MAX as u64 || content.0.len() >= SKILL_CHANGED_FILES_MAX {
                return Err(too_large());
            }
            let path = folder.join(&file.path);
            content.0.insert(file.path, File::read(&path).map_err(FolderError::from)?);
        }
        Ok(content)
    }

    /// Is it small enough to be written?
    ///
    /// # Errors
    /// [`SourceError::TooLarge`].
    pub(super) fn check_size(&self) -> Result<(), SourceError> {
        let bytes: usize = self.0.values().map(|file| file.bytes.len()).sum();
        if bytes > SKILL_CHANGED_BYTES_MAX || self.0.len() > SKILL_CHANGED_FILES_MAX {
            Err(too_large())
        } else {
            Ok(())
        }
    }

    /// A file as text; `None` when there is none, or when it is no text.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.0.get(path)?.bytes).ok()
    }

    /// Is there such a file?
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Puts a text in the place of a file, or adds it; one that was there stays executable if it was.
    pub(super) fn put(&mut self, path: &str, text: &str) {
        let runs = self.0.get(path).is_some_and(|file| file.runs);
        self.0.insert(path.to_owned(), File { bytes: text.as_bytes().to_vec(), runs });
    }

    /// Removes a file; false when there is none.
    pub(super) fn remove(&mut self, path: &str) -> bool {
        self.0.remove(path).is_some()
    }

    /// SHA-256 of the lines `<path>:<SHA-256 of the file>` by path: the content hash of the skill.
    pub(super) fn hash(&self) -> String {
        let mut lines = Sha256::new();
        for (path, file) in &self.0 {
            lines.update(format!("{path}:{}\n", hex(&Sha256::digest(&file.bytes))));
        }
        hex(&lines.finalize())
    }

    /// Scans every file.
    pub(super) fn scan(&self) -> Scan {
        let mut scan = Scan::default();
        self.0.iter().for_each(|(path, file)| scan.add_file(path, &file.bytes));
        scan
    }

    /// Writes every file.
    ///
    /// # Errors
    /// Those of the staging: a path breaks a rule, or the disk's.
    pub(super) fn write(&self, staging: &mut Staging) -> Result<(), SourceError> {
        for (path, file) in &self.0 {
            staging.write(path, &mut &file.bytes[..], file.runs)?;
        }
        Ok(())
    }

    /// As it is kept for a rollback.
    pub(super) fn to_kept(&self) -> Vec<u8> {
        let kept = |file: &File| match std::str::from_utf8(&file.bytes) {
            Ok(text) => Kept { text: Some(text.to_owned()), base64: None, runs: file.runs },
            Err(_) => Kept { text: None, base64: Some(STANDARD.encode(&file.bytes)), runs: file.runs },
        };
        let files: BTreeMap<&str, Kept> = self.0.iter().map(|(path, file)| (path.as_str(), kept(file))).collect();
        serde_json::to_vec(&files).unwrap_or_default()
    }

    /// What was kept; `None` when it is damaged, or not the content of this hash.
    pub(super) fn from_kept(bytes: &[u8], hash: &str) -> Option<Self> {
        let files: BTreeMap<String, Kept> = serde_json::from_slice(bytes).ok()?;
        let file = |(path, kept): (String, Kept)| {
            let bytes = match (kept.text, kept.base64) {
                (Some(text), _) => text.into_bytes(),
                (None, Some(base64)) => STANDARD.decode(base64).ok()?,
                (None, None) => return None,
            };
            Some((path, File { bytes, runs: kept.runs }))
        };
        let content = Self(files.into_iter().map(file).collect::<Option<_>>()?);
        (content.hash() == hash).then_some(content)
    }
}

/// The bytes of a small file that may be missing, or too large to be ours.
pub(super) fn small(path: &Path) -> Option<Vec<u8>> {
    let length = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    if length > KEPT_BYTES_MAX { None } else { disk::read(path).ok() }
}

fn too_large() -> SourceError {
    SourceError::TooLarge(format!(
        "the skill has more than {SKILL_CHANGED_FILES_MAX} files or {SKILL_CHANGED_BYTES_MAX} bytes, so it cannot be changed \
         here; install a new version instead"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_whole() {
        let mut content = Content::default();
        content.put("SKILL.md", "text ä");
        content.0.insert("assets/a.bin".to_owned(), File { bytes: vec![0, 255, 7], runs: true });
        let (kept, hash) = (content.to_kept(), content.hash());
        assert_eq!(Content::from_kept(&kept, &hash), Some(content.clone()));
        content.put("SKILL.md", "other");
        assert_ne!(content.hash(), hash);
        // Neither another content nor a damaged one is restored.
        assert_eq!(Content::from_kept(&content.to_kept(), &hash), None);
        assert_eq!(Content::from_kept(&kept[..kept.len() - 1], &hash), None);
    }

    #[test]
    fn only_version_control_and_the_history_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".lib")).unwrap();
        std::fs::create_dir_all(dir.path().join("sub/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join(".evolution")).unwrap();
        let paths =
            ["SKILL.md", ".env.example", ".lib/x.py", ".evolution.json", ".evolution/a.json", "sub/.git/config"];
        paths.iter().for_each(|path| std::fs::write(dir.path().join(path), "x").unwrap());
        let content = Content::read(dir.path()).unwrap();
        assert_eq!(content.0.keys().collect::<Vec<_>>(), [".env.example", ".lib/x.py", "SKILL.md"]);
        // The hash is that of the library.
        std::fs::write(dir.path().join("SKILL.md"), "---\nname: a\ndescription: b\n---\n").unwrap();
        let content = Content::read(dir.path()).unwrap();
        assert_eq!(content.hash(), *crate::skill::read(dir.path()).unwrap().content_hash);
        assert_eq!(Content::from_kept(&content.to_kept(), &content.hash()), Some(content));
    }
}
