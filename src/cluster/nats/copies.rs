//! Copies of the whole world in the object store of the servers. A node whose store the journal does not go on from any more is
//! built anew of the newest one.

use std::fs::File;
use std::io::{Read, Write};
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
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::wire::Wire;
use crate::kernel::home::private_file;
use crate::kernel::store::Error;
use crate::kernel::store::journal::Origin;
use crate::kernel::store::journal::entry::Position;

/// Bytes read at once.
const PIECE_BYTES: usize = 128 << 10;

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Journal(format!("the object store of the cluster cannot be used: {error}"))
}

impl Wire {
    async fn bucket(&self) -> Result<ObjectStore, Error> {
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
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let step = STANDARD.encode(origin.step.to_bytes());
        let mut metadata = std::collections::HashMap::from([
            ("position".to_owned(), STANDARD.encode(origin.position.to_bytes())),
            ("step".to_owned(), step),
        ]);
        metadata.extend(origin.born.map(|born| ("born".to_owned(), born.0.to_string())));
        let meta = ObjectMetadata { name: origin.snapshot.clone(), metadata, ..ObjectMetadata::default() };
        let put = self.bucket().await?.put(meta, &mut Blocking(file)).await;
        put.map(drop).map_err(|error| failed(&error))
    }

    /// Of what the copies are that are there, the one with the newest entry last.
    ///
    /// # Errors
    /// The servers do not answer.
    pub(crate) async fn copies(&self) -> Result<Vec<Origin>, Error> {
        let bucket = self.bucket().await?;
        let mut list = bucket.list().await.map_err(|error| failed(&error))?;
        let mut found = Vec::new();
        while let Some(info) = list.next().await {
            let info = info.map_err(|error| failed(&error))?;
            found.extend(read(&info));
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
        let origin = read(object.info());
        let origin = origin.ok_or_else(|| failed(&format!("the copy {name} does not say of what it is")))?;
        let mut file = private_file().write(true).create_new(true).open(path).map_err(io)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match object.read(&mut piece).await.map_err(|error| failed(&error))? {
                0 => break,
                bytes => file.write_all(&piece[..bytes]).map_err(io)?,
            }
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
        object.read_to_string(&mut text).await.map_err(|error| failed(&error))?;
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

fn read(info: &ObjectInfo) -> Option<Origin> {
    let bytes = |key: &str| STANDARD.decode(info.metadata.get(key)?).ok();
    Some(Origin {
        snapshot: info.name.clone(),
        position: Position::from_bytes(&bytes("position")?)?,
        step: StepMark::from_bytes(&bytes("step")?)?,
        born: info.metadata.get("born").and_then(|born| born.parse().ok()).map(Timestamp),
    })
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
