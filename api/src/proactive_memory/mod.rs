//! The routes of the entries of the memory that agents keep (spec 2, Memory).

pub(crate) mod agents;
pub(crate) mod change;
pub mod entries;
pub(crate) mod find;
pub(crate) mod imports;
pub(crate) mod list;
pub mod memorize;
pub mod own;
pub(crate) mod routes;
pub mod search;
pub mod settings;
pub(crate) mod shape;
pub(crate) mod similar;
pub mod store;
pub(crate) mod transfer;
pub(crate) mod upkeep;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("proactive_memory").routes(&[
    routes::ROUTES,
    find::ROUTES,
    agents::ROUTES,
    upkeep::ROUTES,
    transfer::ROUTES,
]);
