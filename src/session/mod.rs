//! The tool that searches sessions.

mod rows;
pub(crate) mod search;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "session", uses: &[], tools: &[search::TOOL], ..Domain::EMPTY };
