//! Whose a workspace is: the marks of owners, and what becomes of one that is lost or damaged.

use std::io;
use std::path::{Path, PathBuf};

use agentsvc_components::AgentId;

use super::workspace::{AGENTS, OWNERS, Shared};
use crate::kernel::disk;

/// Workspaces whose owner is not known that are remembered, to be told; further ones are in the log only.
const UNKNOWN_MAX: usize = 100;

/// What is said of a workspace whose mark is damaged.
pub(super) fn unknown_owner(directory: &str) -> String {
    format!(
        "the owner of workspaces/{directory} is not known: workspaces/{OWNERS}/{directory} is damaged. Write the id of its \
         agent into this file, or delete the file to give the directory to the agent of that name"
    )
}

/// The marks of owners among the workspaces at `root` that are damaged, each as the name of its directory.
///
/// # Errors
/// They cannot be listed.
pub(crate) fn damaged_marks(root: &Path) -> io::Result<Vec<String>> {
    let is_damaged =
        |path: &PathBuf| disk::read_text(path).map_or(true, |text| text.trim().parse::<AgentId>().is_err());
    let marks = disk::entries(&root.join(OWNERS))?.into_iter().filter(is_damaged);
    let names = marks.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    // One that was not written to its end when the daemon was killed.
    Ok(names.filter(|name| !name.starts_with('.')).collect())
}

impl Shared {
    /// Whose `directory` is, for `agent`, which wants it. A mark that is lost is written again, if an agent says that it lives
    /// there: `agent`, or with `all` any other one, which takes a look at all of them.
    pub(super) fn owner(&self, agent: AgentId, directory: &str, all: bool) -> io::Result<Option<AgentId>> {
        let mark = disk::there(disk::read_text(&self.root.join(OWNERS).join(directory)));
        let is_lost = matches!(mark, Ok(None));
        if let Some(owner) = mark.ok().flatten().and_then(|text| text.trim().parse().ok()) {
            self.unknown.lock().remove(directory);
            return Ok(Some(owner));
        }
        if !self.exists(directory) {
            return Ok(None);
        }
        let is_new = !self.unknown.lock().contains(directory);
        let resident = match self.noted(AGENTS, &agent.to_string()) {
            Some(home) if home == directory => Some(agent),
            _ if all || !is_lost && is_new => self.resident(directory)?,
            _ => None,
        };
        if let Some(resident) = resident {
            tracing::warn!(directory, agent = %resident, "the mark of the owner of a workspace was lost or damaged; written again");
            self.note(OWNERS, directory, &resident.to_string())?;
            self.unknown.lock().remove(directory);
            return Ok(Some(resident));
        }
        if is_lost {
            self.unknown.lock().remove(directory);
            return Ok(None);
        }
        let mut unknown = self.unknown.lock();
        if unknown.len() < UNKNOWN_MAX {
            unknown.insert(directory.to_owned());
        }
        if is_new {
            tracing::error!("{}", unknown_owner(directory));
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// The agent that says it lives in `directory`.
    fn resident(&self, directory: &str) -> io::Result<Option<AgentId>> {
        let agents = disk::entries(&self.root.join(AGENTS))?.into_iter();
        let mut agents = agents.filter_map(|path| path.file_name()?.to_str()?.parse::<AgentId>().ok());
        Ok(agents.find(|agent| self.noted(AGENTS, &agent.to_string()).is_some_and(|home| home == directory)))
    }
}
