//! Places of connections, and what clients leave unread.

use std::net::Ipv4Addr;

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::Role;
use futures_util::FutureExt;

use super::connected::Part;
use super::*;
use crate::http::principal::Grant;

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// Shows the key of the configuration.
fn show_key(peer: &Peer) {
    peer.show(&Principal::Owner, &Shutdown::new()).unwrap();
}

/// The key of a user with a limited role, and what ends it.
fn key_of(user: u128) -> (Principal, Shutdown) {
    let (key, user) = (KeyId(Uuid::from_u128(user)), UserId(Uuid::from_u128(user)));
    let grant = Grant::new(key, Some(user), "n".into(), [0; 32], Role::Viewer, Vec::new(), None, None);
    let ended = grant.ended.clone();
    (Principal::Key(Arc::new(grant)), ended)
}

/// What is counted: connections without a key, and those of users with a limited role.
fn counted(peers: &Peers) -> (usize, usize) {
    let connected = peers.connected.lock();
    assert_eq!(connected.users.values().map(|part| part.connections).sum::<usize>(), connected.limited.connections);
    (connected.keyless, connected.limited.connections)
}

/// Has the connection to make room?
fn is_closed(peer: &Peer) -> bool {
    peer.closed().now_or_never().is_some()
}

#[test]
fn the_oldest_idle_connection_of_an_address_with_too_many_without_a_key_makes_room() {
    let peers = Arc::new(Peers::new(limit::CONNECTIONS_MAX));
    let mut open: Vec<_> = (0..limit::CONNECTIONS_KEYLESS_MAX).map(|_| peers.connect(ONE, false)).collect();
    let others = (peers.connect(ONE, true), peers.connect(OTHER, false));
    show_key(&open[0]);
    show_key(&open[0]);
    open[1].begin();
    open.push(peers.connect(ONE, false));
    assert!(!open.iter().any(is_closed), "one has shown its key");
    open.push(peers.connect(ONE, false));
    let closed: Vec<_> = open.iter().map(is_closed).collect();
    assert_eq!(closed.iter().position(|closed| *closed), Some(2), "the first has a key, the second is answered");
    assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
    open.iter().for_each(Peer::begin);
    open.push(peers.connect(ONE, false));
    assert!(is_closed(&open[1]), "all are answered");
    drop((open, others));
    let connected = peers.connected.lock();
    assert!(connected.of.is_empty() && connected.ranks.is_empty() && connected.keyless == 0);
}

#[test]
fn many_addresses_together_leave_half_of_all_places_to_those_with_a_key() {
    let peers = Arc::new(Peers::new(100));
    let address = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(n));
    let mut open: Vec<_> =
        (0..5).flat_map(|n| (0..10).map(move |_| n)).map(|n| peers.connect(address(n), false)).collect();
    assert!(!open.iter().any(is_closed));
    let lone = peers.connect(address(9), false);
    assert_eq!((open.iter().filter(|peer| is_closed(peer)).count(), peers.connected.lock().keyless), (1, 50));
    for n in 0..1_000 {
        open.push(peers.connect(address(n % 5), false));
    }
    assert!(!is_closed(&lone), "the address with the most makes room");
    assert_eq!(peers.connected.lock().keyless, 50);
    // A client with the key comes in without one, and takes none of their places once it has shown it.
    show_key(&lone);
    assert_eq!(peers.connected.lock().keyless, 49);
    // Where each address has one, the oldest goes.
    let each: Vec<_> = (100..151).map(|n| peers.connect(address(n), false)).collect();
    drop(open);
    let more: Vec<_> = (200..200 + 50).map(|n| peers.connect(address(n), false)).collect();
    let last = peers.connect(address(7), false);
    assert!(each.iter().any(is_closed) && !is_closed(&last) && more.len() == 50);
}

#[test]
fn refusals_count_while_they_follow_each_other() {
    let peer = Arc::new(Peers::new(9)).connect(ONE, true);
    (1..limit::REFUSALS_MAX).for_each(|_| peer.count_refusal(true));
    assert!(!peer.takes_no_refusal());
    peer.count_refusal(false);
    (1..limit::REFUSALS_MAX).for_each(|_| peer.count_refusal(true));
    assert!(!peer.takes_no_refusal());
    peer.count_refusal(true);
    assert!(peer.takes_no_refusal());
}

#[test]
fn unread_answers_count_by_address() {
    let peers = Arc::new(Peers::new(limit::CONNECTIONS_MAX));
    let [one, same, other] = [ONE, ONE, OTHER].map(|ip| peers.connect(ip, false));
    let keyless = one.holder();
    (0..limit::ANSWERS_UNREAD_MAX).for_each(|_| one.wait(keyless));
    assert!(same.reads_too_little() && !other.reads_too_little());
    show_key(&one);
    assert!(!one.reads_too_little(), "those with a key count apart");
    one.take(keyless);
    assert!(!same.reads_too_little());
}

#[test]
fn users_with_a_limited_role_have_a_share_of_the_connections_each_and_leave_some_to_others() {
    let peers = Arc::new(Peers::new(64));
    assert_eq!((peers.limited_max, peers.user_max()), (24, 6));
    let open = |user: u128| {
        let peer = peers.connect(ONE, false);
        let (principal, ended) = key_of(user);
        peer.show(&principal, &ended).map(|()| peer)
    };
    let mut held: Vec<_> = (0..6).map(|_| open(1).ok().unwrap()).collect();
    let refused = open(1).err().unwrap().into_response();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(counted(&peers), (0, 6), "what is refused and gone takes nothing");
    // One that is refused stays what it was.
    let stays = peers.connect(ONE, false);
    assert!(stays.show(&key_of(1).0, &Shutdown::new()).is_err() && !stays.has_key());
    assert_eq!(counted(&peers), (1, 6));
    for user in 2..9 {
        held.extend((0..6).map_while(|_| open(user).ok()));
    }
    assert_eq!((held.len(), counted(&peers)), (24, (1, 24)), "all of them together have three eighths");
    assert!(open(9).is_err());
    show_key(&stays);
    assert_eq!((stays.has_key(), counted(&peers)), (true, (0, 24)));
    // A connection counts for whoever has shown a key on it last.
    show_key(&held[0]);
    assert_eq!(counted(&peers), (0, 23));
    assert!(open(1).is_ok() && held[0].show(&key_of(1).0, &Shutdown::new()).is_ok());
    drop(held);
    assert_eq!(counted(&peers), (0, 0));
    assert!(peers.connected.lock().users.is_empty());
}

#[test]
fn a_connection_whose_key_has_ended_counts_as_one_without() {
    let peers = Arc::new(Peers::new(8));
    let [limited, owner, trusted, keyless] =
        [false, false, true, false].map(|is_trusted| peers.connect(ONE, is_trusted));
    let ((principal, ended), of_owner) = (key_of(1), Shutdown::new());
    limited.show(&principal, &ended).unwrap();
    owner.show(&Principal::Owner, &of_owner).unwrap();
    let recount = |is_open| [&limited, &owner, &trusted, &keyless].iter().for_each(|peer| peer.recount(is_open));
    // Another connection of the one with a limited role finds no place.
    assert!(keyless.show(&principal, &ended).is_err());
    trusted.recount(true);
    assert_eq!((counted(&peers), trusted.has_key()), ((1, 1), true));
    recount(false);
    assert_eq!((counted(&peers), trusted.has_key()), ((2, 1), false), "a key is needed now");
    ended.trigger();
    recount(false);
    recount(false);
    assert_eq!((counted(&peers), limited.has_key(), owner.has_key()), ((3, 0), false, true));
    of_owner.trigger();
    recount(false);
    assert_eq!(counted(&peers), (4, 0));
    let other = peers.connect(OTHER, false);
    assert!(is_closed(&limited) && !is_closed(&other), "they make room as all without a key");
    recount(true);
    assert!(owner.has_key() && keyless.has_key(), "none is needed any more");
    assert_eq!(counted(&peers), (1, 0));
}

#[test]
fn so_many_requests_of_one_user_are_answered_at_once() {
    let peers = Arc::new(Peers::new(64));
    let peer = peers.connect(ONE, false);
    let holder = |user: u128| Holder::Limited(Uuid::from_u128(user));
    let place = |user| peer.place(holder(user));
    let mut held: Vec<_> = (0..6).map(|_| place(1)).collect();
    assert!(held.iter().all(|(_, room)| room.is_ok()));
    let (refused, room) = place(1);
    assert_eq!(room.unwrap_err().status().as_u16(), 429);
    for user in 2..9 {
        held.extend((0..6).map(|_| place(user)));
    }
    assert_eq!(held.iter().filter(|(_, room)| room.is_ok()).count(), 24);
    assert!((0..100).all(|_| peer.place(peer.holder()).1.is_ok()), "others have no such bound");
    drop((held, refused));
    let again = place(1);
    let other = again.0.clone();
    assert!(again.1.is_ok());
    drop(again);
    assert_eq!(peers.connected.lock().limited.requests, 1, "until the last is gone");
    drop(other);
    assert!(peers.connected.lock().users.is_empty() && peers.connected.lock().limited == Part::default());
}

#[test]
fn bytes_of_small_answers_count_over_all_addresses() {
    let peers = Arc::new(Peers::new(limit::CONNECTIONS_MAX));
    let [one, other, keyless] = [(ONE, true), (OTHER, true), (ONE, false)].map(|(ip, key)| peers.connect(ip, key));
    let half = limit::ANSWERS_SMALL_BYTES_MAX / 2;
    one.hold(half - 1);
    assert!(!keyless.reads_too_little() && keyless.is_crowded() && !one.is_crowded());
    other.hold(1);
    assert!(keyless.reads_too_little() && one.is_crowded() && !one.reads_too_little());
    other.hold(half);
    assert!(one.reads_too_little() && other.reads_too_little());
    one.give_back(half);
    other.give_back(half);
    assert!(!keyless.is_crowded() && peers.unread_bytes() == 0);
}

/// A proxy sends the requests of many clients over one connection.
#[test]
fn a_request_without_a_key_counts_for_nobody_who_has_shown_one_before_it() {
    let peers = Arc::new(Peers::new(limit::CONNECTIONS_MAX));
    let (proxy, open) = (peers.connect(ONE, false), peers.connect(OTHER, true));
    let key = ClientKey::of(ONE);
    assert_eq!(proxy.keyless_holder(), Holder::Keyless(key));
    let (user, ended) = key_of(1);
    proxy.show(&user, &ended).unwrap();
    assert!(matches!(proxy.holder(), Holder::Limited(_)));
    assert_eq!(proxy.keyless_holder(), Holder::Keyless(key));
    show_key(&proxy);
    assert_eq!(proxy.keyless_holder(), Holder::Keyless(key));
    // Where no key is needed, all are the owner.
    assert_eq!(open.keyless_holder(), Holder::Owner(ClientKey::of(OTHER)));
}
