//! Copies of the whole world in the object store of the servers. A node whose store the journal does not go on from any more is
//! built anew of the newest one. Only those count that a node has made, as their seals show.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::step::StepMark;
use async_nats::jetstream::object_store::{Config, GetErrorKind, ObjectInfo, ObjectMetadata, ObjectStore};
use async_nats::jetstream::stream::StorageType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::wire::Wire;
use crate::cluster::seals::Seals;
use crate::kernel::home::private_file;
use crate::kernel::store::Error;
use crate::kernel::store::journal::Origin;
use crate::kernel::store::journal::entry::Position;

/// Bytes read at once.
const PIECE_BYTES: usize = 128 << 10;
/// Bytes of what is kept for all nodes beside copies.
const SHARED_BYTES_MAX: u64 = 64 << 10;

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Journal(format!("the object store of the cluster cannot be used: {error}"))
}

impl Wire {
    /// The object store of the copies. Made where there is none.
    pub(super) async fn bucket(&self) -> Result<ObjectStore, Error> {
        let bucket = format!("{}-copies", self.cluster);
        if let Ok(there) = self.context.get_object_store(&bucket).await {
            return Ok(there);
        }
        let config = Config {
            bucket,
            description: Some("copies of the world of an agentsvc cluster".to_owned()),
            storage: StorageType::File,
            num_replicas: self.copies,
            ..Config::default()
        };
        self.context.create_object_store(config).await.map_err(|error| failed(&error))
    }

    /// Stores the rows file at `path` as the copy that `origin` names.
    ///
    /// # Errors
    /// The disk or the servers failed; then there is no copy.
    pub(crate) async fn put_copy(&self, path: &Path, origin: &Origin) -> Result<(), Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(io)?;
        let content = Content::of(&mut file).map_err(io)?;
        file.rewind().map_err(io)?;
        let (position, step) = (origin.position.to_bytes(), origin.step.to_bytes());
        let mut metadata = std::collections::HashMap::from([
            ("position".to_owned(), STANDARD.encode(position)),
            ("step".to_owned(), STANDARD.encode(step)),
            ("sha256".to_owned(), STANDARD.encode(content.digest)),
            ("bytes".to_owned(), content.bytes.to_string()),
            ("seal".to_owned(), STANDARD.encode(self.seals.of_copy(&about(origin, &content)))),
        ]);
        metadata.extend(origin.born.map(|born| ("born".to_owned(), born.0.to_string())));
        let meta = ObjectMetadata { name: origin.snapshot.clone(), metadata, ..ObjectMetadata::default() };
        let put = self.bucket().await?.put(meta, &mut Blocking(file)).await;
        put.map(drop).map_err(|error| failed(&error))
    }

    /// Of what the copies are that nodes have made and that are there, the one with the newest entry last.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn copies(&self) -> Result<Vec<Origin>, Error> {
        let bucket = self.bucket().await?;
        let mut list = bucket.list().await.map_err(|error| failed(&error))?;
        let mut found = Vec::new();
        while let Some(info) = list.next().await {
            let info = info.map_err(|error| failed(&error))?;
            found.extend(read(&info, &self.seals).map(|(origin, _)| origin));
        }
        found.sort_by_key(|origin| origin.position.index);
        Ok(found)
    }

    /// Writes the rows of the copy `name` into a new file at `path`, and says of what it is.
    ///
    /// # Errors
    /// There is none, or the disk or the servers failed; then there may be a part of the file.
    pub(crate) async fn get_copy(&self, name: &str, path: &Path) -> Result<Origin, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut object = self.bucket().await?.get(name).await.map_err(|error| failed(&error))?;
        let read = read(object.info(), &self.seals);
        let (origin, content) = read.ok_or_else(|| failed(&format!("no node has made the copy {name}")))?;
        let mut file = private_file().write(true).create_new(true).open(path).map_err(io)?;
        let (mut piece, mut bytes, mut digest) = (vec![0; PIECE_BYTES], 0, Sha256::new());
        while bytes <= content.bytes {
            match object.read(&mut piece).await.map_err(|error| failed(&error))? {
                0 => break,
                count => {
                    file.write_all(&piece[..count]).map_err(io)?;
                    digest.update(&piece[..count]);
                    bytes += count as u64;
                }
            }
        }
        if (Content { bytes, digest: digest.finalize().into() }) != content {
            return Err(failed(&format!("the copy {name} is not what a node has stored")));
        }
        file.sync_all().map_err(io)?;
        Ok(origin)
    }

    /// What is kept for all nodes under `name`; `None` when nothing is.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn shared(&self, name: &str) -> Result<Option<String>, Error> {
        let mut object = match self.bucket().await?.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let mut text = String::new();
        let mut some = (&mut object).take(SHARED_BYTES_MAX + 1);
        let bytes = some.read_to_string(&mut text).await.map_err(|error| failed(&error))?;
        if bytes as u64 > SHARED_BYTES_MAX {
            return Err(failed(&format!("{name} is larger than what nodes store there")));
        }
        Ok(Some(text))
    }

    /// Keeps `text` for all nodes under `name`.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn share(&self, name: &str, text: &str) -> Result<(), Error> {
        let put = self.bucket().await?.put(name, &mut text.as_bytes()).await;
        put.map(drop).map_err(|error| failed(&error))
    }

    /// Removes the copy `name`.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn drop_copy(&self, name: &str) -> Result<(), Error> {
        self.bucket().await?.delete(name).await.map_err(|error| failed(&error))
    }

    /// Lets go of the entries before `number`.
    pub(crate) async fn trim(&self, number: u64) -> Result<(), Error> {
        let purged = self.stream.purge().sequence(number).await;
        purged.map(drop).map_err(|error| Error::Journal(format!("it cannot be trimmed: {error}")))
    }
}

/// The rows of a copy.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    bytes: u64,
    /// SHA-256 of them.
    digest: [u8; 32],
}

impl Content {
    fn of(rows: &mut impl Read) -> std::io::Result<Self> {
        let (mut piece, mut bytes, mut digest) = (vec![0; PIECE_BYTES], 0, Sha256::new());
        loop {
            match rows.read(&mut piece)? {
                0 => return Ok(Self { bytes, digest: digest.finalize().into() }),
                count => {
                    digest.update(&piece[..count]);
                    bytes += count as u64;
                }
            }
        }
    }
}

/// What the seal of a copy is for.
fn about(origin: &Origin, content: &Content) -> Vec<u8> {
    let born = origin.born.map_or(Vec::new(), |born| born.0.to_be_bytes().to_vec());
    let (position, step) = (origin.position.to_bytes(), origin.step.to_bytes());
    let parts = [origin.snapshot.as_bytes(), &position, &step, &born, &content.bytes.to_be_bytes(), &content.digest];
    // Each with its length, so that no two copies say the same.
    parts.iter().flat_map(|part| [&(part.len() as u64).to_be_bytes()[..], part].concat()).collect()
}

/// Of what a copy is; `None` when no node has made it.
fn read(info: &ObjectInfo, seals: &Seals) -> Option<(Origin, Content)> {
    let bytes = |key: &str| STANDARD.decode(info.metadata.get(key)?).ok();
    let origin = Origin {
        snapshot: info.name.clone(),
        position: Position::from_bytes(&bytes("position")?)?,
        step: StepMark::from_bytes(&bytes("step")?)?,
        born: info.metadata.get("born").and_then(|born| born.parse().ok()).map(Timestamp),
    };
    let digest = bytes("sha256")?.try_into().ok()?;
    let content = Content { bytes: info.metadata.get("bytes")?.parse().ok()?, digest };
    seals.is_of_copy(&about(&origin, &content), &bytes("seal")?).then_some((origin, content))
}

/// A file that is read by whoever waits for it, on a thread that may wait.
struct Blocking(File);

impl AsyncRead for Blocking {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let bytes = self.0.read(into.initialize_unfilled())?;
        into.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(seals: &Seals, origin: &Origin, content: &Content) -> ObjectInfo {
        let metadata = std::collections::HashMap::from([
            ("position".to_owned(), STANDARD.encode(origin.position.to_bytes())),
            ("step".to_owned(), STANDARD.encode(origin.step.to_bytes())),
            ("sha256".to_owned(), STANDARD.encode(content.digest)),
            ("bytes".to_owned(), content.bytes.to_string()),
            ("seal".to_owned(), STANDARD.encode(seals.of_copy(&about(origin, content)))),
        ]);
        let info = serde_json::json!({ "name": origin.snapshot, "metadata": metadata, "bucket": "b", "nuid": "n" });
        serde_json::from_value(info).unwrap()
    }

    #[test]
    fn a_copy_counts_if_a_node_has_made_it() {
        let seals = Seals::new(&[1; 32], 1);
        let step = StepMark { number: 7, at: Timestamp(1) };
        let origin = Origin { snapshot: "copy".to_owned(), position: Position::default(), step, born: None };
        let content = Content { bytes: 5, digest: [2; 32] };
        let info = stored(&seals, &origin, &content);
        assert_eq!(read(&info, &Seals::new(&[1; 32], 2)), Some((origin.clone(), content)));
        assert_eq!(read(&info, &Seals::new(&[2; 32], 1)), None, "somebody else");
        assert_eq!(read(&ObjectInfo { name: "other".to_owned(), ..info.clone() }, &seals), None);
        for (key, value) in [("bytes", "6"), ("born", "1"), ("sha256", &STANDARD.encode([3; 32])), ("seal", "")] {
            let mut forged = info.clone();
            forged.metadata.insert(key.to_owned(), value.to_owned());
            assert_eq!(read(&forged, &seals), None, "{key}");
        }
    }
}
