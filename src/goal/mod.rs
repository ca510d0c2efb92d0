//! The tool that moves an agent's goals forward.

pub(crate) mod update;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain =
    Domain { name: "goal", uses: &["tool"], brings: |brought| brought.add([update::TOOL]), ..Domain::EMPTY };
