//! The routes of rehearsals.

pub mod error_codes;
pub(crate) mod fires;
pub(crate) mod routes;
pub mod runs;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("rehearsal")
    .uses(&["config"])
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, fires::ROUTES]);
