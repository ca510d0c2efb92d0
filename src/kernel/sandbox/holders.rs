//! Whose share of all workspaces each takes. It is noted beside them, for an agent may be gone whose files are there.

use std::path::Path;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;

use super::error::Error;
use super::workspace::{OWNERS, Shared};
use crate::kernel::disk;

/// Whose share the workspace of an agent takes, by agent.
const HOLDERS: &str = ".holders";

fn text_of(holder: Holder) -> String {
    match holder {
        Holder::Family(agent) => format!("family {agent}"),
        Holder::User(user) => format!("user {user}"),
    }
}

fn read(text: &str) -> Option<Holder> {
    match text.split_once(' ')? {
        ("family", id) => id.parse().ok().map(Holder::Family),
        ("user", id) => id.parse().ok().map(Holder::User),
        _ => None,
    }
}

/// Whose share the workspace in `directory` took when it was opened last, of those at `root`.
pub(super) fn noted_holder(root: &Path, directory: &Path) -> Option<Holder> {
    let owner = disk::read_text(&root.join(OWNERS).join(directory.file_name()?)).ok()?;
    let owner: AgentId = owner.trim().parse().ok()?;
    read(disk::read_text(&root.join(HOLDERS).join(owner.to_string())).ok()?.trim())
}

impl Shared {
    /// The workspace of the agent at `path` takes the share of this holder from here on.
    pub(super) fn hold(&self, agent: AgentId, path: &Path, holder: Holder) -> Result<(), Error> {
        if self.quotas.is_held(path, holder) {
            return Ok(());
        }
        let (text, name) = (text_of(holder), agent.to_string());
        if self.noted(HOLDERS, &name).as_ref() != Some(&text) {
            let _claim = self.claims.lock();
            self.note(HOLDERS, &name, &text).map_err(|error| Error::of("open the workspace", "", error))?;
        }
        self.quotas.hold(path, holder);
        Ok(())
    }
}
