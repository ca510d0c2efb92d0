//! The secrets that this process knows. No log line holds one: each is replaced wherever it stands, also as JSON and
//! URLs write it.
//!
//! Whoever reads a secret from a file, the environment or the vault adds it: `known_secrets().add(&key)`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use percent_encoding::utf8_percent_encode;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::kernel::percent::NOT_UNRESERVED;

/// Shorter texts are not worth hiding and would hide ordinary words.
const SECRET_BYTES_MIN: usize = 6;
/// Secrets that are known at most. More: the oldest are forgotten, and only their shape may still give them away.
const SECRETS_MAX: usize = 1_024;
/// What stands in place of a secret.
const MASK: &str = "***";

static KNOWN: LazyLock<Arc<KnownSecrets>> = LazyLock::new(Arc::default);

/// The secrets of this process.
pub fn known_secrets() -> &'static Arc<KnownSecrets> {
    &KNOWN
}

/// Secrets, wiped when they go.
#[derive(Default)]
pub struct KnownSecrets(RwLock<Vec<Known>>);

/// A secret, and how many were known before it.
struct Known {
    number: u64,
    text: Zeroizing<Box<str>>,
}

// Each of them wipes itself.
impl ZeroizeOnDrop for KnownSecrets {}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KnownSecrets({})", self.0.read().len())
    }
}

impl KnownSecrets {
    /// From now on no line holds `secret`. One that is known already, or shorter than 6 bytes, changes nothing.
    pub fn add(&self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SECRET_BYTES_MIN {
            return;
        }
        let mut known = self.0.write();
        let json = as_json(secret);
        // The debug form of an error stands in JSON with its escapes escaped again.
        for form in [Zeroizing::new(Box::from(secret)), as_json(&json), json, as_url(secret)] {
            if known.iter().any(|other| *other.text == *form) {
                continue;
            }
            let oldest = (0..known.len()).min_by_key(|at| known[*at].number);
            let number = known.iter().map(|other| other.number + 1).max().unwrap_or(0);
            if let Some(oldest) = oldest.filter(|_| known.len() >= SECRETS_MAX) {
                known.remove(oldest);
            }
            known.push(Known { number, text: form });
        }
        // A secret that holds another one is looked for first.
        known.sort_by_key(|secret| std::cmp::Reverse(secret.text.len()));
    }

    /// `secret` is no longer in use, so that it does not push others out.
    pub fn forget(&self, secret: &str) {
        let secret = secret.trim();
        let json = as_json(secret);
        let forms = [Zeroizing::new(Box::from(secret)), as_json(&json), json, as_url(secret)];
        self.0.write().retain(|known| forms.iter().all(|form| **form != *known.text));
    }

    /// `line` without the secrets; borrowed when it holds none.
    pub fn mask<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let mut line = Cow::Borrowed(line);
        for secret in self.0.read().iter() {
            if line.contains(&**secret.text) {
                line = Cow::Owned(line.replace(&**secret.text, MASK));
            }
        }
        line
    }
}

/// As it stands within a string of JSON.
fn as_json(secret: &str) -> Zeroizing<Box<str>> {
    let quoted = Zeroizing::new(serde_json::Value::from(secret).to_string());
    Zeroizing::new(quoted[1..quoted.len() - 1].into())
}

/// As it stands in a URL.
fn as_url(secret: &str) -> Zeroizing<Box<str>> {
    let mut coded = Zeroizing::new(String::with_capacity(secret.len() * 3));
    coded.extend(utf8_percent_encode(secret, NOT_UNRESERVED));
    Zeroizing::new(coded.as_str().into())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{KnownSecrets, SECRETS_MAX};

    #[test]
    fn secrets_are_masked_however_they_are_written() {
        let known = KnownSecrets::default();
        for secret in ["hunter2", " pass\"word\\1 ", "a b/c+d=e", "short", "hunter2-and-more", "hunter2"] {
            known.add(secret);
        }
        for (line, expected) in [
            ("the key hunter2 is wrong", "the key *** is wrong"),
            ("hunter2-and-more", "***"),
            (r#"{"error":"pass\"word\\1"}"#, r#"{"error":"***"}"#),
            (r#"{"error":"E(\"pass\\\"word\\\\1\")"}"#, r#"{"error":"E(\"***\")"}"#),
            ("GET /?k=a%20b%2Fc%2Bd%3De&x", "GET /?k=***&x"),
            ("a short line", "a short line"),
        ] {
            assert_eq!(known.mask(line), expected);
        }
        assert!(matches!(known.mask("nothing here"), Cow::Borrowed(_)));
        assert!(!format!("{known:?}").contains("hunter2"));
        known.forget("pass\"word\\1");
        assert_eq!(known.mask(r#"pass"word\1 pass\"word\\1 hunter2"#), r#"pass"word\1 pass\"word\\1 ***"#);
    }

    #[test]
    fn their_number_is_bounded() {
        let known = KnownSecrets::default();
        for number in 0..SECRETS_MAX + 10 {
            known.add(&format!("secret-{number:06}"));
        }
        assert_eq!(known.0.read().len(), SECRETS_MAX);
    }

    /// Fails to compile when a secret is not wiped.
    #[test]
    fn each_is_wiped() {
        fn wiped<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        KnownSecrets::default().0.read().iter().for_each(|known| wiped(&known.text));
    }
}
