//! What is known of the pace of providers, for people and for metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_api::http::metrics::{MetricsText, Probe, label_value};
use agentsvc_api::provider::calls::{CallHealth, CallState, ProviderCalls};
use agentsvc_components::Timestamp;
use agentsvc_components::turn::outcome::FailureCode;
use tokio::time::Instant;

use super::breaker::BreakerState;
use super::window::Counted;
use super::{Pace, Place};

/// What is left of a limit, as the provider said and time has refilled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitLeft {
    /// How much there is when nothing is used.
    pub limit: u64,
    /// How much of it is left.
    pub left: u64,
}

/// The pace of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaceStatus {
    /// The provider's name.
    pub provider: String,
    /// The host that it is asked at.
    pub host: String,
    /// What becomes of calls.
    pub breaker: BreakerState,
    /// Failures in a row.
    pub failures: u32,
    /// The last failure there was.
    pub last_failure: Option<FailureCode>,
    /// Milliseconds for which it is left alone because it fails; 0 when it is not.
    pub closed_for_ms: u64,
    /// Milliseconds for which it asked to be left alone; 0 when it did not.
    pub paused_for_ms: u64,
    /// Calls that wait for it now.
    pub waiting: u32,
    /// Calls that had to wait for it.
    pub waits_total: u64,
    /// Calls refused by the circuit breaker or the rate limit.
    pub refused_total: u64,
    /// Its limit of calls, where it told of one that is not whole.
    pub requests: Option<LimitLeft>,
    /// Its limit of tokens, in the same way.
    pub tokens: Option<LimitLeft>,
}

impl Pace {
    /// Every provider that was asked, by name and host.
    pub fn status(&self) -> Vec<PaceStatus> {
        let now = Instant::now();
        let mut all: Vec<PaceStatus> = self.places.lock().values().map(|place| status(place, now)).collect();
        all.sort_by(|a, b| (&a.provider, &a.host).cmp(&(&b.provider, &b.host)));
        all
    }
}

fn status(place: &Place, now: Instant) -> PaceStatus {
    let learned = place.learned.lock();
    let ms = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let left = |counted| {
        let window = learned.windows.iter().find(|window| window.counted == counted && !window.is_whole(now))?;
        Some(LimitLeft { limit: window.limit as u64, left: window.left(now) as u64 })
    };
    PaceStatus {
        provider: place.provider.to_string(),
        host: place.host.to_string(),
        breaker: learned.breaker.state(now),
        failures: learned.breaker.failures(),
        last_failure: learned.breaker.last_failure(),
        closed_for_ms: learned.breaker.refuses(now).map_or(0, |(left, _)| ms(left)),
        paused_for_ms: learned.paused_until.map_or(0, |until| ms(until.saturating_duration_since(now))),
        waiting: place.waiting.load(Ordering::Relaxed),
        waits_total: place.waits.load(Ordering::Relaxed),
        refused_total: place.refused.load(Ordering::Relaxed),
        requests: left(Counted::Requests),
        tokens: left(Counted::Tokens),
    }
}

/// Why calls to a provider wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeldUp {
    /// For how long, if that is known.
    pub(crate) wait: Option<Duration>,
    /// What the provider did.
    pub(crate) code: FailureCode,
    /// One sentence for people.
    pub(crate) message: Box<str>,
}

impl Pace {
    /// What holds up calls to the provider called `name`; `None` if nothing is known to.
    pub(crate) fn held_up(&self, name: &str) -> Option<HeldUp> {
        let health = self.health(name)?;
        let now = Timestamp(chrono::Utc::now().timestamp_millis());
        let wait = health.resumes_at.map(|at| Duration::from_millis(at.ms_since(now)));
        let (code, message) = match (health.state, health.last_error) {
            (CallState::Paused, Some(error)) => (error.code, error.message),
            (CallState::Paused, None) => (FailureCode::ProviderError, "Its last calls failed.".into()),
            (CallState::Limited, _) => {
                (FailureCode::ProviderRateLimited, format!("The rate limit of provider {name} is reached.").into())
            }
            (CallState::Ok | CallState::Failing, _) => return None,
        };
        Some(HeldUp { wait, code, message })
    }

    /// The places of a provider: one for each endpoint.
    fn places_of(&self, name: &str) -> Vec<Arc<Place>> {
        self.places.lock().values().filter(|place| &*place.provider == name).cloned().collect()
    }
}

impl ProviderCalls for Pace {
    fn health(&self, name: &str) -> Option<CallHealth> {
        let all = self.places_of(name);
        // Of several endpoints the one that is worst off.
        all.iter().map(|place| health(place)).max_by_key(|health| (health.state, health.last_success_at))
    }

    fn forget_error(&self, name: &str) {
        for place in self.places_of(name) {
            place.learned.lock().fault = None;
        }
    }
}

fn health(place: &Place) -> CallHealth {
    let now = Instant::now();
    let mut learned = place.learned.lock();
    let closed = learned.breaker.refuses(now).map(|(left, _)| left);
    // A call of one token waits for requests alone, or for tokens where none are left.
    let limited = Some(learned.wait(1.0, now)).filter(|wait| !wait.is_zero());
    let state = match (closed, limited, &learned.fault) {
        (Some(_), _, _) => CallState::Paused,
        (None, Some(_), _) => CallState::Limited,
        (None, None, Some(_)) => CallState::Failing,
        (None, None, None) => CallState::Ok,
    };
    let resumes_at = closed.or(limited).map(|left| {
        let now = Timestamp(chrono::Utc::now().timestamp_millis());
        now.plus_ms(i64::try_from(left.as_millis()).unwrap_or(i64::MAX))
    });
    CallHealth {
        state,
        resumes_at,
        waiting: place.waiting.load(Ordering::Relaxed),
        last_success_at: learned.succeeded_at,
        last_error: learned.fault.clone(),
    }
}

impl Probe for Pace {
    fn gather(&self, out: &mut MetricsText) {
        let all = self.status();
        let mut each = |name: &str, help: &str, kind: &str, value: &dyn Fn(&PaceStatus) -> u64| {
            out.family(name, help, kind);
            for of in &all {
                let labels = format!("provider=\"{}\",host=\"{}\"", label_value(&of.provider), label_value(&of.host));
                out.sample(name, &labels, value(of));
            }
        };
        each("agentsvc_provider_breaker", "0 closed, 1 half open, 2 open.", "gauge", &|of| match of.breaker {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        });
        each("agentsvc_provider_waiting", "Calls waiting for their provider.", "gauge", &|of| of.waiting.into());
        each("agentsvc_provider_waits_total", "Calls that had to wait.", "counter", &|of| of.waits_total);
        each(
            "agentsvc_provider_refused_total",
            "Calls refused by the circuit breaker or the rate limit.",
            "counter",
            &|of| of.refused_total,
        );
    }
}
