//! Fetches what is no skill with the means of skills: the same bounds, checks and sandbox.

use std::path::PathBuf;

use agentsvc_api::skill_source::sources::SourceError;
use reqwest::Url;

use super::fetch::{self, Fetched};
use super::folders::Folders;
use super::git::{self, Repository};
use super::staging::Staging;
use super::wire::{Wire, blocking};
use crate::kernel::sandbox::Commands;

/// Fetches into folders that are not those of skills. Kept in the settings; the default fetches nothing.
#[derive(Clone, Default)]
pub(crate) struct Fetcher(Option<(Wire, Commands)>);

impl Fetcher {
    pub(super) const fn new(wire: Wire, commands: Commands) -> Self {
        Self(Some((wire, commands)))
    }

    /// A folder or an archive of this machine. Gives its files, and what was noticed.
    ///
    /// # Errors
    /// [`SourceError`].
    pub(crate) async fn path(&self, folders: Folders, path: PathBuf) -> Result<(Staging, Vec<String>), SourceError> {
        blocking(move || fetch::of_path(&folders, &path, true).map(parts)).await
    }

    /// The newest commit of a branch of a repository. `inner` is the folder in it.
    ///
    /// # Errors
    /// [`SourceError`].
    pub(crate) async fn git(
        &self,
        folders: Folders,
        (url, branch, inner): (&str, Option<String>, Option<String>),
    ) -> Result<(Staging, Vec<String>), SourceError> {
        let wrong = || SourceError::Wrong { field: "url", message: "must be an https URL".to_owned() };
        let url = Url::parse(url).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(wrong());
        }
        let Some((wire, commands)) = &self.0 else {
            return Err(SourceError::NotFound("nothing can be fetched here".to_owned()));
        };
        let repository = Repository { url: &url, branch, inner };
        git::fetch(wire, commands, folders, repository, ("url", true)).await.map(parts)
    }
}

fn parts(fetched: Fetched) -> (Staging, Vec<String>) {
    let warnings = fetched.warnings.into_iter().map(|warning| warning.message).collect();
    (fetched.staging, warnings)
}
