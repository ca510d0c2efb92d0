//! What keeps the templates that clients install from paths.

use std::path::Path;

use crate::mcp::servers::shape::CatalogItem;

/// A template that is not of the catalog.
#[derive(Clone, Debug)]
pub struct Template {
    /// What it says.
    pub item: CatalogItem,
    /// Does its program need the network?
    pub network: bool,
    /// Does it have headers of requests, whose values would be shown?
    pub has_headers: bool,
    /// Its file.
    pub text: String,
}

/// Why a template is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepError {
    /// There are as many as can be.
    Full(usize),
    /// The disk failed: how.
    Failed(String),
}

/// Keeps templates. The daemon provides it. Every call blocks on the disk.
pub trait ExtensionTemplates: Send + Sync + 'static {
    /// Every template that is kept, in the order of their ids.
    fn all(&self) -> Vec<CatalogItem>;

    /// The template of this id that is kept.
    ///
    /// # Errors
    /// Why its file cannot be used.
    fn find(&self, id: &str) -> Result<Option<Template>, String>;

    /// The template in a file, or in a directory as `MCP.toml`. `None` if there is no such path.
    ///
    /// # Errors
    /// Why it cannot be used, without its values.
    fn read(&self, path: &Path) -> Result<Option<Template>, String>;

    /// Keeps a template under its id.
    ///
    /// # Errors
    /// Why not; then nothing changed.
    fn keep(&self, template: &Template) -> Result<(), KeepError>;

    /// Removes the template of this id.
    ///
    /// # Errors
    /// How the disk failed.
    fn remove(&self, id: &str) -> Result<(), String>;
}
