//! Tools over schedules and cron jobs, which are one family under two names.

mod tools;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;

/// The columns of a list, whose rule stands at this JSON pointer.
const fn columns(rule: &'static str) -> [(&'static str, &'static str); 8] {
    [
        ("ID", "/id"),
        ("NAME", "/name"),
        ("AGENT", "/agent"),
        ("RULE", rule),
        ("PROMPT", "/prompt"),
        ("ENABLED", "/enabled"),
        ("NEXT", "/next_run"),
        ("RUNS", "/run_count"),
    ]
}

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
    commands: &[
        Subcommand::of(
            51,
            "schedule",
            "Run agents on a schedule",
            &[Resource::at("/api/schedules").columns(&columns("/cron"))],
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
        .under(Group::Automation),
        Subcommand::of(
            70,
            "cron",
            "Manage cron jobs, which agents and apps make",
            &[Resource::at("/api/cron/jobs").called("cron jobs").columns(&columns("/schedule"))],
        )
        .examples(&[
            Example::new("cron list", "List the cron jobs with their next times; `schedule list` has the schedules"),
            Example::new("cron run heartbeat", "Run one now"),
        ])
        .under(Group::Automation),
    ],
    ..Domain::EMPTY
};
