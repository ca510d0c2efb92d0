//! Tools over schedules and cron jobs.

pub(crate) mod create;
pub(crate) mod cron_cancel;
pub(crate) mod cron_create;
pub(crate) mod cron_list;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod told;
