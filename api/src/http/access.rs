//! Who may call: the key, the origins and the rate, as a policy that can be swapped while the server runs.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use agentsvc_components::kernel::limit;
use arc_swap::ArcSwap;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::http::error::Error;
use crate::http::failures::Failures;
use crate::http::origin::{OriginClass, Origins};
use crate::http::rate::{ClientKey, RateLimit, Share};
use crate::http::reply::Body;
use crate::http::route::Auth;
use crate::http::settings::ApiSettings;
use crate::http::shutdown::Shutdown;
use crate::http::{handshake, query_string};

/// The policy in force. Requests read it without a lock; a change waits for none of them.
pub struct Access(ArcSwap<Policy>);

impl Access {
    /// The policy of `settings`.
    #[must_use]
    pub fn new(settings: &ApiSettings) -> Self {
        Self(ArcSwap::from_pointee(Policy::new(settings, rate_of(settings), Arc::default())))
    }

    /// Puts the key, origins and rate of `settings` in force. Buckets start full again only where the rate is another; wrong keys
    /// count on, whatever changes. Another key ends the streams that the one before let in.
    pub fn set(&self, settings: &ApiSettings) {
        let before = self.policy();
        let is_same = before.units_per_second == settings.rate_limit_per_second;
        let rate = if is_same { before.rate.clone() } else { rate_of(settings) };
        let mut policy = Policy::new(settings, rate, Arc::clone(&before.failures));
        if policy.key == before.key {
            policy.key_changed = before.key_changed.clone();
            self.0.store(Arc::new(policy));
        } else {
            // First the policy: what is admitted after the signal is admitted by the new key.
            self.0.store(Arc::new(policy));
            before.key_changed.trigger();
        }
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.0.load_full()
    }
}

/// The limiter of the rate of `settings`.
fn rate_of(settings: &ApiSettings) -> Option<Arc<RateLimit>> {
    RateLimit::new(settings.rate_limit_per_second).map(Arc::new)
}

/// Who may call.
pub(crate) struct Policy {
    /// SHA-256 of the key; `None` leaves the API open.
    key: Option<[u8; 32]>,
    /// Triggered when another key is in force, or none, or the first one.
    pub(crate) key_changed: Shutdown,
    /// The key is so short that it could be guessed: none is looked at while its client has to wait.
    is_short: bool,
    /// The wrong keys of clients, the same for one policy after the other.
    failures: Arc<Failures>,
    origins: Origins,
    units_per_second: u32,
    rate: Option<Arc<RateLimit>>,
    /// The port that the daemon listens at.
    port: u16,
}

impl Policy {
    fn new(settings: &ApiSettings, rate: Option<Arc<RateLimit>>, failures: Arc<Failures>) -> Self {
        let key = (!settings.api_key.is_empty()).then(|| Sha256::digest(settings.api_key.as_bytes()).into());
        let units_per_second = settings.rate_limit_per_second;
        let is_short = settings.api_key.len() < limit::API_KEY_BYTES_MIN;
        let (origins, port) = (Origins::new(&settings.cors_origin), settings.listen.port());
        Self { key, key_changed: Shutdown::new(), is_short, failures, origins, units_per_second, rate, port }
    }

    /// Is there a rate limit?
    pub(crate) const fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// No key is set.
    pub(crate) const fn is_open(&self) -> bool {
        self.key.is_none()
    }

    /// What the request's `Origin` means.
    pub(crate) fn origin_class(&self, parts: &Parts) -> OriginClass {
        self.origins.class(parts, self.is_open())
    }

    /// Does a request that [`check_auth`](Self::check_auth) let through act with the key? Every one does where no key is set.
    pub(crate) fn is_keyed(&self, parts: &Parts, auth: Auth) -> bool {
        match auth {
            Auth::Public => false,
            Auth::Optional => self.is_open() || parts.headers.contains_key(AUTHORIZATION),
            Auth::Bearer | Auth::Socket => true,
        }
    }

    /// Refuses foreign pages and foreign names while the API is open.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_origin(&self, parts: &Parts, class: OriginClass) -> Result<(), Error> {
        if self.is_open() { self.origins.check_open(parts, class) } else { Ok(()) }
    }

    /// As [`check_origin`](Self::check_origin) for a route that pages of other sites may lead browsers to.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_linked(&self, parts: &Parts, class: OriginClass) -> Result<(), Error> {
        if self.is_open() { self.origins.check_linked(parts, class) } else { Ok(()) }
    }

    /// Refuses foreign pages, whether there is a key or not: where no browser guards what they send, as for WebSockets, or
    /// where the protocol asks for it.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_page_origin(&self, parts: &Parts) -> Result<(), Error> {
        self.origins.check_socket(parts, self.port, self.is_open())
    }

    /// Takes `cost` units from the client's rate budget.
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub(crate) fn check_rate(&self, client: IpAddr, share: Share, cost: u32) -> Result<(), Error> {
        self.rate.as_ref().map_or(Ok(()), |rate| rate.check(client, share, cost))
    }

    /// Takes a unit for each whole [`limit::ANSWER_UNIT_BYTES`] of an answer from the client's rate budget, as far as there are
    /// some. Streamed answers cost nothing more: their clients set the pace, and a large download must not keep others of
    /// their address out.
    pub(crate) fn charge(&self, client: IpAddr, share: Share, answer: &Body) {
        let units = u32::try_from(answer.own_bytes() / limit::ANSWER_UNIT_BYTES).unwrap_or(u32::MAX);
        if let Some(rate) = self.rate.as_ref().filter(|_| units > 0) {
            rate.charge(client, share, units);
        }
    }

    /// Looks at the key that a request shows, before it takes from its client's rate, so that clients without the key use
    /// up none of those that have it. Wrong keys count, and slow their address down, whatever its rate. The right key passes
    /// however many of them came from there, unless it is a short one: that one is not looked at meanwhile.
    pub(crate) fn look(&self, parts: &Parts, auth: Auth, client: IpAddr) -> Shown {
        let Some(key) = &self.key else { return Shown::Right };
        let is_public = auth == Auth::Public;
        if shown_keys(parts, auth).next().is_none() || is_public && self.is_short {
            return Shown::Nothing;
        }
        let (client, now) = (ClientKey::of(client), Instant::now());
        let is_slowed = || self.failures.check(client, now).is_err();
        if self.is_short && is_slowed() {
            return Shown::Slowed;
        }
        if shown_keys(parts, auth).any(|token| is_key(key, &token)) {
            return Shown::Right;
        }
        if is_public {
            return Shown::Nothing;
        }
        if is_slowed() {
            return Shown::Slowed;
        }
        self.failures.add(client, now);
        Shown::Wrong
    }

    /// Asks for the key where `auth` wants it; `shown` is what [`look`](Self::look) said.
    ///
    /// # Errors
    /// 401; 429 for a client that has sent many wrong keys.
    pub(crate) fn check_auth(&self, parts: &Parts, auth: Auth, client: IpAddr, shown: Shown) -> Result<(), Error> {
        match shown {
            _ if auth == Auth::Public => Ok(()),
            Shown::Right => Ok(()),
            Shown::Nothing if auth == Auth::Optional && !parts.headers.contains_key(AUTHORIZATION) => Ok(()),
            // A client without a key guesses none.
            Shown::Nothing | Shown::Wrong => Err(Error::unauthorized()),
            Shown::Slowed => {
                self.failures.check(ClientKey::of(client), Instant::now())?;
                Err(Error::unauthorized())
            }
        }
    }

    /// Forgets clients whose rate budget is full again, and those that have sent no wrong key for long.
    pub(crate) fn sweep(&self) {
        self.failures.sweep(Instant::now());
        if let Some(rate) = &self.rate {
            rate.sweep();
        }
    }

    /// Clients whose rate is remembered.
    pub(crate) fn clients(&self) -> usize {
        self.rate.as_ref().map_or(0, |rate| rate.clients())
    }
}

/// What a request shows of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing that could be one, or a wrong one where none is needed.
    Nothing,
    /// The right one, or none is set.
    Right,
    /// A wrong one.
    Wrong,
    /// One that is wrong or was not looked at, because its address has to wait for the wrong ones that it sent.
    Slowed,
}

impl Shown {
    /// Which bucket of its client the request takes from.
    pub(crate) const fn share(self) -> Share {
        match self {
            Self::Nothing => Share::Keyless,
            Self::Right => Share::Keyed,
            Self::Wrong | Self::Slowed => Share::Guess,
        }
    }
}

/// The keys that a request shows: in its header, and that of a socket in other ways, too.
fn shown_keys(parts: &Parts, auth: Auth) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let given = parts.headers.get(AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let in_header = given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    let in_header = in_header.map(|(_, token)| token.trim_ascii()).filter(|token| !token.is_empty());
    let of_socket = if auth == Auth::Socket { socket_token(parts) } else { None };
    in_header.map(Cow::Borrowed).into_iter().chain(of_socket.map(|token| Cow::Owned(token.into_bytes())))
}

/// Is this the key? Both sides are hashed first, so that neither the length nor the place of a difference shows in the time.
fn is_key(key: &[u8; 32], token: &[u8]) -> bool {
    let hash: [u8; 32] = Sha256::digest(token.trim_ascii()).into();
    bool::from(hash.ct_eq(key))
}

/// The key as a page can send it with a WebSocket: as a subprotocol, else in the query.
fn socket_token(parts: &Parts) -> Option<String> {
    if let Some(token) = handshake::token(&parts.headers) {
        return Some(token.to_owned());
    }
    query_string::read::<TokenQuery>(parts.uri.query()?).ok()?.token
}

#[derive(Deserialize)]
struct TokenQuery {
    token: Option<String>,
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::header::WWW_AUTHENTICATE;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Asks for the key as the server does.
    fn check(policy: &Policy, parts: &Parts, auth: Auth, client: IpAddr) -> Result<(), Error> {
        policy.check_auth(parts, auth, client, policy.look(parts, auth, client))
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
        for wrong in ["", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret", "ééééé"]
        {
            assert!(!allowed(wrong), "{wrong}");
        }
        assert!(check(&access.policy(), &parts(""), Auth::Public, CLIENT).is_ok());
        access.set(&keyed("other"));
        assert!(!allowed("Bearer secret") && allowed("Bearer other"));
        access.set(&keyed(""));
        assert!(allowed("") && access.policy().is_open());
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
            (allowed, allowed && policy.is_keyed(parts, Auth::Optional))
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
            let look = |token: &str| policy.look(&parts(token), Auth::Bearer, CLIENT);
            let right = format!("Bearer {key}");
            assert_eq!((look(""), look("Basic x"), look(&right)), (Shown::Nothing, Shown::Nothing, Shown::Right));
            (0..limit::AUTH_FREE_TRIES).for_each(|_| assert_eq!(look("Bearer wrong"), Shown::Wrong));
            assert_eq!(look("Bearer wrong"), Shown::Slowed, "however many units its rate has left");
            // A short one could be guessed: the right one looks like a wrong one meanwhile.
            let is_strong = bytes == limit::API_KEY_BYTES_MIN;
            assert_eq!(look(&right), if is_strong { Shown::Right } else { Shown::Slowed });
            assert_eq!(Shown::Slowed.share(), Shown::Wrong.share());
            let public = policy.look(&parts(&right), Auth::Public, CLIENT);
            assert_eq!(public, if is_strong { Shown::Right } else { Shown::Nothing });
        }
    }
}
