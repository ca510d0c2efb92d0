//! Tools over the memory of agents.

pub(crate) mod grant;
pub(crate) mod list;
pub(crate) mod recall;
mod rows;
pub(crate) mod store;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain =
    Domain { name: "memory", uses: &[], tools: &[store::TOOL, recall::TOOL, list::TOOL], ..Domain::EMPTY };
