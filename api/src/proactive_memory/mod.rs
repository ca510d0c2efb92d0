//! The routes of the entries of the memory that agents keep (spec 2, Memory).

pub mod search;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("proactive_memory");
