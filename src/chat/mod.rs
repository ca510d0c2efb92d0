//! Chats: their bindings, and the chat of the command line.

pub mod bindings;
pub(crate) mod cli;
mod line;

use std::sync::Arc;

use agentsvc_api::chat::bindings::Bindings;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "chat",
    uses: &["turn"],
    commands: &[Subcommand::new::<cli::Chat>(5, "chat", "Chat with an agent")
        .examples(&[
            Example::new("chat", "Chat with the agent named assistant"),
            Example::new("chat scout", "Chat with another agent"),
        ])
        .under(Group::Agents)],
    open: |opening| {
        opening.provide::<dyn Bindings>(Arc::new(bindings::BindingsFile::new(opening.data_dir.to_owned())));
        Ok(())
    },
    ..Domain::EMPTY
};
