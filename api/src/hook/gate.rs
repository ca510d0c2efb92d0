//! Who may call hooks, and how often.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_components::Actor;
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::error_codes::{WEBHOOK_INVALID_TOKEN, WEBHOOK_RATE_LIMITED, WEBHOOK_TOKEN_UNUSABLE, WEBHOOK_TRIGGERS_OFF};
use super::host::{HookHost, HookPolicy, HookToken};
use crate::http::api::Api;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;
use crate::http::principal;
use crate::http::route::Auth;

const MINUTE: Duration = Duration::from_secs(60);

/// The calls of this minute.
#[derive(Default)]
pub(crate) struct Gate(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    began: Option<Instant>,
    calls: u32,
    refused: u64,
}

impl Gate {
    /// Counts a call.
    fn take(&self, most: u32, now: Instant) -> Result<(), Error> {
        let mut counts = self.0.lock();
        let is_over = counts.began.is_none_or(|began| now.duration_since(began) >= MINUTE);
        if is_over {
            (counts.calls, counts.began) = (0, Some(now));
        }
        if counts.calls < most {
            counts.calls += 1;
            return Ok(());
        }
        counts.refused += 1;
        let began = counts.began.unwrap_or(now);
        let left = MINUTE.saturating_sub(now.duration_since(began)).as_secs() + 1;
        let text = format!("hooks were called {most} times in this minute, which is the limit");
        Err(Error::of(WEBHOOK_RATE_LIMITED, text).retry_after(u32::try_from(left).unwrap_or(60)))
    }
}

/// Lets a call in, counts it, and says who makes it.
///
/// # Errors
/// 404 when hooks are off; 401, or 429 after many wrong keys; 429 above the rate; 503 while the daemon is loading, and where the
/// token cannot be used.
pub(crate) fn enter(call: &Call) -> Result<(Arc<dyn HookHost>, Actor), Error> {
    let host = call.api.service::<dyn HookHost>()?;
    let policy = host.policy();
    if !policy.is_enabled {
        let text = "hooks are off; set `enabled = true` in the table [webhook_triggers] of config.toml";
        return Err(Error::of(WEBHOOK_TRIGGERS_OFF, text));
    }
    let actor = check_token(call, &policy)?;
    call.api.state::<Gate>().take(policy.rate_per_minute, Instant::now())?;
    Ok((host, actor))
}

fn check_token(call: &Call, policy: &HookPolicy) -> Result<Actor, Error> {
    match policy.token {
        HookToken::Own(hash) if is_token(&hash, bearer(call)) => Ok(Actor::Hook),
        HookToken::Own(_) => Err(refused()),
        HookToken::Unusable => {
            let text = "the token of hooks is not set; the daemon's log says which variable must have it";
            Err(Error::of(WEBHOOK_TOKEN_UNUSABLE, text).retry_after(60))
        }
        HookToken::ApiKey => {
            let access = call.api.access.policy();
            if access.is_open() {
                // Without any key, a page of another site must not spend the owner's money.
                return access.check_page_origin(&call.parts).map(|()| Actor::Api);
            }
            let seen = access.look(&call.parts, Auth::Bearer, call.peer);
            access
                .check_auth(&call.parts, Auth::Bearer, call.peer, seen.shown)
                .map_err(|error| if error.status().as_u16() == 401 { refused() } else { error })?;
            let principal = seen.principal();
            principal::check(&principal, call.route).map(|()| principal.actor())
        }
    }
}

fn refused() -> Error {
    let text = "missing or invalid token for hooks; send 'Authorization: Bearer <token>'";
    let challenge = HeaderValue::from_static("Bearer realm=\"webhook_triggers\"");
    Error::of(WEBHOOK_INVALID_TOKEN, text).header(WWW_AUTHENTICATE, challenge)
}

/// The token that the request shows.
fn bearer(call: &Call) -> &[u8] {
    let given = call.headers().get(AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let token = given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    token.map_or(&b""[..], |(_, token)| token.trim_ascii())
}

/// Is this the token? Both sides are hashes, so that neither the length nor the place of a difference shows in the time.
fn is_token(hash: &[u8; 32], token: &[u8]) -> bool {
    let given: [u8; 32] = Sha256::digest(token).into();
    bool::from(given.ct_eq(hash))
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let refused = api.state::<Gate>().0.lock().refused;
    out.counter("agentsvc_hook_refused_total", "Hook requests refused because of the rate.", refused);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_calls() {
        let (gate, start) = (Gate::default(), Instant::now());
        let takes = |secs: u64| gate.take(2, start + Duration::from_secs(secs));
        assert!(takes(0).is_ok() && takes(10).is_ok());
        let refused = takes(20).unwrap_err();
        assert_eq!((refused.status().as_u16(), refused.retry_after_secs()), (429, Some(41)));
        assert!(takes(60).is_ok());
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let hash: [u8; 32] = Sha256::digest(b"a-token-of-hooks").into();
        assert!(is_token(&hash, b"a-token-of-hooks"));
        for wrong in [&b""[..], b"a-token-of-hook", b"a-token-of-hooks2", b"A-token-of-hooks"] {
            assert!(!is_token(&hash, wrong), "{wrong:?}");
        }
    }
}
