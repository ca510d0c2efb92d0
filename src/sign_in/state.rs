//! The state of a sign-in that is under way (RFC 6749, 10.12). It travels with the person, signed, so that no memory is kept for
//! those who never come back; what is derived from it never leaves the daemon.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use agentsvc_api::http::failures::ClientKey;
use agentsvc_api::sign_in::provider::SignInError;
use agentsvc_systems::sign_in::limits;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::hmac;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Seconds in which a sign-in must be complete.
pub(super) const SECS: i64 = 600;

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

/// States that were used and have not expired: a state that is forgotten before is good no more for who shows it again, as its
/// code is good once at the provider.
#[derive(Default)]
struct Used {
    /// All, by when they expire.
    all: BTreeMap<Name, ClientKey>,
    of: HashMap<ClientKey, BTreeSet<Name>>,
    /// The clients: the one with the most comes last, and of those with as many the one whose oldest is the oldest.
    ranks: BTreeMap<Rank, ClientKey>,
}

/// A state: when it expires, and its id.
type Name = (i64, [u8; 16]);
/// How many states a client has, and the oldest.
type Rank = (usize, Reverse<Name>);

fn rank(of: &BTreeSet<Name>) -> Option<Rank> {
    of.first().map(|oldest| (of.len(), Reverse(*oldest)))
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

    /// The sign-in of a state, which was not used before. With `must_be_bound` it is one that has a browser. Reading uses nothing up.
    pub(super) fn read(
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
        if pending.until <= now || !is_bound || self.used.lock().all.contains_key(&pending.name()) {
            return Err(SignInError::State);
        }
        Ok(pending)
    }

    /// The provider accepted the code of a sign-in, which `client` brought: no other is completed with its state.
    ///
    /// # Errors
    /// One was, since the state was read.
    pub(super) fn use_up(&self, pending: &Pending, client: ClientKey, now: i64) -> Result<(), SignInError> {
        if self.used.lock().note(pending.name(), client, now) { Ok(()) } else { Err(SignInError::State) }
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

impl Pending {
    const fn name(&self) -> Name {
        (self.until, self.id)
    }
}

impl Used {
    /// Notes a state. False when it was used before.
    fn note(&mut self, name: Name, client: ClientKey, now: i64) -> bool {
        while let Some(oldest) = self.all.keys().next().copied().filter(|(until, _)| *until <= now) {
            self.forget(oldest);
        }
        if self.all.contains_key(&name) {
            return false;
        }
        let own = self.of.get(&client).filter(|of| of.len() >= limits::SIGN_IN_STATES_OF_CLIENT_MAX);
        let mut oldest = own.and_then(|of| of.first()).copied();
        if self.all.len() >= limits::SIGN_IN_STATES_MAX {
            oldest = oldest.or_else(|| self.ranks.last_key_value().map(|((_, Reverse(oldest)), _)| *oldest));
        }
        oldest.into_iter().for_each(|oldest| self.forget(oldest));
        self.all.insert(name, client);
        self.change(client, |of| {
            of.insert(name);
        });
        true
    }

    fn forget(&mut self, name: Name) {
        let Some(client) = self.all.remove(&name) else { return };
        self.change(client, |of| {
            of.remove(&name);
        });
    }

    fn change(&mut self, client: ClientKey, change: impl FnOnce(&mut BTreeSet<Name>)) {
        let of = self.of.entry(client).or_default();
        rank(of).and_then(|rank| self.ranks.remove(&rank));
        change(of);
        match rank(of) {
            Some(rank) => drop(self.ranks.insert(rank, client)),
            None => drop(self.of.remove(&client)),
        }
    }
}

/// The challenge of a verifier (RFC 7636, 4.2).
pub(super) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: ClientKey = ClientKey::V4(1);
    const OTHER: ClientKey = ClientKey::V4(2);

    #[test]
    fn a_state_is_good_once_in_its_time_and_in_its_browser() {
        let states = States::default();
        let begin = |binding| states.begin("id", "http://h/cb".to_owned(), binding, 100).unwrap();
        let take = |state: &str, binding, must, now| {
            let pending = states.read(state, binding, must, now)?;
            states.use_up(&pending, CLIENT, now).map(|()| pending)
        };
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
    fn a_state_is_used_up_by_an_accepted_code_alone_and_once() {
        let states = States::default();
        let (_, state) = states.begin("id", String::new(), None, 100).unwrap();
        let read = || states.read(&state, None, false, 100);
        // Two at the same time, and those whose code the provider refused.
        let [one, other] = [read().unwrap(), read().unwrap()];
        states.use_up(&one, CLIENT, 100).unwrap();
        assert!(matches!(states.use_up(&other, OTHER, 100), Err(SignInError::State)));
        assert!(matches!(read(), Err(SignInError::State)), "a repetition");
    }

    #[test]
    fn a_client_pushes_out_its_own_states_and_nobody_is_locked_out() {
        let mut used = Used::default();
        let name = |n: usize| (1_000 + n as i64, (n as u128).to_be_bytes());
        assert!(used.note(name(0), OTHER, 100));
        for n in 1..=limits::SIGN_IN_STATES_OF_CLIENT_MAX {
            assert!(used.note(name(n), CLIENT, 100));
        }
        assert!(used.note(name(limits::SIGN_IN_STATES_OF_CLIENT_MAX + 1), CLIENT, 100));
        assert_eq!(used.of[&CLIENT].len(), limits::SIGN_IN_STATES_OF_CLIENT_MAX);
        assert!(used.all.contains_key(&name(0)) && !used.all.contains_key(&name(1)), "its own oldest goes");
        // Many clients, none of which has as many.
        let from = limits::SIGN_IN_STATES_OF_CLIENT_MAX + 2;
        for n in from..from + limits::SIGN_IN_STATES_MAX - 2 {
            assert!(used.note(name(n), ClientKey::V6(n as u64), 100), "nobody is refused");
        }
        assert_eq!(used.all.len(), limits::SIGN_IN_STATES_MAX);
        assert!(used.all.contains_key(&name(0)) && used.of[&CLIENT].len() == 1, "the largest gave way");
        assert!(
            used.of.len() == used.ranks.len() && used.of.values().map(BTreeSet::len).sum::<usize>() == used.all.len()
        );
        assert!(!used.note(name(0), CLIENT, 100), "it was used, whoever brings it");
    }

    #[test]
    fn a_state_of_someone_else_is_none() {
        let states = States::default();
        let (_, state) = states.begin("id", "http://h/cb".to_owned(), None, 100).unwrap();
        let (_, other) = States::default().begin("id", "http://h/cb".to_owned(), None, 100).unwrap();
        let changed = state.replacen(&state[10..11], if &state[10..11] == "A" { "B" } else { "A" }, 1);
        for wrong in ["", ".", "a.b", &other, &changed, state.split_once('.').unwrap().0] {
            assert!(states.read(wrong, None, false, 100).is_err(), "{wrong}");
        }
        assert!(states.read(&state, None, false, 100).is_ok());
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
            let pending = states.read(&state, None, false, now).unwrap();
            states.use_up(&pending, CLIENT, now).unwrap();
        }
        let used = states.used.lock();
        assert_eq!((used.all.len(), used.of.len(), used.ranks.len()), (1, 1, 1));
        // RFC 7636, appendix B.
        assert_eq!(
            challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
