//! The routes of queries over the world.

pub mod error_codes;
pub(crate) mod routes;
pub(crate) mod run;
pub(crate) mod shape;
pub(crate) mod stream;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("query")
    .error_codes(error_codes::ALL)
    .uses(&["world"])
    .routes(&[routes::ROUTES, stream::ROUTES])
    .metrics(run::gather)
    .queues(run::queues);
