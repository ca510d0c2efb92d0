//! Origins and hosts: who may read answers from a page of another origin, and which names the daemon answers to
//! when it has no key (spec 1, Authentication).

use crate::http::error_codes;
use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::Version;
use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;

use crate::http::error::Error;

/// What a request's `Origin` header means under the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginClass {
    /// There is none: not a page, or a page of ours that reads.
    Absent,
    /// It may read the answer.
    Allowed,
    /// It may not.
    Foreign,
}

/// The origins an operator listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    /// Lower case, without a trailing slash; or `*`.
    listed: Vec<String>,
}

impl Origins {
    pub(crate) fn new(listed: &[String]) -> Self {
        let clean = |origin: &String| origin.trim().trim_end_matches('/').to_ascii_lowercase();
        Self { listed: listed.iter().map(clean).filter(|origin| !origin.is_empty()).collect() }
    }

    fn lists(&self, origin: &str) -> bool {
        self.listed.iter().any(|listed| listed == "*" || listed.eq_ignore_ascii_case(origin))
    }

    fn lists_host(&self, host: &str) -> bool {
        self.listed.iter().any(|listed| listed == "*" || host_of_origin(listed).eq_ignore_ascii_case(host))
    }

    /// The class of the request's origin. Local origins are allowed when the API is `open`.
    pub(crate) fn class(&self, parts: &Parts, open: bool) -> OriginClass {
        let Some(origin) = parts.headers.get(ORIGIN) else { return OriginClass::Absent };
        let origin = origin.to_str().unwrap_or("");
        if self.lists(origin) || (open && is_loopback_name(host_of_origin(origin))) {
            OriginClass::Allowed
        } else {
            OriginClass::Foreign
        }
    }

    /// The guard of a WebSocket, which no browser guards itself (spec 1, Authentication, rule 4). Listed origins pass,
    /// loopback on the listen `port`, and the literal address and port that the request was addressed to. A request
    /// without an origin is no page's.
    pub(crate) fn check_socket(&self, parts: &Parts, port: u16, open: bool) -> Result<(), Error> {
        let origin = match parts.headers.get(ORIGIN) {
            None if open => return self.check_open(parts, OriginClass::Absent),
            None => return Ok(()),
            Some(origin) => origin.to_str().unwrap_or(""),
        };
        let (host, from) = (host_of_origin(origin), port_of_origin(origin));
        let local = is_loopback_name(host) && from == Some(port);
        if local || self.lists(origin) {
            return if open { self.check_open(parts, OriginClass::Allowed) } else { Ok(()) };
        }
        // No name can be made to mean another machine here, so that an open API is as safe.
        let addressed = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
        let scheme = origin.split_once("://").map_or("", |(scheme, _)| scheme);
        let same = without_port(addressed).eq_ignore_ascii_case(host)
            && port_of_origin(&format!("{scheme}://{addressed}")) == from;
        if is_address(host) && same {
            return Ok(());
        }
        Err(Error::of(error_codes::ORIGIN, "this origin is not allowed; add it to cors_origin"))
    }

    /// The guard of an open API: a page of a foreign origin, and a name that is not ours (DNS rebinding), get 403.
    pub(crate) fn check_open(&self, parts: &Parts, class: OriginClass) -> Result<(), Error> {
        if class == OriginClass::Foreign {
            return Err(Error::of(
                error_codes::ORIGIN,
                "this origin is not allowed to call the API; add it to cors_origin",
            ));
        }
        if class == OriginClass::Absent && is_of_foreign_page(parts) {
            return Err(Error::of(error_codes::ORIGIN, "a page of another site may not call the API"));
        }
        self.check_name(parts)
    }

    /// As [`check_open`](Self::check_open) for a route that pages of other sites may lead browsers to.
    pub(crate) fn check_linked(&self, parts: &Parts, class: OriginClass) -> Result<(), Error> {
        if class == OriginClass::Absent && is_navigation(parts) {
            self.check_name(parts)
        } else {
            self.check_open(parts, class)
        }
    }

    /// Refuses names that are not ours.
    fn check_name(&self, parts: &Parts) -> Result<(), Error> {
        let host = match parts.headers.get(HOST) {
            Some(host) => host.to_str().unwrap_or(""),
            // HTTP/2 names the host in the URI. A request without any name is no browser's.
            None => match parts.uri.authority() {
                Some(authority) => authority.as_str(),
                None => return Ok(()),
            },
        };
        let name = without_port(host);
        if is_loopback_name(name) || self.lists_host(name) {
            return Ok(());
        }
        Err(Error::of(
            error_codes::HOST,
            "without an api_key the API only accepts local host names; use 127.0.0.1 or localhost, or add the origin \
             to cors_origin",
        ))
    }
}

/// Does a browser say that a page of another site sends this? A link to our own page may be followed.
fn is_of_foreign_page(parts: &Parts) -> bool {
    let is_api = || ["/api", "/v1"].iter().any(|prefix| parts.uri.path().starts_with(prefix));
    says(parts, "sec-fetch-site", "cross-site") && (is_api() || !is_navigation(parts))
}

/// Does a browser say that it goes to this address, and shows what is there?
fn is_navigation(parts: &Parts) -> bool {
    says(parts, "sec-fetch-mode", "navigate") && says(parts, "sec-fetch-dest", "document")
}

/// Does this header have this value?
pub(crate) fn says(parts: &Parts, name: &str, value: &str) -> bool {
    parts.headers.get(name).is_some_and(|found| found == value)
}

/// Every request names one host, in one way (RFC 9112, section 3.2), and at most one origin: two programs on its way must not
/// read two.
///
/// # Errors
/// 400.
pub(crate) fn check_names(parts: &Parts) -> Result<(), Error> {
    if parts.headers.get_all(ORIGIN).iter().nth(1).is_some() {
        return Err(Error::bad_request("the request has more than one Origin header"));
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let wrong = match (hosts.next(), hosts.next(), parts.uri.authority()) {
        (Some(_), Some(_), _) => "the request has more than one Host header",
        (None, _, _) if parts.version == Version::HTTP_11 => "the request has no Host header",
        (Some(host), None, Some(authority)) if !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) => {
            "the Host header and the address of the request differ"
        }
        _ => return Ok(()),
    };
    Err(Error::bad_request(wrong))
}

/// The port of `scheme://host[:port]`, the scheme's own where none is written.
fn port_of_origin(origin: &str) -> Option<u16> {
    let (scheme, rest) = origin.split_once("://")?;
    match rest.strip_prefix(without_port(rest))?.strip_prefix(':') {
        Some(port) => port.parse().ok(),
        None if scheme.eq_ignore_ascii_case("https") => Some(443),
        None => Some(80),
    }
}

/// Is the host an address, not a name?
fn is_address(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

/// The host of `scheme://host[:port]`; empty when it is no http origin.
fn host_of_origin(origin: &str) -> &str {
    match origin.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => {
            without_port(rest)
        }
        _ => "",
    }
}

/// `host[:port]` without the port; an IPv6 address keeps its brackets.
pub(crate) fn without_port(host: &str) -> &str {
    let end = if host.starts_with('[') {
        host.find(']').map_or(0, |at| at + 1)
    } else {
        host.find(':').unwrap_or(host.len())
    };
    let (name, port) = host.split_at(end);
    let is_port = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if port.is_empty() || port.strip_prefix(':').is_some_and(is_port) { name } else { "" }
}

/// Does the name always mean this machine?
pub(crate) fn is_loopback_name(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse().is_ok_and(|ip: Ipv6Addr| ip.is_loopback()),
        None => host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn parts(origin: Option<&str>, host: Option<&str>) -> Parts {
        let mut request = Request::builder().uri("/api/agents");
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn open_mode_allows_local_and_listed_origins() {
        let origins = Origins::new(&["https://Chat.Example.org/".to_owned()]);
        let class = |origin| origins.class(&parts(Some(origin), None), true);
        for origin in [
            "http://localhost",
            "https://LOCALHOST:3000",
            "http://127.0.0.1:4545",
            "http://127.9.9.9",
            "http://[::1]:80",
            "https://chat.example.org",
        ] {
            assert_eq!(class(origin), OriginClass::Allowed, "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.org",
            "http://localhost.evil.org",
            "http://127.0.0.1.evil.org",
            "ftp://localhost",
            "http://[::2]",
            "http://[::1",
            "http://128.0.0.1",
            "http://user@localhost@evil.org",
            "https://chat.example.org:8443",
        ] {
            assert_eq!(class(origin), OriginClass::Foreign, "{origin}");
        }
        assert_eq!(origins.class(&parts(None, None), true), OriginClass::Absent);
    }

    #[test]
    fn keyed_mode_allows_listed_origins_only() {
        let origins = Origins::new(&["https://chat.example.org".to_owned()]);
        let class = |origin| origins.class(&parts(Some(origin), None), false);
        assert_eq!(class("https://chat.example.org"), OriginClass::Allowed);
        assert_eq!(class("http://localhost:3000"), OriginClass::Foreign);
        let any = Origins::new(&["*".to_owned()]);
        assert_eq!(any.class(&parts(Some("http://any.org"), None), false), OriginClass::Allowed);
    }

    #[test]
    fn a_websocket_takes_listed_local_and_addressed_origins() {
        let origins = Origins::new(&["https://chat.example.org".to_owned()]);
        let check = |origin, host, open| origins.check_socket(&parts(origin, Some(host)), 4545, open).is_ok();
        for (origin, host) in [
            (None, "127.0.0.1:4545"),
            (Some("http://localhost:4545"), "localhost:4545"),
            (Some("http://127.0.0.1:4545"), "localhost:4545"),
            (Some("http://[::1]:4545"), "[::1]:4545"),
            (Some("https://chat.example.org"), "chat.example.org"),
            (Some("http://192.168.1.5:4545"), "192.168.1.5:4545"),
            (Some("http://192.168.1.5:8080"), "192.168.1.5:8080"),
            (Some("http://192.168.1.5"), "192.168.1.5:80"),
            (Some("https://[fd00::1]"), "[fd00::1]"),
        ] {
            assert!(check(origin, host, false) && check(origin, host, true), "{origin:?} {host}");
        }
        for (origin, host) in [
            ("http://localhost:3000", "localhost:4545"),
            ("http://localhost", "localhost:4545"),
            ("null", "127.0.0.1:4545"),
            ("", "127.0.0.1:4545"),
            ("http://evil.org", "evil.org"),
            ("http://evil.org:4545", "evil.org:4545"),
            ("http://192.168.1.5:4546", "192.168.1.5:4545"),
            ("http://192.168.1.6:4545", "192.168.1.5:4545"),
            ("ftp://192.168.1.5:4545", "192.168.1.5:4545"),
            ("https://chat.example.org:8443", "chat.example.org:8443"),
            ("http://127.0.0.1.evil.org:4545", "127.0.0.1:4545"),
        ] {
            assert!(!check(Some(origin), host, false) && !check(Some(origin), host, true), "{origin} {host}");
        }
        // An open API answers to no foreign name even where the origin is listed or absent.
        assert!(!check(None, "evil.org", true) && check(None, "evil.org", false));
        assert!(!check(Some("http://localhost:4545"), "evil.org", true));
    }

    #[test]
    fn a_request_names_one_host_and_at_most_one_origin() {
        let of = |names: &[(hyper::header::HeaderName, &str)]| {
            let request = Request::builder().uri("/api/agents");
            let request = names.iter().fold(request, |request, (name, value)| request.header(name, *value));
            check_names(&request.body(()).unwrap().into_parts().0).is_ok()
        };
        let (host, own, evil) = ((HOST, "127.0.0.1"), (ORIGIN, "http://127.0.0.1"), (ORIGIN, "http://evil.org"));
        assert!(of(std::slice::from_ref(&host)) && of(&[host.clone(), own.clone()]));
        assert!(!of(&[]) && !of(&[host.clone(), host.clone()]));
        assert!(!of(&[host.clone(), own.clone(), evil]) && !of(&[host, own.clone(), own]));
    }

    #[test]
    fn open_mode_answers_to_its_own_names_only() {
        let origins = Origins::new(&["https://chat.example.org".to_owned()]);
        let check = |host| origins.check_open(&parts(None, Some(host)), OriginClass::Absent).is_ok();
        for host in ["localhost:4545", "127.0.0.1:4545", "127.0.0.2", "[::1]:4545", "chat.example.org"] {
            assert!(check(host), "{host}");
        }
        for host in ["evil.org", "evil.org:4545", "0.0.0.0:4545", "localhost.evil.org", "", "[::1].evil.org"] {
            assert!(!check(host), "{host}");
        }
        assert!(origins.check_open(&parts(None, None), OriginClass::Absent).is_ok());
        let fetched = |path: &str, site: &str, mode: &str| {
            let request = Request::get(path).header("sec-fetch-site", site).header("sec-fetch-mode", mode);
            let request = request.header("sec-fetch-dest", if mode == "navigate" { "document" } else { "image" });
            origins.check_open(&request.body(()).unwrap().into_parts().0, OriginClass::Absent).is_ok()
        };
        for site in ["same-origin", "same-site", "none"] {
            assert!(fetched("/api/agents", site, "no-cors"), "{site}");
        }
        assert!(!fetched("/api/agents", "cross-site", "no-cors") && !fetched("/", "cross-site", "no-cors"));
        assert!(!fetched("/api/agents", "cross-site", "navigate") && !fetched("/v1/models", "cross-site", "navigate"));
        assert!(fetched("/", "cross-site", "navigate"), "a link to the page");
        let linked = |mode: &str, host: &str| {
            let request = Request::get("/api/x").header("sec-fetch-site", "cross-site").header("sec-fetch-mode", mode);
            let request = request.header("sec-fetch-dest", "document").header(HOST, host).body(()).unwrap();
            origins.check_linked(&request.into_parts().0, OriginClass::Absent).is_ok()
        };
        assert!(linked("navigate", "localhost") && !linked("no-cors", "localhost") && !linked("navigate", "evil.org"));
        assert!(origins.check_open(&parts(None, Some("localhost")), OriginClass::Foreign).is_err());
    }
}
