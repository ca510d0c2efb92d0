//! What knows the providers of media. The daemon provides it.

use agentsvc_components::Micros;
use agentsvc_components::media::{MediaKind, MediaRequest, MediaTask};

use crate::http::files::FilesError;
use crate::upload::files::Files;

/// A provider of media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaProvider {
    /// Its name.
    pub name: &'static str,
    /// It can be asked: it has a key, or needs none.
    pub configured: bool,
    /// What it offers.
    pub kinds: Vec<MediaKind>,
}

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The request.
    pub request: &'a MediaRequest,
    /// The provider that was named.
    pub provider: Option<&'a str>,
    /// The model that was named.
    pub model: Option<&'a str>,
    /// How long the recording of a transcription plays at most, in milliseconds.
    pub recording_ms: Option<u64>,
}

/// Who makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The provider.
    pub provider: &'static str,
    /// The model.
    pub model: String,
    /// The most that it can cost.
    pub most: Micros,
    /// Is that known?
    pub is_priced: bool,
}

/// Why none was chosen, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotChosen {
    /// The provider is not known or does not offer it. Names the field of the request.
    Unsupported(&'static str, String),
    /// No provider that offers it has a key.
    MissingKey(String),
}

impl NotChosen {
    /// The sentence.
    #[must_use]
    pub fn into_text(self) -> String {
        match self {
            Self::Unsupported(_, text) | Self::MissingKey(text) => text,
        }
    }
}

/// Knows the providers of media. No call waits for anything.
pub trait MediaHost: Send + Sync {
    /// All of them.
    fn providers(&self) -> Vec<MediaProvider>;

    /// The provider that makes a kind where a request names none; `None` when none can.
    fn default_provider(&self, kind: MediaKind) -> Option<&'static str>;

    /// Which provider and model make something.
    ///
    /// # Errors
    /// Why none does.
    fn choose(&self, wanted: &Wanted<'_>) -> Result<Chosen, NotChosen>;

    /// How long a recording plays at most, in milliseconds; `None` when it is no recording.
    fn recording_ms(&self, recording: &[u8]) -> Option<u64>;
}

/// Removes the files of a task; those that are gone already are no fault. Blocks on the disk.
///
/// # Errors
/// What the disk says.
pub fn remove_files(files: &dyn Files, task: &MediaTask) -> Result<(), FilesError> {
    task.files.iter().try_for_each(|file| files.remove_upload(file.file))
}
