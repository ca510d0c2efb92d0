//! What holds for every response: request ids, security headers, authentication, CORS, errors, methods
//! (spec 1, Authentication, Errors, Limits).

use serde_json::json;
use uuid::Uuid;

use crate::support::daemon::Daemon;
use crate::support::http::{Client, Reply};

#[track_caller]
fn assert_marked(reply: &Reply) {
    let id = reply.header("x-request-id").unwrap_or_default();
    assert!(Uuid::try_parse(id).is_ok(), "x-request-id '{id}'");
    assert!(reply.header("content-security-policy").is_some_and(|p| p.contains("default-src 'self'")));
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("strict-transport-security"), Some("max-age=63072000; includeSubDomains"));
}

#[test]
fn every_response_is_marked() {
    let mut daemon = Daemon::with("api_key = \"secret\"\n");
    assert_marked(&daemon.get("/api/agents"));
    daemon.use_key("secret");
    let agent = daemon.agent("a");
    let garbage = daemon.raw(b"GARBAGE\r\n\r\n");
    for reply in [
        daemon.get("/api/health"),
        daemon.get("/api/agents"),
        daemon.get("/api/nowhere"),
        daemon.get("/"),
        daemon.get("/api/agents/nonsense"),
        daemon.delete("/api/health"),
        daemon.post("/api/agents", &json!({})),
        daemon.send("POST", "/api/agents", &[], Some(b"{")),
        daemon.send("OPTIONS", "/api/agents", &[], None),
        daemon.send("HEAD", "/api/health", &[], None),
        daemon.send("POST", &format!("/api/agents/{agent}/message/stream"), &[], Some(br#"{"message":"hi"}"#)),
    ] {
        assert_marked(&reply);
    }
    // A line that is not HTTP may be answered or cut off; answered, it is a 400.
    if let Ok(reply) = garbage {
        assert_eq!(reply.status, 400);
    }
}

#[test]
fn a_clients_own_request_id_is_kept_when_it_is_a_uuid() {
    let daemon = Daemon::start();
    let id = "0190163d-8694-739b-aea5-966c26f8ad91";
    let reply = daemon.send("GET", "/api/health", &[("x-request-id", id)], None);
    assert_eq!(reply.header("x-request-id"), Some(id));
    let reply = daemon.send("GET", "/api/nowhere", &[("x-request-id", id)], None);
    assert_eq!(reply.header("x-request-id"), Some(id));
    let reply = daemon.send("GET", "/api/health", &[("x-request-id", "not a uuid")], None);
    assert_marked(&reply);
    let first = daemon.get("/api/health");
    assert_ne!(first.header("x-request-id"), daemon.get("/api/health").header("x-request-id"));
}

#[test]
fn with_a_key_all_but_health_and_the_page_need_it() {
    let daemon = Daemon::with("api_key = \"correct-horse\"\n");
    daemon.get("/api/health").expect(200);
    for path in ["/api/agents", "/api/health/detail", "/api/version", "/api/versions", "/api/metrics", "/api/status"] {
        let reply = daemon.get(path);
        reply.refused(401);
        assert!(reply.header("www-authenticate").is_some_and(|h| h.starts_with("Bearer")));
    }
    for wrong in [
        "Bearer wrong",
        "Bearer correct-hors",
        "Bearer correct-horse!",
        "Bearer",
        "Basic Y29ycmVjdCBob3JzZQ==",
        "correct-horse",
        "Bearer \tcorrect",
        "",
    ] {
        daemon.send("GET", "/api/agents", &[("authorization", wrong)], None).refused(401);
    }
    daemon.keyed("correct-horse").get("/api/agents").expect(200);
    daemon.send("GET", "/api/agents", &[("authorization", "bearer correct-horse")], None).expect(200);
    daemon.keyed("wrong").poke("/api/shutdown").refused(401);
    daemon.keyed("wrong").post("/api/agents", &json!({ "manifest_toml": "name = \"x\"" })).refused(401);
    daemon.get("/api/health").expect(200);
}

#[test]
fn open_mode_shares_with_localhost_only() {
    let daemon = Daemon::start();
    let from = |origin: &str| daemon.send("GET", "/api/agents", &[("origin", origin)], None);
    for good in
        ["http://localhost", "http://localhost:3000", "http://127.0.0.1:8080", "https://localhost:1", "http://[::1]:9"]
    {
        assert_eq!(from(good).header("access-control-allow-origin"), Some(good), "{good}");
    }
    for bad in [
        "http://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "null",
        "http://evil.example/localhost",
        "http://localhost@evil.example",
    ] {
        let reply = from(bad);
        assert_eq!(reply.header("access-control-allow-origin"), None, "{bad}");
    }
    let shared = from("http://localhost:3000");
    assert!(shared.header("vary").is_some_and(|v| v.to_lowercase().contains("origin")));
    let asked = [
        ("origin", "http://localhost:3000"),
        ("access-control-request-method", "DELETE"),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    let preflight = daemon.send("OPTIONS", "/api/agents", &asked, None);
    assert!(preflight.status == 204 || preflight.status == 200);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("http://localhost:3000"));
    assert!(preflight.header("access-control-allow-methods").is_some_and(|m| m.contains("POST")));
    let headers = preflight.header("access-control-allow-headers").unwrap_or_default().to_lowercase();
    assert!(headers.contains("authorization") && headers.contains("content-type"), "{headers}");
}

#[test]
fn cors_origin_lists_who_else_may_call() {
    let daemon = Daemon::with("api_key = \"k\"\ncors_origin = [\"https://app.example\"]\n");
    let client = daemon.keyed("k");
    let from = |origin: &str| client.send("GET", "/api/agents", &[("origin", origin)], None);
    assert_eq!(from("https://app.example").header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(from("https://other.example").header("access-control-allow-origin"), None);
    // A browser sends its preflight without the key.
    let asked = [("origin", "https://app.example"), ("access-control-request-method", "POST")];
    let preflight = daemon.send("OPTIONS", "/api/agents", &asked, None);
    assert!(preflight.status == 204 || preflight.status == 200);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.example"));
    // The browser can read an error only when it is shared, too.
    let refused = daemon.send("GET", "/api/agents", &[("origin", "https://app.example")], None);
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some("https://app.example")));
}

#[test]
fn another_method_gets_405_with_allow() {
    let daemon = Daemon::start();
    let reply = daemon.send("PUT", "/api/agents", &[], Some(b"{}"));
    reply.refused(405);
    let allow = reply.header("allow").unwrap().to_owned();
    assert!(allow.contains("GET") && allow.contains("POST") && !allow.contains("PUT"), "{allow}");
    daemon.send("BREW", "/api/agents", &[], None).refused(405);
    let options = daemon.send("OPTIONS", "/api/agents", &[], None);
    assert!(options.status < 300 && options.header("allow").is_some_and(|a| a.contains("POST")));
}

#[test]
fn head_is_get_without_the_body() {
    let daemon = Daemon::start();
    let (head, get) = (daemon.send("HEAD", "/api/version", &[], None), daemon.get("/api/version"));
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), get.header("content-type"));
}

#[test]
fn unknown_body_keys_are_ignored_with_a_warning() {
    let daemon = Daemon::start();
    let body = json!({ "manifest_toml": "name = \"x\"", "colour": "green" });
    let reply = daemon.post("/api/agents", &body);
    reply.expect(201);
    let warned = reply.headers.iter().any(|(name, value)| name.contains("warn") && value.contains("colour"));
    assert!(warned, "{:?}", reply.headers);
}

#[test]
fn a_body_that_is_not_json_by_its_type_is_415() {
    let daemon = Daemon::start();
    let body = br#"{"manifest_toml":"name = \"x\""}"#;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/xml"] {
        daemon.send("POST", "/api/agents", &[("content-type", kind)], Some(body)).refused(415);
    }
    for kind in ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"] {
        let reply = daemon.send("POST", "/api/agents", &[("content-type", kind)], Some(body));
        assert!(matches!(reply.status, 201 | 409), "{kind}: {}", reply.text());
    }
}

#[test]
fn the_page_and_its_files_are_public() {
    let daemon = Daemon::with("api_key = \"k\"\n");
    let reply = daemon.get("/");
    assert_eq!(reply.status, 200);
    assert_marked(&reply);
    assert!(reply.header("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    let page = reply.text();
    let linked = |attribute: &str| {
        let parts: Vec<_> = page.split(attribute).skip(1).collect();
        parts.into_iter().filter_map(|part| Some(part.split('"').next()?.to_owned())).collect::<Vec<_>>()
    };
    let files: Vec<_> = [linked("src=\""), linked("href=\"")].concat();
    for file in files.iter().filter(|file| !file.starts_with("data:") && !file.starts_with('#')) {
        assert!(!file.contains("//"), "the page is served whole by the daemon: {file}");
        let path = format!("/{}", file.trim_start_matches(['.', '/']));
        assert_eq!(daemon.send("GET", &path, &[], None).status, 200, "{path}");
    }
}

#[test]
fn connections_are_kept_alive_and_pipelined() {
    let daemon = Daemon::start();
    let wire = daemon.connect().unwrap();
    let one = "GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let last = "GET /api/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    std::io::Write::write_all(&mut &wire, format!("{one}{one}{last}").as_bytes()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut &wire, &mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3, "{text}");
}

#[test]
fn http2_with_prior_knowledge_is_served() {
    let daemon = Daemon::start();
    let addr = daemon.addr;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (status, marked) = runtime.block_on(async move {
        let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        let executor = hyper_util::rt::TokioExecutor::new();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::get(format!("http://{addr}/api/health"));
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        (response.status(), response.headers().contains_key("x-request-id"))
    });
    assert_eq!((status.as_u16(), marked), (200, true));
}

#[test]
fn a_client_without_a_host_or_with_http_1_0_is_answered_clearly() {
    let daemon = Daemon::start();
    let client: &Client = &daemon;
    assert_eq!(client.raw(b"GET /api/health HTTP/1.0\r\n\r\n").unwrap().status, 200);
    let absolute = "GET http://localhost/api/health HTTP/1.1";
    for (head, status) in [
        ("GET /api/health HTTP/1.1".to_owned(), 400),
        ("GET /api/health HTTP/1.1\r\nhost: localhost\r\nhost: localhost".to_owned(), 400),
        ("GET /api/health HTTP/1.1\r\nhost: localhost\r\nHost: evil.example".to_owned(), 400),
        ("GET /api/health HTTP/1.0\r\nhost: localhost\r\nhost: localhost".to_owned(), 400),
        (format!("{absolute}\r\nhost: evil.example"), 400),
        (format!("{absolute}\r\nhost: localhost:4545"), 400),
        (format!("{absolute}\r\nhost: LOCALHOST"), 200),
        ("GET /api/health HTTP/1.1\r\nhost: localhost".to_owned(), 200),
    ] {
        let reply = client.raw(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(reply.status, status, "{head}: {}", reply.text());
        assert!(status == 200 || reply.text().contains("\"error\""), "{head}");
    }
}
