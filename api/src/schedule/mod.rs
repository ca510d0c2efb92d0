//! The routes of schedules and cron jobs.

pub(crate) mod cron_jobs;
pub(crate) mod family;
pub(crate) mod routes;
pub(crate) mod shape;
