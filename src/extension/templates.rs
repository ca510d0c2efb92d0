//! `{home}/extensions/<id>.toml`: templates as they were when clients installed them from a path. They describe extensions; how
//! their servers run is in the records of these.

use std::fs;
use std::path::{Path, PathBuf};

use agentsvc_api::extension::templates::{ExtensionTemplates, KeepError, Template};
use agentsvc_api::mcp::servers::shape::CatalogItem;
use agentsvc_systems::mcp::limits::MCP_CATALOG_ENTRIES_MAX;

use crate::kernel::disk;
use crate::kernel::home::create_private_dir;
use crate::mcp::catalog::{Catalog, Entry, entry_at};
use crate::mcp::client::manage::shown_entry;

/// The templates of a home.
pub(super) struct Kept {
    directory: PathBuf,
    catalog: Catalog,
}

impl Kept {
    /// Those in `directory`, which need not exist.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { catalog: Catalog::new(directory.clone()), directory }
    }
}

fn template(entry: Entry, text: String) -> Template {
    let (network, has_headers) = (entry.grants.network, !entry.given.headers.is_empty());
    Template { item: shown_entry(entry, &[]), network, has_headers, text }
}

impl ExtensionTemplates for Kept {
    fn all(&self) -> Vec<CatalogItem> {
        self.catalog.all().into_iter().map(|entry| shown_entry(entry, &[])).collect()
    }

    fn find(&self, id: &str) -> Result<Option<Template>, String> {
        let found = self.catalog.find(id)?;
        Ok(found.map(|entry| template(entry, String::new())))
    }

    fn read(&self, path: &Path) -> Result<Option<Template>, String> {
        if !path.exists() {
            return Ok(None);
        }
        let (entry, text) = entry_at(path)?;
        Ok(Some(template(entry, text)))
    }

    fn keep(&self, template: &Template) -> Result<(), KeepError> {
        let failed = |error: std::io::Error| KeepError::Failed(error.to_string());
        let place = self.catalog.place(&template.item.id);
        create_private_dir(&self.directory).map_err(|error| KeepError::Failed(error.to_string()))?;
        let known = fs::read_dir(&self.directory).map_err(failed)?.count();
        if known >= MCP_CATALOG_ENTRIES_MAX && !place.exists() {
            return Err(KeepError::Full(MCP_CATALOG_ENTRIES_MAX));
        }
        disk::replace(&place, template.text.as_bytes()).map_err(failed)
    }

    fn remove(&self, id: &str) -> Result<(), String> {
        let removed = disk::remove_file(&self.catalog.place(id));
        removed.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: &str) -> String {
        format!("id = \"{id}\"\nname = \"N\"\n[transport]\ntype = \"stdio\"\ncommand = \"c\"\nnetwork = false\n")
    }

    #[test]
    fn a_template_is_read_kept_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::new(dir.path().join("extensions"));
        let file = dir.path().join("any-name.toml");
        assert!(kept.read(&file).unwrap().is_none());
        fs::write(&file, text("notes")).unwrap();
        let template = kept.read(&file).unwrap().unwrap();
        assert_eq!((&*template.item.id, template.network, template.has_headers), ("notes", false, false));
        assert!(kept.find("notes").unwrap().is_none() && kept.all().is_empty());
        kept.keep(&template).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("extensions/notes.toml")).unwrap(), text("notes"));
        assert_eq!((kept.find("notes").unwrap().unwrap().item.id.as_str(), kept.all().len()), ("notes", 1));
        kept.remove("notes").unwrap();
        kept.remove("notes").unwrap();
        assert!(kept.find("notes").unwrap().is_none());
        fs::write(&file, "id = \"../notes\"\n").unwrap();
        assert!(kept.read(&file).unwrap_err().contains("letters"));
    }

    #[test]
    fn no_more_than_the_limit_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::new(dir.path().join("extensions"));
        let file = dir.path().join("t.toml");
        fs::write(&file, text("notes")).unwrap();
        let template = kept.read(&file).unwrap().unwrap();
        kept.keep(&template).unwrap();
        (1..MCP_CATALOG_ENTRIES_MAX).for_each(|n| {
            fs::write(dir.path().join(format!("extensions/e{n}.toml")), "").unwrap();
        });
        // What is there can be replaced.
        kept.keep(&template).unwrap();
        fs::write(&file, text("more")).unwrap();
        let more = kept.read(&file).unwrap().unwrap();
        assert_eq!(kept.keep(&more), Err(KeepError::Full(MCP_CATALOG_ENTRIES_MAX)));
    }
}
