//! The routes of approvals.

pub(crate) mod lists;
pub(crate) mod routes;
pub mod waiting;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain =
    HttpDomain::new("approval").admin_changes().uses(&["second_factor"]).routes(&[routes::ROUTES, lists::ROUTES]);
