//! Who may call: the key, the origins and the rate, as a policy that can be swapped while the server runs.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_components::kernel::limit;
use arc_swap::ArcSwap;
use hyper::http::request::Parts;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::http::error::Error;
use crate::http::failures::{Failures, Guess};
use crate::http::origin::{OriginClass, Origins};
use crate::http::principal::{Directory, Grant, Principal};
use crate::http::proven::KeyHash;
use crate::http::rate::{ClientKey, RateLimit, Share};
use crate::http::reply::Body;
use crate::http::route::Auth;
use crate::http::settings::ApiSettings;
use crate::http::shutdown::Shutdown;
use crate::http::sites::Sites;
use crate::http::{cookie, handshake, key_header, query_string};

/// The policy in force. Requests read it without a lock; a change waits for none of them.
pub struct Access {
    policy: ArcSwap<Policy>,
    /// The named keys, beside that of the configuration.
    pub keys: Arc<Directory>,
    /// The sites whose pages may call.
    pub sites: Sites,
}

impl Access {
    /// The policy of `settings`.
    #[must_use]
    pub fn new(settings: &ApiSettings) -> Self {
        let keys = Arc::<Directory>::default();
        let policy = Policy::new(settings, rate_of(settings), Arc::default(), Arc::clone(&keys));
        Self { policy: ArcSwap::from_pointee(policy), keys, sites: Sites::default() }
    }

    /// Puts the key, origins and rate of `settings` in force. Buckets start full again only where the rate is another; wrong keys
    /// count on, whatever changes. Another key ends the streams that the one before let in.
    pub fn set(&self, settings: &ApiSettings) {
        let before = self.policy();
        let is_same = before.units_per_second == settings.rate_limit_per_second;
        let rate = if is_same { before.rate.clone() } else { rate_of(settings) };
        let mut policy = Policy::new(settings, rate, Arc::clone(&before.failures), Arc::clone(&self.keys));
        if policy.key == before.key {
            policy.key_changed = before.key_changed.clone();
            self.policy.store(Arc::new(policy));
        } else {
            // First the policy: what is admitted after the signal is admitted by the new key.
            self.policy.store(Arc::new(policy));
            before.key_changed.trigger();
        }
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
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
    /// The named keys, the same for one policy after the other.
    keys: Arc<Directory>,
    origins: Origins,
    units_per_second: u32,
    rate: Option<Arc<RateLimit>>,
    /// The port that the daemon listens at.
    port: u16,
}

impl Policy {
    fn new(
        settings: &ApiSettings,
        rate: Option<Arc<RateLimit>>,
        failures: Arc<Failures>,
        keys: Arc<Directory>,
    ) -> Self {
        let key = (!settings.api_key.is_empty()).then(|| Sha256::digest(settings.api_key.as_bytes()).into());
        let units_per_second = settings.rate_limit_per_second;
        let is_short = settings.api_key.len() < limit::API_KEY_BYTES_MIN;
        let (origins, port) = (Origins::new(&settings.cors_origin), settings.listen.port());
        Self { key, key_changed: Shutdown::new(), is_short, failures, keys, origins, units_per_second, rate, port }
    }

    /// Is this the key of the configuration?
    pub(crate) fn is_own_key(&self, text: &str) -> bool {
        self.key == Some(Sha256::digest(text).into())
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
    pub(crate) fn is_keyed(&self, parts: &Parts, auth: Auth, seen: &Seen) -> bool {
        match auth {
            Auth::Public | Auth::Page => false,
            Auth::Optional => self.is_open() || key_header::is_there(parts) || seen.grant.is_some(),
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
    pub(crate) fn look(&self, parts: &Parts, auth: Auth, client: IpAddr) -> Seen {
        let grant = self.granted(parts, auth);
        if grant.is_some() {
            return Seen { shown: Shown::Right, grant };
        }
        self.look_alone(parts, auth, client)
    }

    /// As [`look`](Self::look) where named keys are not known: they count as wrong ones.
    pub(crate) fn look_alone(&self, parts: &Parts, auth: Auth, client: IpAddr) -> Seen {
        Seen { shown: self.look_for_own(parts, auth, client), grant: None }
    }

    /// What the first named key that the request shows may do. Those keys are long: no number of tries finds one.
    fn granted(&self, parts: &Parts, auth: Auth) -> Option<Arc<Grant>> {
        let grant = shown_keys(parts, auth).find_map(|token| self.keys.find(&hash_of(&token)));
        let of_cookie = || self.keys.find(&hash_of(cookie::session(parts, auth)?.as_bytes()));
        grant.or_else(of_cookie)
    }

    /// Waits for the named keys while they are not known yet, if the request shows a key that could be one of them.
    ///
    /// # Errors
    /// 503 when they are not known in time.
    pub(crate) async fn await_keys(&self, parts: &Parts, auth: Auth, time: Duration) -> Result<(), Error> {
        let is_own = |token: &[u8]| self.key.as_ref().is_some_and(|key| is_key(key, token));
        let has_session = || cookie::session(parts, auth).is_some();
        if self.keys.is_known() || (shown_keys(parts, auth).all(|token| is_own(&token)) && !has_session()) {
            return Ok(());
        }
        self.keys.known(time).await
    }

    /// Looks for the key of the configuration.
    fn look_for_own(&self, parts: &Parts, auth: Auth, client: IpAddr) -> Shown {
        let Some(key) = &self.key else { return Shown::Right };
        let is_public = auth.is_keyless();
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

    /// What a request shows, on a node that passes it on: that looks for no named key, and counts no wrong one. Whoever guesses a short
    /// key learns nothing from what follows.
    pub(crate) fn presented(&self, parts: &Parts, auth: Auth) -> Presented {
        let Some(own) = &self.key else { return Presented::Own };
        let session = cookie::session(parts, auth).map(|token| hash_of(token.as_bytes()));
        let mut shown: Vec<_> = shown_keys(parts, auth).map(|token| hash_of(&token)).chain(session).collect();
        shown.dedup();
        let is_own = shown.iter().any(|hash| bool::from(hash.ct_eq(own)));
        match *shown {
            [] if !key_header::is_there(parts) => Presented::Nothing,
            _ if is_own && !self.is_short => Presented::Own,
            [one] if !is_own => Presented::Other(Some(one)),
            _ => Presented::Other(None),
        }
    }

    /// May a client try a code now?
    ///
    /// # Errors
    /// 429 for a client that has sent many wrong keys or passwords.
    pub(crate) fn check_guess(&self, client: IpAddr) -> Result<(), Error> {
        self.failures.check(ClientKey::of(client), Instant::now())
    }

    /// Lets a client try a password, which counts as wrong until [`undo_guess`](Self::undo_guess).
    ///
    /// # Errors
    /// 429 for a client that has sent many wrong keys or passwords.
    pub(crate) fn begin_guess(&self, client: IpAddr) -> Result<Guess, Error> {
        self.failures.begin(ClientKey::of(client), Instant::now())
    }

    /// The password was right, or was not looked at.
    pub(crate) fn undo_guess(&self, guess: &Guess) {
        self.failures.undo(guess);
    }

    /// A client sent a wrong code.
    pub(crate) fn note_guess(&self, client: IpAddr) {
        self.failures.add(ClientKey::of(client), Instant::now());
    }

    /// Asks for the key where `auth` wants it; `shown` is what [`look`](Self::look) said.
    ///
    /// # Errors
    /// 401; 429 for a client that has sent many wrong keys.
    pub(crate) fn check_auth(&self, parts: &Parts, auth: Auth, client: IpAddr, shown: Shown) -> Result<(), Error> {
        match shown {
            _ if auth.is_keyless() => Ok(()),
            Shown::Right => Ok(()),
            Shown::Nothing if auth == Auth::Optional && !key_header::is_there(parts) => Ok(()),
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

/// What a request shows, and what its named key may do.
pub(crate) struct Seen {
    /// What it shows.
    pub(crate) shown: Shown,
    /// What its named key may do, if it is one.
    pub(crate) grant: Option<Arc<Grant>>,
}

impl Seen {
    /// A request that was not looked at.
    pub(crate) const NOTHING: Self = Self { shown: Shown::Nothing, grant: None };

    /// Triggered when what it has shown is no longer in force.
    pub(crate) fn ended<'a>(&'a self, policy: &'a Policy) -> &'a Shutdown {
        self.grant.as_ref().map_or(&policy.key_changed, |grant| &grant.ended)
    }

    /// Who the request is, where it has shown what its route asks for.
    pub(crate) fn principal(&self) -> Principal {
        match (&self.grant, self.shown) {
            (Some(grant), _) => Principal::Key(Arc::clone(grant)),
            (None, Shown::Right) => Principal::Owner,
            (None, _) => Principal::Anyone,
        }
    }
}

/// What a request shows on a node that passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    /// No key.
    Nothing,
    /// The key of the configuration, or none is set.
    Own,
    /// One that the other node has to look at; with its hash where it is the only one.
    Other(Option<KeyHash>),
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

/// The keys that a request shows: in its headers, and that of a socket in other ways, too.
fn shown_keys(parts: &Parts, auth: Auth) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let of_socket = if auth == Auth::Socket { socket_token(parts) } else { None };
    // No key is empty, whatever hash the configuration gives a user.
    let of_socket = of_socket.filter(|token| !token.trim_ascii().is_empty());
    key_header::keys(parts).map(Cow::Borrowed).chain(of_socket.map(|token| Cow::Owned(token.into_bytes())))
}

/// Is this the key? Both sides are hashed first, so that neither the length nor the place of a difference shows in the time.
fn is_key(key: &[u8; 32], token: &[u8]) -> bool {
    bool::from(hash_of(token).ct_eq(key))
}

/// SHA-256 of a key as it is shown.
fn hash_of(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token.trim_ascii()).into()
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
mod tests;
