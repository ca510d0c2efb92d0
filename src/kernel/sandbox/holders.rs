//! Whose share of all workspaces each takes. It is noted beside them, for an agent may be gone whose files are there.

use std::path::Path;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;

use super::marks;
use super::workspace::{OWNERS, Shared};

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
    let owner = marks::read(root, OWNERS, directory.file_name()?.to_str()?).ok()??;
    let owner: AgentId = owner.parse().ok()?;
    read(&marks::read(root, HOLDERS, &owner.to_string()).ok()??)
}

impl Shared {
    /// The workspace of the agent at `path` takes the share of this holder from here on. Where the disk is too full for the note
    /// of it, files are read and deleted nevertheless; after a restart the workspace takes the share that was noted last, until
    /// it is opened again.
    pub(super) fn hold(&self, agent: AgentId, path: &Path, holder: Holder) {
        if self.quotas.is_held(path, holder) {
            return;
        }
        let (text, name) = (text_of(holder), agent.to_string());
        if self.noted(HOLDERS, &name).as_ref() != Some(&text) {
            let _claim = self.claims.lock();
            if let Err(error) = self.note(HOLDERS, &name, &text) {
                tracing::warn!(%agent, %error, "whose share a workspace takes could not be noted");
            }
        }
        self.quotas.hold(path, holder);
    }
}
