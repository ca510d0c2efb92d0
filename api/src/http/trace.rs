//! W3C trace context: a client that sends `traceparent` finds its trace id in our spans, in the log and in the answer
//! (`docs/observability.md`).

use std::fmt;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use tracing::Span;
use uuid::Uuid;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Bytes of `00-<trace id>-<span id>-<flags>`.
const LENGTH: usize = 55;

/// The trace that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; not 0.
    pub trace_id: u128,
    /// The caller's span; not 0.
    pub parent_id: u64,
    /// Our span within it.
    pub span_id: u64,
    /// The caller's flags; bit 0 says that it is sampled.
    pub flags: u8,
}

impl TraceContext {
    /// The context of a request; `None` without a valid `traceparent`, which is as if there were none. `span_id` becomes
    /// our own span's.
    pub(crate) fn of(headers: &HeaderMap, span_id: impl FnOnce() -> u64) -> Option<Self> {
        Self::read(headers.get(TRACEPARENT)?.to_str().ok()?, span_id)
    }

    /// The same of a `traceparent` that came otherwise than in a header.
    pub(crate) fn read(text: &str, span_id: impl FnOnce() -> u64) -> Option<Self> {
        let (version, rest) = text.split_once('-')?;
        let version = hex(version, 2)?;
        // Later versions may have more behind the flags; version 255 is not one.
        if version == 255
            || (version == 0 && text.len() != LENGTH)
            || text.as_bytes().get(LENGTH).is_some_and(|b| *b != b'-')
        {
            return None;
        }
        let mut parts = rest.split('-');
        let trace_id = hex(parts.next()?, 32).filter(|id| *id != 0)?;
        let parent_id = hex(parts.next()?, 16).filter(|id| *id != 0)? as u64;
        let flags = hex(parts.next()?, 2)? as u8;
        Some(Self { trace_id, parent_id, span_id: span_id().max(1), flags })
    }

    /// The context of something that is caused within this one: our span is its parent, `span_id` becomes its own.
    pub(crate) fn within(&self, span_id: u64) -> Self {
        Self { parent_id: self.span_id, span_id: span_id.max(1), ..*self }
    }

    /// The trace id as it is written.
    #[must_use]
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The trace id as a request id.
    pub(crate) const fn request_id(&self) -> Uuid {
        Uuid::from_u128(self.trace_id)
    }

    /// `traceparent` of the answer, and of what this request causes: our span is its parent.
    #[must_use]
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.to_string()).ok()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

/// `digits` lower-case hexadecimal digits, and nothing else.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { u128::from_str_radix(text, 16).ok() } else { None }
}

/// The span of a request. With a trace it is there at the level `info`, so that everything that is logged within bears
/// the trace id; without one at `debug`, for spans of every request would cost too much.
pub(crate) fn request_span(method: &str, route: &str, id: Uuid, trace: Option<&TraceContext>) -> Span {
    match trace {
        Some(trace) => tracing::info_span!(
            "request",
            method,
            route,
            request = %id,
            trace_id = %trace.trace_id(),
            span_id = %format_args!("{:016x}", trace.span_id),
            parent_span_id = %format_args!("{:016x}", trace.parent_id),
            status = tracing::field::Empty,
        ),
        None => tracing::debug_span!("request", method, route, request = %id, status = tracing::field::Empty),
    }
}

/// The span of a command within that of its request; none where that is none.
pub(crate) fn command_span(name: &'static str, request: &Span) -> Span {
    if request.is_none() { Span::none() } else { tracing::info_span!(parent: request, "command", name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<TraceContext> {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, HeaderValue::from_str(text).unwrap());
        TraceContext::of(&headers, || 5)
    }

    #[test]
    fn a_trace_is_read_and_handed_on() {
        let trace = read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((trace.parent_id, trace.flags), (0x00f0_67aa_0ba9_02b7, 1));
        assert_eq!(trace.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000005-01");
        assert_eq!(trace.request_id().to_string(), "4bf92f35-77b3-4da6-a3ce-929d0e0e4736");
        assert!(read("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later").is_some());
    }

    #[test]
    fn what_is_no_trace_is_none() {
        for wrong in [
            "",
            "x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-0111",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
