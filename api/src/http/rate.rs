//! Rate limiting: token buckets (GCRA) per client, in cost units (spec 1, Limits). What shows the API key, what tries one and
//! what shows none have buckets of their own, so that clients without a key leave those of their address that have one theirs.

use crate::http::error_codes;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use agentsvc_components::kernel::limit;
use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::http::error::Error;

/// Calls between two looks at the number of remembered clients.
const CALLS_PER_LOOK: u32 = 1_024;

/// Buckets that clients share while too many are remembered.
const SHARED_BUCKETS: u64 = 4_096;

/// The limiter of one rate; a new rate is a new limiter.
pub(crate) struct RateLimit<C: Clock + Clone = MonotonicClock> {
    limiter: RateLimiter<Bucket, DashMapStateStore<Bucket>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
    burst: NonZeroU32,
    calls: AtomicU32,
    /// More clients than [`limit::RATE_KEYS_MAX`] are remembered even after a sweep; new ones share buckets.
    crowded: AtomicBool,
    hasher: RandomState,
}

/// A bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bucket {
    client: ClientKey,
    share: Share,
}

/// Which bucket of its client a request takes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    /// It shows no key.
    Keyless,
    /// It shows a key that is wrong, or that was not looked at before its rate.
    Guess,
    /// It shows the right key, or none is needed.
    Keyed,
}

/// Who counts as one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientKey {
    /// An address.
    V4(u32),
    /// The /64 network: what one client is usually given.
    V6(u64),
    /// A bucket that many share.
    Shared(u64),
}

impl ClientKey {
    /// The one that the address belongs to. All loopback addresses are one: every program of the machine has as many of
    /// them as it wants.
    pub fn of(client: IpAddr) -> Self {
        match client.to_canonical() {
            ip if ip.is_loopback() => Self::V4(Ipv4Addr::LOCALHOST.to_bits()),
            IpAddr::V4(ip) => Self::V4(ip.to_bits()),
            IpAddr::V6(ip) => Self::V6((ip.to_bits() >> 64) as u64),
        }
    }
}

impl RateLimit {
    /// `units` per second and bucket with a burst of twice that; `None` for 0, which is no limit.
    pub(crate) fn new(units: u32) -> Option<Self> {
        Self::with_clock(units, MonotonicClock)
    }
}

impl<C: Clock + Clone> RateLimit<C> {
    fn with_clock(units: u32, clock: C) -> Option<Self> {
        let per_second = NonZeroU32::new(units)?;
        let burst = per_second.saturating_mul(NonZeroU32::MIN.saturating_add(1));
        let quota = Quota::per_second(per_second).allow_burst(burst);
        Some(Self {
            limiter: RateLimiter::new(quota, DashMapStateStore::default(), clock.clone()),
            clock,
            burst,
            calls: AtomicU32::new(0),
            crowded: AtomicBool::new(false),
            hasher: RandomState::new(),
        })
    }

    fn bucket_of(&self, client: IpAddr, share: Share) -> Bucket {
        let client = ClientKey::of(client);
        if self.crowded.load(Ordering::Relaxed) {
            let client = ClientKey::Shared(self.hasher.hash_one(client) % SHARED_BUCKETS);
            return Bucket { client, share };
        }
        Bucket { client, share }
    }

    /// Takes `cost` units from this bucket of the client.
    ///
    /// # Errors
    /// 429 with `Retry-After` when the bucket does not hold so many.
    pub(crate) fn check(&self, client: IpAddr, share: Share, cost: u32) -> Result<(), Error> {
        let Some(cost) = NonZeroU32::new(cost) else { return Ok(()) };
        if self.calls.fetch_add(1, Ordering::Relaxed) % CALLS_PER_LOOK == CALLS_PER_LOOK - 1 {
            self.look();
        }
        // A call that costs more than the bucket can hold would never pass; it empties the bucket instead.
        let cost = cost.min(self.burst);
        let refused = match self.limiter.check_key_n(&self.bucket_of(client, share), cost) {
            Ok(Err(refused)) => refused,
            Ok(Ok(())) | Err(_) => return Ok(()),
        };
        let wait = refused.wait_time_from(self.clock.now());
        let secs = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let secs = u32::try_from(secs).unwrap_or(u32::MAX);
        Err(Error::new(hyper::StatusCode::TOO_MANY_REQUESTS, "rate limit exceeded; slow down")
            .code(error_codes::RATE_LIMITED)
            .retry_after(secs))
    }

    /// Takes up to `cost` units from this bucket of the client, as many as it holds, for an answer that is made already: there is no
    /// debt, so that the largest answer costs no more than a full bucket.
    pub(crate) fn charge(&self, client: IpAddr, share: Share, cost: u32) {
        let key = self.bucket_of(client, share);
        let mut left = cost.min(self.burst.get());
        let mut step = left;
        while let Some(units) = NonZeroU32::new(step.min(left)) {
            match self.limiter.check_key_n(&key, units) {
                Ok(Ok(())) => left -= units.get(),
                Ok(Err(_)) | Err(_) => step /= 2,
            }
        }
    }

    fn look(&self) {
        if self.limiter.len() > limit::RATE_KEYS_MAX {
            self.sweep();
        }
    }

    /// Forgets clients whose buckets are full again.
    pub(crate) fn sweep(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
        self.crowded.store(self.limiter.len() > limit::RATE_KEYS_MAX, Ordering::Relaxed);
    }

    /// Buckets that are remembered.
    pub(crate) fn clients(&self) -> usize {
        self.limiter.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;
    use hyper::header::RETRY_AFTER;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn limiter(units: u32) -> (RateLimit<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (RateLimit::with_clock(units, clock.clone()).unwrap(), clock)
    }

    #[test]
    fn the_burst_is_twice_the_rate_and_costs_count() {
        let (limit, clock) = limiter(10);
        assert!(limit.check(CLIENT, Share::Keyed, 10).is_ok());
        assert!(limit.check(CLIENT, Share::Keyed, 10).is_ok());
        let response = limit.check(CLIENT, Share::Keyed, 10).unwrap_err().into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        clock.advance(Duration::from_secs(1));
        assert!(limit.check(CLIENT, Share::Keyed, 10).is_ok());
        assert!(limit.check(CLIENT, Share::Keyed, 1).is_err());
    }

    #[test]
    fn a_call_dearer_than_the_bucket_still_passes_when_it_is_full() {
        let (limit, _) = limiter(1);
        assert!(limit.check(CLIENT, Share::Keyed, 10).is_ok());
        let response = limit.check(CLIENT, Share::Keyed, 10).unwrap_err().into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert!(limit.check(CLIENT, Share::Keyed, 0).is_ok());
    }

    #[test]
    fn an_answer_costs_what_is_left_at_most_and_leaves_no_debt() {
        let (limit, clock) = limiter(10);
        limit.charge(CLIENT, Share::Keyed, 15);
        assert!(limit.check(CLIENT, Share::Keyed, 6).is_err() && limit.check(CLIENT, Share::Keyed, 5).is_ok());
        clock.advance(Duration::from_secs(1));
        limit.charge(CLIENT, Share::Keyed, 7);
        assert!(limit.check(CLIENT, Share::Keyed, 4).is_err() && limit.check(CLIENT, Share::Keyed, 3).is_ok());
        clock.advance(Duration::from_secs(2));
        limit.charge(CLIENT, Share::Keyed, 1_000_000);
        assert!(limit.check(CLIENT, Share::Keyed, 1).is_err());
        clock.advance(Duration::from_secs(2));
        assert!(limit.check(CLIENT, Share::Keyed, 20).is_ok());
    }

    #[test]
    fn clients_do_not_share_but_a_v6_network_and_loopback_do() {
        let (limit, _) = limiter(1);
        let v6 = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
        assert!(limit.check(CLIENT, Share::Keyed, 2).is_ok());
        assert!(limit.check(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), Share::Keyed, 2).is_ok());
        for loopback in [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            assert!(limit.check(loopback, Share::Keyed, 1).is_err(), "a program has all of them");
        }
        assert!(limit.check(IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()), Share::Keyed, 1).is_err());
        assert!(limit.check(v6((7 << 64) | 1), Share::Keyed, 2).is_ok());
        assert!(limit.check(v6((7 << 64) | 2), Share::Keyed, 1).is_err());
        assert!(limit.check(v6((8 << 64) | 1), Share::Keyed, 2).is_ok());
    }

    #[test]
    fn idle_clients_are_swept_out_and_a_crowd_shares_buckets() {
        let (limit, clock) = limiter(1);
        for n in 0..limit::RATE_KEYS_MAX as u32 + 2_000 {
            // The last ones come when buckets are shared already; their answer is not the point here.
            let _ = limit.check(IpAddr::V4(Ipv4Addr::from_bits(n)), Share::Keyed, 1);
        }
        assert!(limit.crowded.load(Ordering::Relaxed));
        let crowd = limit.clients();
        for n in 0..20_000 {
            let _ = limit.check(IpAddr::V4(Ipv4Addr::from_bits(u32::MAX - n)), Share::Keyed, 1);
        }
        assert!(limit.clients() <= crowd + SHARED_BUCKETS as usize);
        clock.advance(Duration::from_secs(60));
        limit.sweep();
        assert_eq!(limit.clients(), 0);
        assert!(!limit.crowded.load(Ordering::Relaxed));
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert!(RateLimit::new(0).is_none());
    }
}
