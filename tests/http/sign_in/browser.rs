//! Browsers: the cookie, whose requests count, and what another site cannot do with either.

use serde_json::json;

use super::provider::Provider;
use super::{cookies, login, owner};
use crate::support::daemon::Daemon;
use crate::support::http::Reply;

const HTML: &[(&str, &str)] =
    &[("accept", "text/html,application/xhtml+xml"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];

/// A browser opens an address, with a cookie if it has one.
fn open(daemon: &Daemon, path: &str, cookie: Option<&str>) -> Reply {
    let mut headers = HTML.to_vec();
    headers.extend(cookie.map(|cookie| ("cookie", cookie)));
    daemon.send("GET", path, &headers, None)
}

/// `name=value` of a cookie as it is set.
fn pair(cookie: &str) -> String {
    cookie.split(';').next().unwrap().to_owned()
}

/// A browser is sent to the provider: the address, and the cookie that it got.
#[track_caller]
fn begin(daemon: &Daemon) -> (String, String) {
    let sent = open(daemon, "/api/auth/login/default", None);
    assert_eq!(sent.status, 307, "{}", sent.text());
    let set = cookies(&sent);
    assert!(set.len() == 1 && set[0].starts_with("agentsvc_sign_in="), "{set:?}");
    for word in ["HttpOnly", "SameSite=Lax", "Max-Age=600", "Path=/"] {
        assert!(set[0].contains(word), "{set:?}");
    }
    (sent.header("location").unwrap().to_owned(), pair(&set[0]))
}

/// A browser signs in: its cookie.
#[track_caller]
fn sign_in(provider: &Provider, daemon: &Daemon) -> String {
    let (location, binding) = begin(daemon);
    let done = open(daemon, &provider.agree(&location), Some(&binding));
    assert_eq!((done.status, done.header("location")), (303, Some("../../")), "{}", done.text());
    let set = cookies(&done);
    for word in ["HttpOnly", "SameSite=Strict", "Max-Age=86400", "Path=/"] {
        assert!(set[0].starts_with("agentsvc_session=asvs_") && set[0].contains(word), "{set:?}");
    }
    assert!(set[1].starts_with("agentsvc_sign_in=;") && set[1].contains("Max-Age=0"), "{set:?}");
    assert!(!set[0].contains("Secure"), "this machine needs no TLS");
    pair(&set[0])
}

#[test]
fn a_cookie_counts_for_the_daemons_own_pages() {
    let provider = Provider::start();
    let daemon = provider.daemon("");
    let cookie = sign_in(&provider, &daemon);
    let with = |method: &str, path: &str, more: &[(&str, &str)], body: Option<&[u8]>| {
        let mut headers = vec![("cookie", cookie.as_str())];
        headers.extend(more);
        daemon.send(method, path, &headers, body)
    };
    assert_eq!(with("GET", "/api/whoami", &[], None).expect(200)["kind"], "session");
    let body = json!({ "manifest_toml": "name = \"a\"\n[model]\nsystem_prompt = \"x\"\n" }).to_string();
    let create = |more: &[(&str, &str)]| with("POST", "/api/agents", more, Some(body.as_bytes()));
    let own = format!("http://{}", daemon.client().addr);
    // A page of another site, or of another port of this machine, and a form without an origin.
    for more in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("origin", "http://127.0.0.1:1")],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")],
        &[("sec-fetch-site", "same-site"), ("origin", own.as_str())],
    ] {
        create(more).refused(401);
    }
    with("GET", "/api/agents", &[("sec-fetch-site", "cross-site")], None).refused(401);
    with("POST", "/auth/logout", &[("origin", "https://evil.example")], None).expect(200);
    assert_eq!(
        with("GET", "/api/agents", &[], None).expect(200),
        json!([]),
        "nothing happened, and nobody was signed out"
    );
    create(&[("origin", own.as_str()), ("sec-fetch-site", "same-origin")]).expect(201);
    // A socket says whose it is.
    let socket = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let agents = with("GET", "/api/agents", &[], None).expect(200);
    let place = format!("/api/agents/{}/ws", agents[0]["id"].as_str().unwrap());
    with("GET", &place, &socket, None).refused(401);
    // A wrong cookie is no guess at the key: others of the address are not slowed down.
    for _ in 0..20 {
        daemon.send("GET", "/api/agents", &[("cookie", "agentsvc_session=wrong")], None).refused(401);
    }
    owner(&daemon).get("/api/agents").expect(200);
    let out = with("POST", "/api/auth/logout", &[("origin", own.as_str())], None);
    assert!(cookies(&out)[0].starts_with("agentsvc_session=;") && cookies(&out)[0].contains("Max-Age=0"));
    with("GET", "/api/agents", &[], None).refused(401);
}

#[test]
fn a_sign_in_ends_in_the_browser_that_began_it() {
    let provider = Provider::start();
    let daemon = provider.daemon("");
    // Someone begins a sign-in and has another person's browser complete it.
    let (location, binding) = begin(&daemon);
    let back = provider.agree(&location);
    let (_, other) = begin(&daemon);
    for cookie in [None, Some(other.as_str()), Some("agentsvc_sign_in=")] {
        let page = open(&daemon, &back, cookie);
        assert_eq!((page.status, cookies(&page).len()), (400, 0), "{}", page.text());
        assert!(page.text().contains("<a href=\"../../\">"), "a way back: {}", page.text());
        assert_eq!(
            page.header("content-security-policy"),
            Some("default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
        );
    }
    // The same with a sign-in that a program began.
    let of_program = provider.agree(&login(&daemon));
    let page = open(&daemon, &of_program, Some(&binding));
    assert_eq!((page.status, cookies(&page).len()), (400, 0));
    assert_eq!(owner(&daemon).get("/api/auth/sessions").expect(200)["total"], 0);
    assert_eq!(open(&daemon, &back, Some(&binding)).status, 303);
    assert_eq!(open(&daemon, &back, Some(&binding)).status, 400, "once");
}

#[test]
fn beyond_this_machine_cookies_need_tls() {
    let provider = Provider::start();
    let daemon = provider.daemon("redirect_url = \"https://agents.example.com/api/auth/callback\"\n");
    let ask = |path: &str, cookie: &str| {
        let text = format!(
            "GET {path} HTTP/1.1\r\nhost: agents.example.com\r\naccept: text/html\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
        );
        daemon.raw(text.as_bytes()).expect("an answer")
    };
    let sent = ask("/api/auth/login", "a=b");
    let binding = cookies(&sent)[0].clone();
    assert!(binding.starts_with("__Host-agentsvc_sign_in=") && binding.contains("; Secure"), "{binding}");
    let done = ask(&provider.agree(sent.header("location").unwrap()), &pair(&binding));
    let set = cookies(&done);
    assert!(set[0].starts_with("__Host-agentsvc_session=") && set[0].contains("; Secure"), "{set:?}");
    // A name that another host could set counts for nothing.
    let planted = pair(&set[0]).replace("__Host-", "");
    assert_eq!(ask("/api/whoami", &planted).status, 401);
    assert_eq!(ask("/api/whoami", &pair(&set[0])).status, 200);
}
