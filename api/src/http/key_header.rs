//! The headers in which a request shows its key: `Authorization: Bearer <key>`, or `X-API-Key: <key>`, which means the same
//! (facts/channels.md 7.2).

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::request::Parts;

/// The header in which a key stands alone.
pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Does the request say that it has a key, whatever key it is?
pub(crate) fn is_there(parts: &Parts) -> bool {
    parts.headers.contains_key(AUTHORIZATION) || parts.headers.contains_key(X_API_KEY)
}

/// The keys in these headers. None is empty.
pub(crate) fn keys(parts: &Parts) -> impl Iterator<Item = &[u8]> {
    let given = parts.headers.get(AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let bearer = given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    let alone = parts.headers.get(X_API_KEY).map(HeaderValue::as_bytes);
    let shown = bearer.map(|(_, token)| token).into_iter().chain(alone);
    shown.map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}
