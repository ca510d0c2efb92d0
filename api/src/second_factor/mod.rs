//! The routes of the second factor of approvals.

pub mod audit_kinds;
pub mod error_codes;
pub mod factor;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("second_factor")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .uses(&["audit"])
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES]);
