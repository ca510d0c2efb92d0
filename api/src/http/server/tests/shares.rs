//! Connections and requests of users with a limited role.

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::Role;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::*;
use crate::http::principal::Grant;

/// The key of the configuration.
const OWNER: &str = "the-key-of-the-configuration-itself";
/// Connections that each may have, and requests at once: a quarter of three eighths.
const SHARE: usize = 6;

fn grant(key: &str, user: u128) -> Grant {
    let (id, user) = (KeyId(Uuid::from_u128(user)), UserId(Uuid::from_u128(user)));
    Grant::new(id, Some(user), "n".into(), Sha256::digest(key).into(), Role::Viewer, Vec::new(), None, None)
}

/// A server that looks at its connections often, and knows the keys of two users.
async fn server() -> Running {
    let limits = Limits { connections_max: 64, stall_time_crowded_max: Duration::from_millis(40), ..Limits::default() };
    let server = Running::of(ApiSettings { api_key: OWNER.to_owned(), limits, ..ApiSettings::default() }).await;
    server.api.access.keys.set(vec![grant("anns", 1), grant("anns-other", 1), grant("bobs", 2)]);
    server
}

/// The answer on a new connection, which stays open.
async fn ask(server: &Running, key: &str) -> (TcpStream, String) {
    let mut stream = server.connect().await;
    let request = format!("GET /api/version HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "}").await;
    (stream, answer)
}

async fn is_served(server: &Running, key: &str) -> bool {
    ask(server, key).await.1.starts_with("HTTP/1.1 200 ")
}

#[tokio::test]
async fn one_user_leaves_connections_to_others_and_those_of_an_ended_key_count_for_nobody() {
    let server = server().await;
    let mut held = Vec::new();
    for _ in 0..SHARE {
        let (stream, answer) = ask(&server, "anns").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        held.push(stream);
    }
    for key in ["anns", "anns-other"] {
        let (_, refused) = ask(&server, key).await;
        assert_error(&refused, 503);
        assert!(refused.contains("retry-after: 1") && refused.contains("\"code\":\"connections\""), "{refused}");
    }
    assert!(is_served(&server, "bobs").await && is_served(&server, OWNER).await);
    // A request without a key on such a connection is still answered.
    held[0].write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(read_until(&mut held[0], "}").await.starts_with("HTTP/1.1 200 "));
    server.api.access.keys.set(vec![grant("anns-other", 1), grant("bobs", 2)]);
    let again = async { while !is_served(&server, "anns-other").await {} };
    timeout(Duration::from_secs(20), again).await.expect("they no longer count for her");
}

#[tokio::test]
async fn one_user_is_answered_so_many_requests_at_once() {
    let server = server().await;
    let (deaf, other) = (server.http2(0).await, server.http2(0).await);
    let mut unread = Vec::new();
    for _ in 0..SHARE {
        let answer = deaf.get("/api/version", "anns").await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        unread.push(answer);
    }
    server.in_flight(SHARE as u64).await;
    assert_eq!(reason(&deaf.get("/api/version", "anns").await.unwrap_err()), Some(Reason::REFUSED_STREAM));
    let refused = other.get("/api/version", "anns-other").await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert!(is_served(&server, "bobs").await && is_served(&server, OWNER).await);
    drop((unread, refused));
    server.in_flight(0).await;
    assert_eq!(other.get("/api/version", "anns").await.unwrap().status(), StatusCode::OK);
}
