//! Turns on the command line: one message, and the answer as it is written.

pub(crate) mod client;
pub(crate) mod message;
mod rows;

use crate::kernel::cli::Subcommand;
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "turn",
    uses: &[],
    commands: &[Subcommand::new::<message::Message>(6, "message", "Send one message and print the answer")],
    ..Domain::EMPTY
};
