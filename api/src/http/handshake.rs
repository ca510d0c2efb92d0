//! The handshake of a WebSocket (RFC 6455, section 4.2): what the request must say, and the answer to it.

use crate::http::error_codes;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::error::Error;
use crate::http::reply::{Body, Response};

/// The subprotocol by which a page sends its key: `bearer, <key>`.
const BEARER: &str = "bearer";

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// Characters of a handshake key: 16 bytes as base64.
const KEY_CHARS: usize = 24;

/// The answer that turns the connection into a WebSocket.
///
/// # Errors
/// 426 for a request that asks for no WebSocket, or for one of another version; 400 for a key that is none.
pub(crate) fn answer(parts: &Parts) -> Result<Response, Error> {
    let headers = &parts.headers;
    let asks = parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && says(headers, &CONNECTION, "upgrade")
        && says(headers, &UPGRADE, "websocket");
    if !asks {
        return Err(upgrade_required("this path requires a WebSocket connection over HTTP/1.1"));
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(upgrade_required("unsupported WebSocket version; use version 13"));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map_or(&b""[..], HeaderValue::as_bytes);
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    if key.len() != KEY_CHARS || !key.ends_with(b"==") || !key[..KEY_CHARS - 2].iter().all(is_base64) {
        return Err(Error::bad_field("sec-websocket-key", "sec-websocket-key must be 16 bytes in base64"));
    }
    let accept = HeaderValue::from_str(&derive_accept_key(key));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(UPGRADE, WEBSOCKET);
    // Base64 is always a valid header value.
    answer.insert(SEC_WEBSOCKET_ACCEPT, accept.map_err(|_| Error::internal("the WebSocket handshake failed"))?);
    if protocols(headers).any(|protocol| protocol.eq_ignore_ascii_case(BEARER)) {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(BEARER));
    }
    Ok(response)
}

/// 426 with what would be taken.
pub(crate) fn upgrade_required(message: &'static str) -> Error {
    Error::new(StatusCode::UPGRADE_REQUIRED, message)
        .header(UPGRADE, WEBSOCKET)
        .header(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))
        .code(error_codes::UPGRADE_REQUIRED)
}

/// The key that stands after `bearer` among the offered subprotocols.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    let mut protocols = protocols(headers);
    protocols.find(|protocol| protocol.eq_ignore_ascii_case(BEARER))?;
    protocols.next()
}

/// Is this among the offered subprotocols, and no key?
pub(crate) fn offers(headers: &HeaderMap, wanted: &str) -> bool {
    let key = token(headers).map(str::as_ptr);
    protocols(headers).any(|protocol| protocol.eq_ignore_ascii_case(wanted) && Some(protocol.as_ptr()) != key)
}

/// The offered subprotocols, in order.
fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    words(headers, &SEC_WEBSOCKET_PROTOCOL)
}

/// Does the list in header `name` hold `word`?
fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|said| said.eq_ignore_ascii_case(word))
}

fn words<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    /// The request of RFC 6455, section 1.3, with some headers in place of its own.
    fn request(instead: &[(&'static str, &'static str)]) -> Parts {
        let mut request = Request::get("/ws").body(()).unwrap().into_parts().0;
        let own = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for (name, value) in own.iter().chain(instead) {
            request.headers.insert(*name, HeaderValue::from_static(value));
        }
        request
    }

    #[test]
    fn the_sample_of_the_rfc_is_answered() {
        let response = answer(&request(&[])).unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(
            (&response.headers()[CONNECTION], &response.headers()[UPGRADE]),
            (&"upgrade".parse().unwrap(), &WEBSOCKET)
        );
        assert!(!response.headers().contains_key(SEC_WEBSOCKET_PROTOCOL));
    }

    #[test]
    fn what_asks_for_no_websocket_is_refused() {
        for (instead, status) in [
            (("connection", "keep-alive"), 426),
            (("upgrade", "h2c"), 426),
            (("sec-websocket-version", "8"), 426),
            (("sec-websocket-key", ""), 400),
            (("sec-websocket-key", "dGhlIHNhbXBsZSBub25j"), 400),
            (("sec-websocket-key", "dGhlIHNhbXBsZSBub25j!!=="), 400),
        ] {
            let error = answer(&request(&[instead])).err().unwrap();
            assert_eq!(error.status().as_u16(), status, "{instead:?}");
        }
        let mut head = request(&[]);
        head.method = Method::HEAD;
        assert_eq!(answer(&head).err().unwrap().status(), 426);
        let refusal = answer(&request(&[("sec-websocket-version", "8")])).err().unwrap().into_response();
        assert_eq!(
            (&refusal.headers()[SEC_WEBSOCKET_VERSION], &refusal.headers()[UPGRADE]),
            (&"13".parse().unwrap(), &WEBSOCKET)
        );
    }

    #[test]
    fn a_key_may_come_as_a_subprotocol() {
        let parts = request(&[("sec-websocket-protocol", "chat, Bearer, secret")]);
        assert_eq!(token(&parts.headers), Some("secret"));
        assert_eq!(answer(&parts).unwrap().headers()[SEC_WEBSOCKET_PROTOCOL], "bearer");
        for none in ["bearer", "secret", "chat, secret"] {
            assert_eq!(token(&request(&[("sec-websocket-protocol", none)]).headers), None, "{none}");
        }
    }
}
