//! Codes of an authenticator: RFC 6238 with SHA-1, six digits and steps of 30 seconds, which is what all of them can.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use totp_rs::{Algorithm, Builder, Totp};
use zeroize::Zeroizing;

/// Bytes of a secret, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
/// Seconds that a code counts for.
const STEP_SECS: u64 = 30;
/// Digits of a code.
const DIGITS: u8 = 6;
/// Steps by which the two clocks may differ.
const SKEW_STEPS: u16 = 1;

/// What the authenticator and the daemon share. Wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(Totp);

impl Secret {
    fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        let totp = Builder::new().with_secret(bytes).with_algorithm(Algorithm::SHA1).with_digits(DIGITS);
        let totp = totp.with_step_duration(STEP_SECS).with_skew(SKEW_STEPS).build();
        Self(totp.expect("RFC 6238 allows these parameters"))
    }

    /// A random one.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        getrandom::fill(&mut *bytes)?;
        Ok(Self::new(*bytes))
    }

    /// As people and authenticators take it: RFC 4648 base32 without padding.
    pub(super) fn base32(&self) -> String {
        self.0.secret().to_base32()
    }

    /// As authenticators read it from a picture.
    pub(super) fn uri(&self) -> String {
        let secret = Zeroizing::new(self.base32());
        format!(
            "otpauth://totp/agentsvc:approvals?secret={}&issuer=agentsvc&algorithm=SHA1&digits=6&period=30",
            *secret
        )
    }

    /// The step of `code` when it is the code of the moment `now` or of a step beside it, and later than `after`. A code
    /// that was used up is refused also where the next step happens to have the same.
    pub(super) fn step_of(&self, code: &str, now: u64, after: Option<u64>) -> Option<u64> {
        self.0.check(code, now).filter(|step| after.is_none_or(|after| *step > after))
    }

    /// The code of a step.
    #[cfg(test)]
    pub(super) fn code(&self, step: u64) -> String {
        self.0.generate(step * STEP_SECS).to_string()
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.secret().as_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <[u8; SECRET_BYTES]>::deserialize(deserializer).map(Self::new)
    }
}

/// Six digits, spaces around and within left out; `None` for anything else.
pub(super) fn parse(text: &str) -> Option<String> {
    let code = text.replace(' ', "");
    (code.len() == usize::from(DIGITS) && code.bytes().all(|byte| byte.is_ascii_digit())).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_6238() {
        let secret = Secret::new(*b"12345678901234567890");
        // The last six of the eight digits of appendix B.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000_u64, "353130"),
        ] {
            assert_eq!(secret.code(seconds / STEP_SECS), code, "{seconds}");
        }
    }

    #[test]
    fn the_vectors_of_rfc_4226() {
        let secret = Secret::new(*b"12345678901234567890");
        let codes = "755224 287082 359152 969429 338314 254676 287922 162583 399871 520489";
        for (counter, code) in codes.split(' ').enumerate() {
            assert_eq!(secret.code(counter as u64), code);
        }
    }

    #[test]
    fn it_is_shown_in_base32_and_kept_as_bytes() {
        let bytes = *b"12345678901234567890";
        let secret = Secret::new(bytes);
        assert_eq!(secret.base32(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let kept = serde_json::to_string(&secret).unwrap();
        assert_eq!(kept, serde_json::to_string(&bytes).unwrap());
        assert!(serde_json::from_str::<Secret>(&kept).unwrap() == secret);
        assert!(serde_json::from_str::<Secret>("[1,2,3]").is_err());
    }

    #[test]
    fn a_code_counts_one_step_early_and_late_and_never_again() {
        let secret = Secret::random().unwrap();
        let now = 50_000_000;
        let step = |of: u64, after: Option<u64>| secret.step_of(&secret.code(of), now * STEP_SECS, after);
        for of in [now - 1, now, now + 1] {
            assert!(step(of, None).is_some());
            assert_eq!(step(of, Some(now + 1)), None);
        }
        assert_eq!((step(now - 2, None), step(now + 2, None)), (None, None));
        assert_eq!((step(now, Some(now)), step(now, Some(now - 1))), (None, Some(now)));
    }

    #[test]
    fn six_digits_are_a_code() {
        assert_eq!(parse("123456").as_deref(), Some("123456"));
        assert_eq!(parse(" 123 456 ").as_deref(), Some("123456"));
        for wrong in ["", "12345", "1234567", "12345a", "１２３４５６", "-12345"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
