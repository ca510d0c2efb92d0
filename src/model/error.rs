//! Why one try of a model call failed, and whether another is worth it.

use agentsvc_components::turn::outcome::{FailureCode, ModelFailure};
use std::time::Duration;

/// Bytes of a provider's own words in a message of ours.
const PROVIDER_WORDS_BYTES_MAX: usize = 300;
/// How the keys of well-known providers begin.
const KEY_BEGINNINGS: &[&str] = &["sk-", "gsk_", "xai-", "fw_", "key-", "tgp_", "Bearer", "AKIA", "ASIA", "ABSK"];

/// One failed try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The class.
    pub code: FailureCode,
    /// One sentence for people; holds no secrets.
    pub message: String,
    /// Another try may succeed, as long as nothing of the answer was given out.
    pub retryable: bool,
    /// How long the provider asks to be left alone.
    pub retry_after: Option<Duration>,
}

impl CallError {
    /// A failure that another try cannot mend.
    pub fn last(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, retry_after: None }
    }

    /// A failure that may pass.
    pub fn passing(code: FailureCode, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::last(code, message) }
    }

    /// What the world is told.
    pub fn into_failure(self) -> ModelFailure {
        ModelFailure { code: self.code, message: self.message, spent: Vec::new() }
    }
}

/// A provider's own words, fit to be shown: one line, short, without `key` and without what looks like a key.
pub fn provider_words(text: &str, key: Option<&str>) -> String {
    let without_key = match key {
        Some(key) if !key.is_empty() => text.replace(key, "***"),
        _ => text.to_owned(),
    };
    let mut line = String::with_capacity(without_key.len().min(PROVIDER_WORDS_BYTES_MAX + 8));
    for word in without_key.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(if looks_like_key(word) { "***" } else { word });
        if line.len() > PROVIDER_WORDS_BYTES_MAX {
            line.truncate(line.floor_char_boundary(PROVIDER_WORDS_BYTES_MAX));
            line.push('…');
            break;
        }
    }
    line
}

fn looks_like_key(word: &str) -> bool {
    let bare = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    bare.len() >= 8 && KEY_BEGINNINGS.iter().any(|beginning| bare.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::provider_words;

    #[test]
    fn words_are_one_short_line_without_keys() {
        assert_eq!(provider_words(" Bad\n\tthing \u{7} here ", None), "Bad thing here");
        assert_eq!(provider_words("Incorrect key: hunter2hunter2.", Some("hunter2hunter2")), "Incorrect key: ***.");
        assert_eq!(
            provider_words("Incorrect API key provided: sk-abcd****wxyz. Sorry", None),
            "Incorrect API key provided: *** Sorry"
        );
        assert_eq!(provider_words("got 'gsk_0123456789'", Some("")), "got ***");
        let long = provider_words(&"word ".repeat(500), None);
        assert!(long.len() <= 304 && long.ends_with('…'), "{long}");
        let dense = provider_words(&"\u{4e2d}".repeat(500), None);
        assert!(dense.len() <= 304 && dense.ends_with('…'));
    }
}
