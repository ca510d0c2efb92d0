//! Keys and origins.

use hyper::Request;
use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};

use super::*;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Asks for the key as the server does.
fn check(policy: &Policy, parts: &Parts, auth: Auth, client: IpAddr) -> Result<(), Error> {
    policy.check_auth(parts, auth, client, policy.look(parts, auth, client).shown)
}

fn keyed(key: &str) -> ApiSettings {
    ApiSettings { api_key: key.to_owned(), ..ApiSettings::default() }
}

fn parts(authorization: &str) -> Parts {
    Request::builder().header(AUTHORIZATION, authorization).body(()).unwrap().into_parts().0
}

#[test]
fn the_key_is_asked_for_and_can_be_swapped() {
    let access = Access::new(&keyed("secret"));
    let allowed = |text| check(&access.policy(), &parts(text), Auth::Bearer, CLIENT).is_ok();
    assert!(allowed("Bearer secret") && allowed("bearer secret"));
    for wrong in ["", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret", "ééééé"] {
        assert!(!allowed(wrong), "{wrong}");
    }
    assert!(check(&access.policy(), &parts(""), Auth::Public, CLIENT).is_ok());
    access.set(&keyed("other"));
    assert!(!allowed("Bearer secret") && allowed("Bearer other"));
    access.set(&keyed(""));
    assert!(allowed("") && access.policy().is_open());
}

#[test]
fn the_key_may_stand_alone_in_a_header() {
    let access = Access::new(&keyed("secret"));
    let shown = |headers: &[(&str, &str)]| {
        let request = headers.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    };
    let looked = |headers: &[(&str, &str)], auth| {
        let (parts, policy) = (shown(headers), access.policy());
        let seen = policy.look(&parts, auth, CLIENT);
        (seen.shown, policy.is_keyed(&parts, auth, &seen), check(&policy, &parts, auth, CLIENT).is_ok())
    };
    for auth in [Auth::Bearer, Auth::Optional] {
        assert_eq!(looked(&[("x-api-key", "secret")], auth), (Shown::Right, true, true));
        assert_eq!(looked(&[("X-API-Key", " secret ")], auth), (Shown::Right, true, true));
        assert!(!looked(&[("x-api-key", "Bearer secret")], auth).2, "the scheme is of the other header");
        assert!(!looked(&[("x-api-key", "secre")], auth).2 && !looked(&[("x-api-key", "")], auth).2);
    }
    assert_eq!(looked(&[], Auth::Optional), (Shown::Nothing, false, true));
}

#[test]
fn another_key_and_nothing_else_ends_what_the_key_let_in() {
    let access = Access::new(&keyed(""));
    for key in ["one", "two", ""] {
        let before = access.policy();
        access.set(&keyed(key));
        assert!(before.key_changed.is_triggered(), "{key}");
        let of_the_key = access.policy();
        access.set(&ApiSettings { rate_limit_per_second: 5, ..keyed(key) });
        access.set(&keyed(key));
        assert!(!of_the_key.key_changed.is_triggered() && !access.policy().key_changed.is_triggered(), "{key}");
    }
    let before = access.policy();
    access.set(&ApiSettings { rate_limit_per_second: 5, ..keyed("") });
    access.set(&keyed("last"));
    assert!(before.key_changed.is_triggered(), "however many policies had the same key");
}

#[test]
fn another_key_forgets_no_bucket_and_another_rate_does() {
    let of = |key, rate_limit_per_second| ApiSettings { rate_limit_per_second, ..keyed(key) };
    let access = Access::new(&of("one", 5));
    let is_free = || access.policy().check_rate(CLIENT, Share::Keyed, 10).is_ok();
    assert!(is_free() && !is_free());
    access.set(&of("two", 5));
    assert!(!is_free(), "the key is another, the rate is not");
    access.set(&of("two", 6));
    assert!(is_free());
}

#[test]
fn another_policy_forgets_no_wrong_key() {
    let access = Access::new(&keyed("one"));
    let status = |text| {
        let refused = check(&access.policy(), &parts(text), Auth::Bearer, CLIENT);
        refused.map_or_else(|error| error.status().as_u16(), |()| 200)
    };
    (0..limit::AUTH_FREE_TRIES).for_each(|_| assert_eq!(status("Bearer wrong"), 401));
    assert_eq!(status("Bearer wrong"), 429);
    for (key, rate_limit_per_second) in [("one", 7), ("two", 7), ("", 7), ("two", 7)] {
        access.set(&ApiSettings { rate_limit_per_second, ..keyed(key) });
    }
    assert_eq!(status("Bearer wrong"), 429, "another rate, another key and a time without one");
}

#[test]
fn a_websocket_may_bring_the_key_in_other_ways() {
    let policy = Access::new(&keyed("se/cret")).policy();
    let by = |uri: &str, protocol: &str| {
        Request::get(uri).header("sec-websocket-protocol", protocol).body(()).unwrap().into_parts().0
    };
    let allowed = |uri, protocol, auth| check(&policy, &by(uri, protocol), auth, CLIENT).is_ok();
    assert!(allowed("/ws", "bearer, se/cret", Auth::Socket) && allowed("/ws?token=se%2Fcret", "x", Auth::Socket));
    assert!(check(&policy, &parts("Bearer se/cret"), Auth::Socket, CLIENT).is_ok());
    for (uri, protocol) in [("/ws", "bearer"), ("/ws", "se/cret"), ("/ws?token=", "x"), ("/ws?token=secret", "x")] {
        assert!(!allowed(uri, protocol, Auth::Socket), "{uri} {protocol}");
    }
    assert!(!allowed("/ws?token=se%2Fcret", "bearer, se/cret", Auth::Bearer));
}

#[test]
fn a_route_with_an_optional_key_takes_none_or_the_right_one() {
    let keyed = Access::new(&keyed("secret")).policy();
    let without = Request::builder().body(()).unwrap().into_parts().0;
    let of = |policy: &Policy, parts: &Parts| {
        let allowed = check(policy, parts, Auth::Optional, CLIENT).is_ok();
        (allowed, allowed && policy.is_keyed(parts, Auth::Optional, &Seen::NOTHING))
    };
    assert_eq!(of(&keyed, &without), (true, false));
    assert_eq!(of(&keyed, &parts("Bearer secret")), (true, true));
    for wrong in ["", "Bearer wrong", "Basic secret"] {
        assert_eq!(of(&keyed, &parts(wrong)), (false, false), "{wrong}");
    }
    let open = Access::new(&ApiSettings::default()).policy();
    assert_eq!(of(&open, &without), (true, true));
}

#[test]
fn a_refusal_carries_the_challenge() {
    let error = check(&Access::new(&keyed("k")).policy(), &parts("Bearer x"), Auth::Bearer, CLIENT).unwrap_err();
    let response = error.into_response();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
}

#[test]
fn wrong_keys_are_slowed_down_and_a_strong_right_one_never_is() {
    let (short, strong) = ("k".repeat(limit::API_KEY_BYTES_MIN - 1), "k".repeat(limit::API_KEY_BYTES_MIN));
    let other = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    for (key, is_strong) in [(short, false), (strong, true)] {
        let policy = Access::new(&keyed(&key)).policy();
        let status = |token: &str, client| match check(&policy, &parts(token), Auth::Bearer, client) {
            Ok(()) => 200,
            Err(error) => error.into_response().status().as_u16(),
        };
        let right = format!("Bearer {key}");
        for _ in 0..limit::AUTH_FREE_TRIES {
            assert_eq!((status("", CLIENT), status("Bearer wrong", CLIENT)), (401, 401));
        }
        assert_eq!(status("Bearer wrong", CLIENT), 429);
        assert_eq!(status(&right, CLIENT), if is_strong { 200 } else { 429 });
        assert_eq!((status("Bearer wrong", other), status(&right, other)), (401, 200));
    }
}

#[test]
fn what_shows_no_key_or_a_wrong_one_takes_nothing_from_what_shows_the_right_one() {
    for bytes in [limit::API_KEY_BYTES_MIN, limit::API_KEY_BYTES_MIN - 1] {
        let key = "k".repeat(bytes);
        let policy = Access::new(&ApiSettings { rate_limit_per_second: 5, ..keyed(&key) }).policy();
        for share in [Shown::Nothing, Shown::Wrong, Shown::Right].map(Shown::share) {
            let is_free = || policy.check_rate(CLIENT, share, 10).is_ok();
            assert!(is_free() && !is_free(), "{share:?}");
        }
        let look = |token: &str| policy.look(&parts(token), Auth::Bearer, CLIENT).shown;
        let right = format!("Bearer {key}");
        assert_eq!((look(""), look("Basic x"), look(&right)), (Shown::Nothing, Shown::Nothing, Shown::Right));
        (0..limit::AUTH_FREE_TRIES).for_each(|_| assert_eq!(look("Bearer wrong"), Shown::Wrong));
        assert_eq!(look("Bearer wrong"), Shown::Slowed, "however many units its rate has left");
        // A short one could be guessed: the right one looks like a wrong one meanwhile.
        let is_strong = bytes == limit::API_KEY_BYTES_MIN;
        assert_eq!(look(&right), if is_strong { Shown::Right } else { Shown::Slowed });
        assert_eq!(Shown::Slowed.share(), Shown::Wrong.share());
        let public = policy.look(&parts(&right), Auth::Public, CLIENT).shown;
        assert_eq!(public, if is_strong { Shown::Right } else { Shown::Nothing });
    }
}

/// A user of the configuration may have been given the hash of an empty variable.
#[test]
fn an_empty_key_is_none_even_where_its_hash_is_known() {
    use agentsvc_components::kernel::id::KeyId;
    use agentsvc_components::kernel::scope::Role;

    let access = Access::new(&keyed("se/cret"));
    let grant = |key: &str| {
        let id = KeyId(uuid::Uuid::nil());
        Grant::new(id, None, "ann".into(), hash_of(key.as_bytes()), Role::Admin, Vec::new(), None, None)
    };
    access.keys.set(vec![grant(""), grant("right")]);
    let is_granted = |uri: &str, authorization: &str| {
        let mut parts = parts(authorization);
        parts.uri = uri.parse().unwrap();
        access.policy().granted(&parts, Auth::Socket).is_some()
    };
    assert!(is_granted("/ws?token=right", "") && is_granted("/ws", "Bearer right"));
    for (uri, authorization) in [("/ws?token=", ""), ("/ws?token=%20", ""), ("/ws", "Bearer "), ("/ws", "")] {
        assert!(!is_granted(uri, authorization), "{uri} {authorization}");
    }
}
