//! Files of agents: uploads, and the workspaces as the API reaches them.
//!
//! Uploads are in `{home}/uploads/`, each under an id that nobody guesses ([`uploads`]). A message names them; what they
//! become in it is decided in [`attach`]. Workspaces are reached through the sandbox alone.

pub(crate) mod attach;
pub(crate) mod cli;
pub mod config;
pub(crate) mod extract;
mod kind;
mod part;
pub(crate) mod pdf;
pub(crate) mod record;
mod remote;
mod share;
mod sweeper;
pub(crate) mod uploads;
mod workspace;

use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::files::{FileReader, FileWriter, FilesError};
use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::upload::files::{Files, Listing, OpenFile, Owner, Scan, Scanned, Upload, Written};
use agentsvc_api::world::installation::FileWarnings;
use agentsvc_components::{AgentId, FileId};
use attach::Reader;
use futures_util::future::BoxFuture;
use record::CheckedReader;
use share::UploadShare;
use sweeper::Sweeper;
use uploads::Uploads;

use crate::kernel::cli::Subcommand;
use crate::kernel::domain::Domain;
use crate::kernel::retention::RetentionClock;
use crate::kernel::sandbox::Workspaces;
use crate::kernel::shared_files::SharedFiles;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "upload",
    uses: &["agent", "session", "world"],
    commands: &[Subcommand::new::<cli::PdfText>(
        20,
        "pdf-text",
        "Extract the text of a PDF from stdin (used by the daemon)",
    )
    .hidden()],
    open: |opening| {
        opening.provide::<dyn FileWarnings>(Arc::new(opening.workspaces.clone()));
        Ok(())
    },
    ..Domain::EMPTY
};

impl FileWarnings for Workspaces {
    fn warnings(&self) -> Vec<String> {
        self.unknown_owners()
    }
}

/// The files of this home.
pub struct LocalFiles {
    uploads: Uploads,
    /// Says whose share an upload takes.
    world: Bridge,
    workspaces: Workspaces,
    reader: Reader,
    sweeper: Sweeper,
}

impl LocalFiles {
    /// The uploads in `dir` and the workspaces. What earlier processes left half done is removed in the background.
    pub fn new(
        dir: PathBuf,
        settings: config::Uploads,
        workspaces: Workspaces,
        retention: RetentionClock,
        world: Bridge,
    ) -> Self {
        let uploads = Uploads::new(dir, settings, retention);
        let sweeper = Sweeper::start(uploads.clone());
        Self { uploads, world, workspaces, reader: Reader::default(), sweeper }
    }

    /// Puts other bounds of uploads in force.
    pub fn set(&self, settings: config::Uploads) {
        self.uploads.set(settings);
    }

    /// The workspaces, to be shared: whose a directory is, is decided in one place.
    pub const fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// The content of an upload; `None` when it is not there, or larger than `bytes_max`. Blocks on the disk.
    pub fn read(&self, file: FileId, bytes_max: u64) -> Option<Vec<u8>> {
        // Damage and errors of the disk are logged.
        self.uploads.read(file, bytes_max).unwrap_or_default()
    }

    /// Counts the uploads anew: others have been put there. Blocks on the disk.
    pub fn recount(&self) {
        if let Err(error) = self.uploads.recount() {
            tracing::warn!(%error, "the uploads could not be counted");
        }
        self.sweeper.agree();
    }

    /// From now on other nodes have the uploads, too.
    pub(crate) fn share(&self, files: Arc<dyn SharedFiles>) {
        self.uploads.share(files);
    }

    /// This node leads now: what it has and what all have is brought together in the background.
    pub(crate) fn agree(&self) {
        self.sweeper.agree();
    }

    /// Fetches all uploads that only other nodes have. Blocks on the disk and the network.
    ///
    /// # Errors
    /// One of them cannot be fetched now.
    pub(crate) fn gather(&self) -> Result<(), FilesError> {
        self.uploads.gather()
    }

    /// Removes the uploads of an agent that is gone, in the background.
    pub fn forget(&self, agent: AgentId) {
        self.sweeper.forget(agent);
    }
}

impl Files for LocalFiles {
    fn bytes_max(&self) -> u64 {
        self.uploads.bytes_max()
    }

    fn begin_upload(
        &self,
        agent: AgentId,
        filename: &str,
        content_type: &str,
    ) -> Result<Box<dyn FileWriter<Upload>>, FilesError> {
        let holder = UploadShare::now(&self.world, agent)?;
        Ok(Box::new(self.uploads.begin((agent, holder), filename, content_type)?))
    }

    fn upload(&self, file: FileId) -> Result<Upload, FilesError> {
        self.uploads.get(file)
    }

    fn open_upload(&self, file: FileId) -> Result<(Upload, FileReader), FilesError> {
        let upload = self.uploads.get(file)?;
        let (uploads, of) = (self.uploads.clone(), upload.clone());
        let content = CheckedReader::new(self.uploads.open_fresh(file)?, &upload, move || uploads.note_damaged(&of))?;
        Ok((upload, Box::new(content)))
    }

    fn remove_upload(&self, file: FileId) -> Result<(), FilesError> {
        self.uploads.remove(file)
    }

    fn attachment(
        &self,
        agent: AgentId,
        file: FileId,
        scan: Scan,
    ) -> BoxFuture<'static, Result<Option<Scanned>, FilesError>> {
        let (uploads, reader) = (self.uploads.clone(), self.reader.clone());
        Box::pin(async move { reader.block(&uploads, agent, file, scan).await })
    }

    fn list(&self, owner: &Owner) -> Result<Listing, FilesError> {
        workspace::list(&self.workspaces, owner)
    }

    fn open_file(&self, owner: &Owner, path: &str) -> Result<OpenFile, FilesError> {
        workspace::open(&self.workspaces, owner, path)
    }

    fn begin_file(&self, owner: &Owner, path: &str) -> Result<Box<dyn FileWriter<Written>>, FilesError> {
        workspace::begin(&self.workspaces, owner, path, self.uploads.spool()?)
    }

    fn copy_upload(&self, owner: &Owner, upload: &Upload) -> Result<Written, FilesError> {
        let mut content = self.uploads.open_fresh(upload.id)?;
        workspace::copy(&self.workspaces, owner, &upload.filename, &mut content)
    }

    fn delete_file(&self, owner: &Owner, path: &str) -> Result<(), FilesError> {
        workspace::delete(&self.workspaces, owner, path)
    }
}

impl Probe for LocalFiles {
    fn gather(&self, out: &mut MetricsText) {
        out.gauge("agentsvc_uploads_bytes", "Bytes of all uploads.", self.uploads.total_bytes());
        let help = "Reads of uploads that were refused because the content does not match its SHA-256.";
        out.counter("agentsvc_uploads_damaged_total", help, self.uploads.damaged());
    }
}
