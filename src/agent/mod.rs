//! Agents: their tools, their subcommands and the signatures of their manifests.

pub(crate) mod cli;
pub mod files_taint;
pub mod manifest_keys;
mod rows;
pub mod tools;

use std::sync::Arc;

use agentsvc_api::agent::texts::ManifestTexts;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store::sweep::{Rows, Sweep, Sweeping};
use agentsvc_components::AgentId;
use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_systems::kernel::record::agent_prefixes;
use agentsvc_systems::proactive_memory::keys::companions;

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

/// Erases what agents leave behind.
fn performers(performers: &mut Performers) {
    let sweep = performers.part::<Sweep>();
    performers.on(move |of: Box<SweepAgent>| sweep(swept(of.0)));
}

/// What an agent leaves behind: its traces, its memory and the text of its manifest.
pub(crate) fn swept(agent: AgentId) -> Sweeping {
    Sweeping::telling(Rows::Under(agent_prefixes(agent).into()), AgentSwept(agent)).with(companions)
}
