//! Tools over schedules and cron jobs, which are one family under two names.

mod tools;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
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
            ("AGENT", "/agent"),
            ("RULE", "/cron"),
            ("ENABLED", "/enabled"),
            ("NEXT", "/next_run"),
            ("RUNS", "/run_count"),
        ])],
    )
    .examples(&[
        Example::new("schedule list", "List the schedules with their next times"),
        Example::new("schedule run news", "Run one now; `schedule show news` shows what came of it"),
        Example::of(
            "create",
            "schedule create --name news --agent assistant --cron '0 8 * * MON-FRI' --prompt 'What is new?'",
            "Every weekday at 8:00 UTC",
        ),
        Example::of(
            "create",
            "schedule create --name check --agent assistant --cron 'every 15m' --prompt 'Is the site up?'",
            "Every 15 minutes",
        ),
    ])
    .under(Group::Automation)],
    ..Domain::EMPTY
};
