//! Approvals: which tool calls wait for a person, and the decisions.

mod cli;
pub mod config;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "approval",
    uses: &["tool"],
    commands: &[Subcommand::group::<cli::Approvals>(25, "approvals", "List, approve and reject pending approvals")
        .with(&[Resource::at("/api/approvals").without_names()])
        .headed(&[
            ("Decide", &["list", "show", "approve", "reject", "batch"]),
            ("Request and review", &["create", "count", "audit"]),
            ("Second factor", &["totp-setup", "totp-confirm", "totp-status", "totp-delete", "totp-revoke"]),
        ])
        .also("approval")
        .under(Group::Agents)],
    ..Domain::EMPTY
};
