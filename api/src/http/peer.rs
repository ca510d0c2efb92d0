//! The other ends of connections: which address they come from, whose key they have shown, and how many answers the clients
//! of an address, and of all, have not read.
//!
//! A connection counts for whoever has shown a key on it last; a request without a key on it counts for nobody who has:
//!
//! | it has shown                             | of all connections    | beyond                                  |
//! |------------------------------------------|-----------------------|-----------------------------------------|
//! | no valid key, or one that has ended      | at most half          | one of them is closed                   |
//! | the key of one with a limited role       | at most three eighths | 503 `connections`; it counts as before  |
//! | any other key                            | all                   |                                         |
//!
//! So there is room for clients that nothing limits, whatever others do. Each of those with a limited role may have a quarter of
//! what there is for all of them, and be answered as many requests at once, streams and WebSockets included.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use agentsvc_components::kernel::limit;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::http::error::Error;
use crate::http::error_codes;
use crate::http::principal::Principal;
use crate::http::rate::ClientKey;
use crate::http::shutdown::Shutdown;

use connected::{Address, Connected, Line};

mod connected;

/// What one with a limited role may have of what there is for all such is this part.
const USERS: usize = 4;
/// Seconds after which one who has no place may try again.
const RETRY_SECS: u32 = 1;

/// The addresses that have connections.
pub(crate) struct Peers {
    connected: Mutex<Connected>,
    /// Connections that may be open without having shown a key.
    keyless_max: usize,
    /// Connections that those with a limited role may have together, and requests that are answered at once.
    limited_max: usize,
    /// Bytes of small answers that the clients of all addresses have not read.
    unread_bytes: AtomicUsize,
}

impl Peers {
    /// For so many connections in all; half of them may be without a key.
    pub(crate) fn new(connections_max: usize) -> Self {
        let keyless_max = (connections_max / 2).clamp(1, limit::CONNECTIONS_KEYLESS_ALL_MAX);
        let limited_max = (connections_max * 3 / 8).clamp(1, limit::CONNECTIONS_LIMITED_MAX);
        Self { connected: Mutex::default(), keyless_max, limited_max, unread_bytes: AtomicUsize::new(0) }
    }

    /// Connections, and requests, that each of those with a limited role may have.
    fn user_max(&self) -> usize {
        (self.limited_max / USERS).clamp(1, limit::CONNECTIONS_USER_MAX)
    }

    /// A connection from `ip`, which needs no key when `is_trusted`. Where its address has too many that have shown none,
    /// the oldest idle one of them is closed; where all addresses have, that of the address that has the most.
    pub(crate) fn connect(self: &Arc<Self>, ip: IpAddr, is_trusted: bool) -> Peer {
        let (key, line) = (ClientKey::of(ip), Arc::<Line>::default());
        let holder = if is_trusted { Holder::Owner(key) } else { Holder::Keyless(key) };
        let mut connected = self.connected.lock();
        let number = connected.next;
        connected.next += 1;
        if !is_trusted {
            self.enter_keyless(&mut connected, key, number, &line);
        }
        let of = connected.of.entry(key).or_default();
        of.connections += 1;
        let address = Arc::clone(&of.address);
        drop(connected);
        let shown = Mutex::new(Shown { holder, ended: None });
        let (is_passed_on, refused, peers) = (false, AtomicU32::new(0), Arc::clone(self));
        Peer { ip, is_passed_on, key, number, line, address, shown, refused, peers }
    }

    /// Counts a connection as one that has shown no key, and closes another one where there are too many.
    fn enter_keyless(&self, connected: &mut Connected, key: ClientKey, number: u64, line: &Arc<Line>) {
        let own = connected.of.get(&key).map_or(0, |of| of.keyless.len());
        let fullest = connected.ranks.last_key_value().map(|(_, key)| *key);
        if own >= limit::CONNECTIONS_KEYLESS_MAX.min(self.keyless_max) {
            connected.close_one(key);
        } else if let Some(fullest) = fullest.filter(|_| connected.keyless >= self.keyless_max) {
            connected.close_one(fullest);
        }
        connected.change(key, |of| of.keyless.insert(number, Arc::clone(line)));
    }

    /// Counts a connection of one with a limited role.
    fn enter_limited(&self, connected: &mut Connected, user: Uuid) -> Result<(), Error> {
        let full = |most: usize, whose: &str| {
            Error::unavailable(format!("{most} connections of {whose} are open"), RETRY_SECS)
                .code(error_codes::CONNECTIONS)
        };
        if connected.part(user).connections >= self.user_max() {
            return Err(full(self.user_max(), "this user"));
        }
        if connected.limited.connections >= self.limited_max {
            return Err(full(self.limited_max, "users with a limited role"));
        }
        connected.limited.connections += 1;
        connected.change_part(user, |part| part.connections += 1);
        Ok(())
    }

    /// Counts a request of one with a limited role, also one that is to be refused: its answer takes memory, too.
    fn begin_limited(self: &Arc<Self>, user: Uuid) -> (Counted, Result<(), Error>) {
        let mut connected = self.connected.lock();
        let (own, all) = (connected.part(user).requests, connected.limited.requests);
        let full =
            |most: usize, whose: &str| Err(Error::too_many(&format!("requests of {whose} are being answered"), most));
        let room = if own >= self.user_max() {
            full(self.user_max(), "this user")
        } else if all >= self.limited_max {
            full(self.limited_max, "users with a limited role")
        } else {
            connected.limited.requests += 1;
            Ok(())
        };
        connected.change_part(user, |part| part.requests += 1);
        (Counted { peers: Arc::clone(self), user, is_admitted: room.is_ok() }, room)
    }

    /// Bytes of small answers that clients have not read.
    pub(crate) fn unread_bytes(&self) -> usize {
        self.unread_bytes.load(Ordering::Relaxed)
    }
}

/// Whose share of connections, requests and memory something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// The clients of an address, on connections that have shown no valid key.
    Keyless(ClientKey),
    /// The clients of an address that have shown the key of the configuration, or need none.
    Owner(ClientKey),
    /// A user that no role limits, or such a named key without one.
    Named(Uuid),
    /// A user with a limited role, or such a named key without one.
    Limited(Uuid),
}

impl Holder {
    pub(crate) fn of(principal: &Principal, client: ClientKey) -> Self {
        let named = || principal.actor().user_or_key().map(Self::Named);
        match principal {
            Principal::Anyone => Self::Keyless(client),
            _ => principal.limited_user().map(Self::Limited).or_else(named).unwrap_or(Self::Owner(client)),
        }
    }

    /// How a node says it to another one; `None` for those without a key.
    pub(crate) fn word(self) -> Option<String> {
        match self {
            Self::Keyless(_) => None,
            Self::Owner(_) => Some("owner".to_owned()),
            Self::Named(id) => Some(format!("named {id}")),
            Self::Limited(id) => Some(format!("limited {id}")),
        }
    }

    /// What those like this one may have of `whole` together, so that there is some for others.
    pub(crate) const fn part(self, whole: usize) -> usize {
        match self {
            Self::Keyless(_) => whole / 2,
            Self::Limited(_) => whole - whole / 4,
            Self::Owner(_) | Self::Named(_) => whole,
        }
    }
}

/// Whose share a request takes. Where that is limited, it counts until the last of these is gone.
#[derive(Clone)]
pub(crate) struct Place {
    holder: Holder,
    _counted: Option<Arc<Counted>>,
}

impl Place {
    pub(crate) const fn holder(&self) -> Holder {
        self.holder
    }
}

/// A request of one with a limited role, counted while it lives.
struct Counted {
    peers: Arc<Peers>,
    user: Uuid,
    /// It counts towards those of all such, too.
    is_admitted: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut connected = self.peers.connected.lock();
        connected.limited.requests -= usize::from(self.is_admitted);
        connected.change_part(self.user, |part| part.requests -= 1);
    }
}

/// The other end of one connection.
pub(crate) struct Peer {
    /// Where it is.
    pub(crate) ip: IpAddr,
    /// Another node passed its request on.
    pub(crate) is_passed_on: bool,
    key: ClientKey,
    number: u64,
    line: Arc<Line>,
    address: Arc<Address>,
    shown: Mutex<Shown>,
    /// Its requests since the last one that was not refused for asking too often.
    refused: AtomicU32,
    peers: Arc<Peers>,
}

/// Who has shown a key on a connection last.
struct Shown {
    holder: Holder,
    /// Triggered when the key is no longer in force; `None` where none was needed.
    ended: Option<Shutdown>,
}

impl Peer {
    /// Has it shown a valid key, or needed none?
    pub(crate) fn has_key(&self) -> bool {
        !matches!(self.holder(), Holder::Keyless(_))
    }

    /// For whom it counts.
    pub(crate) fn holder(&self) -> Holder {
        self.shown.lock().holder
    }

    /// For whom a request counts that shows no key. On a connection that has shown one, as those of a proxy may be shared, that is
    /// nobody but its address.
    pub(crate) fn keyless_holder(&self) -> Holder {
        let shown = self.shown.lock();
        if shown.ended.is_some() { Holder::Keyless(self.key) } else { shown.holder }
    }

    /// It has shown the key of `principal`, which is in force until `ended`, and counts for it from here on.
    ///
    /// # Errors
    /// 503 when that one has no place for it; it counts as before.
    pub(crate) fn show(&self, principal: &Principal, ended: &Shutdown) -> Result<(), Error> {
        let holder = Holder::of(principal, self.key);
        let mut shown = self.shown.lock();
        if shown.holder != holder {
            self.change(shown.holder, holder)?;
        }
        *shown = Shown { holder, ended: Some(ended.clone()) };
        Ok(())
    }

    /// Which client it is.
    pub(crate) const fn client(&self) -> ClientKey {
        self.key
    }

    /// Who holds what clients of this address have that show the key of the configuration.
    pub(crate) const fn owner(&self) -> Holder {
        Holder::Owner(self.key)
    }

    /// The holder that another node named by this [word](Holder::word).
    pub(crate) fn holder_said(&self, word: &str) -> Holder {
        let id = |id: &str| Uuid::try_parse(id).ok();
        match word.split_once(' ') {
            Some(("named", text)) => id(text).map(Holder::Named),
            Some(("limited", text)) => id(text).map(Holder::Limited),
            _ => (word == "owner").then(|| self.owner()),
        }
        .unwrap_or(Holder::Keyless(self.key))
    }

    /// Counts until `ended` for one whose key another node has seen. Where there is no room for more connections of that one, it counts
    /// as before: its request is answered already.
    pub(crate) fn count_as(&self, holder: Holder, ended: &Shutdown) {
        let mut shown = self.shown.lock();
        if shown.holder == holder || self.change(shown.holder, holder).is_ok() {
            *shown = Shown { holder, ended: Some(ended.clone()) };
        }
    }

    /// Counts as one without a key again where the key that it has shown is no longer in force, unless none is needed.
    pub(crate) fn recount(&self, is_open: bool) {
        let mut shown = self.shown.lock();
        let holder = match &shown.ended {
            Some(ended) if !ended.is_triggered() => return,
            _ if is_open => Holder::Owner(self.key),
            _ => Holder::Keyless(self.key),
        };
        // Nobody limited is given anything here, so that there is room.
        if shown.holder == holder || self.change(shown.holder, holder).is_ok() {
            *shown = Shown { holder, ended: None };
        }
    }

    /// Counts for another one.
    fn change(&self, before: Holder, after: Holder) -> Result<(), Error> {
        let mut connected = self.peers.connected.lock();
        match after {
            Holder::Limited(user) => self.peers.enter_limited(&mut connected, user)?,
            Holder::Keyless(_) => self.peers.enter_keyless(&mut connected, self.key, self.number, &self.line),
            Holder::Owner(_) | Holder::Named(_) => {}
        }
        self.leave(&mut connected, before);
        Ok(())
    }

    /// Counts no longer for this one.
    fn leave(&self, connected: &mut Connected, before: Holder) {
        match before {
            Holder::Limited(user) => {
                connected.limited.connections -= 1;
                connected.change_part(user, |part| part.connections -= 1);
            }
            Holder::Keyless(_) => _ = connected.change(self.key, |of| of.keyless.remove(&self.number)),
            Holder::Owner(_) | Holder::Named(_) => {}
        }
    }

    /// For whom a request of `principal` counts.
    pub(crate) fn holder_of(&self, principal: &Principal) -> Holder {
        Holder::of(principal, self.key)
    }

    /// Counts a request for `holder`.
    ///
    /// # Errors
    /// Beside the place, 429 when too many requests of that one are being answered.
    pub(crate) fn place(&self, holder: Holder) -> (Place, Result<(), Error>) {
        let Holder::Limited(user) = holder else { return (Place { holder, _counted: None }, Ok(())) };
        let (counted, room) = self.peers.begin_limited(user);
        (Place { holder, _counted: Some(Arc::new(counted)) }, room)
    }

    /// Waits until it has to make room for another connection.
    pub(crate) async fn closed(&self) {
        self.line.is_closed.notified().await;
    }

    /// A request begins.
    pub(crate) fn begin(&self) {
        self.line.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Its answer is done.
    pub(crate) fn end(&self) {
        self.line.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// A request was refused because its client asks too often, or it was not.
    pub(crate) fn count_refusal(&self, is_refused: bool) {
        if is_refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        } else {
            self.refused.store(0, Ordering::Relaxed);
        }
    }

    /// Has it been refused so often in a row that its connection is to be closed?
    pub(crate) fn takes_no_refusal(&self) -> bool {
        self.refused.load(Ordering::Relaxed) >= limit::REFUSALS_MAX
    }

    /// An answer to `holder` waits for the client.
    pub(crate) fn wait(&self, holder: Holder) {
        if let Some(unread) = self.unread(holder) {
            unread.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The client took it, or it is given up.
    pub(crate) fn take(&self, holder: Holder) {
        if let Some(unread) = self.unread(holder) {
            unread.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Where the answers to this one count that wait; `None` where its requests are counted anyway.
    fn unread(&self, holder: Holder) -> Option<&AtomicUsize> {
        match holder {
            Holder::Keyless(_) => Some(&self.address.unread[0]),
            Holder::Owner(_) | Holder::Named(_) => Some(&self.address.unread[1]),
            Holder::Limited(_) => None,
        }
    }

    /// Does the one for whom the connection counts leave too many answers unread, or do all together?
    pub(crate) fn reads_too_little(&self) -> bool {
        let holder = self.holder();
        let is_over = match holder {
            Holder::Limited(user) => self.peers.connected.lock().part(user).requests >= self.peers.user_max(),
            _ => self.unread(holder).is_some_and(|own| own.load(Ordering::Relaxed) >= limit::ANSWERS_UNREAD_MAX),
        };
        is_over || self.is_full(limit::ANSWERS_SMALL_BYTES_MAX)
    }

    /// Do all addresses leave more than half of what they may unread? Then what is not read has less time.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_full(limit::ANSWERS_SMALL_BYTES_MAX / 2)
    }

    /// Do all addresses leave so much unread that there is none for this one?
    fn is_full(&self, most: usize) -> bool {
        self.peers.unread_bytes() >= self.holder().part(most)
    }

    /// So many bytes of small answers wait for the client.
    pub(crate) fn hold(&self, bytes: usize) {
        self.peers.unread_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// They are taken, or given up.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.peers.unread_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let holder = self.holder();
        let mut connected = self.peers.connected.lock();
        self.leave(&mut connected, holder);
        if let Some(left) = connected.of.get_mut(&self.key) {
            left.connections -= 1;
            if left.connections == 0 {
                connected.of.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
