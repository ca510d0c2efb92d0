//! The text of a PDF, read by a process of its own.
//!
//! PDFs come from strangers, and what reads them was not written for that: it panics, recurses and fills memory. So
//! this binary is started again as `agentsvc pdf-text`, with no environment, with bounds of its own on memory, time and
//! files, and nothing in its hands but the file. Whatever becomes of it, the daemon only sees how far it came.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use agentsvc_api::http::files::FilesError;
use agentsvc_components::kernel::limit::{ATTACHMENT_CHARS_MAX, PDF_SECS_MAX, PDFS_READ_MAX};
use uuid::Uuid;

use super::attach::place;
use agentsvc_api::http::places::Places;

/// The subcommand that reads.
pub(crate) const COMMAND: &str = "pdf-text";

/// Bytes of text that are taken from the process; so many hold all characters that count.
pub(crate) const TEXT_BYTES_MAX: u64 = ATTACHMENT_CHARS_MAX as u64 * 4 + 4;

/// What was read of a PDF.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PdfText {
    /// The text, page by page.
    pub(super) text: String,
    /// It is all there is.
    pub(super) whole: bool,
}

/// Reads PDFs, [`PDFS_READ_MAX`] at once. Cheap to clone.
#[derive(Clone)]
pub(super) struct PdfReader {
    pub(super) places: Places<Uuid>,
}

impl Default for PdfReader {
    fn default() -> Self {
        Self { places: Places::new(PDFS_READ_MAX, PDFS_READ_MAX / 2) }
    }
}

impl PdfReader {
    /// What `work` makes of the text of the PDF in `file`, for `whom`, who leaves places to others. Comes when the process ends, or
    /// its time does.
    ///
    /// # Errors
    /// [`FilesError::Busy`] when there is no place for too long.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        whom: Uuid,
        file: File,
        work: impl FnOnce(PdfText) -> T + Send + 'static,
    ) -> Result<T, FilesError> {
        let place = place(&self.places, whom).await?;
        // The place is taken until the process has ended and the work is done, also when nobody waits for it any more.
        let read = tokio::task::spawn_blocking(move || {
            let _place = place;
            work(start(file).map(gather).unwrap_or_else(|error| {
                tracing::error!(%error, "the PDF reader process could not be started");
                PdfText { text: String::new(), whole: false }
            }))
        });
        read.await.map_err(|_| FilesError::Failed)
    }
}

fn start(file: File) -> std::io::Result<Child> {
    let mut command = Command::new(program()?);
    command.arg(COMMAND).env_clear().current_dir("/");
    command.stdin(Stdio::from(file)).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// This binary, also when its file was replaced while it runs.
fn program() -> std::io::Result<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}

fn gather(mut child: Child) -> PdfText {
    let mut out = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    let reading = std::thread::Builder::new().name("pdf-text".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        // What came before a failure counts.
        let _ = out.as_mut().map(|out| out.take(TEXT_BYTES_MAX).read_to_end(&mut bytes));
        // Nobody waits any more only when the daemon ends.
        let _ = sender.send(bytes);
    });
    let in_time = match reading {
        Ok(_) => receiver.recv_timeout(Duration::from_secs(PDF_SECS_MAX)).ok(),
        Err(_) => None,
    };
    let is_full = in_time.as_ref().is_some_and(|bytes| bytes.len() as u64 >= TEXT_BYTES_MAX);
    if in_time.is_none() || is_full {
        // Its end closes the pipe, so that what was read so far comes.
        let _ = child.kill();
    }
    let ended = child.wait();
    let bytes = in_time.or_else(|| receiver.recv_timeout(Duration::from_secs(1)).ok()).unwrap_or_default();
    let whole = is_full || ended.is_ok_and(|status| status.success());
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // Cut within a character.
        Err(error) => String::from_utf8_lossy(error.as_bytes()).trim_end_matches('\u{fffd}').to_owned(),
    };
    PdfText { text, whole }
}
