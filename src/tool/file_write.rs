//! `file_write`: writes a text file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::files::{Keeper, in_workspace, sentence};
use crate::kernel::sandbox::{Workspace, Write};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row. Never repeated: what `append` adds twice is there twice.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "file_write",
    "Writes a text file of your private workspace: replaces it, appends to it, or creates a file that must not \
     exist. Missing directories are created. To change part of a file, use apply_patch.",
    |context, text| on_input(context, text, run),
)
.needs(Need::Files)
.order(13);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, relative to the workspace, such as "notes/today.md".
    path: String,
    /// The text.
    content: String,
    /// Overwrite an existing file (default), append to it, or only create a new one.
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Overwrite,
    Append,
    Create,
}

async fn run(context: Context, Input { path, content, mode }: Input) -> Result<Ended, String> {
    let keeper = Keeper::of(&context, "file_write");
    let work = in_workspace(&context, move |workspace| {
        keeper.around(workspace, &[&path], || write(workspace, &path, content.as_bytes(), mode))
    });
    work.await.map(Ended::Text)
}

fn write(workspace: &Workspace, path: &str, bytes: &[u8], mode: Mode) -> Result<String, String> {
    let count = bytes.len();
    let new = match mode {
        Mode::Overwrite => workspace.write(path, bytes, Write::Overwrite),
        Mode::Create => workspace.write(path, bytes, Write::Create),
        Mode::Append => {
            let size = workspace.append(path, bytes).map_err(sentence)?;
            return Ok(format!("Added {count} bytes to {path}; it has {size} bytes now."));
        }
    };
    let what = if new.map_err(sentence)? { "a new file" } else { "the file was replaced" };
    Ok(format!("Wrote {count} bytes to {path} ({what})."))
}
