//! Who may call: the key, the origins and the rate, as a policy that can be swapped while the server runs.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::Error;
use crate::origin::{OriginClass, Origins};
use crate::rate::RateLimit;
use crate::route::Auth;
use crate::settings::ApiSettings;

/// The policy in force. Requests hold the lock for a reading only; a swap waits for none of them.
pub struct Access(RwLock<Arc<Policy>>);

impl Access {
    /// The policy of `settings`.
    #[must_use]
    pub fn new(settings: &ApiSettings) -> Self {
        Self(RwLock::new(Arc::new(Policy::new(settings))))
    }

    /// Puts the key, origins and rate of `settings` in force. Buckets start full again.
    pub fn set(&self, settings: &ApiSettings) {
        *self.0.write() = Arc::new(Policy::new(settings));
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.0.read().clone()
    }
}

/// Who may call.
pub(crate) struct Policy {
    /// SHA-256 of the key; `None` leaves the API open.
    key: Option<[u8; 32]>,
    origins: Origins,
    rate: Option<RateLimit>,
}

impl Policy {
    fn new(settings: &ApiSettings) -> Self {
        let key = (!settings.api_key.is_empty()).then(|| Sha256::digest(settings.api_key.as_bytes()).into());
        Self { key, origins: Origins::new(&settings.cors_origin), rate: RateLimit::new(settings.rate_limit_per_second) }
    }

    /// No key is set.
    pub(crate) const fn is_open(&self) -> bool {
        self.key.is_none()
    }

    /// What the request's `Origin` means.
    pub(crate) fn origin_class(&self, parts: &Parts) -> OriginClass {
        self.origins.class(parts, self.is_open())
    }

    /// Refuses foreign pages and foreign names while the API is open.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_origin(&self, parts: &Parts, class: OriginClass) -> Result<(), Error> {
        if self.is_open() { self.origins.check_open(parts, class) } else { Ok(()) }
    }

    /// Takes `cost` units from the client's rate budget.
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub(crate) fn check_rate(&self, client: IpAddr, cost: u32) -> Result<(), Error> {
        self.rate.as_ref().map_or(Ok(()), |rate| rate.check(client, cost))
    }

    /// Asks for the key where `auth` wants it. Both sides are hashed first, so that neither the length nor the
    /// place of a difference shows in the time.
    ///
    /// # Errors
    /// 401.
    pub(crate) fn check_auth(&self, parts: &Parts, auth: Auth) -> Result<(), Error> {
        let (Some(key), Auth::Bearer) = (&self.key, auth) else { return Ok(()) };
        let given = parts.headers.get(AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
        let Some((scheme, token)) = given.split_at_checked(7) else { return Err(Error::unauthorized()) };
        let hash: [u8; 32] = Sha256::digest(token.trim_ascii()).into();
        if scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(hash.ct_eq(key)) {
            return Ok(());
        }
        Err(Error::unauthorized())
    }

    /// Forgets clients whose rate budget is full again.
    pub(crate) fn sweep(&self) {
        if let Some(rate) = &self.rate {
            rate.sweep();
        }
    }

    /// Clients whose rate is remembered.
    pub(crate) fn clients(&self) -> usize {
        self.rate.as_ref().map_or(0, RateLimit::clients)
    }
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::header::WWW_AUTHENTICATE;

    use super::*;

    fn keyed(key: &str) -> ApiSettings {
        ApiSettings { api_key: key.to_owned(), ..ApiSettings::default() }
    }

    fn parts(authorization: &str) -> Parts {
        Request::builder().header(AUTHORIZATION, authorization).body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_key_is_asked_for_and_can_be_swapped() {
        let access = Access::new(&keyed("secret"));
        let allowed = |text| access.policy().check_auth(&parts(text), Auth::Bearer).is_ok();
        assert!(allowed("Bearer secret") && allowed("bearer secret"));
        for wrong in ["", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret", "ééééé"]
        {
            assert!(!allowed(wrong), "{wrong}");
        }
        assert!(access.policy().check_auth(&parts(""), Auth::Public).is_ok());
        access.set(&keyed("other"));
        assert!(!allowed("Bearer secret") && allowed("Bearer other"));
        access.set(&keyed(""));
        assert!(allowed("") && access.policy().is_open());
    }

    #[test]
    fn a_refusal_carries_the_challenge() {
        let error = Access::new(&keyed("k")).policy().check_auth(&parts("Bearer x"), Auth::Bearer).unwrap_err();
        let response = error.into_response();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
    }
}
