//! Agent types as this room sees them: manifests in files, each under its name (spec 2, Agent type). Implemented where the
//! disk is known.

use crate::http::error::Error;
use crate::template::error_codes;

/// One agent type as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFile {
    /// Its name: that of its file, without the ending.
    pub name: String,
    /// Its manifest in TOML, which may be broken; `Err` says why there is no text at all.
    pub text: Result<String, String>,
}

/// Why agent types could not be read or changed. The texts are for clients: no path of the machine stands in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplatesError {
    /// There are as many as there may be (409).
    #[error("the limit of {0} agent types is reached; delete some first")]
    Full(usize),
    /// The disk failed; the reason is in the log (500).
    #[error("the agent types could not be read or written")]
    Failed,
}

impl From<TemplatesError> for Error {
    fn from(error: TemplatesError) -> Self {
        let text = error.to_string();
        match error {
            TemplatesError::Full(_) => Self::of(error_codes::TEMPLATES_FULL, text),
            TemplatesError::Failed => Self::internal(text),
        }
    }
}

/// Keeps agent types. Every call touches the disk: on a tokio worker use `spawn_blocking`. Names must have passed
/// [`validate_name`](agentsvc_systems::manifest::validate_name).
pub trait Templates: Send + Sync + 'static {
    /// All of them, sorted by name. One that cannot be read does not stop the others.
    ///
    /// # Errors
    /// [`TemplatesError::Failed`].
    fn list(&self) -> Result<Vec<TemplateFile>, TemplatesError>;

    /// The one of this name, if there is one.
    ///
    /// # Errors
    /// [`TemplatesError::Failed`].
    fn read(&self, name: &str) -> Result<Option<TemplateFile>, TemplatesError>;

    /// Makes a new one; durable when it answers. False: there is one of this name.
    ///
    /// # Errors
    /// [`TemplatesError`].
    fn create(&self, name: &str, text: &str) -> Result<bool, TemplatesError>;

    /// Puts what `change` makes of the text in its place, at once and for good; nothing when it makes nothing. No other
    /// change comes in between. False: there is none of this name.
    ///
    /// # Errors
    /// [`TemplatesError::Failed`].
    fn change(
        &self,
        name: &str,
        change: &mut dyn FnMut(Result<String, String>) -> Option<String>,
    ) -> Result<bool, TemplatesError>;

    /// Deletes one. False: there is none of this name.
    ///
    /// # Errors
    /// [`TemplatesError::Failed`].
    fn remove(&self, name: &str) -> Result<bool, TemplatesError>;
}
