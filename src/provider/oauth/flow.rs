//! One sign-in under way.

use std::time::Duration;

use agentsvc_api::provider::accounts::{LoginState, ProviderError};
use tokio::time::Instant;

use super::DeviceFlow;
use super::exchange::{self, Answer};
use crate::model::http::Clients;
use crate::model::provider::Secret;
use crate::model::provider::overrides::Grant;

/// What asks for a token (RFC 8628, 3.4).
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Seconds that `slow_down` adds (RFC 8628, 3.5).
const SLOW_DOWN_SECS: u64 = 5;
/// Seconds between two questions at most, whatever the provider says.
const INTERVAL_SECS_MAX: u64 = 300;

/// Where it is.
#[derive(Debug)]
enum State {
    Pending,
    /// The provider gave it; it is not stored yet.
    Granted(Grant),
    Authorized,
    Denied,
    Expired,
}

/// A sign-in.
#[derive(Debug)]
pub(in crate::provider) struct Pending {
    provider: String,
    device_code: Secret,
    interval: Duration,
    /// The next question is not asked earlier.
    next: Instant,
    /// The codes are good until then.
    end: Instant,
    state: State,
}

/// What a poll found.
pub(in crate::provider) struct Polled {
    /// For the client.
    pub(in crate::provider) state: LoginState,
    /// What was granted and is to be stored now; [`Pending::authorized`] says that it was.
    pub(in crate::provider) grant: Option<Grant>,
}

impl Pending {
    /// Begun now.
    pub(super) fn new(provider: &str, device_code: Secret, interval_secs: u64, holds: Duration) -> Self {
        let interval = Duration::from_secs(interval_secs.min(INTERVAL_SECS_MAX));
        let now = Instant::now();
        let (next, end) = (now + interval, now + holds);
        Self { provider: provider.to_owned(), device_code, interval, next, end, state: State::Pending }
    }

    /// Asks the provider, unless it was asked a moment ago or there is nothing to ask any more.
    ///
    /// # Errors
    /// The provider cannot be reached, or answers nonsense: the next poll asks again.
    pub(in crate::provider) async fn poll(
        &mut self,
        clients: &Clients,
        flow: &DeviceFlow,
    ) -> Result<Polled, ProviderError> {
        if matches!(self.state, State::Pending) && Instant::now() >= self.end {
            self.state = State::Expired;
        }
        if matches!(self.state, State::Pending) && Instant::now() >= self.next {
            self.next = Instant::now() + self.interval;
            let fields = [
                ("client_id", &*flow.client_id),
                ("device_code", self.device_code.expose()),
                ("grant_type", GRANT_TYPE),
            ];
            let answer = exchange::post(clients, &flow.token_url, &fields).await?;
            self.take(&answer)?;
        }
        let grant = if let State::Granted(grant) = &self.state { Some(grant.clone()) } else { None };
        Ok(Polled { state: self.shown(), grant })
    }

    /// What the provider says of a poll (RFC 8628, 3.5). Some say errors with status 200.
    fn take(&mut self, answer: &Answer) -> Result<(), ProviderError> {
        match answer.error() {
            Some("authorization_pending") => {}
            Some("slow_down") => {
                let asked = answer.body["interval"].as_u64().unwrap_or(0).min(INTERVAL_SECS_MAX);
                let slower = self.interval + Duration::from_secs(SLOW_DOWN_SECS);
                self.interval = slower.max(Duration::from_secs(asked)).min(Duration::from_secs(INTERVAL_SECS_MAX));
                self.next = Instant::now() + self.interval;
            }
            Some("expired_token") => self.state = State::Expired,
            Some("access_denied") => self.state = State::Denied,
            Some(_) => return Err(answer.failure("the provider's sign-in")),
            None => match answer.grant() {
                Some(grant) => self.state = State::Granted(grant),
                None => return Err(answer.failure("the provider's sign-in")),
            },
        }
        Ok(())
    }

    /// What was granted is stored.
    pub(in crate::provider) fn authorized(&mut self) -> LoginState {
        self.state = State::Authorized;
        self.shown()
    }

    fn shown(&self) -> LoginState {
        let status = match self.state {
            State::Pending | State::Granted(_) => "pending",
            State::Authorized => "authorized",
            State::Denied => "denied",
            State::Expired => "expired",
        };
        let wait = self.next.saturating_duration_since(Instant::now());
        let retry_after = matches!(self.state, State::Pending).then(|| wait.as_secs_f64().ceil() as u64);
        LoginState { status, provider: self.provider.clone(), retry_after }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pending() -> Pending {
        Pending::new("p", Secret::new("d"), 5, Duration::from_secs(900))
    }

    fn said(pending: &mut Pending, status: u16, body: Value) -> Result<&'static str, String> {
        pending.take(&Answer { status, body }).map_err(|error| error.to_string())?;
        Ok(pending.shown().status)
    }

    #[tokio::test]
    async fn every_word_of_the_provider_has_a_state() {
        let mut flow = pending();
        assert_eq!(said(&mut flow, 400, json!({"error": "authorization_pending"})).unwrap(), "pending");
        assert_eq!(flow.shown().retry_after, Some(5));
        assert_eq!(said(&mut flow, 200, json!({"error": "slow_down", "interval": 7})).unwrap(), "pending");
        assert_eq!(flow.shown().retry_after, Some(10), "five seconds more, or what it says");
        assert_eq!(said(&mut flow, 200, json!({"error": "slow_down", "interval": 40})).unwrap(), "pending");
        assert_eq!(flow.shown().retry_after, Some(40));
        assert_eq!(said(&mut flow, 200, json!({"error": "slow_down", "interval": 9_999})).unwrap(), "pending");
        assert_eq!(flow.shown().retry_after, Some(INTERVAL_SECS_MAX));
        assert!(said(&mut flow, 400, json!({"error": "invalid_client"})).unwrap_err().contains("invalid_client"));
        assert!(said(&mut flow, 500, Value::Null).is_err());
        assert_eq!(flow.shown().status, "pending", "what failed is tried again");
        assert_eq!(said(&mut pending(), 400, json!({"error": "access_denied"})).unwrap(), "denied");
        assert_eq!(said(&mut pending(), 400, json!({"error": "expired_token"})).unwrap(), "expired");
        let granted = json!({"access_token": "t", "token_type": "bearer"});
        assert_eq!(said(&mut flow, 200, granted).unwrap(), "pending", "until it is stored");
        assert_eq!((flow.authorized().status, flow.authorized().retry_after), ("authorized", None));
    }

    #[tokio::test]
    async fn the_codes_end_by_themselves_and_nobody_is_asked_too_often() {
        let clients = Clients::new(crate::model::http::Timeouts::default());
        // Nobody listens there: an attempt to ask would be an error.
        let flow = DeviceFlow { token_url: "http://127.0.0.1:1/".into(), ..DeviceFlow::default() };
        let mut pending = pending();
        assert_eq!(pending.poll(&clients, &flow).await.unwrap().state.retry_after, Some(5));
        pending.end = Instant::now();
        assert_eq!(pending.poll(&clients, &flow).await.unwrap().state.status, "expired");
        assert!(!format!("{pending:?}").contains("\"d\""));
    }
}
