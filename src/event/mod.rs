//! Events of the world: their log lines, and the tool that publishes one.

pub(crate) mod log;
pub(crate) mod publish;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain =
    Domain { name: "event", uses: &["tool"], brings: |brought| brought.add([publish::TOOL]), ..Domain::EMPTY };
