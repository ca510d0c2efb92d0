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

/// Beginnings of names of headers that are for whoever answers.
const END_TO_END: &str = "accept access-control- cache-control content- cookie date etag expect forwarded host idempotency- if- last- \
    link location mcp- origin range referer retry-after sec- set-cookie trace user-agent vary warning www- x-agentsvc- \
    x-forwarded- x-real-ip x-request-id x-visitor";
/// Names that have such a word in them say who asks.
const PROOFS: [&str; 5] = ["auth", "key", "secret", "signature", "token"];

/// May `Connection` not name it? A proxy before this node may pass on what its client wrote there: the client must not take away what
/// the proxy says, nor what is looked at over there alone.
fn is_end_to_end(name: &HeaderName) -> bool {
    let name = name.as_str();
    END_TO_END.split(' ').any(|start| name.starts_with(start)) || PROOFS.iter().any(|word| name.contains(word))
}

/// Removes them, and others that `Connection` names and that are for one hop.
pub(super) fn strip(headers: &mut HeaderMap) {
    let lines = headers.get_all(CONNECTION).into_iter().filter_map(|line| line.to_str().ok());
    let named: Vec<HeaderName> =
        lines.flat_map(|line| line.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    let named = named.into_iter().filter(|name| !is_end_to_end(name));
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
    fn no_client_takes_away_what_is_for_the_one_that_answers() {
        let names: Vec<_> = "authorization x-api-key cookie host content-length content-type content-encoding origin sec-fetch-site \
            sec-websocket-protocol x-forwarded-for x-real-ip x-request-id traceparent mcp-session-id x-agentsvc-session \
            x-hub-signature-256 x-gitlab-token last-event-id if-none-match range accept set-cookie www-authenticate location \
            etag retry-after"
            .split(' ')
            .collect();
        let mut headers = HeaderMap::new();
        for name in names.iter().copied() {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        for named in [names.join(", "), names.join(",").to_uppercase()] {
            headers.append(CONNECTION, named.parse().unwrap());
        }
        strip(&mut headers);
        assert!(!headers.contains_key(CONNECTION));
        for name in names {
            assert!(headers.contains_key(name), "{name}");
        }
    }

    #[test]
    fn what_is_for_one_hop_is_removed_and_all_else_stays() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "Keep-Alive, X-Hop"),
            ("connection", "close, not a name"),
            ("keep-alive", "timeout=5"),
            ("x-hop", "1"),
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
