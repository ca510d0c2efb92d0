//! Tools over the memory entries of agents.
//!
//! A turn that talks to someone reads and changes only entries about no user in particular: what an agent knows of one user
//! does not get to another through its model. A turn that talks to no one, such as a consolidation run, has all of them.

pub(crate) mod forget;
pub(crate) mod search;
pub(crate) mod update;

use std::sync::Arc;

use agentsvc_api::proactive_memory::entries::AgentEntries;
use agentsvc_api::proactive_memory::own::{Changed, Reader};
use agentsvc_components::proactive_memory::MemoryEntryId;

use crate::memory::grant::check;
use crate::tool::toolset::{Context, Ended};

/// The name of an agent's entries among the names of its memory.
const NAME: &str = "entries";

/// The entries of the agent whose turn this is.
fn own(context: &Context) -> AgentEntries {
    let store = Arc::clone(&context.stores.entries);
    AgentEntries { bridge: context.bridge(), store, agent: context.run.agent, by: context.turn() }
}

/// Refuses an agent that may not change its entries.
fn may_write(context: &Context) -> Result<(), String> {
    check(&context.run.manifest.manifest.capabilities.memory_write, NAME, "write")
}

/// Refuses an agent that may not read its entries.
fn may_read(context: &Context) -> Result<(), String> {
    check(&context.run.manifest.manifest.capabilities.memory_read, NAME, "read")
}

/// Who changes entries.
fn reader(context: &Context) -> Reader {
    Reader { taint: context.run.taint, all_users: context.run.reads_all_users }
}

/// What the model reads of a change.
fn told(id: MemoryEntryId, what: &str, done: Changed) -> Result<Ended, String> {
    match done {
        Changed::Done => Ok(Ended::Text(format!("Entry {id} was {what}."))),
        Changed::Already => Ok(Ended::Text(format!("Entry {id} is removed already."))),
        Changed::Unknown => Err(format!("There is no entry {id}.")),
        Changed::NoTarget => Err("`merged_into` is no other entry about the same user.".to_owned()),
        Changed::Trusted => {
            Err(format!("Refused: this turn has read untrusted content, and entry {id} was made from none; it stays."))
        }
    }
}

fn entry_id(field: &str, text: &str) -> Result<MemoryEntryId, String> {
    text.trim().parse().map_err(|_| format!("`{field}` is not the id of an entry; take it from memory_search."))
}
