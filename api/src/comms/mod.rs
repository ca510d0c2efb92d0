//! Who talks to whom (spec 3, Comms).

pub mod hub;
pub(crate) mod routes;
pub(crate) mod stream;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain =
    HttpDomain::new("comms").uses(&["upload"]).routes(&[routes::ROUTES, stream::ROUTES]).metrics(stream::gather);
