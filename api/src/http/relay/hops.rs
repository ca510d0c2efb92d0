//! Headers that are for one hop alone (RFC 9110, section 7.6.1).

use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};

const NAMES: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes them, and those that `Connection` names.
pub(super) fn strip(headers: &mut HeaderMap) {
    let lines = headers.get_all(CONNECTION).into_iter().filter_map(|line| line.to_str().ok());
    let named: Vec<HeaderName> =
        lines.flat_map(|line| line.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    for name in NAMES.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Asks for, or grants, another protocol on this hop.
pub(super) fn upgrade(headers: &mut HeaderMap, protocol: Option<&HeaderValue>) {
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_one_hop_is_removed_and_all_else_stays() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "Keep-Alive, X-Secret"),
            ("connection", "close, not a name"),
            ("keep-alive", "timeout=5"),
            ("x-secret", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("cookie", "a=b"),
            ("cookie", "c=d"),
            ("content-length", "3"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip(&mut headers);
        let mut left: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        left.sort_unstable();
        assert_eq!(left, [("content-length", "3"), ("cookie", "a=b"), ("cookie", "c=d")]);
        upgrade(&mut headers, None);
        assert!(!headers.contains_key(CONNECTION));
        upgrade(&mut headers, Some(&HeaderValue::from_static("websocket")));
        assert_eq!(
            (&headers[CONNECTION], &headers[UPGRADE]),
            (&"upgrade".parse().unwrap(), &"websocket".parse().unwrap())
        );
    }
}
