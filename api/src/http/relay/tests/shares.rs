//! For whom a request counts that is passed on, here and over there.

use std::sync::atomic::AtomicBool;

use uuid::Uuid;

use super::*;

/// A named key, until the owner is told that it is revoked.
const NAMED: &str = "a named key";

/// A client at one of several addresses.
fn client(standby: &Node, at: u8) -> Peer {
    standby.api.peers.connect(IpAddr::from([192, 0, 2, at]), false)
}

/// What the standby answers to a client that shows this key.
async fn asks(standby: &Node, client: &Peer, key: &str) -> Response {
    let request = Request::get("/api/agents");
    let request = if key.is_empty() { request } else { request.header("authorization", format!("Bearer {key}")) };
    let (parts, body) = request.body(Full::new(Bytes::new())).unwrap().into_parts();
    relay(&standby.api, client, (parts, body), standby.api.elsewhere.site(), None).await.0
}

/// An answer that goes on for ever.
fn endless(_: Request<Incoming>) -> Done {
    let pieces = stream::iter([Ok(Bytes::from_static(b"begun"))]).chain(stream::pending());
    Box::pin(async { Ok(Response::new(Body::Stream(Box::pin(pieces)))) })
}

#[tokio::test]
async fn strangers_leave_places_to_whoever_has_a_key() {
    let standby = Node::of(there(owner(endless).await), few_connections()).await;
    let ask = async |at: u8, key: &str| asks(&standby, &client(&standby, at), key).await;
    let mut open = vec![ask(1, "").await];
    assert_eq!(open[0].status(), 200);
    assert_eq!(ask(1, "").await.status(), 503, "those without a key at an address have one place");
    for at in 2..=4 {
        open.push(ask(at, "").await);
    }
    assert!(open.iter().all(|answer| answer.status() == 200));
    assert_eq!(ask(5, "").await.status(), 503, "all those without a key have four");
    // Keys that may be wrong have a part as well.
    for at in 5..=6 {
        open.extend([ask(at, "a guess").await, ask(at, "another").await]);
        assert_eq!(ask(at, "a third").await.status(), 503);
    }
    assert!(open.iter().all(|answer| answer.status() == 200));
    assert_eq!(ask(7, "a guess").await.status(), 503);
    for _ in 0..24 {
        open.push(ask(1, KEY).await);
    }
    assert!(open.iter().all(|answer| answer.status() == 200));
    assert_eq!(ask(1, KEY).await.status(), 503);
    drop(open);
    assert_eq!(standby.api.elsewhere.forwards.taken(), 0);
}

/// An owner that knows one named key, until it is revoked.
async fn judge(is_revoked: &Arc<AtomicBool>) -> SocketAddr {
    let is_revoked = Arc::clone(is_revoked);
    owner(move |request: Request<Incoming>| -> Done {
        let is_known = request.headers().get("authorization").is_some_and(|key| key == "Bearer a named key");
        let is_right = is_known && !is_revoked.load(Ordering::Relaxed);
        Box::pin(async move {
            let mut response = Response::new(Body::empty());
            if is_right {
                let holder = format!("named {}", Uuid::from_u128(7));
                response.headers_mut().insert(HOLDER, holder.parse().unwrap());
            } else {
                *response.status_mut() = StatusCode::UNAUTHORIZED;
            }
            Ok(response)
        })
    })
    .await
}

#[tokio::test]
async fn wrong_keys_leave_those_of_their_address_that_have_a_right_one_their_rate() {
    let settings = ApiSettings { rate_limit_per_second: 2, ..few_connections() };
    let standby = Node::of(there(judge(&Arc::default()).await), settings).await;
    let ask = async |key: &str| asks(&standby, &client(&standby, 1), key).await.status().as_u16();
    assert_eq!(ask(NAMED).await, 200);
    while ask("a guess").await != 429 {}
    assert_eq!(ask(NAMED).await, 200, "the owner has found it right");
    // The stand-in for an owner does not know this one; what counts is that it is asked.
    assert_eq!(ask(KEY).await, 401);
}

#[tokio::test]
async fn a_connection_counts_for_a_key_until_the_owner_refuses_it() {
    let is_revoked = Arc::default();
    let standby = Node::of(there(judge(&is_revoked).await), few_connections()).await;
    let (one, other) = (client(&standby, 1), client(&standby, 2));
    for client in [&one, &other] {
        assert_eq!(asks(&standby, client, NAMED).await.status(), 200);
        client.recount(false);
        assert_eq!(client.holder(), Holder::Named(Uuid::from_u128(7)));
    }
    is_revoked.store(true, Ordering::Relaxed);
    assert_eq!(asks(&standby, &other, NAMED).await.status(), 401);
    for client in [&one, &other] {
        client.recount(false);
        assert!(!client.has_key());
    }
    // That of the configuration counts until another one is in force.
    asks(&standby, &one, KEY).await;
    assert!(one.has_key());
    let other_key = KEY.replace('0', "1");
    standby.api.access.set(&ApiSettings { api_key: other_key, ..few_connections() });
    one.recount(false);
    assert!(!one.has_key());
}

/// What the owner answers to a request with a wrong key that was passed on by one with this secret for a client at an address.
async fn passed_on(owner: &Node, secret: u8, at: u8) -> u16 {
    let elsewhere = Elsewhere::new(1);
    elsewhere.set(Arc::new(Told::new(Site::Here, [secret; 32])));
    let (parts, ()) = Request::get("/api/agents").body(()).unwrap().into_parts();
    let mut headers = HeaderMap::new();
    elsewhere.vouch(&parts, IpAddr::from([192, 0, 2, at]), Uuid::from_u128(1), &mut headers);
    let mut request = Request::get("/api/agents").header("authorization", "Bearer a guess");
    request.headers_mut().unwrap().extend(headers);
    ask(owner.address, request, "").await.status().as_u16()
}

#[tokio::test]
async fn the_owner_counts_wrong_keys_for_the_client_that_a_node_names_and_no_one_else_does() {
    let owner = Node::of(Site::Here, few_connections()).await;
    let direct = async || {
        ask(owner.address, Request::get("/api/agents").header("authorization", "Bearer a guess"), "")
            .await
            .status()
            .as_u16()
    };
    let mut tries = 0;
    while passed_on(&owner, 7, 1).await == 401 {
        tries += 1;
    }
    assert!((10..20).contains(&tries), "{tries}");
    assert_eq!((passed_on(&owner, 7, 2).await, direct().await), (401, 401));
    // Whoever has not the secret names nobody.
    while passed_on(&owner, 8, 3).await == 401 {}
    assert_eq!(passed_on(&owner, 7, 3).await, 401);
}
