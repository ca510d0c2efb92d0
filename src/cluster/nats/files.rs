//! Files that all nodes have together, in an object store of their own. Each is one object, with what is said about it in its
//! metadata: a reader sees all of it or nothing. A removed one leaves a mark.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::io::{Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use async_nats::header::{NATS_MESSAGE_TTL, NATS_ROLLUP};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::object_store::{ObjectInfo, ObjectMetadata, ObjectStore};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RawMessageErrorKind, StorageType, Stream};
use async_nats::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::time::timeout;

use super::wire::{REQUEST_WAIT, Wire};
use crate::kernel::shared_files::{Error, Known};

/// Bytes read at once.
const PIECE_BYTES: usize = 128 << 10;
/// Seconds for which it is known that a file was removed: a node that comes back later shares its own copy anew.
const MARK_SECS: u64 = 90 * 24 * 60 * 60;
/// Under which word of the metadata it stands what is said about a file.
const ABOUT: &str = "about";

fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(error.to_string())
}

/// What comes within the time of one request.
async fn soon<T>(work: impl Future<Output = T>) -> Result<T, Error> {
    timeout(REQUEST_WAIT, work).await.map_err(|_| Error::Unavailable("the NATS servers do not answer".to_owned()))
}

impl Wire {
    fn files_bucket(&self) -> String {
        format!("{}-files", self.cluster)
    }

    /// The object store of the files. Made where there is none, as servers make one, save that every read is answered by the leader of
    /// its stream: another server may not know yet what was acknowledged.
    pub(super) async fn files(&self) -> Result<ObjectStore, Error> {
        let bucket = self.files_bucket();
        if let Ok(there) = self.context.get_object_store(&bucket).await {
            return Ok(there);
        }
        let config = Config {
            name: format!("OBJ_{bucket}"),
            description: Some("files that the nodes of an agentsvc cluster share".to_owned()),
            subjects: vec![format!("$O.{bucket}.C.>"), format!("$O.{bucket}.M.>")],
            storage: StorageType::File,
            num_replicas: self.copies,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            allow_direct: false,
            allow_message_ttl: true,
            ..Config::default()
        };
        self.context.create_stream(config).await.map_err(unavailable)?;
        self.context.get_object_store(&bucket).await.map_err(unavailable)
    }

    /// Shares what `content` reads as `name`. The servers have it when this returns.
    pub(crate) async fn put_file(&self, name: &str, about: &str, content: Blocking<'_>) -> Result<(), Error> {
        let mut content = content;
        let metadata = [(ABOUT.to_owned(), about.to_owned())].into();
        let meta = ObjectMetadata { name: name.to_owned(), metadata, ..ObjectMetadata::default() };
        let put = self.files().await?.put(meta, &mut content).await;
        put.map(drop).map_err(|error| content.failed.take().map_or_else(|| unavailable(error), Error::Io))
    }

    async fn files_stream(&self) -> Result<Stream<()>, Error> {
        self.files().await?;
        self.context.get_stream_no_info(format!("OBJ_{}", self.files_bucket())).await.map_err(unavailable)
    }

    /// What the leader of the stream has of `name`.
    async fn info_of(&self, name: &str) -> Result<Option<ObjectInfo>, Error> {
        match self.files_stream().await?.get_last_raw_message_by_subject(&self.file_subject(name)).await {
            Ok(message) => serde_json::from_slice(&message.payload).map(Some).map_err(unavailable),
            Err(error) => match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(why) if why.error_code() == ErrorCode::NO_MESSAGE_FOUND => Ok(None),
                _ => Err(unavailable(error)),
            },
        }
    }

    fn file_subject(&self, name: &str) -> String {
        format!("$O.{}.M.{}", self.files_bucket(), URL_SAFE.encode(name))
    }

    /// What the subjects begin with that the pieces of files are under.
    fn pieces(&self) -> String {
        format!("$O.{}.C.", self.files_bucket())
    }

    /// What is known of `name`.
    pub(crate) async fn known_file(&self, name: &str) -> Result<Known, Error> {
        Ok(match self.info_of(name).await? {
            Some(info) if info.deleted => Known::Removed,
            Some(info) => Known::There(about(info)),
            None => Known::Never,
        })
    }

    /// Writes the content of `name` into `to`.
    pub(crate) async fn get_file(&self, name: &str, to: &mut (dyn Write + Send)) -> Result<(), Error> {
        let mut object = self.files().await?.get(name).await.map_err(unavailable)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match soon(object.read(&mut piece)).await?.map_err(unavailable)? {
                0 => return Ok(()),
                bytes => to.write_all(&piece[..bytes])?,
            }
        }
    }

    /// Removes `name` for all nodes. The mark that it leaves goes by itself when no node should need it any more.
    pub(crate) async fn remove_file(&self, name: &str) -> Result<(), Error> {
        let Some(info) = self.info_of(name).await?.filter(|info| !info.deleted) else { return Ok(()) };
        let pieces = info.nuid.clone();
        let mark = ObjectInfo { deleted: true, size: 0, chunks: 0, metadata: HashMap::new(), ..info };
        let mut headers = HeaderMap::new();
        headers.insert(NATS_ROLLUP, "sub");
        headers.insert(NATS_MESSAGE_TTL, HeaderValue::from(MARK_SECS));
        let mark = serde_json::to_vec(&mark).map_err(unavailable)?;
        let published = self.context.publish_with_headers(self.file_subject(name), headers, mark.into()).await;
        published.map_err(unavailable)?.await.map_err(unavailable)?;
        self.drop_pieces(&pieces).await
    }

    /// The pieces that belong to no file, by what is told of them: those of a file on its way in are among them.
    pub(crate) async fn loose_pieces(&self) -> Result<HashSet<String>, Error> {
        let prefix = self.pieces();
        let subjects = self.files_stream().await?.info_with_subjects(format!("{prefix}>")).await;
        let mut subjects = subjects.map_err(unavailable)?;
        let mut loose = HashSet::new();
        while let Some(found) = soon(subjects.next()).await? {
            let (subject, _) = found.map_err(unavailable)?;
            loose.extend(subject.strip_prefix(&prefix).map(str::to_owned));
        }
        let mut list = self.files().await?.list().await.map_err(unavailable)?;
        while let Some(info) = soon(list.next()).await? {
            loose.remove(&info.map_err(unavailable)?.nuid);
        }
        Ok(loose)
    }

    /// Lets go of pieces.
    pub(crate) async fn drop_pieces(&self, pieces: &str) -> Result<(), Error> {
        let subject = format!("{}{pieces}", self.pieces());
        self.files_stream().await?.purge().filter(subject).await.map(drop).map_err(unavailable)
    }

    /// The names that begin with `folder`, and what is said about each.
    pub(crate) async fn list_files(&self, folder: &str) -> Result<Vec<(String, String)>, Error> {
        let mut list = self.files().await?.list().await.map_err(unavailable)?;
        let mut found = Vec::new();
        while let Some(info) = soon(list.next()).await? {
            let info = info.map_err(unavailable)?;
            if info.name.starts_with(folder) {
                found.push((info.name.clone(), about(info)));
            }
        }
        Ok(found)
    }
}

fn about(mut info: ObjectInfo) -> String {
    info.metadata.remove(ABOUT).unwrap_or_default()
}

/// Content that is read by whoever waits for it, on a thread that may wait.
pub(crate) struct Blocking<'a> {
    content: &'a mut (dyn Read + Send),
    /// Why it could not be read.
    failed: Option<std::io::Error>,
}

impl<'a> Blocking<'a> {
    pub(crate) fn new(content: &'a mut (dyn Read + Send)) -> Self {
        Self { content, failed: None }
    }
}

impl AsyncRead for Blocking<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        match self.content.read(into.initialize_unfilled()) {
            Ok(bytes) => {
                into.advance(bytes);
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Poll::Ready(Err(kind.into()))
            }
        }
    }
}
