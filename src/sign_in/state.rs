//! The state of a sign-in that is under way (RFC 6749, 10.12). It travels with the person, signed, so that no memory is kept for
//! those who never come back; what is derived from it never leaves the daemon.

use std::collections::{BTreeSet, HashSet};
use std::sync::OnceLock;

use agentsvc_api::sign_in::provider::SignInError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::hmac;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Seconds in which a sign-in must be complete.
pub(super) const SECS: i64 = 600;
/// States that were used and have not expired. No more sign-ins are completed while there are so many.
const USED_MAX: usize = 65_536;

/// A sign-in that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// Names it; random.
    id: [u8; 16],
    /// The provider.
    pub(super) provider: String,
    /// Where the person comes back.
    pub(super) redirect_uri: String,
    /// SHA-256 of what the browser was given.
    binding: Option<[u8; 32]>,
    /// From when on it is refused, in seconds since 1970.
    until: i64,
}

/// Signs states, and knows which were used.
#[derive(Default)]
pub(super) struct States {
    /// Made when it is first needed. A restart ends the sign-ins that are under way.
    key: OnceLock<hmac::Key>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    ids: HashSet<[u8; 16]>,
    by_end: BTreeSet<(i64, [u8; 16])>,
}

fn random<const N: usize>() -> Result<[u8; N], SignInError> {
    let mut bytes = [0; N];
    let failed = |_| SignInError::Failed("the system's random number generator failed".to_owned());
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

impl States {
    fn key(&self) -> Result<&hmac::Key, SignInError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let fresh = hmac::Key::new(hmac::HMAC_SHA256, &random::<32>()?);
        Ok(self.key.get_or_init(|| fresh))
    }

    /// A new sign-in and its state.
    pub(super) fn begin(
        &self,
        provider: &str,
        redirect_uri: String,
        binding: Option<&str>,
        now: i64,
    ) -> Result<(Pending, String), SignInError> {
        let binding = binding.map(|binding| Sha256::digest(binding).into());
        let (id, provider) = (random()?, provider.to_owned());
        let pending = Pending { id, provider, redirect_uri, binding, until: now.saturating_add(SECS) };
        let text = serde_json::to_vec(&pending).map_err(|_| SignInError::State)?;
        let signature = hmac::sign(self.key()?, &text);
        let state = format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(signature));
        Ok((pending, state))
    }

    /// The sign-in of a state, which was not used before. With `must_be_bound` it is one that has a browser.
    pub(super) fn take(
        &self,
        state: &str,
        binding: Option<&str>,
        must_be_bound: bool,
        now: i64,
    ) -> Result<Pending, SignInError> {
        let wrong = |_| SignInError::State;
        let (text, signature) = state.split_once('.').ok_or(SignInError::State)?;
        let text = URL_SAFE_NO_PAD.decode(text).map_err(wrong)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(wrong)?;
        hmac::verify(self.key()?, &text, &signature).map_err(|_| SignInError::State)?;
        let pending: Pending = serde_json::from_slice(&text).map_err(|_| SignInError::State)?;
        let shown = binding.map(|binding| <[u8; 32]>::from(Sha256::digest(binding)));
        let is_bound = match (&pending.binding, shown) {
            (None, _) => !must_be_bound,
            (Some(wanted), Some(shown)) => bool::from(wanted.ct_eq(&shown)),
            (Some(_), None) => false,
        };
        if pending.until <= now || !is_bound {
            return Err(SignInError::State);
        }
        self.used.lock().note(&pending, now)?;
        Ok(pending)
    }

    /// What only the daemon knows of a sign-in, for each purpose another.
    pub(super) fn derived(&self, pending: &Pending, purpose: &str) -> Result<String, SignInError> {
        let mut context = hmac::Context::with_key(self.key()?);
        context.update(purpose.as_bytes());
        context.update(&[0]);
        context.update(&pending.id);
        Ok(URL_SAFE_NO_PAD.encode(context.sign()))
    }
}

impl Used {
    fn note(&mut self, pending: &Pending, now: i64) -> Result<(), SignInError> {
        while let Some((end, id)) = self.by_end.first().copied().filter(|(end, _)| *end <= now) {
            self.by_end.remove(&(end, id));
            self.ids.remove(&id);
        }
        if self.ids.contains(&pending.id) {
            return Err(SignInError::State);
        }
        if self.ids.len() >= USED_MAX {
            return Err(SignInError::Busy);
        }
        self.ids.insert(pending.id);
        self.by_end.insert((pending.until, pending.id));
        Ok(())
    }
}

/// The challenge of a verifier (RFC 7636, 4.2).
pub(super) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_good_once_in_its_time_and_in_its_browser() {
        let states = States::default();
        let begin = |binding| states.begin("id", "http://h/cb".to_owned(), binding, 100).unwrap();
        let take = |state: &str, binding, must, now| states.take(state, binding, must, now);
        let (pending, state) = begin(Some("b"));
        for binding in [None, Some("c"), Some("")] {
            assert!(matches!(take(&state, binding, false, 100), Err(SignInError::State)), "another browser");
        }
        assert!(take(&state, Some("b"), true, 700).is_err(), "its time is over");
        assert_eq!(take(&state, Some("b"), true, 699).unwrap(), pending);
        assert!(take(&state, Some("b"), true, 100).is_err(), "it was used");
        let (_, state) = begin(None);
        assert!(take(&state, Some("b"), true, 100).is_err(), "it has no browser");
        assert!(take(&state, None, false, 100).is_ok());
    }

    #[test]
    fn a_state_of_someone_else_is_none() {
        let states = States::default();
        let (_, state) = states.begin("id", "http://h/cb".to_owned(), None, 100).unwrap();
        let (_, other) = States::default().begin("id", "http://h/cb".to_owned(), None, 100).unwrap();
        let changed = state.replacen(&state[10..11], if &state[10..11] == "A" { "B" } else { "A" }, 1);
        for wrong in ["", ".", "a.b", &other, &changed, state.split_once('.').unwrap().0] {
            assert!(states.take(wrong, None, false, 100).is_err(), "{wrong}");
        }
        assert!(states.take(&state, None, false, 100).is_ok());
    }

    #[test]
    fn what_is_derived_differs_and_is_not_in_the_state() {
        let states = States::default();
        let (one, state) = states.begin("id", "http://h/cb".to_owned(), None, 100).unwrap();
        let (two, _) = states.begin("id", "http://h/cb".to_owned(), None, 100).unwrap();
        let all = [(&one, "a"), (&one, "b"), (&two, "a")].map(|(of, purpose)| states.derived(of, purpose).unwrap());
        assert!(all[0] != all[1] && all[0] != all[2] && all[0].len() == 43 && !state.contains(&all[0]));
        assert_eq!(states.derived(&one, "a").unwrap(), all[0]);
    }

    #[test]
    fn used_states_are_forgotten_when_they_have_expired() {
        let states = States::default();
        for now in [100, 200, 800] {
            let (_, state) = states.begin("id", String::new(), None, now).unwrap();
            states.take(&state, None, false, now).unwrap();
        }
        assert_eq!(states.used.lock().ids.len(), 1);
        // RFC 7636, appendix B.
        assert_eq!(
            challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
