//! Agents: their tools, their subcommands and the signatures of their manifests.

pub(crate) mod cli;
pub mod files_taint;
pub mod manifest_keys;
mod rows;
pub mod tools;

use std::sync::Arc;

use agentsvc_api::agent::texts::ManifestTexts;
use agentsvc_api::http::cpu::Asker;
use agentsvc_api::injection::shielded;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store::sweep::{Rows, Sweep, Sweeping};
use crate::tool::toolset::ToolParts;
use agentsvc_components::AgentId;
use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::kernel::record::agent_prefixes;
use agentsvc_systems::proactive_memory::keys::companions;
use agentsvc_systems::turn::{Reply, SCAN_REPLY};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "agent",
    uses: &["injection", "turn", "tool", "proactive_memory"],
    brings: |brought| {
        brought.add([
            tools::notify_owner::TOOL,
            tools::send::TOOL,
            tools::list::TOOL,
            tools::find::TOOL,
            tools::spawn::TOOL,
            tools::kill::TOOL,
        ])
    },
    performers,
    commands: &[Subcommand::group::<cli::Agent>(4, "agent", "Create, list, show and delete agents")
        .with(&[Resource::at("/api/agents").called("agents").without(&["/api/agents/{id}/update"]).columns(&[
            ("NAME", "/name"),
            ("STATE", "/state"),
            ("PROVIDER", "/model_provider"),
            ("MODEL", "/model_name"),
            ("CREATED", "/created_at"),
            ("ID", "/id"),
        ])])
        .headed(cli::HEADINGS)
        .examples(cli::EXAMPLES)
        .under(Group::Agents)],
    open: |opening| {
        opening.provide::<dyn ManifestTexts>(Arc::clone(opening.store) as _);
        Ok(())
    },
};

/// Erases what agents leave behind, and scans what they say to each other.
fn performers(performers: &mut Performers) {
    let sweep = performers.part::<Sweep>();
    performers.on(move |of: Box<SweepAgent>| sweep(swept(of.0)));
    let ToolParts { injection, .. } = performers.part();
    performers.on_job(SCAN_REPLY, move |job| scanned(injection, job));
}

/// Scans what an agent answered to a call of another one.
async fn scanned(policy: InjectionPolicy, job: RunJob) -> TryEnd {
    let Ok(Reply { holder, source, content, .. }) = serde_json::from_str(&job.input) else {
        return TryEnd::Failed("it cannot be read".to_owned());
    };
    let shielded = shielded(Asker::agent(holder), policy, &source, content).await;
    let written = shielded.ok().and_then(|shielded| serde_json::to_string(&shielded).ok());
    written.map_or_else(|| TryEnd::Failed("the scanner failed".to_owned()), TryEnd::Done)
}

/// What an agent leaves behind: its traces, its memory and the text of its manifest.
pub(crate) fn swept(agent: AgentId) -> Sweeping {
    Sweeping::telling(Rows::Under(agent_prefixes(agent).into()), AgentSwept(agent)).with(companions)
}
