//! `file_delete`: deletes a file or a directory.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::files::{Keeper, in_workspace, sentence};
use crate::tool::toolset::{Context, Ended, Need, Tool, input};

/// The table row. Never repeated: a second time could take away what was made in between.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "file_delete",
    "Deletes a file or an empty directory of your private workspace; with `recursive`, a directory and everything in \
     it. This cannot be undone.",
    run,
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

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { path, recursive } = input(&text)?;
        let keeper = Keeper::of(&context, "file_delete");
        let work = in_workspace(&context, move |workspace| {
            let count = keeper.around(workspace, &[&path], || workspace.remove(&path, recursive)).map_err(sentence)?;
            let entries = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
            Ok(format!("Deleted {path} ({entries})."))
        });
        work.await.map(Ended::Text)
    })
}
