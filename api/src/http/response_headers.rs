//! What every response carries, whatever became of the request: its id, the security headers, and the CORS headers
//! (spec 1, Errors and Limits).

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike};
use hyper::HeaderMap;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_SECURITY_POLICY, DATE, HeaderName, HeaderValue,
    ORIGIN, STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use uuid::{Builder, Uuid};

use crate::http::origin::OriginClass;
use crate::http::trace::{TRACEPARENT, TraceContext};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; \
     connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);
const DENY: HeaderValue = HeaderValue::from_static("DENY");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const HSTS: HeaderValue = HeaderValue::from_static("max-age=63072000; includeSubDomains");
const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("Origin");
/// What a page of another origin may read, beside what every page may: whatever the routes document.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, x-next-cursor, x-total-count, x-query-complete, x-agentsvc-session, location, content-disposition, \
     retry-after, warning, traceparent",
);

/// What one response will carry.
pub(crate) struct ResponseHeaders {
    /// The id of the request.
    pub(crate) id: Uuid,
    /// The trace that the request belongs to.
    pub(crate) trace: Option<TraceContext>,
    id_value: HeaderValue,
    allow_origin: Option<HeaderValue>,
}

impl ResponseHeaders {
    /// The headers for a request: its own id when it is a UUID, else that of its trace; its origin when it is allowed.
    pub(crate) fn of(parts: &Parts, class: OriginClass) -> Self {
        let allow_origin = match class {
            OriginClass::Allowed => parts.headers.get(ORIGIN).cloned(),
            OriginClass::Absent | OriginClass::Foreign => None,
        };
        let given = parts.headers.get(X_REQUEST_ID).and_then(|value| {
            let id = Uuid::try_parse_ascii(value.as_bytes()).ok()?;
            Some(Self { id, trace: None, id_value: value.clone(), allow_origin: None })
        });
        let trace = TraceContext::of(&parts.headers, || new_id().as_u64_pair().1);
        let new = || trace.map_or_else(Self::new, |trace| Self::with_id(trace.request_id()));
        Self { allow_origin, trace, ..given.unwrap_or_else(new) }
    }

    /// The headers of a response to no request that could be read.
    pub(crate) fn new() -> Self {
        Self::with_id(new_id())
    }

    fn with_id(id: Uuid) -> Self {
        let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
        let text = id.hyphenated().encode_lower(&mut buffer);
        // A UUID's text is always a valid header value.
        let id_value = HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
        Self { id, trace: None, id_value, allow_origin: None }
    }

    /// Puts the headers on.
    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        if let Some(date) = date() {
            headers.insert(DATE, date);
        }
        headers.insert(X_REQUEST_ID, self.id_value);
        if let Some(trace) = self.trace.and_then(|trace| trace.header()) {
            headers.insert(TRACEPARENT, trace);
        }
        // A route that serves files has a stricter one.
        headers.entry(CONTENT_SECURITY_POLICY).or_insert(CSP);
        headers.insert(X_FRAME_OPTIONS, DENY);
        headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        headers.insert(STRICT_TRANSPORT_SECURITY, HSTS);
        headers.append(VARY, VARY_ORIGIN);
        if let Some(origin) = self.allow_origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

/// The present moment as a header; written once a second by each thread.
fn date() -> Option<HeaderValue> {
    thread_local! {
        static LAST: RefCell<(i64, Option<HeaderValue>)> = const { RefCell::new((i64::MIN, None)) };
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let second = i64::try_from(since.as_secs()).ok()?;
    LAST.with_borrow_mut(|last| {
        if last.0 != second {
            *last = (second, date_at(second));
        }
        last.1.clone()
    })
}

/// A second since 1970 as a header. Years of more than four digits have none; hyper's own header would panic.
fn date_at(second: i64) -> Option<HeaderValue> {
    let moment = DateTime::from_timestamp(second, 0).filter(|moment| (0..=9_999).contains(&moment.year()))?;
    HeaderValue::from_str(&moment.format("%a, %d %b %Y %H:%M:%S GMT").to_string()).ok()
}

/// A new UUID v7. It need not be unguessable, only unique, so it costs no system call.
pub(crate) fn new_id() -> Uuid {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish());
    }
    let next = || {
        // SplitMix64: every state gives another number.
        let state = STATE.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        STATE.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let mut random = [0; 10];
    random[..8].copy_from_slice(&next().to_le_bytes());
    random[8..].copy_from_slice(&next().to_le_bytes()[..2]);
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hyper::Request;

    use super::*;

    fn sealed(id: &str) -> HeaderMap {
        let parts = Request::builder().header(X_REQUEST_ID, id).body(()).unwrap().into_parts().0;
        let mut headers = HeaderMap::new();
        ResponseHeaders::of(&parts, OriginClass::Absent).apply(&mut headers);
        headers
    }

    #[test]
    fn an_allowed_origin_may_read_what_lists_and_queries_say_in_headers() {
        let parts = Request::builder().header(ORIGIN, "https://example.com").body(()).unwrap().into_parts().0;
        let mut headers = HeaderMap::new();
        ResponseHeaders::of(&parts, OriginClass::Allowed).apply(&mut headers);
        let exposed = headers[ACCESS_CONTROL_EXPOSE_HEADERS].to_str().unwrap();
        for name in ["x-next-cursor", "x-total-count", "x-query-complete", "location"] {
            assert!(exposed.split(", ").any(|known| known == name), "{name}: {exposed}");
        }
    }

    #[test]
    fn a_valid_id_is_kept_and_another_replaced() {
        let own = "6F9619FF-8B86-D011-B42D-00CF4FC964FF";
        assert_eq!(sealed(own)[X_REQUEST_ID], own);
        for wrong in ["", "7", "6F9619FF-8B86-D011-B42D-00CF4FC964FG"] {
            let id = sealed(wrong)[X_REQUEST_ID].to_str().unwrap().to_owned();
            assert_eq!(Uuid::parse_str(&id).unwrap().get_version_num(), 7);
        }
    }

    #[test]
    fn a_trace_gives_the_id_and_is_answered() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parts = Request::builder().header(TRACEPARENT, trace).body(()).unwrap().into_parts().0;
        let mut headers = HeaderMap::new();
        ResponseHeaders::of(&parts, OriginClass::Absent).apply(&mut headers);
        assert_eq!(headers[X_REQUEST_ID], "4bf92f35-77b3-4da6-a3ce-929d0e0e4736");
        let answered = headers[TRACEPARENT].to_str().unwrap();
        assert!(
            answered.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && answered.ends_with("-01"),
            "{answered}"
        );
        assert_ne!(answered, trace, "the span is ours");
        assert!(!sealed("7").contains_key(TRACEPARENT));
    }

    #[test]
    fn a_clock_beyond_the_year_9999_gives_no_date() {
        assert_eq!(date_at(784_111_777).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date_at(253_402_300_799).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
        for second in [253_402_300_800, 1_000_000_000_000, i64::MAX, i64::MIN] {
            assert_eq!(date_at(second), None);
        }
        assert!(sealed("7").contains_key(DATE));
    }

    #[test]
    fn ids_are_unique() {
        let ids: HashSet<Uuid> = (0..10_000).map(|_| new_id()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
