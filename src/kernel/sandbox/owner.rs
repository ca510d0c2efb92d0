//! Whose a workspace is: the marks of owners, and what becomes of one that is lost or damaged.

use std::io;
use std::path::Path;

use agentsvc_components::AgentId;

use super::marks::{self, Marks};
use super::workspace::{AGENTS, OWNERS, Shared};

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
    let Some(marks) = Marks::open(root, OWNERS)? else { return Ok(Vec::new()) };
    let is_whole =
        |name: &String| marks.read(name).is_ok_and(|text| text.is_none_or(|text| text.parse::<AgentId>().is_ok()));
    let mut names = marks.names()?;
    names.retain(|name| !is_whole(name));
    Ok(names)
}

impl Shared {
    /// Whose `directory` is, for `agent`, which wants it. A mark that is lost is written again, if an agent says that it lives
    /// there: `agent`, or with `all` any other one, which takes a look at all of them.
    pub(super) fn owner(&self, agent: AgentId, directory: &str, all: bool) -> io::Result<Option<AgentId>> {
        let mark = marks::read(&self.root, OWNERS, directory);
        let is_lost = matches!(mark, Ok(None));
        if let Some(owner) = mark.ok().flatten().and_then(|text| text.parse().ok()) {
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
        let Some(marks) = Marks::open(&self.root, AGENTS)? else { return Ok(None) };
        let mut agents = marks.names()?.into_iter().filter_map(|name| name.parse::<AgentId>().ok());
        Ok(agents.find(|agent| self.noted(AGENTS, &agent.to_string()).is_some_and(|home| home == directory)))
    }
}
