//! What the file tools share: the agent's workspace, off the runtime's threads, and errors as sentences.

use std::sync::Arc;

use crate::checkpoint::config::Checkpoints;
use crate::checkpoint::{Change, CheckpointStore};
use crate::kernel::sandbox::{Error, Workspace};
use crate::tool::toolset::Context;

/// Does `work` in the agent's workspace on a thread that may block. A call that is dropped meanwhile does not undo what
/// was done; each piece of work is small.
pub(crate) async fn in_workspace<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&Workspace) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (run, workspaces) = (context.run.clone(), context.parts.workspaces.clone());
    let task = tokio::task::spawn_blocking(move || {
        let workspace = workspaces.open_for(run.agent, &run.agent_name, run.holder).map_err(sentence)?;
        work(&workspace)
    });
    task.await.map_err(|_| "The file operation failed with an internal error.".to_owned())?
}

/// What the model reads of a change that waited too long for its turn.
const LATE: &str = "No checkpoint was made: the files are being restored.";

/// Keeps files before a tool changes them.
pub(crate) struct Keeper {
    store: Arc<CheckpointStore>,
    is_on: bool,
    by: Change,
}

impl Keeper {
    /// For a call of `tool`.
    pub(crate) fn of(context: &Context, tool: &'static str) -> Self {
        let (settings, run) = (&context.parts.settings, &context.run);
        let (store, is_on) = (settings.get::<CheckpointStore>(), settings.get::<Checkpoints>().enabled);
        let session = (!context.direct).then_some(run.session);
        Self { store, is_on, by: Change { tool, agent: Some(run.agent), session, holder: Some(run.holder) } }
    }

    /// Makes a change of the files at `paths`, with a checkpoint of them before. The model reads of a change without one.
    pub(crate) fn around(
        &self,
        workspace: &Workspace,
        paths: &[&str],
        make: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        // Where nothing is kept, a restore waits for the change all the same.
        let (made, is_late) = self.store.around(workspace, (&self.by, if self.is_on { paths } else { &[] }), make);
        let told = made?;
        Ok(if is_late && self.is_on { format!("{told} {LATE}") } else { told })
    }
}

/// An error as the model reads it.
pub(crate) fn sentence(error: Error) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
