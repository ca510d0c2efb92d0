//! The routes of agents' knowledge, and what tools and routes share: reading, walking and changing it.

pub mod batch;
pub mod graph;
mod plan;
pub(crate) mod routes;
pub mod shape;
pub mod store;
pub(crate) mod transfer;
pub mod walk;
#[cfg(test)]
mod walk_tests;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("knowledge").routes(&[routes::ROUTES]);
