//! `web_fetch` and `web_search` in the real daemon: a scripted model calls them, a site on loopback answers them.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use support::daemon::Daemon;
use support::model::Model;
use support::model_server::Reply;

/// What a site answers a request with: its head (request line and headers) and its body are given. `None`: silence.
type Answer = Arc<dyn Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync>;

/// A small site on a loopback address; remembers what it was asked.
struct Site {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start(ip: &str, answer: impl Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (heads, answer): (Arc<Mutex<Vec<String>>>, Answer) = (Arc::default(), Arc::new(answer));
        let seen = Arc::clone(&heads);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(&socket, &seen, &answer));
            }
        });
        Self { address, heads }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of all requests so far.
    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(socket: &TcpStream, seen: &Mutex<Vec<String>>, answer: &Answer) -> Option<()> {
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    std::io::Read::read_exact(&mut reader, &mut body).ok()?;
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
    match answer(&head, &String::from_utf8_lossy(&body)) {
        Some(bytes) => (&*socket).write_all(&bytes).ok(),
        // Until the client gives up.
        None => reader.read_line(&mut head).ok().map(drop),
    }
}

fn page(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
    Some([head.as_bytes(), body.as_ref()].concat())
}

fn redirect(to: &str) -> Option<Vec<u8>> {
    page("302 Found", &[&format!("location: {to}"), "content-length: 0"], "")
}

/// A daemon whose model calls tools.
struct Harness {
    model: Model,
    daemon: Daemon,
    agents: usize,
}

impl Harness {
    fn new(config: &str, environment: &[(&str, &str)]) -> Self {
        let model = Model::start();
        let daemon = Daemon::with_env(&format!("{}{config}", model.config()), environment);
        Self { model, daemon, agents: 0 }
    }

    /// Lets a new agent with these hosts in its manifest call a tool; gives the result that its model is told.
    #[track_caller]
    fn call(&mut self, network: &str, tool: &str, input: &Value) -> String {
        self.agents += 1;
        let grants = format!("[capabilities]\ntools = [\"web_*\"]\nnetwork = {network}\n");
        let agent = self.daemon.agent_with(&format!("agent-{}", self.agents), &grants);
        self.model.script([Reply::calls(&[("call-1", tool, &input.to_string())]), Reply::text("done")]);
        let answer = self.daemon.say(&agent, "go");
        assert_eq!(answer["response"], "done", "{answer}");
        let requests = self.model.requests();
        let messages = requests.last().and_then(|body| body["messages"].as_array()).cloned().unwrap_or_default();
        let result = messages.iter().rev().find(|message| message["role"] == "tool");
        result.and_then(|message| message["content"].as_str()).expect("a tool result").to_owned()
    }

    #[track_caller]
    fn fetch(&mut self, url: &str) -> String {
        self.call("[\"*\"]", "web_fetch", &json!({ "url": url }))
    }
}

/// `[web.fetch]` that opens the site, and lines that follow.
fn opening(site: &Site, rest: &str) -> String {
    format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n{rest}", site.address)
}

#[test]
fn pages_become_text() {
    let site = Site::start("127.0.0.2", |head, _| {
        let html = "<html><head><title>Birds</title><script>x()</script></head><body><nav>menu</nav>\
            <h1>Owls</h1><p>They <a href='/fly'>fly</a>.</p><ul><li>by night</ul></body></html>";
        match head.split(' ').nth(1) {
            Some("/json") => page("200 OK", &["content-type: application/json"], "{\"a\": [1, 2]}"),
            Some("/gone") => page("404 Not Found", &["content-type: text/html"], "<h1>Gone</h1>"),
            Some("/image") => page("200 OK", &["content-type: image/png"], "\u{89}PNG"),
            _ => page("200 OK", &["content-type: text/html"], html),
        }
    });
    // A proxy in the environment would see, and could change, where a fetch goes: tools use none.
    let proxy = [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("http_proxy", "http://127.0.0.1:9"),
        ("ALL_PROXY", "http://127.0.0.1:9"),
    ];
    // The model is on loopback and needs no proxy either.
    let mut harness = Harness::new(&opening(&site, ""), &proxy);
    let read = harness.fetch(&site.url("/owls"));
    let expected = format!(
        "URL: {}\nTitle: Birds\nContent type: text/html\n\n# Owls\n\nThey fly ({}).\n\n- by night",
        site.url("/owls"),
        site.url("/fly")
    );
    assert_eq!(read, expected);
    let head = site.heads().remove(0).to_lowercase();
    assert!(head.contains("user-agent: agentsvc/") && head.contains("accept-encoding: gzip"), "{head}");
    assert!(harness.fetch(&site.url("/json")).ends_with("\n\n{\"a\": [1, 2]}"));
    assert!(harness.fetch(&site.url("/gone")).contains("returned status 404 Not Found. It says:\n# Gone"));
    assert!(harness.fetch(&site.url("/image")).contains("image/png is not text"));
    let part = json!({ "url": site.url("/json"), "max_chars": 4, "offset": 3 });
    let part = harness.call("[\"*\"]", "web_fetch", &part);
    assert!(part.ends_with("Characters 3 to 7 of 13; continue with offset 7\n\n\": ["), "{part}");
    let raw = harness.call("[\"*\"]", "web_fetch", &json!({ "url": site.url("/"), "raw": true }));
    assert!(raw.contains("<nav>menu</nav>"), "{raw}");
}

#[test]
fn nothing_private_is_reached() {
    let secret = Site::start("127.0.0.3", |_, _| page("200 OK", &["content-type: text/plain"], "secret"));
    let hidden = secret.url("/");
    let site = Site::start("127.0.0.2", move |head, _| match head.split(' ').nth(1) {
        Some("/metadata") => redirect("http://169.254.169.254/latest/meta-data/"),
        Some("/file") => redirect("file:///etc/passwd"),
        Some("/other-port") => redirect("http://127.0.0.2:1/"),
        Some("/hidden") => redirect(&hidden),
        Some("/there") => redirect("/here"),
        _ => page("200 OK", &["content-type: text/plain"], "here"),
    });
    let mut harness = Harness::new(&opening(&site, ""), &[]);
    assert!(harness.fetch(&site.url("/there")).ends_with("\n\nhere"));
    let port = secret.address.port();
    for url in [
        secret.url("/"),
        format!("http://0x7f.3:{port}/"),
        format!("http://2130706435:{port}/"),
        format!("http://017700000003:{port}/"),
        format!("http://[::ffff:127.0.0.3]:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://localhost.:{port}/"),
        format!("http://a.localhost:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://user@127.0.0.3:{port}/"),
        harness.daemon.client().addr.to_string(),
        format!("http://{}/api/agents", harness.daemon.client().addr),
        "http://[64:ff9b::a9fe:a9fe]/".to_owned(),
        "file:///etc/passwd".to_owned(),
        site.url("/metadata"),
        site.url("/file"),
        site.url("/other-port"),
        site.url("/hidden"),
    ] {
        let told = harness.fetch(&url);
        let refused = [
            "not public",
            "belongs to this machine",
            "only http and https",
            "must not contain",
            "is not a URL",
            "Port 1 is",
        ];
        assert!(refused.iter().any(|reason| told.contains(reason)), "{url}: {told}");
    }
    assert!(secret.heads().is_empty(), "nothing came through");
}

#[test]
fn the_manifest_says_which_hosts() {
    let site = Site::start("127.0.0.2", |head, _| match head.split(' ').nth(1) {
        Some("/away") => redirect("https://example.com/"),
        _ => page("200 OK", &["content-type: text/plain"], "here"),
    });
    let mut harness = Harness::new(&opening(&site, ""), &[]);
    let url = json!({ "url": site.url("/") });
    assert!(harness.call("[\"127.0.0.*\"]", "web_fetch", &url).ends_with("here"));
    let other = harness.call("[\"example.org\"]", "web_fetch", &url);
    assert!(other.contains("is not allowed to reach 127.0.0.2"), "{other}");
    let away = harness.call("[\"127.0.0.2\"]", "web_fetch", &json!({ "url": site.url("/away") }));
    assert!(
        away.contains("Redirected to https://example.com/") && away.contains("is not allowed to reach example.com"),
        "{away}"
    );
    let none = harness.call("[]", "web_fetch", &url);
    assert!(none.contains("is not allowed to call the tool"), "{none}");
    let wrong = harness.call("[\"*\"]", "web_fetch", &json!({ "link": "x" }));
    assert!(wrong.contains("unknown field `link`"), "{wrong}");
}

#[test]
fn time_and_size_have_limits() {
    let site = Site::start("127.0.0.2", |head, _| match head.split(' ').nth(1) {
        Some("/silent") => None,
        Some("/large") => page("200 OK", &["content-type: text/plain"], "x".repeat(100_000)),
        _ => page("200 OK", &["content-type: text/plain", "content-length: 9"], "begun"),
    });
    let mut harness = Harness::new(&opening(&site, "max_bytes = 2000\ntimeout_secs = 5\nmax_chars = 500\n"), &[]);
    assert!(harness.fetch(&site.url("/silent")).contains("after 5 seconds"));
    assert!(harness.fetch(&site.url("/cut-off")).contains("could not be fetched"));
    let large = harness.fetch(&site.url("/large"));
    assert!(large.contains("Characters 0 to 500 of 2000; continue with offset 500"), "{large}");
    assert!(large.contains("its end is missing"), "{large}");
}

#[test]
fn searches_go_to_the_provider_that_is_configured() {
    let site = Site::start("127.0.0.2", |head, body| {
        let json = |body: &str| page("200 OK", &["content-type: application/json"], body);
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path.starts_with("/search?q=owls+at+night&format=json") {
            json(r#"{"results": [{"url": "https://a.example/", "title": "A", "content": "says a"}]}"#)
        } else if path.starts_with("/res/v1/web/search") && head.contains("x-subscription-token: brave-key") {
            json(
                r#"{"type": "search", "web": {"results": [{"title": "<b>B</b>", "url": "https://b.example/", "description": "b"},
                {"title": "B2", "url": "https://b2.example/", "description": "b2"}]}}"#,
            )
        } else if path == "/search"
            && head.contains("authorization: Bearer tavily-key")
            && body.contains("owls at night")
        {
            json(r#"{"results": [{"title": "T", "url": "https://t.example/", "content": "t"}]}"#)
        } else if path.starts_with("/html/?q=owls+at+night") {
            page(
                "200 OK",
                &["content-type: text/html"],
                "<a class='result__a' href='//duckduckgo.com/l/?uddg=https%3A%2F%2Fd.example%2F'>D</a>",
            )
        } else if path.starts_with("/html/?q=refused") {
            page("202 Accepted", &["content-type: text/html"], "<div class='anomaly-modal'>Are you a person?</div>")
        } else {
            page("401 Unauthorized", &["content-type: application/json"], "{}")
        }
    });
    let asked = json!({ "query": "owls at night", "max_results": 1 });
    let base_url = format!("base_url = \"{}\"\n", site.url(""));
    for (provider, environment, expected) in [
        ("searxng", None, "1. A\n   https://a.example/\n   says a"),
        ("brave", Some(("BRAVE_API_KEY", "brave-key")), "1. B\n   https://b.example/\n   b"),
        (
            "brave",
            Some(("BRAVE_API_KEY", "another")),
            "The search with brave failed. It rejected the key (status 401).",
        ),
        ("brave", None, "The search provider brave has no key: the environment variable BRAVE_API_KEY is not set."),
        ("tavily", Some(("TAVILY_API_KEY", "tavily-key")), "1. T\n   https://t.example/\n   t"),
        ("duckduckgo", None, "1. D\n   https://d.example/"),
    ] {
        let config = format!("[web.search]\nprovider = \"{provider}\"\n{base_url}");
        let mut harness = Harness::new(&config, environment.as_slice());
        let found = harness.call("[\"127.0.0.2\"]", "web_search", &asked);
        assert!(found.starts_with(expected) && !found.contains("b2.example"), "{provider}: {found}");
    }
    let mut harness = Harness::new(&format!("[web.search]\n{base_url}"), &[]);
    let refused = harness.call("[\"*\"]", "web_search", &json!({ "query": "refused" }));
    assert!(
        refused.contains("The search with duckduckgo failed.") && refused.contains("[web.search] provider"),
        "{refused}"
    );
    let other = harness.call("[\"example.com\"]", "web_search", &asked);
    assert!(
        other.contains("is not allowed to reach 127.0.0.2") && other.contains("Searches use that host."),
        "{other}"
    );
    let empty = harness.call("[\"*\"]", "web_search", &json!({ "query": " " }));
    assert!(empty.contains("must have 1 to 1000 bytes"), "{empty}");
}
