//! Cookies: what a browser sends by itself, and so counts only where a page of this daemon makes it send it.
//!
//! | rule | why |
//! |---|---|
//! | a session cookie counts on requests of the daemon's own pages only: by `Sec-Fetch-Site`, else by `Origin` | pages of other sites, and of other ports of this machine, send it too |
//! | a request that changes something, or opens a socket, must say that it is of such a page | old browsers say nothing of themselves |
//! | `HttpOnly`, `SameSite=Strict`, and beyond this machine `Secure` and the prefix `__Host-` | no script reads it, and no other site or name sets it |

use hyper::Method;
use hyper::header::{COOKIE, HOST, HeaderValue, ORIGIN};
use hyper::http::request::Parts;

use crate::http::key_header;
use crate::http::origin::{is_loopback_name, without_port};
use crate::http::route::Auth;

/// A cookie for every path of this host.
pub(crate) struct Cookie<'a> {
    /// Its name, without a prefix.
    pub(crate) name: &'a str,
    /// Is it sent where a page of another site leads here?
    pub(crate) is_lax: bool,
}

/// The cookie of a session.
pub(crate) const SESSION: Cookie<'static> = Cookie { name: "agentsvc_session", is_lax: false };

impl Cookie<'_> {
    /// The cookie as it is set for the host of this request; with no seconds it is removed.
    pub(crate) fn set(&self, parts: &Parts, value: &str, secs: u64) -> Option<HeaderValue> {
        let site = if self.is_lax { "Lax" } else { "Strict" };
        let secure = if is_this_machine(parts) { "" } else { "; Secure" };
        let name = self.full_name(parts);
        let text = format!("{name}={value}; Path=/; Max-Age={secs}; HttpOnly; SameSite={site}{secure}");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// What the request sends of it.
    pub(crate) fn of<'p>(&self, parts: &'p Parts) -> Option<&'p str> {
        let name = self.full_name(parts);
        let all = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = all.flat_map(|list| list.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).find(|value| !value.is_empty())
    }

    /// A prefix has browsers refuse what another name sets. It needs `Secure`.
    fn full_name(&self, parts: &Parts) -> String {
        let prefix = if is_this_machine(parts) { "" } else { "__Host-" };
        format!("{prefix}{}", self.name)
    }
}

/// The token of the session that a request of a page of this daemon shows.
pub(crate) fn session(parts: &Parts, auth: Auth) -> Option<&str> {
    let is_silent = matches!(parts.method, Method::GET | Method::HEAD) && auth != Auth::Socket;
    // Whoever shows a key is who the key says.
    let is_keyed = key_header::is_there(parts);
    SESSION.of(parts).filter(|_| !is_keyed && is_own_page(parts, is_silent))
}

/// Does a page of this daemon send the request? One that says nothing of itself counts where `is_silent`.
pub(crate) fn is_own_page(parts: &Parts, is_silent: bool) -> bool {
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match (header("sec-fetch-site"), header(ORIGIN.as_str())) {
        (Some("same-origin"), _) => true,
        (Some("none"), None) => is_silent,
        (Some(_), _) => false,
        (None, Some(origin)) => {
            let asked = origin.split_once("://").map(|(_, rest)| rest);
            asked.is_some_and(|asked| !asked.is_empty() && asked.eq_ignore_ascii_case(host(parts)))
        }
        (None, None) => is_silent,
    }
}

/// The host that the request is for, with its port.
pub(crate) fn host(parts: &Parts) -> &str {
    match parts.headers.get(HOST) {
        Some(host) => host.to_str().unwrap_or_default(),
        None => parts.uri.authority().map_or("", |authority| authority.as_str()),
    }
}

/// Is the request for a name of this machine?
pub(crate) fn is_this_machine(parts: &Parts) -> bool {
    is_loopback_name(without_port(host(parts)))
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn parts(method: &str, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().method(method).uri("/api/agents");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_cookie_of_a_session_counts_for_pages_of_the_daemon_only() {
        let sent = ("cookie", "a=b; agentsvc_session=t; c=d");
        let host = ("host", "127.0.0.1:4545");
        for (method, more, counts) in [
            ("GET", &[][..], true),
            ("POST", &[], false),
            ("POST", &[("sec-fetch-site", "same-origin")], true),
            ("POST", &[("sec-fetch-site", "none")], false),
            ("GET", &[("sec-fetch-site", "none")], true),
            ("GET", &[("sec-fetch-site", "same-site")], false),
            ("GET", &[("sec-fetch-site", "cross-site")], false),
            ("POST", &[("origin", "http://127.0.0.1:4545")], true),
            ("POST", &[("origin", "http://127.0.0.1:3000")], false),
            ("POST", &[("origin", "http://localhost:4545")], false),
            ("POST", &[("origin", "null")], false),
            ("GET", &[("origin", "https://evil.example")], false),
            ("GET", &[("authorization", "Bearer x")], false),
            ("POST", &[("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:4545")], false),
        ] {
            let headers = [&[sent, host], more].concat();
            let parts = parts(method, &headers);
            assert_eq!(session(&parts, Auth::Bearer).is_some(), counts, "{method} {more:?}");
        }
        let socket = parts("GET", &[sent, host]);
        assert!(session(&socket, Auth::Socket).is_none(), "a socket says whose it is");
        assert!(session(&parts("GET", &[host]), Auth::Bearer).is_none());
        assert!(session(&parts("GET", &[host, ("cookie", "agentsvc_session=")]), Auth::Bearer).is_none());
    }

    #[test]
    fn beyond_this_machine_cookies_are_secure_and_of_this_host() {
        let near =
            parts("GET", &[("host", "localhost:1"), ("cookie", "__Host-agentsvc_session=far; agentsvc_session=near")]);
        let far =
            parts("GET", &[("host", "a.example"), ("cookie", "agentsvc_session=near; __Host-agentsvc_session=far")]);
        assert_eq!((SESSION.of(&near), SESSION.of(&far)), (Some("near"), Some("far")));
        let set = |parts| SESSION.set(parts, "t", 60).unwrap().to_str().unwrap().to_owned();
        assert_eq!(set(&near), "agentsvc_session=t; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        assert_eq!(set(&far), "__Host-agentsvc_session=t; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
    }
}
