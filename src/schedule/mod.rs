//! Tools over schedules and cron jobs, which are one family under two names.

mod tools;

use crate::kernel::cli::{Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "schedule",
    uses: &["tool"],
    brings: |brought| {
        brought.add([
            tools::CRON_CANCEL,
            tools::CRON_CREATE,
            tools::CRON_LIST,
            tools::SCHEDULE_CREATE,
            tools::SCHEDULE_DELETE,
            tools::SCHEDULE_LIST,
        ])
    },
    commands: &[Subcommand::of(
        51,
        "schedule",
        "Run agents on a schedule",
        &[Resource::at("/api/schedules").columns(&[
            ("ID", "/id"),
            ("NAME", "/name"),
            ("RULE", "/cron"),
            ("ENABLED", "/enabled"),
            ("NEXT", "/next_run"),
            ("RUNS", "/run_count"),
        ])],
    )
    .under(Group::Automation)],
    ..Domain::EMPTY
};
