//! Agents: their tools, their subcommands and the signatures of their manifests.

pub(crate) mod cli;
pub mod manifest_keys;
mod rows;
pub mod tools;

use std::sync::Arc;

use agentsvc_api::agent::texts::ManifestTexts;

use crate::kernel::cli::Subcommand;
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store::sweep::{Sweep, Sweeping};
use agentsvc_components::agent::sweep::SweepAgent;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "agent",
    uses: &["injection", "turn"],
    tools: &[
        tools::notify_owner::TOOL,
        tools::send::TOOL,
        tools::list::TOOL,
        tools::find::TOOL,
        tools::spawn::TOOL,
        tools::kill::TOOL,
    ],
    performers,
    commands: &[Subcommand::group::<cli::Agent>(4, "agent", "Create, list, show and delete agents")],
    open: |opening| {
        opening.provide::<dyn ManifestTexts>(Arc::clone(opening.store) as _);
        Ok(())
    },
};

/// Erases what agents leave behind.
fn performers(performers: &mut Performers) {
    let sweep = performers.part::<Sweep>();
    performers.on(move |of: Box<SweepAgent>| sweep(Sweeping::Agent(of.0)));
}
