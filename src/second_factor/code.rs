//! Codes of an authenticator: RFC 6238 with SHA-1, six digits and steps of 30 seconds, which is what all of them can.

use ring::hmac;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of a secret, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
/// Seconds that a code counts for.
pub(super) const STEP_SECS: u64 = 30;
/// Digits of a code.
const DIGITS: usize = 6;
/// Steps by which the two clocks may differ.
const SKEW_STEPS: u64 = 1;

/// What the authenticator and the daemon share. Wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(Zeroizing<[u8; SECRET_BYTES]>);

impl Secret {
    /// A random one.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        getrandom::fill(&mut *bytes)?;
        Ok(Self(bytes))
    }

    /// As people and authenticators take it: RFC 4648 base32 without padding.
    pub(super) fn base32(&self) -> String {
        base32(&*self.0)
    }

    /// As authenticators read it from a picture.
    pub(super) fn uri(&self) -> String {
        let secret = Zeroizing::new(self.base32());
        format!(
            "otpauth://totp/agentsvc:approvals?secret={}&issuer=agentsvc&algorithm=SHA1&digits=6&period=30",
            *secret
        )
    }

    /// The code of a step.
    pub(super) fn code(&self, step: u64) -> [u8; DIGITS] {
        digits(&*self.0, step)
    }

    /// The step of `code`, when it is the one of `now` or of a step beside it, and later than `after`.
    pub(super) fn step_of(&self, code: &[u8; DIGITS], now: u64, after: Option<u64>) -> Option<u64> {
        let steps = now.saturating_sub(SKEW_STEPS)..=now.saturating_add(SKEW_STEPS);
        let mut found = None;
        // Every step is looked at, whichever matches: the time tells nothing.
        for step in steps {
            let is_same = bool::from(self.code(step).ct_eq(code));
            if is_same && after.is_none_or(|after| step > after) && found.is_none() {
                found = Some(step);
            }
        }
        found
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <[u8; SECRET_BYTES]>::deserialize(deserializer).map(|bytes| Self(Zeroizing::new(bytes)))
    }
}

/// Six digits, spaces around and within left out; `None` for anything else.
pub(super) fn parse(text: &str) -> Option<[u8; DIGITS]> {
    let mut code = [0; DIGITS];
    let mut digits = text.bytes().filter(|byte| *byte != b' ');
    for place in &mut code {
        *place = digits.next().filter(u8::is_ascii_digit)?;
    }
    digits.next().is_none().then_some(code)
}

/// RFC 4226, 5.3: HOTP of `counter`.
fn digits(secret: &[u8], counter: u64) -> [u8; DIGITS] {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let proof = hmac::sign(&key, &counter.to_be_bytes());
    let proof = proof.as_ref();
    let at = usize::from(proof[proof.len() - 1] & 0x0f);
    let word = u32::from_be_bytes([proof[at] & 0x7f, proof[at + 1], proof[at + 2], proof[at + 3]]);
    let mut rest = word % 1_000_000;
    let mut code = [b'0'; DIGITS];
    for place in code.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    code
}

/// RFC 4648 base32 without padding.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in bytes {
        bits = (bits << 8) | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            text.push(char::from(LETTERS[(bits >> held) as usize & 31]));
        }
        bits &= (1 << held) - 1;
    }
    if held > 0 {
        text.push(char::from(LETTERS[(bits << (5 - held)) as usize & 31]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_6238() {
        let secret = Secret(Zeroizing::new(*b"12345678901234567890"));
        // The last six of the eight digits of appendix B.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000_u64, "353130"),
        ] {
            assert_eq!(secret.code(seconds / STEP_SECS), code.as_bytes(), "{seconds}");
        }
    }

    #[test]
    fn the_vectors_of_rfc_4226() {
        let codes = "755224 287082 359152 969429 338314 254676 287922 162583 399871 520489";
        for (counter, code) in codes.split(' ').enumerate() {
            assert_eq!(digits(b"12345678901234567890", counter as u64), code.as_bytes());
        }
    }

    #[test]
    fn the_vectors_of_rfc_4648() {
        let vectors =
            [("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB")];
        for (bytes, text) in vectors.into_iter().chain([("foobar", "MZXW6YTBOI")]) {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
        let secret = Secret(Zeroizing::new(*b"12345678901234567890"));
        assert_eq!(secret.base32(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn a_code_counts_one_step_early_and_late_and_never_again() {
        let secret = Secret::random().unwrap();
        let now = 50_000_000;
        let step = |of: u64, after: Option<u64>| secret.step_of(&secret.code(of), now, after);
        for of in [now - 1, now, now + 1] {
            assert!(step(of, None).is_some());
            assert_eq!(step(of, Some(now + 1)), None);
        }
        assert_eq!((step(now - 2, None), step(now + 2, None)), (None, None));
        assert_eq!((step(now, Some(now)), step(now, Some(now - 1))), (None, Some(now)));
    }

    #[test]
    fn six_digits_are_a_code() {
        assert_eq!(parse("123456").as_ref(), Some(b"123456"));
        assert_eq!(parse(" 123 456 ").as_ref(), Some(b"123456"));
        for wrong in ["", "12345", "1234567", "12345a", "１２３４５６", "-12345"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
