//! The routes of schedules and cron jobs.

pub(crate) mod cron_jobs;
pub(crate) mod family;
pub(crate) mod routes;
pub(crate) mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("schedule").routes(&[cron_jobs::ROUTES, routes::ROUTES]);
