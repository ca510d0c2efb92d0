//! Chats: their bindings, and the chat of the command line.

pub mod bindings;
pub(crate) mod cli;

use crate::kernel::cli::Subcommand;
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "chat",
    uses: &["turn"],
    commands: &[Subcommand::new::<cli::Chat>(5, "chat", "Chat with an agent")],
    ..Domain::EMPTY
};
