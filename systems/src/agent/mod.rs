//! Agents. One file per command or group of commands that share their core.

mod by_name;
mod changes;
mod clone;
mod family;
mod import;
mod list;
pub(crate) mod manifests;
mod mode;
pub(crate) mod query;
mod remove;
mod resolve;
mod show;
mod spawn;
mod summaries;
mod update;

pub use by_name::{NameScan, NamedAgent, ScanNames};
pub use clone::CloneAgent;
pub(crate) use family::{Family, check};
pub use family::{KillDescendant, SpawnChild};
pub use import::{FindImported, ImportAgent, Imported};
pub use list::{AgentFilter, AgentPage, AgentSummary, ListAgents};
pub use mode::{SetMode, StartAgents, StopAgents};
pub use remove::RemoveAgents;
pub use resolve::ResolveAgent;
pub use show::{AgentView, FindAgent, GetAgent};
pub use spawn::{SpawnAgent, SpawnAgents, Spawned};
pub use summaries::SummariseAgents;
pub use update::{AgentPatch, UpdateAgent};

pub(crate) use show::named;

use agentsvc_components::{AgentId, Refusal};

/// What became of one item of a bulk command.
pub type ItemResult<T> = (AgentId, Result<T, Refusal>);

#[cfg(test)]
mod tests;
