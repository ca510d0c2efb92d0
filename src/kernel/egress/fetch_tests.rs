//! The fetcher against servers on loopback addresses, with resolvers that answer what the test wants.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::dns::Lookup;
use super::{AllowedHosts, Error, Fetched, Media, Request, Web, WebSettings};

/// A resolver that gives one prepared answer after the other, and the last one for ever.
#[derive(Clone, Default)]
struct Scripted {
    answers: Arc<Mutex<VecDeque<Vec<IpAddr>>>>,
    asked: Arc<AtomicUsize>,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|answer| answer.iter().map(|text| text.parse().unwrap()).collect());
        Self { answers: Arc::new(Mutex::new(answers.collect())), asked: Arc::default() }
    }
}

impl Lookup for Scripted {
    fn lookup(&self, _: String) -> BoxFuture<'static, Result<Vec<IpAddr>, String>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move { answer.ok_or_else(|| "no such host".to_owned()) })
    }
}

/// A server that answers every request with what `answer` makes of its path, and then closes, but for paths that begin
/// with `/hold`. `None`: it never answers.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start(ip: &str, answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let (address, connections) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let (answer, counted) = (Arc::new(answer), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let answer = Arc::clone(&answer);
                tokio::spawn(async move {
                    let (mut head, mut piece) = (Vec::new(), [0; 1_024]);
                    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                        match socket.read(&mut piece).await {
                            Ok(read @ 1..) => head.extend_from_slice(&piece[..read]),
                            _ => return,
                        }
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default();
                    let answered = answer(path);
                    let holds = answered.is_none() || path.starts_with("/hold");
                    if let Some(bytes) = answered {
                        drop(socket.write_all(&bytes).await);
                    }
                    if holds {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { address, connections }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn named(&self, path: &str) -> String {
        format!("http://name.example:{}{path}", self.address.port())
    }

    fn taken(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn response(status: &str, headers: &str, body: &[u8]) -> Option<Vec<u8>> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
    Some([head.as_bytes(), body].concat())
}

fn web(allowed: &[String], lookup: &Scripted) -> Web {
    let allowed = AllowedHosts::parse(allowed).unwrap();
    let settings =
        WebSettings { allowed, max_bytes: 10_000, timeout: Duration::from_secs(180), ..WebSettings::default() };
    Web::with_lookup(settings, Box::new(lookup.clone()))
}

fn request(url: &str) -> Request<'_> {
    static ALL: std::sync::LazyLock<[Box<str>; 1]> = std::sync::LazyLock::new(|| ["*".into()]);
    Request {
        url,
        holder: Holder::Family(AgentId(Uuid::nil())),
        network: &*ALL,
        trusted: None,
        accept: "*/*",
        header: None,
        json: None,
        redirects_max: 5,
    }
}

async fn fetch(web: &Web, url: &str) -> Result<Fetched, Error> {
    web.fetch(request(url)).await
}

#[tokio::test]
async fn the_checked_address_is_the_one_connected_to() {
    // The same port on an address that is not opened; somebody else may have it there, so another is tried then.
    let (open, secret) = loop {
        let open = Server::start("127.0.0.2", |_| response("200 OK", "content-type: text/plain\r\n", b"open")).await;
        if let Ok(secret) = TcpListener::bind(("127.0.0.1", open.address.port())).await {
            break (open, secret);
        }
    };
    let lookup = Scripted::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let web = web(&[format!("127.0.0.2:{}", open.address.port())], &lookup);
    let fetched = fetch(&web, &open.named("/")).await.unwrap();
    assert_eq!((fetched.text.as_str(), fetched.media), ("open", Media::Text));
    assert_eq!(lookup.asked.load(Ordering::Relaxed), 1, "one hop, one lookup");
    // The name answers with the other address now: nothing is remembered, and nothing connects.
    let error = fetch(&web, &open.named("/")).await.unwrap_err();
    assert!(matches!(error, Error::Private { class: "loopback", .. }), "{error}");
    let nobody = tokio::time::timeout(Duration::from_millis(50), secret.accept()).await;
    assert!(nobody.is_err() && open.taken() == 1);
}

#[tokio::test]
async fn one_private_answer_refuses_the_name() {
    let server = Server::start("127.0.0.2", |_| response("200 OK", "", b"x")).await;
    for answer in
        [&["8.8.8.8", "127.0.0.2"][..], &["127.0.0.2", "8.8.8.8"], &["64:ff9b::7f00:2"], &["::ffff:127.0.0.2"]]
    {
        let error = fetch(&web(&[], &Scripted::new(&[answer])), &server.named("/")).await.unwrap_err();
        assert!(matches!(error, Error::Private { .. }), "{error}");
    }
    let error = fetch(&web(&[], &Scripted::new(&[&[]])), &server.named("/")).await.unwrap_err();
    assert!(matches!(error, Error::Lookup { .. }), "{error}");
    assert_eq!(server.taken(), 0);
}

#[tokio::test]
async fn every_redirect_is_checked_again() {
    let server = Server::start("127.0.0.2", |path| {
        let to = |place: &str| response("302 Found", &format!("location: {place}\r\ncontent-length: 0\r\n"), b"");
        match path {
            "/metadata" => to("http://169.254.169.254/latest/"),
            "/file" => to("file:///etc/passwd"),
            "/port" => to("http://127.0.0.2:1/"),
            "/user" => to("http://a:b@name.example/"),
            "/name" => to("/end"),
            "/loop" => to("/loop"),
            "/nowhere" => response("302 Found", "content-length: 0\r\n", b""),
            _ => response("200 OK", "content-type: text/plain\r\n", b"end"),
        }
    })
    .await;
    let opened = [format!("127.0.0.2:{}", server.address.port())];
    let at = web(&opened, &Scripted::new(&[&["127.0.0.2"]]));
    for (path, part) in [
        ("/metadata", "Redirected to http://169.254.169.254/latest/. 169.254.169.254 is refused"),
        ("/file", "only http and https"),
        ("/port", "Port 1 is refused"),
        ("/user", "must not contain a user"),
        ("/loop", "more than 5 times"),
        ("/nowhere", "without a valid location"),
    ] {
        let error = fetch(&at, &server.url(path)).await.unwrap_err().to_string();
        assert!(error.contains(part), "{path}: {error}");
    }
    let fetched = fetch(&at, &server.named("/name")).await.unwrap();
    assert_eq!((fetched.text.as_str(), fetched.url.path()), ("end", "/end"));
    // The name turns private between two hops.
    let rebound = web(&opened, &Scripted::new(&[&["127.0.0.2"], &["127.0.0.1"]]));
    let error = fetch(&rebound, &server.named("/name")).await.unwrap_err();
    assert!(matches!(&error, Error::Hop { cause, .. } if matches!(**cause, Error::Private { .. })), "{error}");
    // The manifest grants the first host only.
    let network = ["127.0.0.2".into()];
    let to_name = Request { network: &network, ..request("http://name.example/") };
    assert!(matches!(at.fetch(to_name).await.unwrap_err(), Error::NotGranted(_)));
    let url = server.named("/name");
    let none = Request { redirects_max: 0, ..request(&url) };
    assert!(matches!(at.fetch(none).await.unwrap_err(), Error::Redirected(_)));
}

#[tokio::test]
async fn bodies_are_bounded_and_unpacked() {
    let server = Server::start("127.0.0.2", |path| {
        let packed = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let gzip = "content-type: text/plain\r\ncontent-encoding: gzip\r\n";
        match path {
            "/large" => response("200 OK", "content-type: text/plain\r\n", &vec![b'x'; 100_000]),
            "/bomb" => response("200 OK", gzip, &packed(&vec![b'x'; 20 << 20])),
            "/gzip" => response("200 OK", gzip, &packed(b"unpacked")),
            "/br" => response("200 OK", "content-type: text/plain\r\ncontent-encoding: br\r\n", b"x"),
            "/image" => response("200 OK", "content-type: image/png\r\n", b"\x89PNG"),
            "/zeros" => response("200 OK", "content-type: text/plain\r\n", b"a\0b"),
            "/short" => response("200 OK", "content-type: text/plain\r\ncontent-length: 99\r\n", b"broken off"),
            "/missing" => response("404 Not Found", "content-type: text/html\r\n", b"gone"),
            "/untyped" => response("200 OK", "", b"<!doctype html><p>page"),
            _ => response("200 OK", "content-type: text/html; charset=iso-8859-1\r\n", b"caf\xe9"),
        }
    })
    .await;
    let web = web(&["127.0.0.2".to_owned()], &Scripted::default());
    for path in ["/large", "/bomb"] {
        let fetched = fetch(&web, &server.url(path)).await.unwrap();
        assert!(fetched.cut && fetched.text.len() == 10_000, "{path}: {}", fetched.text.len());
    }
    let fetched = fetch(&web, &server.url("/gzip")).await.unwrap();
    assert!(!fetched.cut && fetched.text == "unpacked");
    for (path, part) in [
        ("/br", "br"),
        ("/image", "image/png is not text"),
        ("/zeros", "binary"),
        ("/short", "127.0.0.2 could not be fetched"),
    ] {
        let error = fetch(&web, &server.url(path)).await.unwrap_err().to_string();
        assert!(error.contains(part), "{path}: {error}");
    }
    assert_eq!(fetch(&web, &server.url("/missing")).await.unwrap().status, 404);
    assert_eq!(fetch(&web, &server.url("/untyped")).await.unwrap().media, Media::Html);
    assert_eq!(fetch(&web, &server.url("/latin")).await.unwrap().text, "café");
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let server = Server::start("127.0.0.2", |path| match path {
        "/hold-body" => Some(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nab".to_vec()),
        _ => None,
    })
    .await;
    let allowed = AllowedHosts::parse(&["127.0.0.2"]).unwrap();
    let settings = WebSettings { allowed, timeout: Duration::from_millis(150), ..WebSettings::default() };
    let web = Web::with_lookup(settings, Box::new(Scripted::default()));
    for path in ["/", "/hold-body"] {
        assert!(matches!(fetch(&web, &server.url(path)).await.unwrap_err(), Error::Timeout(_)), "{path}");
    }
}

#[tokio::test]
async fn a_url_of_the_configuration_may_be_private_but_must_be_granted() {
    let server = Server::start("127.0.0.2", |_| response("200 OK", "content-type: text/plain\r\n", b"here")).await;
    let (url, web) = (server.url("/search"), web(&[], &Scripted::default()));
    assert!(matches!(fetch(&web, &url).await.unwrap_err(), Error::Private { .. }));
    let base = server.url("");
    let trusted = Request { trusted: Some(&base), ..request(&url) };
    assert_eq!(web.fetch(trusted).await.unwrap().text, "here");
    let ungranted = Request { trusted: Some(&base), network: &[], ..request(&url) };
    assert!(matches!(web.fetch(ungranted).await.unwrap_err(), Error::NotGranted(_)));
    let elsewhere = Request { trusted: Some("http://127.0.0.2:81/"), ..request(&url) };
    assert!(matches!(web.fetch(elsewhere).await.unwrap_err(), Error::Private { .. }));
}

#[tokio::test]
async fn only_so_many_fetches_at_once() {
    let server = Server::start("127.0.0.2", |_| response("200 OK", "content-type: text/plain\r\n", b"x")).await;
    let web = web(&["127.0.0.2".to_owned()], &Scripted::default());
    let url = server.url("/");
    let all = (0..200).map(|_| fetch(&web, &url));
    let all = futures_util::future::join_all(all).await;
    assert!(all.into_iter().all(|fetched| fetched.is_ok_and(|fetched| fetched.text == "x")));
    assert_eq!(web.inner.turns.free(), agentsvc_components::kernel::limit::WEB_FETCHES_MAX);
}
