//! Tools over the knowledge of agents.

mod add_entity;
mod add_relation;
mod cli;
mod query;
mod rows;

use std::sync::Arc;

use agentsvc_api::knowledge::graph::AgentGraph;
use agentsvc_api::knowledge::store::KnowledgeStore;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::memory::grant::check;
use crate::tool::toolset::Context;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "knowledge",
    uses: &["tool", "memory"],
    commands: &[Subcommand::group::<cli::Knowledge>(27, "knowledge", "Query the knowledge graph of an agent")
        .examples(&[
            Example::new("knowledge entities assistant", "List what an agent knows of"),
            Example::new("knowledge query assistant --source Ada", "List the relations of one entity"),
        ])
        .under(Group::Abilities)],
    brings: |brought| brought.add([add_entity::TOOL, add_relation::TOOL, query::TOOL]),
    open: |opening| {
        opening.provide::<dyn KnowledgeStore>(Arc::clone(opening.store) as _);
        Ok(())
    },
    ..Domain::EMPTY
};

/// The name of an agent's knowledge among the names of its memory.
const NAME: &str = "knowledge";

/// The knowledge of the agent whose turn this is.
fn own(context: &Context) -> AgentGraph {
    let store = Arc::clone(&context.stores.knowledge);
    let (agent, by) = (context.run.agent, context.turn());
    AgentGraph { bridge: context.bridge(), store, agent, by }
}

/// Refuses an agent that may not write its knowledge.
fn may_write(context: &Context) -> Result<(), String> {
    check(&context.run.manifest.manifest.capabilities.memory_write, NAME, "write")
}

/// Refuses an agent that may not read its knowledge.
fn may_read(context: &Context) -> Result<(), String> {
    check(&context.run.manifest.manifest.capabilities.memory_read, NAME, "read")
}
