//! Room for answers: what counts, for how long, and who waits.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::http::rate::ClientKey;

const ONE: Holder = of(127);
const OTHER: Holder = of(10);
const LARGE: usize = limit::ANSWER_SMALL_BYTES + 1;

const fn of(first: u32) -> Holder {
    Holder::Owner(ClientKey::V4(first))
}

fn body(bytes: usize) -> Body {
    Body::Full(Bytes::from(vec![b'x'; bytes]))
}

#[test]
fn a_client_has_a_share_and_all_have_the_whole() {
    let answers = Arc::new(Answers::new(8 * LARGE));
    let held: Vec<_> = (0..2).map(|_| answers.count(ONE, body(LARGE), true).unwrap()).collect();
    let Err(refused) = answers.count(ONE, body(LARGE), true) else { panic!("a third one") };
    assert_eq!(refused.into_response().status(), 503);
    assert!(answers.is_crowded(ONE) && !answers.is_crowded(OTHER));
    assert!(answers.count(ONE, body(limit::ANSWER_SMALL_BYTES), true).is_ok(), "small ones do not count");
    let larger = answers.count(OTHER, body(6 * LARGE), true).unwrap();
    assert_eq!(answers.bytes(), 8 * LARGE);
    assert!(answers.is_crowded(of(11)), "all together take more than half");
    let third = of(11);
    assert!(answers.count(third, body(LARGE), true).is_err(), "the whole is taken");
    drop((held, larger));
    assert_eq!((answers.bytes(), answers.taken.lock().clients.len()), (0, 0));
    assert!(answers.count(third, body(LARGE), true).is_ok());
}

#[test]
fn what_is_kept_anyway_does_not_count() {
    static PAGE: [u8; LARGE] = [b'x'; LARGE];
    let answers = Arc::new(Answers::new(4 * LARGE));
    let cached = Bytes::from(vec![b'x'; LARGE]);
    for bytes in [Bytes::from_static(&PAGE), cached.clone()] {
        let held: Vec<_> = (0..10).map(|_| answers.count(ONE, Body::Full(bytes.clone()), true).unwrap()).collect();
        assert_eq!((held.len(), answers.bytes()), (10, 0));
    }
    let own = answers.count(ONE, body(LARGE), true).unwrap();
    assert_eq!(answers.bytes(), LARGE, "what is made for one client counts");
    drop((own, cached));
}

#[test]
fn what_was_done_is_answered_and_more_is_refused_before_it_is_done() {
    let answers = Arc::new(Answers::new(8 * LARGE));
    assert!(answers.admit(ONE).is_ok());
    let held: Vec<_> = (0..3).map(|_| answers.count(ONE, body(LARGE), false).unwrap()).collect();
    assert_eq!(answers.bytes(), 3 * LARGE, "it counts beyond the share, too");
    assert!(answers.admit(ONE).is_err() && answers.admit(OTHER).is_ok());
    drop(held);
    assert!(answers.admit(ONE).is_ok());
}

#[test]
fn clients_without_a_key_leave_room_to_those_with_one() {
    let answers = Arc::new(Answers::new(16 * LARGE));
    let mut held = Vec::new();
    for first in 1..10 {
        let keyless = Holder::Keyless(ClientKey::V4(first));
        while let Ok(body) = answers.count(keyless, body(LARGE), true) {
            held.push(body);
        }
        assert!(answers.admit(keyless).is_err());
    }
    assert_eq!(answers.bytes(), 8 * LARGE, "half of the whole");
    for client in [of(1), of(2)] {
        assert!(answers.admit(client).is_ok());
        held.extend((0..4).map(|_| answers.count(client, body(LARGE), true).unwrap()));
        assert!(answers.count(client, body(LARGE), true).is_err());
    }
    drop(held);
    assert_eq!(answers.bytes(), 0);
}

#[test]
fn users_with_a_limited_role_have_a_share_each_and_leave_room_to_others() {
    let answers = Arc::new(Answers::new(32 * LARGE));
    let [ann, bob] = [1, 2].map(|user| Holder::Limited(uuid::Uuid::from_u128(user)));
    let fill = |client: Holder| -> Vec<Body> {
        std::iter::from_fn(|| answers.count(client, body(LARGE), true).ok()).collect()
    };
    let held = fill(ann);
    assert!(answers.admit(ann).is_err() && answers.is_crowded(ann), "though nobody else has anything");
    assert!(answers.admit(bob).is_ok() && answers.admit(ONE).is_ok() && !answers.is_crowded(bob));
    let of_others: Vec<_> = (2..9).flat_map(|user| fill(Holder::Limited(uuid::Uuid::from_u128(user)))).collect();
    assert_eq!((held.len(), answers.bytes()), (6, 24 * LARGE), "three quarters of the whole");
    assert!(answers.admit(bob).is_err());
    let of_owner = fill(ONE);
    assert_eq!(of_owner.len(), 8);
    drop((held, of_others, of_owner));
    assert_eq!((answers.bytes(), answers.taken.lock().clients.len()), (0, 0));
}

#[test]
fn a_part_of_an_answer_holds_all_of_it() {
    let answers = Arc::new(Answers::new(8 * LARGE));
    let Body::Full(bytes) = answers.count(ONE, body(LARGE), true).unwrap() else { panic!("a whole body") };
    let part = bytes.slice(LARGE - 1..);
    drop(bytes);
    assert_eq!(answers.bytes(), LARGE);
    drop(part);
    assert_eq!(answers.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_worst_case_counts_while_an_answer_is_made_and_its_length_afterwards() {
    let answers = Arc::new(Answers::new(16 * LARGE));
    let one = answers.reserve(ONE, 3 * LARGE).await.unwrap();
    assert!(answers.reserve(ONE, 2 * LARGE).await.is_err(), "it waits in vain: the first is never made");
    let other = answers.reserve(OTHER, 3 * LARGE).await.unwrap();
    assert_eq!(answers.bytes(), 6 * LARGE);
    let waits = tokio::spawn({
        let answers = Arc::clone(&answers);
        async move { answers.reserve(ONE, 2 * LARGE).await.map(drop) }
    });
    tokio::task::yield_now().await;
    let held = Answers::count_reserved(one, body(LARGE));
    assert!(waits.await.unwrap().is_ok(), "the first took less than it might have");
    drop(other);
    assert_eq!(answers.bytes(), LARGE);
    let larger = answers.reserve(ONE, LARGE).await.unwrap();
    let larger = Answers::count_reserved(larger, body(9 * LARGE));
    let started = Instant::now();
    assert!(answers.reserve(ONE, 1).await.is_err() && started.elapsed().is_zero(), "nobody reads: no use to wait");
    drop((held, larger));
    assert_eq!((answers.bytes(), answers.taken.lock().clients.len()), (0, 0));
    let small = answers.reserve(ONE, LARGE).await.unwrap();
    let small = Answers::count_reserved(small, body(1));
    assert_eq!((answers.bytes(), answers.taken.lock().all.reserved), (0, 0));
    drop(small);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_wait() {
    let answers = Arc::new(Answers::new(4 * LARGE));
    let taken = answers.reserve(ONE, LARGE).await.unwrap();
    let wait = || {
        let answers = Arc::clone(&answers);
        tokio::spawn(async move { answers.reserve(ONE, LARGE).await.is_ok() })
    };
    let waiting: Vec<_> = (0..WAITING_MAX / CLIENTS).map(|_| wait()).collect();
    while answers.waiting.lock().get(&ONE) != Some(&waiting.len()) {
        tokio::task::yield_now().await;
    }
    let started = Instant::now();
    assert!(answers.reserve(ONE, LARGE).await.is_err() && started.elapsed().is_zero());
    drop(taken);
    for one in waiting {
        assert!(one.await.unwrap());
    }
    assert_eq!((answers.bytes(), answers.waiting.lock().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn memory_for_each_piece_is_taken_before_it_is_made() {
    let answers = Arc::new(Answers::new(8 * LARGE));
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let pieces = stream::iter(0..3).map(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Bytes::from(vec![b'x'; LARGE]))
    });
    let reserved = answers.reserve(ONE, 2 * LARGE).await.unwrap();
    let Body::Stream(mut pieces) = Answers::count_reserved(reserved, Body::Stream(Box::pin(pieces))) else {
        panic!("a stream")
    };
    let first = pieces.next().await.unwrap().unwrap();
    assert_eq!(answers.bytes(), LARGE);
    assert!(pieces.next().await.unwrap().is_err(), "the first still waits to be read");
    assert_eq!((made.load(Ordering::Relaxed), answers.broken_off()), (1, 1));
    drop(first);
    assert!(pieces.next().await.unwrap().is_ok());
    assert_eq!(answers.bytes(), 0);
}

#[tokio::test]
async fn pieces_of_a_stream_count_one_by_one() {
    let answers = Arc::new(Answers::new(4 * LARGE));
    let pieces = stream::iter((0..3).map(|_| Ok(Bytes::from(vec![b'x'; LARGE]))));
    let Body::Stream(mut pieces) = answers.count(ONE, Body::Stream(Box::pin(pieces)), true).unwrap() else {
        panic!("a stream")
    };
    let first = pieces.next().await.unwrap().unwrap();
    assert_eq!(answers.bytes(), LARGE);
    assert!(pieces.next().await.unwrap().is_err(), "the first still waits");
    assert_eq!(answers.broken_off(), 1);
    drop(first);
    assert!(pieces.next().await.unwrap().is_ok());
    assert_eq!(answers.bytes(), 0);
}
