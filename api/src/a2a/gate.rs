//! How much clients may send: tasks in a minute, by client and in all, and requests that wait. A client that shows a key is its
//! user, or the key, and has a share of its own; the others are told apart by their addresses and have one pool together.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_components::a2a::STRANGER;
use agentsvc_components::kernel::scope::Scope;
use agentsvc_systems::a2a::limits;
use parking_lot::Mutex;

use super::error_codes::{A2A_DISABLED, A2A_RATE_LIMITED, A2A_TOO_MANY_WAIT};
use super::host::{A2aHost, Policy};
use crate::http::api::Api;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;
use crate::http::principal::Principal;
use crate::http::rate::ClientKey;

const MINUTE: Duration = Duration::from_secs(60);

/// Who sends tasks, or waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    /// Someone at this address.
    Stranger(ClientKey),
    /// A user or a key, by name.
    Known(Box<str>),
}

impl Sender {
    /// Who sends this request. Where no key is set, everyone at an address is one; a key that may not talk to agents counts for
    /// nothing.
    pub(crate) fn of(call: &Call) -> Self {
        let known = match &call.principal {
            Principal::Key(grant) if grant.has(Scope::Chat) => Some(match grant.user {
                Some(user) => format!("user:{user}"),
                None => format!("key:{}", grant.key),
            }),
            Principal::Owner if !call.api.access.policy().is_open() => Some("owner".to_owned()),
            _ => None,
        };
        known.map_or_else(|| Self::Stranger(ClientKey::of(call.peer)), |name| Self::Known(name.into()))
    }

    const fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stranger(address) => write!(f, "{STRANGER}{address:?}"),
            Self::Known(name) => f.write_str(name),
        }
    }
}

/// What is known of clients. Bounded: addresses beyond those that are remembered share one count.
#[derive(Default)]
pub(crate) struct Gate(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// Tasks of this minute, by client.
    sent: HashMap<Sender, u32>,
    /// Those of clients without a key.
    total: u32,
    began: Option<Instant>,
    /// Requests that wait, by client.
    waiting: HashMap<Sender, usize>,
    /// Those of clients without a key, and of those with one.
    waiting_total: [usize; 2],
    refused: u64,
}

/// A request that waits; counted until it is dropped.
pub(crate) struct Waiting {
    gate: Arc<Gate>,
    client: Sender,
}

impl Gate {
    /// Counts a task of a client.
    fn take(&self, client: &Sender, policy: &Policy, now: Instant) -> Result<(), Error> {
        let mut counts = self.0.lock();
        let is_over = counts.began.is_none_or(|began| now.duration_since(began) >= MINUTE);
        if is_over {
            counts.sent.clear();
            (counts.total, counts.began) = (0, Some(now));
        }
        let began = counts.began.unwrap_or(now);
        let key = counts.key(client);
        let of_client = counts.sent.get(&key).copied().unwrap_or(0);
        let refused = |what: &str, most: u32| {
            let left = MINUTE.saturating_sub(now.duration_since(began)).as_secs() + 1;
            let text = format!("{what} sent {most} A2A tasks in this minute, which is the limit");
            Error::of(A2A_RATE_LIMITED, text).retry_after(u32::try_from(left).unwrap_or(60))
        };
        let error = if of_client >= policy.rate_per_minute {
            refused("this client", policy.rate_per_minute)
        } else if !client.is_known() && counts.total >= policy.total_rate_per_minute {
            refused("all clients without a key together", policy.total_rate_per_minute)
        } else {
            counts.total += u32::from(!client.is_known());
            *counts.sent.entry(key).or_default() += 1;
            return Ok(());
        };
        counts.refused += 1;
        Err(error)
    }

    /// Counts a request that waits.
    fn enter(self: &Arc<Self>, client: Sender) -> Result<Waiting, Error> {
        let mut counts = self.0.lock();
        let own = counts.waiting.get(&client).copied().unwrap_or(0);
        let pool = usize::from(client.is_known());
        let most = [limits::A2A_OPEN_REQUESTS_MAX, limits::A2A_KNOWN_OPEN_REQUESTS_MAX][pool];
        if counts.waiting_total[pool] >= most || own >= limits::A2A_CLIENT_OPEN_REQUESTS_MAX {
            counts.refused += 1;
            let text = "too many requests wait for A2A tasks; do not wait for the task, or try again later";
            return Err(Error::of(A2A_TOO_MANY_WAIT, text).retry_after(5));
        }
        *counts.waiting.entry(client.clone()).or_default() += 1;
        counts.waiting_total[pool] += 1;
        Ok(Waiting { gate: Arc::clone(self), client })
    }
}

impl Counts {
    fn key(&self, client: &Sender) -> Sender {
        // There are only so many keys: strangers alone could fill the memory.
        let is_full = self.sent.len() >= limits::A2A_CLIENTS_MAX && !self.sent.contains_key(client);
        if is_full && !client.is_known() { Sender::Stranger(ClientKey::Shared(0)) } else { client.clone() }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut counts = self.gate.0.lock();
        counts.waiting_total[usize::from(self.client.is_known())] -= 1;
        if let Some(count) = counts.waiting.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.waiting.remove(&self.client);
            }
        }
    }
}

/// The daemon's part, and what is in force.
///
/// # Errors
/// 404 when A2A is off; 503 while the daemon is loading.
pub(crate) fn open(call: &Call) -> Result<(Arc<dyn A2aHost>, Arc<Policy>), Error> {
    let host = call.api.service::<dyn A2aHost>()?;
    let policy = host.policy();
    if !policy.is_enabled {
        let text = "A2A is off; set `enabled = true` in the table [a2a] of config.toml to offer agents to others";
        return Err(Error::of(A2A_DISABLED, text));
    }
    Ok((host, policy))
}

/// Refuses pages of other origins: whoever visits one must not spend the owner's money.
///
/// # Errors
/// 403.
pub(crate) fn check_origin(call: &Call) -> Result<(), Error> {
    let access = call.api.access.policy();
    if access.is_open() { Ok(()) } else { access.check_page_origin(&call.parts) }
}

/// Takes one task from the rates.
///
/// # Errors
/// 429 with `Retry-After`.
pub(crate) fn take(call: &Call, policy: &Policy) -> Result<(), Error> {
    call.api.state::<Gate>().take(&Sender::of(call), policy, Instant::now())
}

/// Counts the request as one that waits, until what this gives is dropped.
///
/// # Errors
/// 429.
pub(crate) fn enter(call: &Call) -> Result<Waiting, Error> {
    call.api.state::<Gate>().enter(Sender::of(call))
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let gate = api.state::<Gate>();
    let (waiting, refused) = {
        let counts = gate.0.lock();
        (counts.waiting_total.iter().sum::<usize>(), counts.refused)
    };
    out.gauge("agentsvc_a2a_requests_waiting", "Requests that wait for A2A tasks or stream them.", waiting);
    out.counter(
        "agentsvc_a2a_refused_total",
        "A2A requests refused because of a rate, or because too many wait.",
        refused,
    );
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn policy(own: u32, total: u32) -> Policy {
        Policy { rate_per_minute: own, total_rate_per_minute: total, ..Policy::default() }
    }

    fn client(n: u32) -> Sender {
        Sender::Stranger(ClientKey::of(IpAddr::V4(Ipv4Addr::from_bits(n))))
    }

    fn known(n: u32) -> Sender {
        Sender::Known(format!("key:{n}").into())
    }

    #[test]
    fn strangers_take_nothing_of_clients_with_a_key_and_each_of_those_has_its_own_share() {
        let (gate, policy, now) = (Arc::new(Gate::default()), policy(2, 3), Instant::now());
        for n in 1..=3 {
            gate.take(&client(n), &policy, now).unwrap();
        }
        assert!(gate.take(&client(4), &policy, now).is_err());
        for n in 1..=9 {
            assert!(gate.take(&known(n), &policy, now).is_ok() && gate.take(&known(n), &policy, now).is_ok());
            assert!(gate.take(&known(n), &policy, now).is_err());
        }
        let strangers: Vec<_> =
            (0..limits::A2A_OPEN_REQUESTS_MAX as u32).map(|n| gate.enter(client(n)).unwrap()).collect();
        assert!(gate.enter(client(9_999)).is_err());
        let own: Vec<_> = (0..limits::A2A_CLIENT_OPEN_REQUESTS_MAX).map(|_| gate.enter(known(1)).unwrap()).collect();
        assert!(gate.enter(known(1)).is_err() && gate.enter(known(2)).is_ok());
        drop((strangers, own));
        assert_eq!(gate.0.lock().waiting_total, [0, 0]);
    }

    #[test]
    fn a_minute_has_so_many_tasks_for_each_and_for_all() {
        let (gate, policy, start) = (Gate::default(), policy(2, 3), Instant::now());
        let takes = |n: u32, secs: u64| gate.take(&client(n), &policy, start + Duration::from_secs(secs));
        assert!(takes(1, 0).is_ok() && takes(1, 10).is_ok());
        let refused = takes(1, 20).unwrap_err();
        assert_eq!((refused.status().as_u16(), refused.retry_after_secs()), (429, Some(41)));
        assert!(takes(2, 20).is_ok(), "another client");
        assert!(takes(2, 20).is_err() && takes(3, 20).is_err(), "all clients together");
        assert!(takes(1, 60).is_ok());
    }

    #[test]
    fn clients_beyond_those_that_are_remembered_share_one_rate() {
        let (gate, policy, now) = (Gate::default(), policy(1, u32::MAX), Instant::now());
        for n in 0..limits::A2A_CLIENTS_MAX as u32 {
            assert!(gate.take(&client(n), &policy, now).is_ok());
        }
        assert!(gate.take(&client(1 << 20), &policy, now).is_ok());
        assert!(gate.take(&client(1 << 21), &policy, now).is_err());
        assert!(gate.0.lock().sent.len() <= limits::A2A_CLIENTS_MAX + 1);
    }

    #[test]
    fn only_so_many_requests_of_a_client_wait_and_those_that_left_do_not_count() {
        let gate = Arc::new(Gate::default());
        let held: Vec<_> = (0..limits::A2A_CLIENT_OPEN_REQUESTS_MAX).map(|_| gate.enter(client(1)).unwrap()).collect();
        assert!(gate.enter(client(1)).is_err() && gate.enter(client(2)).is_ok());
        drop(held);
        assert!(gate.enter(client(1)).is_ok());
        assert_eq!(gate.0.lock().waiting_total, [0, 0]);
        assert!(gate.0.lock().waiting.is_empty());
        let all: Vec<_> = (0..limits::A2A_OPEN_REQUESTS_MAX as u32).map(|n| gate.enter(client(n)).unwrap()).collect();
        assert!(gate.enter(client(9_999)).is_err());
        drop(all);
    }
}
