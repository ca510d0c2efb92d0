//! The sign-ins under way, and those that ended a short while ago.

use agentsvc_api::http::error_codes;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::provider::accounts::{LoginStarted, ProviderError};
use agentsvc_components::kernel::limit;
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::{Builder, Uuid};

use super::DeviceFlow;
use super::exchange;
use super::flow::Pending;
use crate::kernel::host::host_of;
use crate::model::error::provider_words;
use crate::model::http::Clients;

/// How long a sign-in can be asked for after its codes have ended.
const KEPT_AFTER: Duration = Duration::from_secs(600);
/// Seconds that codes hold at most, whatever the provider says.
const EXPIRES_SECS_MAX: u64 = 3_600;
/// The same when it does not say; RFC 8628 wants it said.
const EXPIRES_SECS_DEFAULT: u64 = 900;
/// Seconds between two polls when the provider does not say (RFC 8628, 3.2).
const INTERVAL_SECS_DEFAULT: u64 = 5;

/// One sign-in, in the hand of one poll at a time.
type Shared = Arc<tokio::sync::Mutex<Pending>>;

/// An entry of the table.
struct Entry {
    provider: Box<str>,
    /// It is forgotten then.
    until: Instant,
    pending: Shared,
}

/// Sign-ins by the id that polls name.
#[derive(Default)]
pub struct Flows(Mutex<HashMap<Uuid, Entry>>);

impl Flows {
    /// Gets codes from the provider.
    ///
    /// # Errors
    /// `TooMany`; the provider failed.
    pub(in crate::provider) async fn start(
        &self,
        clients: &Clients,
        provider: &str,
        flow: &DeviceFlow,
    ) -> Result<LoginStarted, ProviderError> {
        has_room(&mut self.0.lock())?;
        let mut fields = vec![("client_id", &*flow.client_id)];
        if !flow.scope.is_empty() {
            fields.push(("scope", &*flow.scope));
        }
        let answer = exchange::post(clients, &flow.device_auth_url, &fields).await?;
        let text = |key: &str| answer.body[key].as_str().filter(|text| !text.is_empty() && text.len() <= 2_048);
        // Google and a few others say `verification_url`.
        let place = text("verification_uri").or_else(|| text("verification_url"));
        let codes = (answer.secret("device_code"), text("user_code"), place);
        let (Some(device_code), Some(user_code), Some(place)) = codes else {
            return Err(answer.failure("the provider's sign-in"));
        };
        // It is shown to a person, who will follow it.
        if host_of(place).is_none() {
            return Err(answer.failure("the provider's sign-in"));
        }
        let expires_in = answer.body["expires_in"].as_u64().unwrap_or(EXPIRES_SECS_DEFAULT).min(EXPIRES_SECS_MAX);
        let interval = answer.body["interval"].as_u64().unwrap_or(INTERVAL_SECS_DEFAULT);
        let holds = Duration::from_secs(expires_in);
        let pending = Pending::new(provider, device_code.clone(), interval, holds);
        let poll_id = random_id()?;
        let (until, pending) = (Instant::now() + holds + KEPT_AFTER, Arc::new(tokio::sync::Mutex::new(pending)));
        {
            // Others may have begun while the provider was asked.
            let mut flows = self.0.lock();
            has_room(&mut flows)?;
            flows.insert(poll_id, Entry { provider: provider.into(), until, pending });
        }
        Ok(LoginStarted {
            provider: provider.to_owned(),
            poll_id,
            device_code: device_code.expose().to_owned(),
            user_code: provider_words(user_code, None),
            verification_uri: place.to_owned(),
            verification_uri_complete: text("verification_uri_complete")
                .filter(|url| host_of(url).is_some())
                .map(str::to_owned),
            expires_in,
            interval,
        })
    }

    /// The sign-in that a poll names.
    ///
    /// # Errors
    /// `Unknown`: there is none, or it is another provider's.
    pub(in crate::provider) fn find(&self, provider: &str, poll_id: Uuid) -> Result<Shared, ProviderError> {
        let flows = self.0.lock();
        let found = flows.get(&poll_id).filter(|entry| *entry.provider == *provider && Instant::now() < entry.until);
        let found = found.map(|entry| Arc::clone(&entry.pending));
        found.ok_or_else(|| ProviderError::Unknown(format!("sign-in not found: {poll_id}")))
    }

    /// Forgets the sign-ins at a provider.
    pub(in crate::provider) fn forget(&self, provider: &str) {
        self.0.lock().retain(|_, entry| *entry.provider != *provider);
    }
}

/// Lets go of what is over; one more must fit.
fn has_room(flows: &mut HashMap<Uuid, Entry>) -> Result<(), ProviderError> {
    let now = Instant::now();
    flows.retain(|_, entry| now < entry.until);
    if flows.len() < limit::PROVIDER_LOGINS_MAX {
        return Ok(());
    }
    Err(ProviderError::TooMany("too many sign-ins are pending; try again later".to_owned()))
}

/// An id that nobody guesses: who knows it learns how the sign-in went.
fn random_id() -> Result<Uuid, ProviderError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| ProviderError::NotKept {
        code: error_codes::NOT_STORED,
        message: "the system's random number generator \
            failed"
            .to_owned(),
    })?;
    Ok(Builder::from_random_bytes(bytes).into_uuid())
}
