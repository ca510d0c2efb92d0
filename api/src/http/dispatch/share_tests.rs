//! Bodies of, and answers to, users with a limited role.

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::Role;
use hyper::Request;
use hyper::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::http::peer::Holder;
use crate::http::permit::Permit;
use crate::http::principal::Grant;
use crate::http::reply::Body;
use crate::http::settings::{ApiSettings, Limits};
use crate::testing::{front, send};

fn grant(key: &str, user: u128) -> Grant {
    let (id, user) = (KeyId(Uuid::from_u128(user)), UserId(Uuid::from_u128(user)));
    Grant::new(id, Some(user), "n".into(), Sha256::digest(key).into(), Role::User, Vec::new(), None, None)
}

/// As behind a reverse proxy.
#[tokio::test]
async fn answers_that_one_user_does_not_read_keep_no_other_of_the_same_address_out() {
    let limits = Limits { answers_bytes_max: 1 << 20, ..Limits::default() };
    let api = front(ApiSettings { api_key: "secret".to_owned(), limits, ..ApiSettings::default() });
    api.access.keys.set(vec![grant("anns", 1), grant("anns-other", 1), grant("bobs", 2)]);
    let post = async |key: &str| {
        let request = Request::post("/api/goals").header(AUTHORIZATION, format!("Bearer {key}"));
        send(&api, request, vec![b' '; 9]).await.status().as_u16()
    };
    let body = || Body::Full(vec![b'x'; 200_000].into());
    let held = api.answers.count(Holder::Limited(Uuid::from_u128(1)), body(), false).unwrap();
    assert_eq!((post("anns").await, post("anns-other").await), (503, 503));
    assert_eq!((post("bobs").await, post("secret").await), (400, 400));
    drop(held);
    assert_eq!(post("anns").await, 400);
}

#[tokio::test]
async fn large_bodies_of_one_user_keep_nobody_else_out() {
    let limits = Limits { bodies_bytes_max: 400_000, ..Limits::default() };
    let api = front(ApiSettings { api_key: "secret".to_owned(), limits, ..ApiSettings::default() });
    api.access.keys.set(vec![grant("anns", 1), grant("anns-other", 1), grant("bobs", 2)]);
    let post = async |key: &str| {
        let request = Request::post("/api/goals").header(AUTHORIZATION, format!("Bearer {key}"));
        send(&api, request, vec![b' '; 90_000]).await.status().as_u16()
    };
    assert_eq!(post("anns").await, 400);
    let held = Permit::of(&api.limited_permits.part(Uuid::from_u128(1)), 60_000).unwrap();
    assert_eq!((post("anns").await, post("anns-other").await), (503, 503), "a quarter is all that one has");
    assert_eq!((post("bobs").await, post("secret").await), (400, 400));
    // Not even all of them together keep those out who are not limited.
    let all = (3..9).filter_map(|id| Permit::of(&api.limited_permits.part(Uuid::from_u128(id)), 100_000).ok());
    let all: Vec<_> = all.collect();
    assert!(all.len() > 2);
    assert_eq!((post("bobs").await, post("secret").await), (503, 400));
    drop((held, all));
    assert_eq!((post("bobs").await, api.limited_permits.bytes()), (400, 0));
}
