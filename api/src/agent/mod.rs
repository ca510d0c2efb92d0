//! The routes of agents and their JSON shapes.

pub mod audit_kinds;
pub(crate) mod bulk;
pub(crate) mod change;
pub(crate) mod check;
pub mod frozen_skills;
pub(crate) mod lists;
pub(crate) mod model_field;
pub(crate) mod routes;
pub(crate) mod shape;
pub mod signatures;
#[cfg(test)]
mod tests;
pub mod texts;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("agent")
    .audit_kinds(audit_kinds::ALL)
    .uses(&["provider", "snapshot"])
    .routes(&[routes::ROUTES, change::ROUTES, lists::ROUTES, bulk::ROUTES, check::ROUTES]);
