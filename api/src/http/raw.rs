//! Answers written past hyper: to clients over the connection limit, and instead of hyper's own bare answers to
//! what is no HTTP/1.1 request. They look like every other error of ours.

use hyper::StatusCode;

use crate::http::error::Error;
use crate::http::reply::Body;
use crate::http::response_headers::ResponseHeaders;

/// The error as an HTTP/1.1 response that closes the connection.
pub(crate) fn response(error: Error) -> Vec<u8> {
    let mut response = error.into_response();
    ResponseHeaders::new().apply(response.headers_mut());
    let status = response.status();
    let mut wire = format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or("")).into_bytes();
    for (name, value) in response.headers() {
        wire.extend_from_slice(name.as_str().as_bytes());
        wire.extend_from_slice(b": ");
        wire.extend_from_slice(value.as_bytes());
        wire.extend_from_slice(b"\r\n");
    }
    let body = match response.into_body() {
        Body::Full(bytes) => bytes,
        Body::Stream(_) => Default::default(),
    };
    wire.extend_from_slice(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).as_bytes());
    wire.extend_from_slice(&body);
    wire
}

/// The error that a bare answer of hyper stands for; `None` when `wire` is no such answer.
pub(crate) fn bare_error(wire: &[u8]) -> Option<Error> {
    const BARE_BYTES_MAX: usize = 256;
    if wire.len() > BARE_BYTES_MAX || !wire.starts_with(b"HTTP/1.") || !wire.ends_with(b"\r\n\r\n") {
        return None;
    }
    if wire.windows(12).any(|part| part.eq_ignore_ascii_case(b"x-request-id")) {
        return None;
    }
    let message = match wire.get(9..12)? {
        b"400" => "this is not an HTTP/1.1 or HTTP/2 request",
        b"414" => "the URI is too long",
        b"431" => "the headers are too large or too many",
        _ => return None,
    };
    Some(Error::new(StatusCode::from_bytes(wire.get(9..12)?).ok()?, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_every_other_error() {
        let wire = String::from_utf8(response(Error::unavailable("full", 1))).unwrap();
        let (head, body) = wire.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
        for header in ["x-request-id: ", "retry-after: 1", "content-security-policy: ", "connection: close"] {
            assert!(head.contains(header), "{header}");
        }
        assert_eq!(body, r#"{"error":"full"}"#);
        assert!(head.contains(&format!("content-length: {}", body.len())));
    }

    #[test]
    fn only_bare_answers_are_replaced() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(bare_error(bare).unwrap().status(), 431);
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\nX-Request-Id: 1\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
            b"hello",
            b"",
        ] {
            assert!(bare_error(other).is_none());
        }
    }
}
