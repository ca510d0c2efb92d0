//! The Model Context Protocol (spec 3, MCP servers).

pub mod limits;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { limits: limits::ALL, ..Domain::named("mcp") };
