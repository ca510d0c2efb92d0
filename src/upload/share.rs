//! Who may have how many bytes of uploads: all together, each family of agents (an agent that a client created, and all that descend
//! from it), and each user. So no agent and no chat takes the room of others.

use std::collections::HashMap;
use std::hash::Hash;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::files::FilesError;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use agentsvc_systems::agent::{AgentView, GetAgent};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::config::Uploads as Settings;

/// Whose share an upload takes. It is stored with it: who owns the agent later changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UploadShare {
    /// The agent at the top of the family.
    pub(super) family: AgentId,
    /// The user whom the agent belonged to when the file came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<UserId>,
}

/// To which agent an upload goes, and whose share it takes.
pub(crate) type Whose = (AgentId, UploadShare);

impl UploadShare {
    /// An agent that belongs to nobody and descends from none; of nobody's agent, the clients of the API.
    pub(super) const fn alone(agent: AgentId) -> Self {
        Self { family: agent, user: None }
    }

    /// Whose share the uploads of an agent take now. Blocks until the world has answered.
    pub(super) fn now(bridge: &Bridge, agent: AgentId) -> Result<Self, FilesError> {
        if agent.0.is_nil() {
            return Ok(Self::alone(agent));
        }
        let handle = Handle::try_current().map_err(|error| {
            tracing::error!(%error, "an upload began outside of the runtime");
            FilesError::Failed
        })?;
        let AgentView { family, owner: user, .. } = handle.block_on(bridge.ask(GetAgent(agent))).map_err(no_holder)?;
        Ok(Self { family, user })
    }
}

fn no_holder(refusal: Refusal) -> FilesError {
    match refusal.kind {
        RefusalKind::NotFound => FilesError::NotFound(refusal.message),
        _ => FilesError::Busy(refusal.message),
    }
}

/// The bytes that are taken. What is on its way in counts.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) total: u64,
    /// Of each that has any.
    families: HashMap<AgentId, u64>,
    users: HashMap<UserId, u64>,
}

impl Used {
    /// Takes room for `bytes` more; all of it or none. What has no holder is bounded with all others alone.
    pub(super) fn take(&mut self, holder: Option<UploadShare>, bytes: u64, most: &Settings) -> Result<(), FilesError> {
        let Settings { max_total_bytes, max_agent_bytes, max_user_bytes, .. } = *most;
        if self.total.saturating_add(bytes) > max_total_bytes {
            let text = format!("the limit of {max_total_bytes} bytes for all uploads is reached; delete some first");
            return Err(FilesError::Full(text));
        }
        let full = |whose: &str, key: &str, limit: u64| {
            let text = format!("the limit of {limit} bytes for the uploads of {whose} is reached ([uploads] {key})");
            Err(FilesError::Quota { text, limit })
        };
        if let Some(UploadShare { family, user }) = holder {
            if of(&self.families, family).saturating_add(bytes) > max_agent_bytes {
                return full("one agent and those it spawned", "max_agent_bytes", max_agent_bytes);
            }
            if user.is_some_and(|user| of(&self.users, user).saturating_add(bytes) > max_user_bytes) {
                return full("the agents of one user", "max_user_bytes", max_user_bytes);
            }
        }
        self.add(holder, bytes);
        Ok(())
    }

    /// Counts bytes that are there already.
    pub(super) fn add(&mut self, holder: Option<UploadShare>, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        if let Some(UploadShare { family, user }) = holder.filter(|_| bytes > 0) {
            *self.families.entry(family).or_default() += bytes;
            if let Some(user) = user {
                *self.users.entry(user).or_default() += bytes;
            }
        }
    }

    pub(super) fn give_back(&mut self, holder: Option<UploadShare>, bytes: u64) {
        self.total = self.total.saturating_sub(bytes);
        if let Some(UploadShare { family, user }) = holder {
            less(&mut self.families, family, bytes);
            if let Some(user) = user {
                less(&mut self.users, user, bytes);
            }
        }
    }
}

fn of<K: Hash + Eq>(shares: &HashMap<K, u64>, whose: K) -> u64 {
    shares.get(&whose).copied().unwrap_or_default()
}

fn less<K: Hash + Eq>(shares: &mut HashMap<K, u64>, whose: K, bytes: u64) {
    if let Some(share) = shares.get_mut(&whose) {
        *share = share.saturating_sub(bytes);
        if *share == 0 {
            shares.remove(&whose);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_family_and_a_user_leave_room_to_others_and_nobody_is_kept_who_has_nothing() {
        let most = Settings { max_total_bytes: 100, max_agent_bytes: 40, max_user_bytes: 60, ..Settings::default() };
        let [ann, bob] = [1, 2].map(|n| Some(UserId(Uuid::from_u128(n))));
        let holder = |family, user| Some(UploadShare { family: AgentId(Uuid::from_u128(family)), user });
        let mut used = Used::default();
        let limit = |result| match result {
            Err(FilesError::Quota { limit, .. }) => Some(limit),
            Err(FilesError::Full(_)) => Some(100),
            _ => None,
        };
        assert_eq!(limit(used.take(holder(1, ann), 40, &most)), None);
        assert_eq!(limit(used.take(holder(1, ann), 1, &most)), Some(40), "the family has its share");
        assert_eq!(limit(used.take(holder(2, ann), 21, &most)), Some(60), "the user has a share");
        assert_eq!(limit(used.take(holder(2, ann), 20, &most)), None);
        assert_eq!(limit(used.take(holder(3, bob), 40, &most)), None);
        assert_eq!(limit(used.take(None, 1, &most)), Some(100), "all have what there is");
        assert_eq!((used.total, used.families.len(), used.users.len()), (100, 3, 2), "what was refused took nothing");
        used.give_back(holder(1, ann), 40);
        assert_eq!(limit(used.take(holder(2, ann), 20, &most)), None);
        used.give_back(holder(2, ann), 40);
        used.give_back(holder(3, bob), 40);
        assert!(used.total == 0 && used.families.is_empty() && used.users.is_empty(), "{used:?}");
    }
}
