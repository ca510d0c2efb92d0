//! `[approval]`: which tool calls wait for a person, and how a person decides.

use serde::Serialize;

use super::key::{Key, Table, Word};
use super::reader::{Reader, tool_pattern};
use crate::tool as tools;

/// Seconds that an approval may wait: to 30 days.
const TIMEOUT_SECS: std::ops::RangeInclusive<u64> = 1..=30 * 86_400;
/// Seconds that a correct code may count for: to a day.
const GRACE_SECS: std::ops::RangeInclusive<u64> = 0..=86_400;

/// `[approval]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// Tools whose calls wait for a person, by name or glob; beside those that a manifest names.
    pub require_approval: Vec<Box<str>>,
    /// Seconds that an approval waits; then it is refused.
    pub timeout_secs: u64,
    /// What approving needs beside the key of the API.
    pub second_factor: SecondFactor,
    /// Seconds for which further decisions of the same client need no code after a correct one.
    pub totp_grace_period_secs: u64,
}

/// What approving needs beside the key of the API (spec 3, Authentication, rule 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SecondFactor {
    /// Nothing.
    #[default]
    None,
    /// A code of an authenticator (RFC 6238).
    Totp,
}

impl Word for SecondFactor {
    const WORDS: &'static [(&'static str, Self)] = &[("none", Self::None), ("totp", Self::Totp)];
}

impl Default for Approval {
    fn default() -> Self {
        Self {
            require_approval: Vec::new(),
            timeout_secs: 3_600,
            second_factor: SecondFactor::None,
            totp_grace_period_secs: 0,
        }
    }
}

impl Table for Approval {
    const KEYS: &'static [Key] = &[
        Key::list("require_approval", "[]", "Tools whose calls wait for a person: names or globs such as \"shell_*\".")
            .protected(),
        Key::integer(
            "timeout_secs",
            TIMEOUT_SECS,
            "3600",
            "Seconds after which what nobody decided is refused, 1 to 2592000.",
        )
        .writable(),
        Key::choice::<SecondFactor>(
            "second_factor",
            "\"none\"",
            "none, or totp: approving needs a code of an authenticator.",
        )
        .protected(),
        Key::integer(
            "totp_grace_period_secs",
            GRACE_SECS,
            "0",
            "Seconds for which a client that gave a correct code needs no other, 0 to 86400.",
        )
        .protected(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        let approval = Self {
            require_approval: reader.list("require_approval", tool_pattern).unwrap_or_default(),
            timeout_secs: reader.integer("timeout_secs").unwrap_or(default.timeout_secs),
            second_factor: reader.choice("second_factor").unwrap_or_default(),
            totp_grace_period_secs: reader.integer("totp_grace_period_secs").unwrap_or_default(),
        };
        for pattern in &approval.require_approval {
            // A misspelt name would leave a dangerous tool open without a word.
            if !tools::is_called(pattern) {
                reader.warning("require_approval", format!("matches no built-in tool: {pattern}"));
            }
        }
        approval
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Approval, SecondFactor};
    use crate::config::parse;

    #[test]
    fn all_of_it_is_read() {
        let text = "[approval]\nrequire_approval = [\"shell_exec\", \"file_*\"]\ntimeout_secs = 60\n\
                    second_factor = \"totp\"\ntotp_grace_period_secs = 300\n";
        let loaded = parse(text, Path::new("c")).unwrap();
        let expected = Approval {
            require_approval: vec!["shell_exec".into(), "file_*".into()],
            timeout_secs: 60,
            second_factor: SecondFactor::Totp,
            totp_grace_period_secs: 300,
        };
        assert_eq!(loaded.config.approval, expected);
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, expected) in [
            ("timeout_secs = 0", "c:2:16: approval.timeout_secs: must be 1 to 2592000"),
            ("totp_grace_period_secs = 86401", "approval.totp_grace_period_secs: must be 0 to 86400"),
            ("second_factor = \"sms\"", "approval.second_factor: must be one of `none`, `totp`"),
            ("require_approval = [\"a\", \"\"]", "approval.require_approval: must name a tool"),
            ("require_aproval = []", "did you mean `require_approval`?"),
        ] {
            let error = parse(&format!("[approval]\n{text}\n"), Path::new("c")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_name_of_no_tool_is_a_warning() {
        let loaded = parse("[approval]\nrequire_approval = [\"shell_exe\", \"*\"]\n", Path::new("c")).unwrap();
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("matches no built-in tool: shell_exe"), "{warnings:?}");
    }
}
