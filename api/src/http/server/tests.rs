//! Tests of the server over real sockets.

use std::net::SocketAddr;

use agentsvc_components::kernel::limit;
use http_body_util::{BodyExt, Empty};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinHandle;

use super::*;
use crate::http::metrics::{MetricsText, Probe};
use crate::http::settings::{ApiSettings, Limits};
use crate::testing::front;

mod shares;
mod unread;

/// Makes each answer of `/api/metrics` a large one of its own.
struct Large;

impl Probe for Large {
    fn gather(&self, out: &mut MetricsText) {
        out.family("large", &"x".repeat(4 * limit::ANSWER_SMALL_BYTES), "gauge");
    }
}

/// A server that is running.
struct Running {
    api: Arc<Api>,
    address: SocketAddr,
    served: JoinHandle<()>,
}

impl Running {
    async fn with(limits: Limits) -> Self {
        Self::of(ApiSettings { limits, ..ApiSettings::default() }).await
    }

    async fn of(settings: ApiSettings) -> Self {
        let api = front(settings);
        api.add_probe(Arc::new(Large));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(serve(Arc::clone(&api), vec![listener]));
        Self { api, address, served }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// An HTTP/2 client whose streams may take so many bytes before they are read.
    async fn http2(&self, window: u32) -> Http2 {
        let io = TokioIo::new(self.connect().await);
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (client, connection) = builder.initial_stream_window_size(window).handshake(io).await.unwrap();
        Http2 { client, connection: tokio::spawn(connection) }
    }

    /// Waits until so many requests are not answered whole.
    async fn in_flight(&self, count: u64) {
        while self.api.metrics.in_flight.load(Ordering::Relaxed) != count {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Sends `request` and reads until the server closes. One that has answered may close before all was sent.
    async fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.connect().await;
        if stream.write_all(request).await.is_ok() {
            return read_all(stream).await;
        }
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

/// A connection of a client that speaks HTTP/2.
struct Http2 {
    client: hyper::client::conn::http2::SendRequest<Empty<bytes::Bytes>>,
    connection: JoinHandle<hyper::Result<()>>,
}

impl Http2 {
    /// The head of the answer, and the body that is still to be read.
    async fn get(&self, path: &str, key: &str) -> hyper::Result<hyper::Response<hyper::body::Incoming>> {
        let request = Request::get(format!("http://localhost{path}")).header("authorization", format!("Bearer {key}"));
        self.client.clone().send_request(request.body(Empty::new()).unwrap()).await
    }
}

/// Why the server reset the stream.
fn reason(error: &hyper::Error) -> Option<Reason> {
    std::error::Error::source(error)?.downcast_ref::<h2::Error>()?.reason()
}

async fn read_all(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Reads until `end` has come.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut answer = String::new();
    let mut piece = [0; 4_096];
    while !answer.contains(end) {
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "closed after: {answer}");
        answer.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    answer
}

fn assert_error(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    for header in ["x-request-id: ", "content-security-policy: ", "content-type: application/json"] {
        assert!(head.contains(header), "{header}: {answer}");
    }
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert!(body["error"].is_string());
}

#[test]
fn an_accept_without_watches_speaks_of_no_disk() {
    assert!(said(&io::ErrorKind::StorageFull.into()).contains("fs.epoll.max_user_watches"));
    assert!(!said(&io::ErrorKind::OutOfMemory.into()).contains("watches"));
}

#[tokio::test]
async fn connections_are_kept_and_head_has_no_body() {
    let server = Running::with(Limits::default()).await;
    let requests = "GET /api/versions HTTP/1.1\r\nhost: localhost\r\n\r\n\
                    HEAD /api/versions HTTP/1.1\r\nhost: localhost\r\n\r\n\
                    HEAD /api/logs/stream HTTP/1.1\r\nhost: localhost\r\n\r\n\
                    GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = server.exchange(requests.as_bytes()).await;
    let mut answers = answer.split("HTTP/1.1 200 OK\r\n").skip(1);
    let (head, body) = answers.next().unwrap().split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())));
    let (head, nothing) = answers.next().unwrap().split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())) && nothing.is_empty());
    let (head, nothing) = answers.next().unwrap().split_once("\r\n\r\n").unwrap();
    assert!(head.contains("text/event-stream") && nothing.is_empty());
    assert!(answers.next().unwrap().ends_with('}'));
    assert!(answers.next().is_none());
}

#[tokio::test]
async fn http2_is_spoken_with_prior_knowledge() {
    let server = Running::with(Limits::default()).await;
    let io = TokioIo::new(server.connect().await);
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    for (method, bytes) in [(Method::GET, true), (Method::HEAD, false)] {
        let request = Request::builder().method(method).uri("http://localhost/api/health");
        let response = client.send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.headers().contains_key("x-request-id") && response.headers().contains_key("content-length"));
        assert_eq!(!response.into_body().collect().await.unwrap().to_bytes().is_empty(), bytes);
    }
    let large =
        Request::get("http://localhost/api/health").header("x", "y".repeat(20 << 10)).body(Empty::new()).unwrap();
    let refused = client.send_request(large).await.unwrap();
    assert_eq!(refused.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert!(refused.headers().contains_key("x-request-id"));
    let foreign = Request::get("http://evil.org/api/health").body(Empty::new()).unwrap();
    assert_eq!(client.send_request(foreign).await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_its_share_and_others_are_served() {
    let share = 4 << 20;
    let server = Running::with(Limits { answers_bytes_max: 4 * share, ..Limits::default() }).await;
    let http = server.http2(0).await;
    let (mut held, mut refused) = (Vec::new(), 0);
    for _ in 0..200 {
        let response = http.get("/api/metrics", "").await.unwrap();
        match response.status() {
            StatusCode::OK => held.push(response),
            status => {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                assert_eq!(response.headers()["retry-after"], "10");
                refused += 1;
            }
        }
        let bytes = server.api.answers.bytes();
        assert!(bytes > 0 && bytes <= share, "{bytes}");
    }
    assert!(!held.is_empty() && refused > 0, "{} {refused}", held.len());
    let small = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(server.exchange(small).await.starts_with("HTTP/1.1 200 OK"));
    drop(held);
    while server.api.answers.bytes() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_all_clients_are_sent_takes_no_share_of_one_that_does_not_read_it() {
    let server = Running::with(Limits { answers_bytes_max: 1 << 20, ..Limits::default() }).await;
    let http = server.http2(0).await;
    let mut unread = Vec::new();
    for path in ["/api/openapi.json", "/", "/assets/app.js"].repeat(50) {
        unread.push(http.get(path, "").await.unwrap());
    }
    assert_eq!(server.api.answers.bytes(), 0);
    assert!(unread.iter().all(|answer| answer.status() != StatusCode::SERVICE_UNAVAILABLE));
    let large = b"GET /api/metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(server.exchange(large).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn an_answer_that_nobody_takes_makes_room_for_those_who_read() {
    let crowded = Duration::from_millis(200);
    let limits = Limits { answers_bytes_max: 4 << 20, stall_time_crowded_max: crowded, ..Limits::default() };
    let server = Running::with(limits).await;
    let http = server.http2(0).await;
    let mut unread = Vec::new();
    loop {
        let answer = http.get("/api/metrics", "").await.unwrap();
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
            break;
        }
        unread.push(answer);
    }
    let large = b"GET /api/metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let read = async { while !server.exchange(large).await.starts_with("HTTP/1.1 200 OK") {} };
    timeout(Duration::from_secs(20), read).await.expect("there is room long before the stall limit");
    assert_eq!(http.get("/api/health", "").await.unwrap().status(), StatusCode::OK, "the connection stays");
    assert!(unread.remove(0).into_body().collect().await.is_err(), "the oldest is reset");
    assert!(server.api.metrics.unread.streams.load(Ordering::Relaxed) > 0);
    assert_eq!(server.api.metrics.unread.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_connection_that_reads_is_served_though_its_address_leaves_much_unread() {
    let server = Running::with(Limits::default()).await;
    let deaf = server.api.peers.connect(server.address.ip(), true);
    (0..limit::ANSWERS_UNREAD_MAX).for_each(|_| deaf.wait(deaf.holder()));
    let reads = server.http2(1 << 16).await;
    for _ in 0..3 {
        let answer = reads.get("/api/health", "").await.expect("a stream for one that reads");
        assert!(answer.into_body().collect().await.is_ok());
    }
    let http = server.http2(0).await;
    let _unread = http.get("/api/health", "").await.expect("a connection has one answer");
    assert_eq!(reason(&http.get("/api/health", "").await.unwrap_err()), Some(Reason::REFUSED_STREAM));
    (0..limit::ANSWERS_UNREAD_MAX).for_each(|_| deaf.take(deaf.holder()));
    assert!(http.get("/api/health", "").await.is_ok());
}

#[tokio::test]
async fn a_connection_whose_requests_are_all_over_the_rate_is_closed() {
    let server = Running::of(ApiSettings { rate_limit_per_second: 1, ..ApiSettings::default() }).await;
    let (mut kept, mut refused) = (server.connect().await, 0);
    loop {
        kept.write_all(b"GET /api/backups/none HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let answer = read_until(&mut kept, "}").await;
        refused = if answer.starts_with("HTTP/1.1 429 ") { refused + 1 } else { 0 };
        if answer.contains("connection: close\r\n") {
            break;
        }
        assert!(refused < limit::REFUSALS_MAX, "it is answered on and on");
    }
    assert_eq!((refused, read_all(kept).await.as_str()), (limit::REFUSALS_MAX, ""));
    let http = server.http2(1 << 16).await;
    let mut refused = 0;
    while let Ok(answer) = http.get("/api/backups/none", "").await {
        refused = if answer.status() == StatusCode::TOO_MANY_REQUESTS { refused + 1 } else { 0 };
        assert!(refused <= 2 * limit::REFUSALS_MAX, "it is answered on and on");
    }
    assert!(refused >= limit::REFUSALS_MAX);
    assert!(http.connection.await.unwrap().is_ok(), "it is closed with a goodbye");
}

#[tokio::test]
async fn a_stream_whose_client_takes_nothing_is_reset_and_the_connection_stays() {
    let server = Running::with(Limits { stall_time_max: Duration::from_millis(200), ..Limits::default() }).await;
    let http = server.http2(0).await;
    let mut unread = Vec::new();
    for path in ["/api/health", "/api/nothing", "/api/openapi.json", "/api/logs/stream"] {
        unread.push(http.get(path, "").await.unwrap());
    }
    server.in_flight(4).await;
    server.in_flight(0).await;
    for response in unread {
        assert!(response.into_body().collect().await.is_err(), "it is reset");
    }
    assert_eq!(http.get("/api/health", "").await.unwrap().status(), StatusCode::OK);
    assert!(!http.connection.is_finished());
}

#[tokio::test]
async fn a_connection_whose_buffer_the_client_leaves_full_is_closed() {
    let server = Running::with(Limits { stall_time_max: Duration::from_millis(200), ..Limits::default() }).await;
    // The first byte makes room for all of the answer in the connection's buffer.
    let http = server.http2(1).await;
    let unread = http.get("/api/health", "").await.unwrap();
    server.in_flight(1).await;
    server.in_flight(0).await;
    assert!(http.connection.await.unwrap().is_err());
    assert!(server.api.render_metrics().contains("agentsvc_http_unread_total{outcome=\"connection_closed\"} 1\n"));
    drop(unread);
}

#[tokio::test]
async fn a_connection_has_few_streams_until_it_shows_the_key() {
    let key = "k".repeat(limit::API_KEY_BYTES_MIN);
    let server = Running::of(ApiSettings { api_key: key.clone(), ..ApiSettings::default() }).await;
    let http = server.http2(0).await;
    let mut unread = Vec::new();
    for _ in 0..limit::STREAMS_KEYLESS_MAX {
        let answer = http.get("/api/status", "").await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        unread.push(answer);
    }
    assert_eq!(reason(&http.get("/api/status", "").await.unwrap_err()), Some(Reason::REFUSED_STREAM));
    unread.push(http.get("/api/status", &key).await.unwrap());
    assert_eq!(unread.last().map(hyper::Response::status), Some(StatusCode::OK));
    assert_eq!(http.get("/api/status", "").await.unwrap().status(), StatusCode::UNAUTHORIZED, "it has shown the key");
}

#[tokio::test]
async fn what_is_no_request_gets_an_error_like_all_others() {
    let server = Running::with(Limits::default()).await;
    assert_error(&server.exchange(b"this is no HTTP\r\n\r\n").await, 400);
    assert_error(&server.exchange(b"GET /\xff HTTP/1.1\r\nhost: localhost\r\n\r\n").await, 400);
    let many = "x: y\r\n".repeat(200);
    let many = format!("GET /api/health HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
    assert_error(&server.exchange(many.as_bytes()).await, 431);
    for kib in [17, 40, 100, 300] {
        let long = "x".repeat(kib << 10);
        let large = format!("GET /api/health HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\nx: {long}\r\n\r\n");
        assert_error(&server.exchange(large.as_bytes()).await, 431);
    }
    let uri = format!("GET /{} HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\n\r\n", "x".repeat(9_000));
    assert_error(&server.exchange(uri.as_bytes()).await, 414);
}

#[tokio::test]
async fn a_body_too_large_is_answered_even_while_it_is_sent() {
    let server = Running::with(Limits::default()).await;
    let body = vec![b'x'; 8 << 20];
    let declared = format!(
        "POST /api/shutdown HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    assert_error(&server.exchange(&[declared.as_bytes(), &body].concat()).await, 413);
    let mut chunked =
        b"POST /api/shutdown HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    chunked.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
    chunked.extend_from_slice(&body);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    assert_error(&server.exchange(&chunked).await, 413);
    let waits = "POST /api/shutdown HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\nexpect: 100-continue\r\n\
                 content-length: 99999999\r\n\r\n";
    assert_error(&server.exchange(waits.as_bytes()).await, 413);
    assert_error(&server.exchange(&[declared.replace("shutdown", "nothing").as_bytes(), &body].concat()).await, 404);
}

#[tokio::test]
async fn too_many_connections_are_turned_away() {
    let server = Running::with(Limits { connections_max: 1, ..Limits::default() }).await;
    let mut first = server.connect().await;
    let request = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    first.write_all(request).await.unwrap();
    read_until(&mut first, "}").await;
    let answer = server.exchange(request).await;
    assert_error(&answer, 503);
    assert!(answer.contains("retry-after: 1"));
    drop(first);
    while server.api.metrics.connections.load(Ordering::Relaxed) > 0 {
        tokio::task::yield_now().await;
    }
    let mut next = server.connect().await;
    next.write_all(request).await.unwrap();
    assert!(read_until(&mut next, "}").await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn slow_clients_are_given_up() {
    // Long enough for what is sent at once to arrive on a busy machine.
    let short = Duration::from_secs(2);
    let limits = Limits { header_time_max: short, body_time_max: short, idle_time_max: short, ..Limits::default() };
    let server = Running::with(limits).await;
    let (silent, head, preface, kept, body) = tokio::join!(
        server.exchange(b""),
        server.exchange(b"GET /api/health HTTP/1.1\r\nhost: loc"),
        server.exchange(b"PRI * HT"),
        server.exchange(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        server.exchange(b"POST /api/shutdown HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nab"),
    );
    assert_eq!([silent, head, preface], ["", "", ""]);
    assert!(kept.starts_with("HTTP/1.1 200 OK"));
    assert_error(&body, 408);
}

#[tokio::test]
async fn a_stop_ends_streams_and_idle_connections_and_refuses_new_ones() {
    let server = Running::with(Limits::default()).await;
    let mut events = server.connect().await;
    events.write_all(b"GET /api/logs/stream HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    read_until(&mut events, ": open").await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    read_until(&mut idle, "}").await;
    let silent = server.connect().await;
    let stop = server.exchange(b"POST /api/shutdown HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(stop.ends_with("{\"status\":\"shutting_down\"}"), "{stop}");
    assert!(read_all(events).await.ends_with("0\r\n\r\n"));
    assert_eq!(read_all(idle).await, "");
    assert_eq!(read_all(silent).await, "");
    server.served.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    assert_eq!(server.api.metrics.in_flight.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_stop_cuts_off_what_does_not_end() {
    let limits = Limits { drain_time_max: Duration::from_millis(50), ..Limits::default() };
    let server = Running::with(limits).await;
    let mut stuck = server.connect().await;
    let head = "POST /api/shutdown HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n";
    stuck.write_all(head.as_bytes()).await.unwrap();
    while server.api.metrics.in_flight.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    server.api.shutdown.trigger();
    server.served.await.unwrap();
    assert_eq!(read_all(stuck).await, "");
}
