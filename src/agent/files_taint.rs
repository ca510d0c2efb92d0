//! The taint of agents' files where a world goes back and its files do not: rows say what the files were, not what was
//! written there since.

use std::path::{Path, PathBuf};

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::kernel::record::{Record, Space};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::kernel::record;

use crate::kernel::sandbox::has_workspace;
use crate::kernel::store::rows::Row;
use crate::kernel::store::view::StoreView;
use crate::kernel::store::{self, Store};

/// What is known of the files that are there.
pub struct FilesTaint {
    /// The newest world that knew them.
    pub known: StoreView,
    /// Where the workspaces are.
    pub workspaces: PathBuf,
}

impl FilesTaint {
    /// The row, if it is an agent's, with at least the taint of files that is known. A workspace whose agent is not
    /// known any more counts as written by a tool that nobody vouches for.
    ///
    /// # Errors
    /// Those of reading the known world.
    pub fn raise(&self, mut row: Row) -> Result<Row, store::Error> {
        if let Some(value) = self.raised(row.space, &row.key, &row.value)? {
            row.value = value;
        }
        Ok(row)
    }

    /// The value that takes the place of a row's; `None` when it stays.
    fn raised(&self, space: Space, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, store::Error> {
        if space != Space::World || key.first() != Some(&AgentRecord::KEY) {
            return Ok(None);
        }
        // What cannot be read is reported where the world comes to life.
        let Ok(mut agent) = record::decode::<AgentRecord>(key, value) else { return Ok(None) };
        let known = self.known.get(Space::World, key)?;
        let known = known.and_then(|value| record::decode::<AgentRecord>(key, &value).ok());
        let label = match known {
            Some(known) => known.taint.files,
            None if has_workspace(&self.workspaces, agent.id) => Taint::TOOL,
            None => Taint::NONE,
        };
        if agent.taint.files.holds(label) {
            return Ok(None);
        }
        agent.taint.files = agent.taint.files.with(label);
        Ok(record::put(&agent).value)
    }

    /// Raises the taint of files in the store at `next`, which nobody has open, and syncs it.
    ///
    /// # Errors
    /// Those of reading and writing the stores.
    pub(crate) fn raise_in(&self, next: &Path) -> Result<(), store::Error> {
        let next = Store::open(next)?;
        let raised = next.view().prefix(Space::World, &[AgentRecord::KEY]).filter_map(|row| {
            let raised = |(key, value): (Vec<u8>, Vec<u8>)| {
                Ok(self.raised(Space::World, &key, &value)?.map(|value| (key, value)))
            };
            row.and_then(raised).transpose()
        });
        next.rewrite(raised)
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::id::SessionId;
    use agentsvc_components::manifest::ManifestHash;
    use agentsvc_components::{AgentId, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn agent(n: u128, files: Taint) -> AgentRecord {
        let mut agent: AgentRecord = serde_json::from_value(serde_json::json!({
            "id": AgentId(Uuid::from_u128(n)),
            "name": format!("agent-{n}"),
            "manifest": ManifestHash([0; 32]),
            "current": SessionId(Uuid::from_u128(n)),
            "created_at": Timestamp(0),
            "updated_at": Timestamp(0),
            "input_tokens": 0,
            "output_tokens": 0,
            "state": agentsvc_components::agent::AgentState::default(),
            "mode": agentsvc_components::agent::AgentMode::default(),
        }))
        .unwrap();
        agent.taint.files = files;
        agent
    }

    fn build(path: &Path, agents: &[AgentRecord]) {
        let row = |agent| {
            let op = record::put(agent);
            Ok::<_, store::Error>(Row { space: op.space, key: op.key.to_vec(), value: op.value.unwrap() })
        };
        Store::build(path, agents.iter().map(row)).unwrap();
    }

    #[test]
    fn a_restored_world_knows_what_its_files_are_now() {
        let dir = tempfile::tempdir().unwrap();
        let (now, next, workspaces) =
            (dir.path().join("world"), dir.path().join("next"), dir.path().join("workspaces"));
        build(&now, &[agent(1, Taint::WEB), agent(2, Taint::NONE)]);
        build(&next, &[1, 2, 3, 4].map(|n| agent(n, if n == 4 { Taint::NONE } else { Taint::EVENT })));
        // The third was deleted, and its files are there; the fourth never had any.
        let third = crate::kernel::sandbox::Workspaces::new(workspaces.clone());
        third.open(AgentId(Uuid::from_u128(3)), "agent-3").unwrap();
        let known = Store::open(&now).unwrap().view();
        FilesTaint { known, workspaces }.raise_in(&next).unwrap();
        let rows = Store::open(&next).unwrap().view().prefix(Space::World, &[AgentRecord::KEY]);
        let files: Vec<_> = rows
            .map(|row| row.unwrap())
            .map(|(key, value)| record::decode::<AgentRecord>(&key, &value).unwrap().taint.files.words())
            .collect();
        let expected: [&[&str]; 4] = [&["web", "event"], &["event"], &["event", "tool"], &[]];
        assert_eq!(files, expected);
    }
}
