//! The disk of a [`Harness`](super::harness::Harness), in memory.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Bound;
use std::sync::Arc;

use agentsvc::kernel::sandbox::WorkspacePath;
use agentsvc_api::agent::texts::ManifestTexts;
use agentsvc_api::http::error::ContentError;
use agentsvc_api::http::files::{FileReader, FileWriter, FilesError};
use agentsvc_api::knowledge::store::{KnowledgeRow, KnowledgeStore};
use agentsvc_api::memory::store::{MemoryRange, MemoryRow, MemoryStore};
use agentsvc_api::session::content::{Content, MessageRange, MessageRow};
use agentsvc_api::turn::store::TraceStore;
use agentsvc_api::upload::files::{Entry, EntryKind, Files, Listing, OpenFile, Owner, Scan, Scanned, Upload, Written};
use agentsvc_api::usage::store::{UsageRange, UsageRow, UsageStore};
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::{AgentId, FileId, LogId, Timestamp, TurnId};
use agentsvc_systems::kernel::record;
use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use uuid::Uuid;

/// Bytes of a file.
const FILE_BYTES_MAX: u64 = 4_000;
/// Uploads that are kept; the oldest go first.
const UPLOADS_MAX: usize = 16;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The content of a world.
#[derive(Default)]
pub struct Memory(Mutex<Rows>);

impl Memory {
    /// Keeps the content among `ops`.
    pub fn apply(&self, ops: Vec<Op>) {
        let mut rows = self.0.lock();
        for op in ops.into_iter().filter(|op| op.space == Space::Content) {
            match op.value {
                Some(value) => rows.insert(op.key, value),
                None => rows.remove(&op.key),
            };
        }
    }

    fn text(&self, key: &[u8]) -> Option<String> {
        self.0.lock().get(key).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The rows of a range of keys.
    fn range<T>(
        &self,
        keys: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        mut read: impl FnMut(&[u8], &[u8]) -> Option<T>,
    ) -> Vec<T> {
        let rows = self.0.lock();
        // A range that ends before it begins is empty.
        if let (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) = &keys
            && from >= to
        {
            return Vec::new();
        }
        rows.range(keys).map_while(|(key, value)| read(key, value)).collect()
    }

    fn messages_of(&self, log: LogId, from: Bound<Vec<u8>>, to: u32) -> Vec<MessageRow> {
        let last = record::message_key(record::MessageKey { log, ordinal: to, index: u32::MAX });
        self.range((from, Bound::Included(last)), |key, value| {
            let at = record::parse_message_key(key)?;
            let record = record::decode(key, value).expect("what the world wrote is read");
            Some(MessageRow { ordinal: at.ordinal, index: at.index, record })
        })
    }
}

/// The last `limit` of `rows`.
fn newest<T>(mut rows: Vec<T>, limit: usize) -> Vec<T> {
    rows.split_off(rows.len().saturating_sub(limit))
}

impl Content for Memory {
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        let first = Bound::Included(record::log_prefix(log).to_vec());
        let key = |ordinal, index| record::message_key(record::MessageKey { log, ordinal, index });
        Ok(match range {
            MessageRange::After { after, limit } | MessageRange::Chunk { after, limit, .. } => {
                let from = after.map_or(first, |(ordinal, index)| Bound::Excluded(key(ordinal, index)));
                self.messages_of(log, from, u32::MAX).into_iter().take(limit).collect()
            }
            MessageRange::Newest { before, limit, .. } => {
                let mut rows = self.messages_of(log, first, u32::MAX);
                rows.retain(|row| before.is_none_or(|before| (row.ordinal, row.index) < before));
                newest(rows, limit)
            }
            MessageRange::NewestSince { from, ordinal, limit } => {
                newest(self.messages_of(log, Bound::Included(key(from, 0)), ordinal), limit)
            }
        })
    }

    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError> {
        Ok(self.text(&record::result_key(record::MessageKey { log, ordinal, index })))
    }

    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError> {
        let key = record::summary_key(log, upto);
        Ok(self.0.lock().get(&key).map(|value| record::decode(&key, value).expect("what the world wrote is read")))
    }

    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
        let prefix = record::summary_prefix(log);
        Ok(self.range((Bound::Included(prefix.to_vec()), Bound::Unbounded), |key, value| {
            key.starts_with(&prefix).then(|| record::decode(key, value).expect("what the world wrote is read"))
        }))
    }
}

impl ManifestTexts for Memory {
    fn manifest_text(&self, agent: AgentId) -> Result<Option<String>, ContentError> {
        Ok(self.text(&record::manifest_text_key(agent)))
    }
}

impl TraceStore for Memory {
    fn traces(&self, agent: AgentId, before: Option<TurnId>, limit: usize) -> Result<Vec<TraceRecord>, ContentError> {
        let to = match before {
            Some(turn) => Bound::Excluded(record::trace_key(agent, turn)),
            None => Bound::Included(record::trace_key(agent, TurnId(Uuid::max()))),
        };
        let rows = self.range((Bound::Included(record::trace_prefix(agent)), to), |key, value| {
            Some(record::decode(key, value).expect("what the world wrote is read"))
        });
        Ok(rows.into_iter().rev().take(limit).collect())
    }

    fn trace_count(&self, agent: AgentId) -> Result<u64, ContentError> {
        Ok(self.traces(agent, None, usize::MAX)?.len() as u64)
    }
}

impl MemoryStore for Memory {
    fn memory(&self, agent: AgentId, key: &str) -> Result<Option<MemoryRecord>, ContentError> {
        let key = record::memory_key(agent, key);
        Ok(self.0.lock().get(&key).map(|value| record::decode(&key, value).expect("what the world wrote is read")))
    }

    fn memories(&self, agent: AgentId, range: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        let prefix = record::memory_key(agent, &range.prefix);
        let from = match &range.after {
            Some(key) if record::memory_key(agent, key) >= prefix => Bound::Excluded(record::memory_key(agent, key)),
            _ => Bound::Included(prefix.clone()),
        };
        let start = record::memory_prefix(agent).len();
        let rows = self.range((from, Bound::Unbounded), |key, value| {
            let name = key.starts_with(&prefix).then(|| String::from_utf8_lossy(&key[start..]).into())?;
            Some(MemoryRow { key: name, record: record::decode(key, value).expect("what the world wrote is read") })
        });
        Ok(rows.into_iter().take(range.limit).collect())
    }
}

impl KnowledgeStore for Memory {
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ContentError> {
        Ok(self.0.lock().get(key).cloned())
    }

    fn rows(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<KnowledgeRow>, ContentError> {
        let from = match after {
            Some(key) if key >= prefix => Bound::Excluded(key.to_vec()),
            _ => Bound::Included(prefix.to_vec()),
        };
        let rows = self.range((from, Bound::Unbounded), |key, value| {
            key.starts_with(prefix).then(|| (key.to_vec(), value.to_vec()))
        });
        Ok(rows.into_iter().take(limit).collect())
    }
}

impl UsageStore for Memory {
    fn usage(&self, _: &UsageRange) -> Result<Vec<UsageRow>, ContentError> {
        Ok(Vec::new())
    }

    fn active_agents(&self, _: i64, _: i64) -> Result<usize, ContentError> {
        Ok(0)
    }
}

/// A kept upload and its content.
type Kept = BTreeMap<FileId, (Upload, Vec<u8>)>;
/// Files of workspaces, by agent and path.
type Workspaces = BTreeMap<(AgentId, String), Vec<u8>>;

/// The files of agents.
#[derive(Clone, Default)]
pub struct MemoryFiles {
    uploads: Arc<Mutex<Kept>>,
    files: Arc<Mutex<Workspaces>>,
}

/// A file that is being written, and what becomes of it.
struct Writing<F> {
    content: Vec<u8>,
    finish: F,
}

impl<T, F: FnOnce(Vec<u8>) -> T + Send> FileWriter<T> for Writing<F> {
    fn write(&mut self, piece: &[u8]) -> Result<(), FilesError> {
        self.content.extend_from_slice(piece);
        if self.content.len() as u64 > FILE_BYTES_MAX { Err(FilesError::TooLarge(FILE_BYTES_MAX)) } else { Ok(()) }
    }

    fn finish(self: Box<Self>) -> Result<T, FilesError> {
        Ok((self.finish)(self.content))
    }
}

fn checked(path: &str) -> Result<String, FilesError> {
    let path = WorkspacePath::parse(path).map_err(|error| FilesError::Wrong(error.to_string()))?;
    if path.as_str().is_empty() {
        return Err(FilesError::Conflict("it is no file".to_owned()));
    }
    Ok(path.as_str().to_owned())
}

fn entry(path: &str, content: &[u8]) -> Entry {
    let (path, size) = (path.to_owned(), content.len() as u64);
    Entry { path, kind: EntryKind::File, size, modified_at: Timestamp(0), content_type: "text/plain" }
}

impl Files for MemoryFiles {
    fn bytes_max(&self) -> u64 {
        FILE_BYTES_MAX
    }

    fn begin_upload(
        &self,
        agent: AgentId,
        filename: &str,
        content_type: &str,
    ) -> Result<Box<dyn FileWriter<Upload>>, FilesError> {
        let filename = filename.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        if filename.is_empty() {
            return Err(FilesError::Wrong("a file needs a name".to_owned()));
        }
        let (uploads, content_type) = (Arc::clone(&self.uploads), content_type.to_owned());
        let finish = move |content: Vec<u8>| {
            let mut uploads = uploads.lock();
            let newest = uploads.last_key_value().map_or(0, |(id, _)| id.0.as_u128());
            let (id, size) = (FileId(Uuid::from_u128(newest + 1)), content.len() as u64);
            while uploads.len() >= UPLOADS_MAX {
                uploads.pop_first();
            }
            let (sha256, created_at) = ("0".repeat(64), Timestamp(0));
            let upload = Upload { id, agent, filename, content_type, size, sha256, created_at };
            uploads.insert(id, (upload.clone(), content));
            upload
        };
        Ok(Box::new(Writing { content: Vec::new(), finish }))
    }

    fn upload(&self, file: FileId) -> Result<Upload, FilesError> {
        self.open_upload(file).map(|(upload, _)| upload)
    }

    fn open_upload(&self, file: FileId) -> Result<(Upload, FileReader), FilesError> {
        let found = self.uploads.lock().get(&file).cloned();
        let (upload, content) = found.ok_or_else(|| FilesError::NotFound(format!("upload not found: {file}")))?;
        Ok((upload, Box::new(Cursor::new(content))))
    }

    fn remove_upload(&self, file: FileId) -> Result<(), FilesError> {
        self.uploads.lock().remove(&file);
        Ok(())
    }

    fn attachment(
        &self,
        agent: AgentId,
        file: FileId,
        scan: Scan,
    ) -> BoxFuture<'static, Result<Option<Scanned>, FilesError>> {
        let own = self.upload(file).and_then(|upload| {
            let missing = || FilesError::NotFound(format!("upload not found: {file}"));
            (upload.agent == agent).then_some(upload).ok_or_else(missing)
        });
        let block = own.map(|Upload { content_type, filename, .. }| {
            content_type.starts_with("text/").then(|| scan.block(Block::Text { text: filename }))
        });
        Box::pin(ready(block))
    }

    fn list(&self, owner: &Owner) -> Result<Listing, FilesError> {
        let files = self.files.lock();
        let own = files.iter().filter(|((agent, _), _)| *agent == owner.agent);
        Ok(Listing { entries: own.map(|((_, path), content)| entry(path, content)).collect(), truncated: false })
    }

    fn open_file(&self, owner: &Owner, path: &str) -> Result<OpenFile, FilesError> {
        let path = checked(path)?;
        let found = self.files.lock().get(&(owner.agent, path.clone())).cloned();
        let content = found.ok_or_else(|| FilesError::NotFound(path.clone()))?;
        Ok(OpenFile { entry: entry(&path, &content), content: Box::new(Cursor::new(content)) })
    }

    fn begin_file(&self, owner: &Owner, path: &str) -> Result<Box<dyn FileWriter<Written>>, FilesError> {
        let (files, agent, path) = (Arc::clone(&self.files), owner.agent, checked(path)?);
        let finish = move |content: Vec<u8>| {
            let entry = entry(&path, &content);
            let created = files.lock().insert((agent, path), content).is_none();
            Written { entry, created }
        };
        Ok(Box::new(Writing { content: Vec::new(), finish }))
    }

    fn copy_upload(&self, owner: &Owner, upload: &Upload) -> Result<Written, FilesError> {
        let content = self.uploads.lock().get(&upload.id).map(|(_, content)| content.clone()).unwrap_or_default();
        let mut file = self.begin_file(owner, &upload.filename)?;
        file.write(&content)?;
        file.finish()
    }

    fn delete_file(&self, owner: &Owner, path: &str) -> Result<(), FilesError> {
        let path = checked(path)?;
        let gone = self.files.lock().remove(&(owner.agent, path.clone()));
        gone.map(drop).ok_or(FilesError::NotFound(path))
    }
}
