//! `file_list`: what is in the workspace.

use agentsvc_components::kernel::limit::FILE_LIST_MAX;
use chrono::SecondsFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use super::files::{in_workspace, sentence};
use crate::kernel::sandbox::{Entry, Kind, Listing};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Entries of one call unless it says otherwise.
const ENTRIES_DEFAULT: usize = 500;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "file_list",
    "Lists a directory of your private workspace: kind, size in bytes, modification time and path of each entry, \
     sorted by name. With `recursive`, everything below it too.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::Files)
.order(14);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The directory. Default: the workspace itself.
    #[serde(default)]
    path: String,
    /// Include subdirectories.
    #[serde(default)]
    recursive: bool,
    /// Maximum number of entries. Default: 500.
    limit: Option<u64>,
}

async fn run(context: Context, Input { path, recursive, limit }: Input) -> Result<Ended, String> {
    let limit = limit.map_or(ENTRIES_DEFAULT, |limit| usize::try_from(limit).unwrap_or(FILE_LIST_MAX));
    let listing = in_workspace(&context, move |workspace| workspace.list(&path, recursive, limit).map_err(sentence));
    listing.await.map(|listing| Ended::Text(shown(&listing)))
}

fn shown(Listing { entries, more }: &Listing) -> String {
    if entries.is_empty() && !more {
        return "[The directory is empty.]".to_owned();
    }
    let mut text: String = entries.iter().map(line).collect();
    if *more {
        text.push_str("[There are more entries. List a subdirectory, or raise `limit`.]\n");
    }
    text
}

fn line(entry: &Entry) -> String {
    let kind = match entry.kind {
        Kind::File => "file",
        Kind::Directory => "dir ",
        Kind::Link => "link",
        Kind::Special => "spec",
    };
    let modified = entry.modified.to_rfc3339_opts(SecondsFormat::Secs, true);
    // Names that commands made may hold anything, a line end too.
    let path: String = entry.path.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("{kind} {:>10} {modified} {path}\n", entry.size)
}

#[cfg(test)]
mod tests {
    use super::shown;
    use crate::kernel::sandbox::{Entry, Kind, Listing};

    #[test]
    fn listings_read_well() {
        let entry = |path: &str, kind, size| {
            let modified = chrono::DateTime::from_timestamp(1_795_262_400, 0).unwrap();
            Entry { path: path.to_owned(), kind, size, modified }
        };
        let entries = vec![entry("a", Kind::Directory, 0), entry("a/x\ny", Kind::File, 12)];
        let text = shown(&Listing { entries, more: true });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "dir           0 2026-11-21T12:00:00Z a");
        assert_eq!(lines[1], "file         12 2026-11-21T12:00:00Z a/x\u{fffd}y");
        assert!(lines[2].starts_with("[There are more entries."));
        assert_eq!(shown(&Listing::default()), "[The directory is empty.]");
    }
}
