//! `file_delete`: deletes a file or a directory.

use schemars::JsonSchema;
use serde::Deserialize;

use super::files::{Keeper, in_workspace, sentence};
use crate::kernel::sandbox::{Entry, Kind, Workspace};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Files of a deleted directory of which a checkpoint is made.
const FILES_LISTED_MAX: usize = 2_000;

/// The table row. Never repeated: a second time could take away what was made in between.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "file_delete",
    "Deletes a file or an empty directory of your private workspace; with `recursive`, a directory and everything in \
     it.",
    |context, text| on_input(context, text, run),
)
.needs(Need::Files)
.order(15);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file or directory, relative to the workspace.
    path: String,
    /// Delete a directory with everything in it.
    #[serde(default)]
    recursive: bool,
}

async fn run(context: Context, Input { path, recursive }: Input) -> Result<Ended, String> {
    let keeper = Keeper::of(&context, "file_delete");
    let work = in_workspace(&context, move |workspace| {
        let files = files_beneath(workspace, &path, recursive);
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        keeper.around(workspace, &files, || {
            let count = workspace.remove(&path, recursive).map_err(sentence)?;
            let entries = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
            Ok(format!("Deleted {path} ({entries})."))
        })
    });
    work.await.map(Ended::Text)
}

/// The files that a deletion takes away, as far as a listing goes; the path itself where that is a file.
fn files_beneath(workspace: &Workspace, path: &str, recursive: bool) -> Vec<String> {
    let listed = recursive.then(|| workspace.list(path, true, FILES_LISTED_MAX).ok()).flatten();
    let is_file = |entry: &Entry| entry.kind == Kind::File;
    let files: Vec<String> =
        listed.into_iter().flat_map(|listing| listing.entries).filter(is_file).map(|entry| entry.path).collect();
    if files.is_empty() { vec![path.to_owned()] } else { files }
}
