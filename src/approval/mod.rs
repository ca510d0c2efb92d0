//! Approvals: which tool calls wait for a person.

pub mod config;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "approval", uses: &["tool"], ..Domain::EMPTY };
