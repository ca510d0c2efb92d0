//! What leaves the daemon for people: the one place where others send into a channel, and the targets of what runs by itself.

pub mod channel_out;
pub(crate) mod routes;
pub(crate) mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("delivery").uses(&["webhook"]).routes(&[routes::ROUTES]);
