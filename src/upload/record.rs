//! What is known of an upload, and whether its content is still what came in.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use agentsvc_api::http::files::FilesError;
use agentsvc_api::upload::files::Upload;
use agentsvc_components::{AgentId, FileId, Timestamp};
use agentsvc_systems::kernel::record::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::part::failed;
use super::share::UploadShare;
use crate::kernel::disk;

/// Bytes of a record; more is no record of ours.
const RECORD_BYTES_MAX: u64 = 64 << 10;
/// Bytes of content that are hashed at once.
const PIECE_BYTES: usize = 64 << 10;

/// The record of an upload as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) agent: AgentId,
    /// Whose share it takes; of earlier releases, that of its agent.
    #[serde(default)]
    pub(super) holder: Option<UploadShare>,
    pub(super) filename: String,
    pub(super) content_type: String,
    pub(super) size: u64,
    pub(super) sha256: String,
    pub(super) created_at: Timestamp,
}

impl Record {
    pub(super) fn of(self, id: FileId) -> Upload {
        let Self { agent, filename, content_type, size, sha256, created_at, .. } = self;
        Upload { id, agent, filename, content_type, size, sha256, created_at }
    }

    /// Whose share it takes.
    pub(super) fn holder(&self) -> UploadShare {
        self.holder.unwrap_or(UploadShare::alone(self.agent))
    }
}

/// Reads what is known of the upload `id`, of which the record is at `path`.
pub(super) fn read(path: &Path, id: FileId) -> Result<Upload, FilesError> {
    read_record(path, id).map(|record| record.of(id))
}

/// Reads the record at `path`, which is that of the upload `id`.
pub(super) fn read_record(path: &Path, id: FileId) -> Result<Record, FilesError> {
    let found = disk::there(disk::open(path)).map_err(failed("open the record of an upload"))?;
    let file = found.ok_or_else(|| FilesError::NotFound(format!("upload not found: {id}")))?;
    let mut text = String::new();
    file.take(RECORD_BYTES_MAX).read_to_string(&mut text).map_err(failed("read the record of an upload"))?;
    parse(&text, id)
}

/// The record of the upload `id` in a text.
pub(super) fn parse(text: &str, id: FileId) -> Result<Record, FilesError> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, upload = %id, "the record of an upload is damaged");
        FilesError::Failed
    })
}

/// Is the content what came in? If so, the file is at its beginning afterwards.
pub(super) fn is_whole(file: &mut File, upload: &Upload) -> io::Result<bool> {
    let (mut hash, mut left, mut piece) = (Sha256::new(), upload.size, vec![0; PIECE_BYTES]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        let Some(rest) = left.checked_sub(read as u64) else { return Ok(false) };
        hash.update(&piece[..read]);
        left = rest;
    }
    file.rewind()?;
    Ok(left == 0 && hex(&hash.finalize()) == upload.sha256)
}

/// Reads content and compares it with its checksum on the way: the last bytes are only given when all of them are what
/// came in.
pub(super) struct CheckedReader<D> {
    file: File,
    left: u64,
    hash: Sha256,
    sha256: String,
    damaged: D,
}

impl<D: Fn() -> FilesError> CheckedReader<D> {
    /// Reads the content of `upload` in `file`; one of another size is `damaged` at once.
    pub(super) fn new(file: File, upload: &Upload, damaged: D) -> Result<Self, FilesError> {
        if file.metadata().map_err(failed("read an upload"))?.len() != upload.size {
            return Err(damaged());
        }
        Ok(Self { file, left: upload.size, hash: Sha256::new(), sha256: upload.sha256.clone(), damaged })
    }
}

impl<D: Fn() -> FilesError> Read for CheckedReader<D> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(to.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.file.read(&mut to[..most])?;
        self.hash.update(&to[..read]);
        self.left -= read as u64;
        let is_damaged = read == 0 || self.left == 0 && hex(&self.hash.finalize_reset()) != self.sha256;
        if is_damaged { Err(io::Error::other((self.damaged)())) } else { Ok(read) }
    }
}

/// The content, if it is what came in; read once.
pub(super) fn read_whole(file: File, upload: &Upload) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(usize::try_from(upload.size).unwrap_or_default());
    // One byte more shows that there is more.
    file.take(upload.size.saturating_add(1)).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() as u64 == upload.size && hex(&Sha256::digest(&bytes)) == upload.sha256;
    Ok(is_whole.then_some(bytes))
}

/// The checksum that the upload with the content `name` must have, in hex; `None` when `name` is no upload in `dir`.
pub(crate) fn checksum_of(dir: &Path, name: &str) -> Option<String> {
    let id: FileId = name.parse().ok()?;
    read(&dir.join(format!("{id}.json")), id).ok().map(|upload| upload.sha256)
}

/// What a look at all uploads found.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// How many there are.
    pub(crate) count: usize,
    /// The names of those whose content or record is damaged or gone.
    pub(crate) damaged: Vec<String>,
}

/// Reads every upload in `dir` and compares it with its checksum.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn check_all(dir: &Path) -> io::Result<Checked> {
    let mut checked = Checked::default();
    for path in disk::entries(dir)? {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
        let Some(id) = name.and_then(|name| name.parse::<FileId>().ok()) else { continue };
        checked.count += 1;
        let is_fine = read(&path, id).is_ok_and(|upload| {
            disk::open(&dir.join(id.to_string())).and_then(|mut it| is_whole(&mut it, &upload)).unwrap_or(false)
        });
        // One that was removed meanwhile is none any more.
        if !is_fine && path.exists() {
            checked.damaged.push(id.to_string());
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_compared_while_it_is_read_and_its_end_is_kept_back_when_it_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        let record = Record {
            agent: AgentId(uuid::Uuid::nil()),
            holder: None,
            filename: "a".to_owned(),
            content_type: "text/plain".to_owned(),
            size: content.len() as u64,
            sha256: hex(&Sha256::digest(&content)),
            created_at: Timestamp(0),
        };
        let upload = record.of("00000000-0000-0000-0000-000000000000".parse().unwrap());
        let opened = |content: &[u8]| {
            let path = dir.path().join("a");
            std::fs::write(&path, content).unwrap();
            CheckedReader::new(File::open(path).unwrap(), &upload, || FilesError::Damaged("d".to_owned()))
        };
        let mut read = Vec::new();
        opened(&content).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, content);
        assert!(matches!(opened(&content[1..]), Err(FilesError::Damaged(_))));
        assert!(matches!(opened(&[&content[..], b"x"].concat()), Err(FilesError::Damaged(_))));
        for at in [0, content.len() - 1] {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            let (mut reader, mut read) = (opened(&damaged).unwrap(), Vec::new());
            let error = reader.read_to_end(&mut read).unwrap_err();
            let of = error.get_ref().and_then(|error| error.downcast_ref::<FilesError>());
            assert!(matches!(of, Some(FilesError::Damaged(_))), "{error:?}");
            assert!(read.len() < content.len(), "the end is kept back");
        }
        // Somebody cuts it meanwhile.
        let mut reader = opened(&content).unwrap();
        reader.read_exact(&mut [0; 10]).unwrap();
        File::options().write(true).open(dir.path().join("a")).unwrap().set_len(1_000).unwrap();
        assert!(reader.read_to_end(&mut Vec::new()).is_err());
    }

    #[test]
    fn content_that_is_longer_or_shorter_than_what_came_in_is_not_whole() {
        for size in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1] {
            let content = vec![b'a'; size];
            let record = Record {
                agent: AgentId(uuid::Uuid::nil()),
                holder: None,
                filename: "a".to_owned(),
                content_type: "text/plain".to_owned(),
                size: size as u64,
                sha256: hex(&Sha256::digest(&content)),
                created_at: Timestamp(0),
            };
            let upload = record.of("00000000-0000-0000-0000-000000000000".parse().unwrap());
            let is_whole = |content: &[u8]| {
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join("a");
                std::fs::write(&path, content).unwrap();
                let mut file = File::open(path).unwrap();
                let is_whole = is_whole(&mut file, &upload).unwrap();
                assert!(!is_whole || file.stream_position().unwrap() == 0);
                is_whole
            };
            assert!(is_whole(&content), "{size}");
            assert!(!is_whole(&[&content[..], b"b"].concat()), "{size} and one more");
            assert!(size == 0 || !is_whole(&content[1..]), "{size} less one");
        }
    }
}
