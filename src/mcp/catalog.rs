//! The MCP catalog: `{home}/mcp/catalog/<id>.toml` or `<id>/MCP.toml`, which the operator puts there. What others wrote is
//! read as it is: keys without a meaning here are ignored.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use agentsvc_api::mcp::servers::shape::{CatalogOauth, CatalogText};
use agentsvc_systems::mcp::limits::{MCP_CATALOG_ENTRIES_MAX, MCP_CATALOG_FILE_BYTES_MAX};
use agentsvc_systems::mcp::{GivenTransport, McpOauth};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::client::config::{is_name, is_variable};
use crate::kernel::disk;
use crate::kernel::vault;

/// What the names of its files end with.
const EXTENSION: &str = "toml";
/// The file of an entry that is a directory.
const INSIDE: &str = "MCP.toml";

/// A server that can be installed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// What it is called in requests; the name of its file.
    pub(crate) id: Box<str>,
    /// What is shown of it.
    pub(crate) text: CatalogText,
    /// How the server is reached.
    pub(crate) given: GivenTransport,
    /// Further keys of `[transport]`.
    pub(crate) grants: Grants,
}

/// The settings of an entry as the client of servers takes them.
pub(crate) fn oauth_settings(given: &CatalogOauth) -> McpOauth {
    let CatalogOauth { provider, scopes, auth_url, token_url, client_id } = given.clone();
    McpOauth { provider: Some(provider), scopes, auth_url, token_url, client_id, ..McpOauth::default() }
}

/// What the program of an entry may use beside the system and its own directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Grants {
    /// May it use the network? Most entries download their program.
    pub(crate) network: bool,
    /// Directories that it can read.
    pub(crate) readable_paths: Vec<PathBuf>,
    /// Directories that it can read and change.
    pub(crate) writable_paths: Vec<PathBuf>,
}

impl Default for Grants {
    fn default() -> Self {
        Self { network: true, readable_paths: Vec::new(), writable_paths: Vec::new() }
    }
}

impl Entry {
    /// Does it declare this variable?
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.text.required_env.iter().any(|required| required.name == name)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What must be otherwise.
    fn read(stem: &str, text: &str) -> Result<Self, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
        let Value::Object(mut table) = serde_json::to_value(table).map_err(|error| error.to_string())? else {
            return Err("it is no table".to_owned());
        };
        if table.get("id").and_then(Value::as_str) != Some(stem) || !is_name(stem) {
            return Err("`id` must be the name of the file or directory, with letters, digits, `-` and `_`".to_owned());
        }
        let Some(Value::Object(mut transport)) = table.remove("transport") else {
            return Err("it needs [transport]".to_owned());
        };
        let taken = ["network", "readable_paths", "writable_paths"];
        let grants: Map<_, _> = taken.iter().filter_map(|key| transport.remove_entry(*key)).collect();
        let grants: Grants = serde_json::from_value(Value::Object(grants)).map_err(|error| error.to_string())?;
        if grants.readable_paths.iter().chain(&grants.writable_paths).any(|path| !path.is_absolute()) {
            return Err("`readable_paths` and `writable_paths` must be absolute paths".to_owned());
        }
        // A key behind `[health_check]` is in that table.
        let inside = table.get_mut("health_check").and_then(Value::as_object_mut);
        if let Some(instructions) = inside.and_then(|table| table.remove("setup_instructions")) {
            table.entry("setup_instructions").or_insert(instructions);
        }
        let given = GivenTransport::read(transport).map_err(|why| format!("transport: {why}"))?;
        let text: CatalogText = serde_json::from_value(Value::Object(table)).map_err(|error| error.to_string())?;
        let mut names = text.required_env.iter().map(|required| &*required.name);
        if !names.all(|name| is_variable(name) && name != vault::VARIABLE) {
            return Err("`name` of [[required_env]] must be the name of an environment variable".to_owned());
        }
        Ok(Self { id: stem.into(), text, given, grants })
    }
}

/// The catalog of a home. Every call reads the disk.
#[derive(Clone, Debug)]
pub(crate) struct Catalog(PathBuf);

impl Catalog {
    /// The catalog whose files are in `directory`, which need not exist.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Every entry, in the order of their ids. Files that cannot be used are left out, with a warning.
    pub(crate) fn all(&self) -> Vec<Entry> {
        let listed = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<_> = listed.filter_map(|path| file_of(&path)).collect();
        // Files before directories: of two entries of one id the first counts.
        files.sort_by_key(|path| (path.ends_with(INSIDE), path.clone()));
        if files.len() > MCP_CATALOG_ENTRIES_MAX {
            tracing::warn!(files = files.len(), most = MCP_CATALOG_ENTRIES_MAX, "the MCP catalog has too many files");
            files.truncate(MCP_CATALOG_ENTRIES_MAX);
        }
        let read = |path: &PathBuf| match read(path) {
            Ok(entry) => Some(entry),
            Err(why) => {
                tracing::warn!(file = %path.display(), why, "a file of the MCP catalog is left out");
                None
            }
        };
        let mut entries: Vec<Entry> = files.iter().filter_map(read).collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        entries.dedup_by(|later, first| later.id == first.id);
        entries
    }

    /// The entry of this id.
    ///
    /// # Errors
    /// Why it cannot be used; `None` when there is none.
    pub(crate) fn find(&self, id: &str) -> Result<Option<Entry>, String> {
        if !is_name(id) {
            return Ok(None);
        }
        let places = [self.place(id), self.0.join(id).join(INSIDE)];
        places.iter().find(|path| path.is_file()).map(|path| read(path)).transpose()
    }

    /// Where the file of an entry of this id is put.
    pub(crate) fn place(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.{EXTENSION}"))
    }
}

/// The entry in a file or directory anywhere, whatever its name, and its text.
///
/// # Errors
/// Why it is none.
pub(crate) fn entry_at(path: &Path) -> Result<(Entry, String), String> {
    let inside = path.join(INSIDE);
    let text = whole_text(if path.is_dir() { &inside } else { path })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let id = table.get("id").and_then(toml::Value::as_str).ok_or("it needs `id`")?;
    Ok((Entry::read(id, &text)?, text))
}

/// The file of an entry of the catalog, in either layout.
fn file_of(path: &Path) -> Option<PathBuf> {
    if path.extension().is_some_and(|it| it == EXTENSION) {
        return Some(path.to_owned());
    }
    Some(path.join(INSIDE)).filter(|inside| inside.is_file())
}

fn read(path: &Path) -> Result<Entry, String> {
    let named = if path.file_name().is_some_and(|name| name == INSIDE) { path.parent() } else { Some(path) };
    let stem = named.and_then(Path::file_stem).and_then(|stem| stem.to_str()).unwrap_or_default();
    Entry::read(stem, &whole_text(path)?)
}

fn whole_text(path: &Path) -> Result<String, String> {
    let text = text_of(path).map_err(|error| error.to_string())?;
    text.ok_or_else(|| format!("it is no file of at most {MCP_CATALOG_FILE_BYTES_MAX} bytes"))
}

fn text_of(path: &Path) -> io::Result<Option<String>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut text = String::new();
    disk::open(path)?.take(MCP_CATALOG_FILE_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(Some(text).filter(|text| text.len() <= MCP_CATALOG_FILE_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use agentsvc_api::mcp::servers::shape::CatalogHealthCheck;

    use super::*;

    /// As entries of others are written: the last key stands behind `[health_check]`.
    const NOTES: &str = r#"
id = "notes"
name = "Notes"
description = "Keeps notes"
category = "something new"
icon = "N"
tags = ["text"]
future_key = { x = 1 }

[transport]
type = "stdio"
command = "npx"
args = ["-y", "@example/notes", "$HOME", "${NOTES_DIR}"]

[[required_env]]
name = "NOTES_TOKEN"
label = "Token"
help = "From the settings"
is_secret = true
get_url = "https://example.com"

[oauth]
provider = "example"
scopes = ["read"]
auth_url = "https://example.com/authorize"
token_url = "https://example.com/token"

[health_check]
interval_secs = 30
unhealthy_threshold = 2

setup_instructions = """
1. Sign in.
"""

[i18n.de]
name = "Notizen"
description = "Bewahrt Notizen auf"
"#;

    #[test]
    fn entries_are_read_as_others_write_them() {
        let entry = Entry::read("notes", NOTES).unwrap();
        assert_eq!((&*entry.text.name, &*entry.text.category), ("Notes", "something new"));
        assert_eq!(entry.text.setup_instructions, "1. Sign in.\n");
        assert_eq!(entry.text.health_check, CatalogHealthCheck { interval_secs: 30, unhealthy_threshold: 2 });
        assert_eq!((entry.text.i18n["de"].name.as_str(), entry.grants.network), ("Notizen", true));
        assert!(entry.declares("NOTES_TOKEN") && !entry.declares("HOME"));
        assert_eq!(oauth_settings(&entry.text.oauth.unwrap()).scopes, ["read"]);
        assert_eq!(entry.given.transport.kind(), "stdio");
        let outside = NOTES.replace("setup_instructions = \"\"\"\n1. Sign in.\n\"\"\"\n", "");
        let outside = format!("setup_instructions = \"first\"\n{outside}");
        assert_eq!(Entry::read("notes", &outside).unwrap().text.setup_instructions, "first");
        let granted = NOTES.replace("[transport]", "[transport]\nnetwork = false\nwritable_paths = [\"/srv\"]");
        let grants = Entry::read("notes", &granted).unwrap().grants;
        assert_eq!((grants.network, grants.writable_paths), (false, vec![PathBuf::from("/srv")]));
    }

    #[test]
    fn files_that_make_no_sense_are_left_out() {
        let wrong = |stem: &str, text: &str| Entry::read(stem, text).unwrap_err();
        assert!(wrong("other", NOTES).contains("the name of the file or directory"));
        assert!(wrong("notes", "id = \"notes\"\n").contains("needs [transport]"));
        assert!(wrong("notes", "id = ").contains("string"), "{}", wrong("notes", "id = "));
        assert!(wrong("notes", &NOTES.replace("\"stdio\"", "\"pigeon\"")).contains("transport: unknown variant"));
        assert!(wrong("notes", &NOTES.replace("\"NOTES_TOKEN\"", "\"A B\"")).contains("environment variable"));
        let dir = tempfile::tempdir().unwrap();
        let catalog = Catalog::new(dir.path().join("catalog"));
        assert_eq!(catalog.all(), []);
        fs::create_dir(dir.path().join("catalog")).unwrap();
        let put = |name: &str, text: &str| fs::write(dir.path().join("catalog").join(name), text).unwrap();
        put("notes.toml", NOTES);
        put("broken.toml", "id = ");
        put("huge.toml", &"#".repeat(MCP_CATALOG_FILE_BYTES_MAX + 1));
        put("notes.txt", "");
        fs::create_dir(dir.path().join("catalog/dir.toml")).unwrap();
        let all = catalog.all();
        assert_eq!(all.iter().map(|entry| &*entry.id).collect::<Vec<_>>(), ["notes"]);
        assert_eq!(catalog.find("notes").unwrap().as_ref(), all.first());
        assert!(catalog.find("broken").is_err() && catalog.find("huge").is_err());
        assert_eq!(catalog.find("../catalog/notes").unwrap(), None);
        assert_eq!(catalog.find("none").unwrap(), None);
    }

    #[test]
    fn an_entry_can_be_a_directory_and_the_file_counts_first() {
        let dir = tempfile::tempdir().unwrap();
        let catalog = Catalog::new(dir.path().to_owned());
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("notes/MCP.toml", NOTES);
        put("other/MCP.toml", NOTES);
        put("empty/README.md", "");
        assert_eq!(catalog.all().iter().map(|entry| &*entry.text.name).collect::<Vec<_>>(), ["Notes"]);
        assert_eq!(&*catalog.find("notes").unwrap().unwrap().text.name, "Notes");
        assert!(catalog.find("other").unwrap_err().contains("the name of the file or directory"));
        put("notes.toml", &NOTES.replace("\"Notes\"", "\"File\""));
        assert_eq!(catalog.all().iter().map(|entry| &*entry.text.name).collect::<Vec<_>>(), ["File"]);
        assert_eq!(&*catalog.find("notes").unwrap().unwrap().text.name, "File");
        // Elsewhere its name says nothing.
        for path in [dir.path().join("other"), dir.path().join("other/MCP.toml")] {
            assert_eq!(&*entry_at(&path).unwrap().0.id, "notes");
        }
        assert!(entry_at(&dir.path().join("empty")).is_err());
        put("bare.toml", "name = \"x\"");
        assert_eq!(entry_at(&dir.path().join("bare.toml")).unwrap_err(), "it needs `id`");
    }
}
