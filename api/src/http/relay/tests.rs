//! Tests of standbys over real sockets, with real nodes and with ones that do as they are told.

use std::convert::Infallible;
use std::net::SocketAddr;

use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{self, StreamExt as _};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::http::elsewhere::tests::Told;
use crate::http::reply::{Body, BrokenOff};
use crate::http::server::serve;
use crate::http::settings::{ApiSettings, Limits};
use crate::testing::front;

mod giving_away;
mod shares;
mod streams;

/// A key as long as one beyond this machine.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A node that is running.
struct Node {
    api: Arc<Api>,
    told: Arc<Told>,
    address: SocketAddr,
    served: JoinHandle<()>,
}

impl Node {
    async fn at(site: Site) -> Self {
        Self::of(site, ApiSettings { api_key: "right".to_owned(), ..ApiSettings::default() }).await
    }

    async fn of(site: Site, settings: ApiSettings) -> Self {
        let api = front(settings);
        let told = Arc::new(Told::new(site, [7; 32]));
        api.elsewhere.set(Arc::clone(&told) as _);
        let (listener, address) = listener().await;
        let served = tokio::spawn(serve(Arc::clone(&api), vec![listener]));
        Self { api, told, address, served }
    }

    fn tell(&self, site: Site) {
        *self.told.site.lock() = site;
    }

    /// It stops, and the others know.
    fn stop(&self) {
        self.api.shutdown.trigger();
        self.told.knows.trigger();
    }

    fn count(&self, count: fn(&crate::http::elsewhere::Counts) -> &AtomicU64) -> u64 {
        count(&self.api.elsewhere.counts).load(Ordering::Relaxed)
    }
}

/// For so few connections that 32 requests are passed on at once.
fn few_connections() -> ApiSettings {
    let limits = Limits { connections_max: 64, ..Limits::default() };
    ApiSettings { api_key: KEY.to_owned(), limits, ..ApiSettings::default() }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn there(address: SocketAddr) -> Site {
    Site::There(format!("http://{address}").into())
}

/// Where nobody listens.
async fn nobody() -> SocketAddr {
    listener().await.1
}

type Done = BoxFuture<'static, Result<Response, BrokenOff>>;

/// An owner that does this with each request. One that breaks off closes the connection.
async fn owner(does: impl Fn(Request<Incoming>) -> Done + Clone + Send + Sync + 'static) -> SocketAddr {
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let http = hyper::server::conn::http1::Builder::new();
            let connection = http.serve_connection(TokioIo::new(stream), service_fn(does.clone()));
            tokio::spawn(connection.with_upgrades());
        }
    });
    address
}

/// The answer to a request with the right key.
async fn ask(
    address: SocketAddr,
    request: hyper::http::request::Builder,
    body: &'static str,
) -> hyper::Response<Incoming> {
    try_ask(address, request, Full::new(Bytes::from_static(body.as_bytes()))).await.unwrap()
}

async fn try_ask<B>(
    address: SocketAddr,
    request: hyper::http::request::Builder,
    body: B,
) -> hyper::Result<hyper::Response<Incoming>>
where
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = request.body(body).unwrap();
    let headers = request.headers_mut();
    headers.entry(HOST).or_insert(HeaderValue::from_static("localhost"));
    headers.entry("authorization").or_insert(HeaderValue::from_static("Bearer right"));
    client.send_request(request).await
}

async fn json(response: hyper::Response<Incoming>) -> serde_json::Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

async fn get(address: SocketAddr, path: &str) -> hyper::Response<Incoming> {
    ask(address, Request::get(path), "").await
}

/// Says what came.
fn echo(request: Request<Incoming>) -> Done {
    Box::pin(async {
        let (parts, body) = request.into_parts();
        let names = parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned().into()));
        let headers: serde_json::Map<_, _> = names.collect();
        let bytes = body.collect().await.map_err(|error| BrokenOff(error.to_string()))?.to_bytes().len();
        let said = serde_json::json!({ "target": parts.uri.to_string(), "headers": headers, "bytes": bytes });
        let mut response = crate::http::reply::ok(&said).unwrap();
        response.headers_mut().insert("connection", HeaderValue::from_static("x-hop"));
        response.headers_mut().insert("x-hop", HeaderValue::from_static("1"));
        response.headers_mut().insert("x-kept", HeaderValue::from_static("1"));
        Ok(response)
    })
}

/// Takes the request, and closes the connection.
fn break_off(_: Request<Incoming>) -> Done {
    Box::pin(async { Err(BrokenOff("it dies".to_owned())) })
}

/// Answers half, and dies.
fn half(_: Request<Incoming>) -> Done {
    let dies = stream::once(async {
        // What came before is sent meanwhile.
        tokio::task::yield_now().await;
        Err(BrokenOff("it dies".to_owned()))
    });
    let pieces = stream::iter([Ok(Bytes::from_static(b"half"))]).chain(dies);
    Box::pin(async { Ok(Response::new(Body::Stream(Box::pin(pieces)))) })
}

#[tokio::test]
async fn a_request_goes_to_the_owner_and_its_answer_back() {
    let standby = Node::at(there(owner(echo).await)).await;
    let request = Request::post("/api/agents?limit=1").header("x-request-id", "6f9619ff-8b86-d011-b42d-00cf4fc964ff");
    let request = request.header("x-forwarded-for", "192.0.2.1").header("cookie", "a=b").header("te", "trailers");
    let request = request.header("connection", "x-mine").header("x-mine", "1").header("expect", "100-continue");
    let answer = ask(standby.address, request, "{}").await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["x-kept"]), (200, &HeaderValue::from_static("1")));
    assert!(!answer.headers().contains_key("x-hop"), "{answer:?}");
    let said = json(answer).await;
    assert!(said["target"] == "/api/agents?limit=1" && said["bytes"] == 2, "{said}");
    let headers = said["headers"].as_object().unwrap();
    for (name, value) in [
        ("host", "localhost"),
        ("authorization", "Bearer right"),
        ("cookie", "a=b"),
        ("x-request-id", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
        ("x-forwarded-for", "127.0.0.1"),
    ] {
        assert_eq!(headers[name], value, "{name}: {headers:?}");
    }
    assert!(headers[FORWARDED.as_str()].as_str().unwrap().starts_with("127.0.0.1 "));
    for name in ["te", "connection", "x-mine", "expect"] {
        assert!(!headers.contains_key(name), "{name}: {headers:?}");
    }
    let (answered, repeated) = (standby.count(|c| &c.answered), standby.count(|c| &c.repeated));
    assert_eq!((answered, repeated), (1, 0));
}

#[tokio::test]
async fn what_is_about_the_node_itself_is_answered_by_it() {
    let standby = Node::at(Site::Nowhere).await;
    for path in ["/api/health", "/api/health/detail", "/api/metrics", "/", "/api/cluster"] {
        assert_eq!(get(standby.address, path).await.status(), 200, "{path}");
    }
    assert_eq!(get(standby.address, "/api/ready").await.status(), 503);
    standby.tell(there(nobody().await));
    assert_eq!(get(standby.address, "/api/ready").await.status(), 200, "it passes on what it is asked");
    let wrong = Request::get("/api/metrics").header("authorization", "Bearer named");
    let refused = ask(standby.address, wrong, "").await;
    assert_eq!(refused.status(), 401);
    assert_eq!(json(refused).await["code"], "standby_key");
    assert_eq!(standby.count(|counts| &counts.answered), 0);
}

#[tokio::test]
async fn the_owner_asks_for_the_key_and_the_standby_learns_whom_it_counts_for() {
    let owner = Node::at(Site::Here).await;
    let standby = Node::at(there(owner.address)).await;
    let with = |key: &str| Request::get("/api/agents").header("authorization", format!("Bearer {key}"));
    assert_eq!(ask(standby.address, with("right"), "").await.status(), 200);
    let refused = ask(standby.address, with("wrong"), "").await;
    assert!(refused.headers().contains_key("www-authenticate") && !refused.headers().contains_key(HOLDER));
    assert_eq!(refused.headers().get_all("x-request-id").iter().count(), 1, "{refused:?}");
    assert_eq!(refused.status(), 401);
    // A node that does not answer asks its own keys of nobody: whose cluster this is, the owner knows.
    let near = ask(standby.address, Request::get("/api/cluster").header("authorization", "Bearer wrong"), "").await;
    assert_eq!(near.status(), 401);
    // On a connection that has shown no key, few streams are answered at once.
    let io = TokioIo::new(TcpStream::connect(standby.address).await.unwrap());
    let (client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let stream = |path: &str| {
        let request = Request::get(format!("http://localhost{path}")).header("authorization", "Bearer right");
        let mut client = client.clone();
        let request = request.body(Full::new(Bytes::new())).unwrap();
        async move { client.send_request(request).await }
    };
    assert_eq!(stream("/api/agents").await.unwrap().status(), 200);
    let open = join_all((0..20).map(|_| stream("/api/logs/stream"))).await;
    assert!(open.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.status() == 200)), "{open:?}");
}

#[tokio::test]
async fn no_request_goes_in_circles() {
    let one = Node::at(Site::Nowhere).await;
    let other = Node::at(there(one.address)).await;
    one.tell(there(other.address));
    let answer = get(one.address, "/api/agents").await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &HeaderValue::from_static("1")));
    assert_eq!(json(answer).await["code"], "moving");
    assert_eq!((one.count(|counts| &counts.answered), other.count(|counts| &counts.moving)), (1, 1));
}

#[tokio::test]
async fn without_an_owner_nothing_is_done_and_one_may_try_again() {
    let standby = Node::at(Site::Nowhere).await;
    let refused = ask(standby.address, Request::post("/api/agents"), "{}").await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &HeaderValue::from_static("1")));
    assert!(refused.headers().contains_key("x-request-id") && refused.headers().contains_key("x-frame-options"));
    assert_eq!(json(refused).await["code"], "moving");
    standby.tell(there(owner(echo).await));
    assert_eq!(ask(standby.address, Request::post("/api/agents"), "{}").await.status(), 200);
    standby.tell(Site::Here);
    assert_eq!(get(standby.address, "/api/agents").await.status(), 200, "it answers itself");
}

#[tokio::test]
async fn what_was_not_sent_is_sent_again_and_what_was_sent_is_not() {
    let standby = Node::at(there(nobody().await)).await;
    let change = tokio::spawn(ask(standby.address, Request::post("/api/agents"), "{}"));
    while standby.count(|counts| &counts.repeated) == 0 {
        tokio::task::yield_now().await;
    }
    standby.tell(there(owner(echo).await));
    assert_eq!(json(change.await.unwrap()).await["bytes"], 2, "with its body");
    standby.tell(there(owner(break_off).await));
    let unknown = ask(standby.address, Request::post("/api/agents"), "{}").await;
    assert_eq!(unknown.status(), 502);
    assert_eq!(json(unknown).await["code"], "outcome_unknown");
    // A read does nothing: it is repeated until somebody answers.
    let before = standby.count(|counts| &counts.repeated);
    let read = tokio::spawn(async move { get(standby.address, "/api/agents").await.status() });
    while standby.api.elsewhere.counts.repeated.load(Ordering::Relaxed) == before {
        tokio::task::yield_now().await;
    }
    *standby.told.site.lock() = there(owner(echo).await);
    assert_eq!(read.await.unwrap(), 200);
}

#[tokio::test]
async fn half_an_answer_is_not_taken_for_a_whole_one() {
    let standby = Node::at(there(owner(half).await)).await;
    let answer = get(standby.address, "/api/agents").await;
    assert_eq!(answer.status(), 200);
    assert!(answer.into_body().collect().await.is_err());
    assert_eq!(standby.count(|counts| &counts.broken_off), 1);
}

#[tokio::test]
async fn nobody_waits_for_a_node_that_owns_nothing_any_more() {
    let taken = Arc::new(AtomicU64::new(0));
    let takes = Arc::clone(&taken);
    let freeze = move |_| -> Done {
        takes.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    };
    let (frozen, alive) = (owner(freeze).await, owner(echo).await);
    let standby = Node::at(there(frozen)).await;
    let ask = |method: Method| {
        let request = Request::builder().method(method).uri("/api/agents");
        tokio::spawn(ask(standby.address, request, ""))
    };
    let (change, read) = (ask(Method::DELETE), ask(Method::GET));
    while taken.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    standby.tell(there(alive));
    let (change, read) = (change.await.unwrap(), read.await.unwrap());
    assert_eq!((change.status().as_u16(), read.status().as_u16()), (502, 200));
}

#[tokio::test]
async fn large_bodies_go_through_as_they_come() {
    let standby = Node::at(there(owner(echo).await)).await;
    let (pieces, bytes) = (256, 256 << 10);
    let body = |pieces| {
        let piece = Bytes::from(vec![b'x'; bytes]);
        StreamBody::new(stream::iter((0..pieces).map(move |_| Ok::<_, Infallible>(Frame::data(piece.clone())))))
    };
    let upload = || Request::post("/api/agents/6f9619ff-8b86-d011-b42d-00cf4fc964ff/upload");
    let answer = try_ask(standby.address, upload(), body(pieces)).await.unwrap();
    assert_eq!(json(answer).await["bytes"], pieces * bytes);
    // One that its route takes in no case is refused before it is sent.
    let few = 32;
    let announced = Request::post("/api/agents").header("content-length", few * bytes);
    let refused = try_ask(standby.address, announced, body(few)).await.unwrap();
    assert_eq!(refused.status(), 413);
    assert_eq!(standby.count(|counts| &counts.answered), 1);
}

#[tokio::test]
async fn the_owners_refusal_of_a_large_body_arrives() {
    let owner = Node::at(Site::Here).await;
    let standby = Node::at(there(owner.address)).await;
    let piece = Bytes::from(vec![b'x'; 256 << 10]);
    let pieces = stream::iter((0..32).map(move |_| Ok::<_, Infallible>(Frame::data(piece.clone()))));
    let refused = try_ask(standby.address, Request::post("/api/agents"), StreamBody::new(pieces)).await.unwrap();
    assert_eq!(refused.status(), 413);
    assert_eq!(json(refused).await["limit_bytes"], agentsvc_components::kernel::limit::BODY_BYTES_MAX);
}

#[tokio::test]
async fn an_owner_that_changes_under_load_costs_no_other_error_than_moving() {
    let nodes = [Node::at(Site::Here).await, Node::at(Site::Here).await];
    let standby = Node::at(there(nodes[0].address)).await;
    let address = standby.address;
    let asks = (0..8).map(|_| {
        tokio::spawn(async move {
            let mut statuses = Vec::new();
            for _ in 0..50 {
                let answer = get(address, "/api/agents").await;
                let status = answer.status().as_u16();
                let body = json(answer).await;
                assert!(status == 200 || body["code"] == "moving", "{status} {body}");
                statuses.push(status);
            }
            statuses
        })
    });
    let asks = tokio::spawn(join_all(asks.collect::<Vec<_>>()));
    let mut turn = 0;
    while !asks.is_finished() {
        turn += 1;
        standby.tell(if turn % 8 == 0 { Site::Nowhere } else { there(nodes[turn % 2].address) });
        get(standby.address, "/api/health").await;
    }
    let statuses: Vec<u16> = asks.await.unwrap().into_iter().flat_map(Result::unwrap).collect();
    assert!(statuses.contains(&200) && turn > 8, "{turn} changes");
}
