//! Pages of other sites that may call some routes ([`Auth::Page`]): each site has a public token, which stands in the path, and
//! the origins of its pages.

use std::collections::HashMap;

use arc_swap::ArcSwap;
use hyper::Method;
use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use hyper::http::request::Parts;

use crate::http::error::Error;
use crate::http::error_codes;
use crate::http::origin::{OriginClass, says};
use crate::http::route::Auth;
use crate::http::table::{Found, Table};

/// The origins of sites, by token. Requests read them without a lock.
#[derive(Default)]
pub struct Sites(ArcSwap<HashMap<Box<str>, Vec<Box<str>>>>);

impl Sites {
    /// Puts these sites in force, and no others: their tokens, and their origins as browsers write them.
    pub fn set(&self, sites: HashMap<Box<str>, Vec<Box<str>>>) {
        self.0.store(sites.into());
    }

    /// What the request's `Origin` means to the site of this token; where there is none, to a file that every page may load.
    ///
    /// A browser names no origin when a page reads from its own one, as behind a proxy that serves the site too. Such a page may
    /// read: it needs a visitor, which it gets by a `POST` with its origin only.
    pub(crate) fn class(&self, token: &str, parts: &Parts) -> OriginClass {
        let Some(origin) = parts.headers.get(ORIGIN) else {
            let is_own = parts.method == Method::GET && says(parts, "sec-fetch-site", "same-origin");
            return if is_own && !token.is_empty() { OriginClass::Allowed } else { OriginClass::Absent };
        };
        let is_listed = |origins: &Vec<Box<str>>| origins.iter().any(|listed| listed.as_bytes() == origin.as_bytes());
        if token.is_empty() || self.0.load().get(token).is_some_and(is_listed) {
            OriginClass::Allowed
        } else {
            OriginClass::Foreign
        }
    }
}

/// The token in the path of a request of a route for sites, or of a preflight that asks about one; empty where the route has none.
/// `None` for other routes.
pub(crate) fn called<'p>(table: &Table, parts: &'p Parts, found: &Found<'_>) -> Option<&'p str> {
    let path = parts.uri.path();
    let preflight;
    let found = match found {
        Found::OtherMethods(_) if parts.method == Method::OPTIONS => {
            let method = parts.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
            preflight = table.find(&Method::from_bytes(method.as_bytes()).ok()?, path);
            &preflight
        }
        found => found,
    };
    let Found::Route(route, _, spans) = found else { return None };
    let (start, end) = spans[0];
    (route.auth == Auth::Page).then(|| path.get(usize::from(start)..usize::from(end)).unwrap_or_default())
}

/// Refuses requests that no page of the site sends.
///
/// # Errors
/// 403.
pub(crate) fn check(token: &str, class: OriginClass) -> Result<(), Error> {
    if token.is_empty() || class == OriginClass::Allowed {
        return Ok(());
    }
    Err(Error::of(error_codes::ORIGIN, "this origin is not one of the site's; add it to its allowed_origins"))
}
