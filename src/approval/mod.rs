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
            Example::new(
                "approvals reject 01a2285f-683a-7000 --reason 'Use the staging host'",
                "Refuse it, and say why",
            ),
            Example::of("list", "approvals list", "What waits for you, with its input"),
            Example::of("list", "approvals list --wait --quiet", "Wait for one and print its id, in a script"),
            Example::of("approve", "approvals approve 01a2285f-683a-7000", "The beginning of the id is enough"),
            Example::of(
                "approve",
                "approvals approve 01a2285f-683a-7000 --reason 'Only this once'",
                "With a reason, which is kept with the decision",
            ),
        ])
        .also("approval")
        .under(Group::Agents)],
    ..Domain::EMPTY
};
