//! Tools over the memory entries of agents.
//!
//! A turn reads and changes the entries that it may be given: those about its user and about no user in particular, and of the
//! level `session` only those of its own. What an agent knows of one user does not get to another through its model. Turns of
//! conversations that strangers began have none.

pub(crate) mod forget;
pub(crate) mod search;
pub(crate) mod update;

use std::sync::Arc;

use agentsvc_api::proactive_memory::entries::AgentEntries;
use agentsvc_api::proactive_memory::own::{Changed, Reader};
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::recall::RecallScope;

use crate::memory::grant::check;
use crate::tool::toolset::{Context, Ended};

/// The name of an agent's entries among the names of its memory.
const NAME: &str = "entries";

/// The entries of the agent whose turn this is.
fn own(context: &Context) -> AgentEntries {
    let store = Arc::clone(&context.stores.entries);
    AgentEntries { bridge: context.bridge(), store, agent: context.run.agent, by: context.turn(), permit: None }
}

/// Refuses a turn of strangers: entries are about the users of the agent.
fn not_for_strangers(context: &Context) -> Result<(), String> {
    let refused = || {
        Err("Refused: an outside client or node started this conversation; it cannot use memory entries.".to_owned())
    };
    if context.run.taint.of_strangers().is_none() { Ok(()) } else { refused() }
}

/// Refuses an agent that may not change its entries.
fn may_write(context: &Context) -> Result<(), String> {
    not_for_strangers(context)?;
    check(&context.run.manifest.manifest.capabilities.memory_write, NAME, "write")
}

/// Refuses an agent that may not read its entries.
fn may_read(context: &Context) -> Result<(), String> {
    not_for_strangers(context)?;
    check(&context.run.manifest.manifest.capabilities.memory_read, NAME, "read")
}

/// Who changes entries.
fn reader(context: &Context) -> Reader {
    Reader { taint: context.run.taint, consolidates: context.run.consolidates, scope: scope(context) }
}

/// The entries that a turn may be given.
fn scope(context: &Context) -> RecallScope {
    RecallScope { user: context.run.user.clone(), session: context.run.session }
}

/// What the model reads of a change.
fn told(id: MemoryEntryId, what: &str, done: Changed) -> Result<Ended, String> {
    match done {
        Changed::Done => Ok(Ended::Text(format!("Entry {id} was {what}."))),
        Changed::Already => Ok(Ended::Text(format!("Entry {id} is removed already."))),
        Changed::Unknown => Err(format!("There is no entry {id}.")),
        Changed::NoTarget => Err("`merged_into` is no other entry about the same user.".to_owned()),
        Changed::OutOfReach => Err(format!(
            "Refused: this turn has read untrusted content, and entry {id} was made from none or comes from another \
             conversation; it stays."
        )),
    }
}

fn entry_id(field: &str, text: &str) -> Result<MemoryEntryId, String> {
    text.trim().parse().map_err(|_| format!("`{field}` is not the id of an entry; take it from memory_search."))
}
