//! The tool that runs a workflow.

pub(crate) mod run;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain =
    Domain { name: "workflow", uses: &["tool"], brings: |brought| brought.add([run::TOOL]), ..Domain::EMPTY };
