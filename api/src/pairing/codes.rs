//! Codes that wait for their devices. In memory only: after a restart one makes a new code.

use std::time::{Duration, Instant};

use agentsvc_components::Actor;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_systems::pairing::limits::{PAIRING_CODES_MAX, PAIRING_TRIES_MAX};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Letters and digits of codes: none that look alike. One byte chooses each without preference.
const LETTERS: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// Letters of a code.
const LENGTH: usize = 8;

/// What a device may do once it is paired, and who said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) role: Role,
    pub(super) user: Option<UserId>,
    pub(super) scopes: Vec<Scope>,
    /// Who asked for the code.
    pub(super) actor: Actor,
}

/// A code that is open.
pub(super) struct Open {
    /// SHA-256 of the code, and of the token that stands for it in a QR code.
    hashes: [[u8; 32]; 2],
    until: Instant,
    wrong: u32,
    pub(super) offer: Offer,
}

/// The codes that are open.
#[derive(Default)]
pub(super) struct Codes(Mutex<Vec<Open>>);

/// What a code that was sent is good for.
pub(super) enum Taken {
    /// It was open, and is no more.
    Open(Open),
    /// It is none, while this many others are open.
    Wrong(usize),
}

impl Codes {
    /// Opens a code. False when too many are open.
    pub(super) fn open(&self, code: &str, token: &str, time: Duration, offer: Offer) -> bool {
        let now = Instant::now();
        let mut open = self.0.lock();
        open.retain(|it| now < it.until);
        if open.len() >= PAIRING_CODES_MAX {
            open.retain(|it| it.wrong < PAIRING_TRIES_MAX);
        }
        if open.len() >= PAIRING_CODES_MAX {
            return false;
        }
        open.push(Open { hashes: [hash(code), hash(token)], until: now + time, wrong: 0, offer });
        true
    }

    /// Takes the code, or its token. A wrong code counts against all that are open: nobody knows which was meant. After too many,
    /// no code is taken any more; tokens are, since nobody guesses one.
    pub(super) fn take(&self, given: &str) -> Taken {
        let (now, given) = (Instant::now(), hash(given));
        let mut open = self.0.lock();
        open.retain(|it| now < it.until);
        let is_it = |it: &Open| {
            let [code, token] = it.hashes.map(|hash| bool::from(hash.ct_eq(&given)));
            token | (code & (it.wrong < PAIRING_TRIES_MAX))
        };
        if let Some(at) = open.iter().position(is_it) {
            return Taken::Open(open.swap_remove(at));
        }
        let mut count = 0;
        for it in open.iter_mut().filter(|it| it.wrong < PAIRING_TRIES_MAX) {
            (it.wrong, count) = (it.wrong + 1, count + 1);
        }
        Taken::Wrong(count)
    }

    /// Puts a code back for which no device was paired.
    pub(super) fn put_back(&self, it: Open) {
        let mut open = self.0.lock();
        if open.len() < PAIRING_CODES_MAX {
            open.push(it);
        }
    }
}

/// A code for people, such as `7KQM-2XYZ`, of random bytes.
pub(super) fn code(random: [u8; 32]) -> String {
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    let mut code: String = random.iter().take(LENGTH).map(letter).collect();
    code.insert(LENGTH / 2, '-');
    code
}

/// Of a code as people write it: capitals or not, with or without the dash. A token has small letters and digits alone.
fn hash(text: &str) -> [u8; 32] {
    let letters = text.chars().filter(|it| !it.is_whitespace() && *it != '-');
    let text: String = letters.flat_map(char::to_uppercase).collect();
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        Offer { role: Role::Admin, user: None, scopes: Vec::new(), actor: Actor::Api }
    }

    fn is_open(codes: &Codes, given: &str) -> bool {
        matches!(codes.take(given), Taken::Open(_))
    }

    const LONG: Duration = Duration::from_secs(300);

    #[test]
    fn a_code_is_good_once_however_it_is_written() {
        let codes = Codes::default();
        for given in ["ABCD-2345", "abcd2345", " ab cd-23 45 ", "f00d"] {
            assert!(codes.open("ABCD-2345", "f00d", LONG, offer()));
            assert!(is_open(&codes, given) && !is_open(&codes, given), "{given}");
        }
        assert!(!is_open(&codes, ""));
    }

    #[test]
    fn five_wrong_codes_end_those_that_are_open() {
        let codes = Codes::default();
        assert!(codes.open("AAAA-AAAA", "a1", LONG, offer()));
        for _ in 1..PAIRING_TRIES_MAX {
            assert!(matches!(codes.take("WRONG"), Taken::Wrong(1)));
        }
        assert!(codes.open("BBBB-BBBB", "b1", LONG, offer()));
        assert!(matches!(codes.take("WRONG"), Taken::Wrong(2)));
        assert!(!is_open(&codes, "AAAA-AAAA") && is_open(&codes, "BBBB-BBBB"));
        assert!(matches!(codes.take("WRONG"), Taken::Wrong(0)));
        assert!(is_open(&codes, "a1"), "the token of its QR code is still good");
        assert!(!is_open(&codes, "a1"));
    }

    #[test]
    fn codes_expire_and_are_few() {
        let codes = Codes::default();
        assert!(codes.open("AAAA-AAAA", "a1", Duration::ZERO, offer()));
        assert!(!is_open(&codes, "AAAA-AAAA"));
        for at in 0..PAIRING_CODES_MAX {
            assert!(codes.open(&format!("AAAA-AAA{at}"), "t", LONG, offer()));
        }
        assert!(!codes.open("BBBB-BBBB", "b1", LONG, offer()));
        let Taken::Open(taken) = codes.take("AAAA-AAA2") else { panic!("it is open") };
        codes.put_back(taken);
        assert!(is_open(&codes, "AAAA-AAA2"));
    }

    #[test]
    fn a_code_has_letters_that_look_like_no_others() {
        let mut random = [0; 32];
        random[..8].copy_from_slice(&[0, 31, 32, 255, 8, 9, 10, 11]);
        assert_eq!(code(random), "2Z2Z-ABCD");
    }
}
