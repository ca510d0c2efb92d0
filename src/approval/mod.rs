//! Approvals: which tool calls wait for a person, and the decisions.

mod cli;
pub mod config;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
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
        .examples(&[
            Example::new("approvals list", "List what waits for you"),
            Example::new(
                "approvals approve 01a2285f-683a-7000",
                "Let the action run; the beginning of the id is enough",
            ),
        ])
        .also("approval")
        .under(Group::Agents)],
    ..Domain::EMPTY
};
