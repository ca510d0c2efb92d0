//! Tools over schedules and cron jobs, which are one family under two names.

mod tools;

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
    ..Domain::EMPTY
};
