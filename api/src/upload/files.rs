//! Files of agents as this room sees them: uploads, kept under ids that nobody guesses, and the agents' workspaces.
//! Implemented where the disk is known.

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::taint::InjectionFound;
use agentsvc_components::session::message::Block;
use agentsvc_components::{AgentId, FileId, Timestamp};
use agentsvc_systems::injection::{InjectionPolicy, Shielded, shield};
use futures_util::future::BoxFuture;

use crate::http::files::{FileReader, FileWriter, FilesError};

/// Whose workspace: its directory is named after the agent, the id decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The agent.
    pub agent: AgentId,
    /// Its name now.
    pub name: Box<str>,
    /// Whose share of the workspaces its files take.
    pub holder: Holder,
}

/// Name of uploads that go with the work that they were sent for.
pub const TEMPORARY: &str = "recording";

/// What is known of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its id.
    pub id: FileId,
    /// The agent it was sent to.
    pub agent: AgentId,
    /// The name it came with, without directories.
    pub filename: String,
    /// What it is: found in its first bytes, else as declared, else by the name's ending.
    pub content_type: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 of the content, in hex.
    pub sha256: String,
    /// When it was kept.
    pub created_at: Timestamp,
}

/// Type of a workspace entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A fifo, a socket or a device.
    Special,
}

/// One entry of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// From the workspace on, with `/`.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes; 0 for what is no file.
    pub size: u64,
    /// When its content last changed.
    pub modified_at: Timestamp,
    /// By its name; empty for what is no file.
    pub content_type: &'static str,
}

/// The entries of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by path.
    pub entries: Vec<Entry>,
    /// There are more than one listing holds.
    pub truncated: bool,
}

/// A file that is opened to be read.
pub struct OpenFile {
    /// What stands in the listing.
    pub entry: Entry,
    /// Its content, `entry.size` bytes unless someone writes to it meanwhile.
    pub content: FileReader,
}

/// A written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// As it is in the workspace now.
    pub entry: Entry,
    /// There was none of this name before.
    pub created: bool,
}

/// How the text of an attachment is scanned for prompt injections.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    /// What becomes of a text that looks like one.
    pub policy: InjectionPolicy,
    /// Where the text comes from, for the notice; not chosen by its author.
    pub source: &'static str,
}

impl Scan {
    /// Scans the text of a block. A long one takes a while: do it where the thread may block.
    #[must_use]
    pub fn block(self, block: Block) -> Scanned {
        match block {
            Block::Text { text } => {
                let Shielded { text, found } = shield(self.policy, self.source, text).here();
                Scanned { block: Block::Text { text }, found }
            }
            block => Scanned { block, found: None },
        }
    }
}

/// A block whose text was scanned.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanned {
    /// The block as a model may read it.
    pub block: Block,
    /// What was found in its text.
    pub found: Option<Box<InjectionFound>>,
}

/// Keeps and gives files. Every call may touch the disk, but for those that are futures: on a tokio worker use `spawn_blocking`.
pub trait Files: Send + Sync + 'static {
    /// Bytes that one file may have.
    fn bytes_max(&self) -> u64;

    /// Begins an upload to `agent`. `content_type` is what the client declared; empty when it did not.
    ///
    /// # Errors
    /// [`FilesError::Wrong`] for a name that is none, [`FilesError::Full`], [`FilesError::Busy`].
    fn begin_upload(
        &self,
        agent: AgentId,
        filename: &str,
        content_type: &str,
    ) -> Result<Box<dyn FileWriter<Upload>>, FilesError>;

    /// Keeps `content` as an upload, such as the picture of a data URI.
    ///
    /// # Errors
    /// As [`begin_upload`](Self::begin_upload) and [`FileWriter::write`].
    fn store(&self, agent: AgentId, filename: &str, content_type: &str, content: &[u8]) -> Result<Upload, FilesError> {
        let mut writer = self.begin_upload(agent, filename, content_type)?;
        writer.write(content)?;
        writer.finish()
    }

    /// What is known of an upload.
    ///
    /// # Errors
    /// [`FilesError::NotFound`].
    fn upload(&self, file: FileId) -> Result<Upload, FilesError>;

    /// Opens an upload. Nothing of it is read: the content is compared with its checksum as it is read, and the last read
    /// fails if it is damaged.
    ///
    /// # Errors
    /// [`FilesError::NotFound`]; [`FilesError::Damaged`] for content of another size.
    fn open_upload(&self, file: FileId) -> Result<(Upload, FileReader), FilesError>;

    /// Takes an upload back, such as one whose request failed later.
    ///
    /// # Errors
    /// The disk failed.
    fn remove_upload(&self, file: FileId) -> Result<(), FilesError>;

    /// The block of a message that an upload becomes (spec 1, Attachment handling); `None` for one of no known class,
    /// which is skipped. Touches the disk elsewhere, and may take long: a PDF is read, and few files are read and scanned at
    /// once.
    ///
    /// Fails with [`FilesError::NotFound`], also for the upload of another agent; with [`FilesError::Busy`] when others are read
    /// for too long.
    fn attachment(
        &self,
        agent: AgentId,
        file: FileId,
        scan: Scan,
    ) -> BoxFuture<'static, Result<Option<Scanned>, FilesError>>;

    /// Everything in an agent's workspace.
    ///
    /// # Errors
    /// The disk failed.
    fn list(&self, owner: &Owner) -> Result<Listing, FilesError>;

    /// Opens a file of a workspace.
    ///
    /// # Errors
    /// [`FilesError::NotFound`], [`FilesError::Wrong`] for a path that leads out, [`FilesError::Conflict`] for what is
    /// no file.
    fn open_file(&self, owner: &Owner, path: &str) -> Result<OpenFile, FilesError>;

    /// Begins to write a file of a workspace, in place of what is there; directories on the way are made.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    fn begin_file(&self, owner: &Owner, path: &str) -> Result<Box<dyn FileWriter<Written>>, FilesError>;

    /// Puts a copy of an upload into a workspace, under its own name or, where that is taken, one like it.
    ///
    /// # Errors
    /// The disk failed, or the file does not fit.
    fn copy_upload(&self, owner: &Owner, upload: &Upload) -> Result<Written, FilesError>;

    /// Deletes a file of a workspace.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    fn delete_file(&self, owner: &Owner, path: &str) -> Result<(), FilesError>;
}
