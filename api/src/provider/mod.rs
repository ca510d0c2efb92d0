//! The routes of model providers, their keys and sign-ins.

pub mod accounts;
pub mod catalog;
pub(crate) mod login;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("provider").routes(&[routes::ROUTES, login::ROUTES]);
