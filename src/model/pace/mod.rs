//! How fast each provider may be asked: a breaker for one that is ill, and the limits that it taught.
//!
//! A call passes here before every try, and again when the try is over. A provider that fails again and again is left
//! alone for a while ([`breaker`]): calls fail at once meanwhile, so that the fallback models are asked. One that says
//! that it is asked too often, by 429 with a time or in its headers ([`window`]), is asked later: calls wait in their
//! order, for as long as their retries may take, and can be stopped. All of it is forgotten with the process, and what
//! a provider taught is over after [`PAUSE_MAX`] or when its own time is.

mod breaker;
mod status;
mod window;

use agentsvc_api::provider::calls::CallFault;
use agentsvc_components::Timestamp;
use agentsvc_components::turn::outcome::FailureCode;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use super::error::CallError;
use super::provider::{DriverKind, Target};
use crate::kernel::host::host_of;
use breaker::Breaker;
use window::{Counted, Window};

pub use breaker::BreakerState;
pub use status::{LimitLeft, PaceStatus};

/// Providers that are remembered at once. Beyond it the one that was asked longest ago is forgotten.
const PLACES_MAX: usize = 256;
/// Calls that wait for one provider at once; one more fails, so that its fallback model is asked.
const WAITING_MAX: u32 = 1_024;
/// The longest pause that a provider's answer teaches, whatever it says; after it one call finds out.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// The pace of all providers.
#[derive(Debug, Default)]
pub struct Pace {
    /// By the provider's name and the authority of its URL: accounts are told apart by names.
    places: Mutex<HashMap<Box<str>, Arc<Place>>>,
}

/// One provider.
#[derive(Debug)]
struct Place {
    provider: Box<str>,
    host: Box<str>,
    learned: Mutex<Learned>,
    /// Held by the call that waits in front.
    front: tokio::sync::Mutex<()>,
    waiting: AtomicU32,
    /// Calls that had to wait.
    waits: AtomicU64,
    /// Calls refused by the circuit breaker or the rate limit.
    refused: AtomicU64,
}

/// What is known of it.
#[derive(Debug)]
struct Learned {
    breaker: Breaker,
    /// It asked to be left alone until then.
    paused_until: Option<Instant>,
    windows: Vec<Window>,
    used_at: Instant,
    /// When a call succeeded last.
    succeeded_at: Option<Timestamp>,
    /// The newest error since.
    fault: Option<CallFault>,
}

/// A call that was let through. Dropped without [`Pass::end`], it ended without a word of the provider.
#[derive(Debug)]
pub(crate) struct Pass {
    /// `None` for calls that go nowhere.
    place: Option<Arc<Place>>,
    is_probe: bool,
}

impl Pace {
    /// Waits until `target` may be asked with a prompt of so many tokens, but not longer than `wait_max`.
    ///
    /// # Errors
    /// The provider is being left alone, or would have to be waited for too long. Not worth a retry: the next model is.
    pub(crate) async fn admit(&self, target: &Target, tokens: u64, wait_max: Duration) -> Result<Pass, CallError> {
        if target.driver == DriverKind::Builtin {
            return Ok(Pass { place: None, is_probe: false });
        }
        let place = self.place(target);
        if place.waiting.load(Ordering::Relaxed) == 0 {
            match place.try_pass(tokens, Instant::now())? {
                Passing::Now { is_probe } => return Ok(Pass { place: Some(place), is_probe }),
                Passing::After(wait) if wait > wait_max => return Err(place.too_long(wait)),
                Passing::After(_) => {}
            }
        }
        place.pass_in_order(tokens, wait_max).await
    }

    /// Notes what the headers of a response say of limits.
    pub(crate) fn learn(&self, target: &Target, headers: &HeaderMap) {
        let now = Instant::now();
        let told = window::told(headers, now, SystemTime::now());
        if told.is_empty() {
            return;
        }
        let place = self.place(target);
        let mut learned = place.learned.lock();
        learned.windows.retain(|old| !old.is_whole(now) && told.iter().all(|new| new.counted != old.counted));
        learned.windows.extend(told);
    }

    /// What is known of `target`'s provider; made when it is not.
    fn place(&self, target: &Target) -> Arc<Place> {
        let key = key_of(target);
        let now = Instant::now();
        let mut places = self.places.lock();
        if let Some(place) = places.get(key.as_str()) {
            place.learned.lock().used_at = now;
            return Arc::clone(place);
        }
        if places.len() >= PLACES_MAX {
            let oldest = places.iter().min_by_key(|(_, place)| place.learned.lock().used_at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| places.remove(&key));
        }
        let place = Arc::new(Place {
            provider: target.provider.clone(),
            host: host_of(&target.base_url).unwrap_or_default().into(),
            learned: Mutex::new(Learned {
                breaker: Breaker::default(),
                paused_until: None,
                windows: Vec::new(),
                used_at: now,
                succeeded_at: None,
                fault: None,
            }),
            front: tokio::sync::Mutex::new(()),
            waiting: AtomicU32::new(0),
            waits: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        places.insert(key.into(), Arc::clone(&place));
        place
    }
}

/// The provider's name and its authority, without reading the whole URL.
fn key_of(target: &Target) -> String {
    let url = target.base_url.trim();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{} {}", target.provider, authority.to_ascii_lowercase())
}

/// Whether a call passes.
enum Passing {
    /// At once.
    Now { is_probe: bool },
    /// Later, as far as is known now.
    After(Duration),
}

impl Learned {
    /// A call has ended: well, or with an error.
    fn note(&mut self, error: Option<&CallError>) {
        let at = Timestamp(chrono::Utc::now().timestamp_millis());
        match error {
            None => (self.succeeded_at, self.fault) = (Some(at), None),
            // Not the provider's doing.
            Some(error) if error.code == FailureCode::Internal => {}
            Some(error) => {
                self.fault = Some(CallFault { code: error.code, message: error.message.as_str().into(), at });
            }
        }
    }

    /// How long a call of so many tokens has to wait.
    fn wait(&mut self, tokens: f64, now: Instant) -> Duration {
        self.paused_until = self.paused_until.filter(|until| *until > now);
        let paused = self.paused_until.map_or(Duration::ZERO, |until| until - now);
        self.windows.retain(|window| !window.is_whole(now));
        let waits = self.windows.iter().map(|window| window.wait(need(window, tokens), now));
        waits.max().unwrap_or_default().max(paused)
    }
}

/// What a call takes out of a window.
fn need(window: &Window, tokens: f64) -> f64 {
    match window.counted {
        Counted::Requests => 1.0,
        Counted::Tokens => tokens,
    }
}

impl Place {
    /// Lets a call through, if that is right now.
    fn try_pass(&self, tokens: u64, now: Instant) -> Result<Passing, CallError> {
        let tokens = tokens as f64;
        let mut learned = self.learned.lock();
        if let Some((left, code)) = learned.breaker.refuses(now) {
            let failures = learned.breaker.failures();
            drop(learned);
            return Err(self.left_alone(failures, left, code));
        }
        let wait = learned.wait(tokens, now);
        if !wait.is_zero() {
            return Ok(Passing::After(wait));
        }
        for window in &mut learned.windows {
            window.take(need(window, tokens), now);
        }
        Ok(Passing::Now { is_probe: learned.breaker.pass() })
    }

    /// Lets a call through behind those that wait already.
    async fn pass_in_order(self: Arc<Self>, tokens: u64, wait_max: Duration) -> Result<Pass, CallError> {
        let Some(waiting) = Waiting::enter(&self) else {
            return Err(self.refuse("too many calls are waiting for it", Duration::ZERO));
        };
        let until = Instant::now() + wait_max;
        let in_order = async {
            let _front = self.front.lock().await;
            loop {
                let now = Instant::now();
                match self.try_pass(tokens, now)? {
                    Passing::Now { is_probe } => return Ok(is_probe),
                    Passing::After(wait) if now + wait > until => return Err(self.too_long(wait)),
                    Passing::After(wait) => tokio::time::sleep(wait).await,
                }
            }
        };
        let passed = tokio::time::timeout_at(until, in_order).await;
        drop(waiting);
        match passed {
            Ok(Ok(is_probe)) => Ok(Pass { place: Some(self), is_probe }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(self.refuse("other calls are waiting for it", Duration::ZERO)),
        }
    }

    /// The provider is ill.
    fn left_alone(&self, failures: u32, left: Duration, code: FailureCode) -> CallError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let secs = left.as_secs_f64().ceil();
        let message = format!(
            "Provider {} failed {failures} times in a row; calls are paused for another {secs} s.",
            self.provider
        );
        CallError { retry_after: Some(left), ..CallError::last(code, message) }
    }

    /// The provider would have to be waited for too long.
    fn too_long(&self, wait: Duration) -> CallError {
        self.refuse(&format!("it asked to pause calls for another {} s", wait.as_secs_f64().ceil()), wait)
    }

    fn refuse(&self, why: &str, wait: Duration) -> CallError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let message = format!("The rate limit of provider {} is reached: {why}.", self.provider);
        let retry_after = (!wait.is_zero()).then_some(wait);
        CallError { retry_after, ..CallError::last(FailureCode::ProviderRateLimited, message) }
    }
}

/// A call that waits.
struct Waiting<'a>(&'a Place);

impl<'a> Waiting<'a> {
    /// `None` when too many do.
    fn enter(place: &'a Place) -> Option<Self> {
        let waiting = Self(place);
        if place.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return None;
        }
        place.waits.fetch_add(1, Ordering::Relaxed);
        Some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pass {
    /// The try is over.
    pub(crate) fn end(mut self, ended: &Result<(), CallError>) {
        let Some(place) = self.place.take() else { return };
        let now = Instant::now();
        let mut learned = place.learned.lock();
        learned.note(ended.as_ref().err());
        match ended {
            Err(error) if is_illness(error) => {
                if learned.breaker.fail(error.code, self.is_probe, now) {
                    tracing::warn!(provider = %place.provider, host = %place.host, code = error.code.as_str(),
                        failures = learned.breaker.failures(), "a provider keeps failing; calls to it are paused");
                }
            }
            // Not the provider's doing: it was never asked.
            Err(error) if error.code == FailureCode::Internal => learned.breaker.give_up(self.is_probe, now),
            _ => learned.breaker.succeed(),
        }
        let asked = ended.as_ref().err().filter(|error| error.retryable).and_then(|error| error.retry_after);
        if let Some(asked) = asked.filter(|asked| !asked.is_zero()) {
            let until = now + asked.min(PAUSE_MAX);
            learned.paused_until = learned.paused_until.max(Some(until));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.learned.lock().breaker.give_up(self.is_probe, Instant::now());
        }
    }
}

/// Does the error say that the provider is ill, rather than that this request is wrong or too much?
fn is_illness(error: &CallError) -> bool {
    match error.code {
        FailureCode::ProviderUnreachable | FailureCode::ProviderTimeout => true,
        FailureCode::ProviderError => error.retryable,
        _ => false,
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
