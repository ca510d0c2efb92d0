//! `[approval]`: which tool calls wait for a person, and how a person decides.

use serde::Serialize;

use crate::kernel::config::{Reader, Word, table};
use crate::tool::config::tool_pattern;
use crate::tool::toolset::built_in;

table! {
    /// `[approval]`.
    #[check(Self::note_unknown)]
    pub struct Approval {
        /// Tools that need approval: names or globs such as "shell_*".
        require_approval: Vec<Box<str>> => list(tool_pattern).protected(),
        /// Seconds until an undecided approval expires, 1 to 2592000.
        timeout_secs: u64 = 3_600 => integer(1..=30 * 86_400).writable(),
        /// none, or totp: approvals need a code of an authenticator app.
        second_factor: SecondFactor => choice(SecondFactor::WORDS).protected(),
        /// Seconds until a key or session at one address needs a new code after a correct one, 0 to 86400.
        totp_grace_period_secs: u64 => integer(0..=86_400).protected(),
    }
}

agentsvc_components::enum_words! {
    /// What approving needs beside the key of the API (spec 3, Authentication, rule 2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SecondFactor [Word] {
        /// Nothing.
        #[default]
        None = "none",
        /// A code of an authenticator (RFC 6238).
        Totp = "totp",
    }
}

impl Approval {
    fn note_unknown(&self, reader: &mut Reader<'_, '_>) {
        for pattern in &self.require_approval {
            // A misspelt name would leave a dangerous tool open without a word.
            if !built_in().is_called(pattern) {
                reader.warning("require_approval", format!("matches no built-in tool: {pattern}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Approval, SecondFactor};
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Approval>, Error> {
        read_table("approval", text)
    }

    #[test]
    fn all_of_it_is_read() {
        let text = "[approval]\nrequire_approval = [\"shell_exec\", \"file_*\"]\ntimeout_secs = 60\n\
                    second_factor = \"totp\"\ntotp_grace_period_secs = 300\n";
        let loaded = parse(text).unwrap();
        let expected = Approval {
            require_approval: vec!["shell_exec".into(), "file_*".into()],
            timeout_secs: 60,
            second_factor: SecondFactor::Totp,
            totp_grace_period_secs: 300,
        };
        assert_eq!(loaded.config, expected);
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
            let error = parse(&format!("[approval]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_name_of_no_tool_is_a_warning() {
        let loaded = parse("[approval]\nrequire_approval = [\"shell_exe\", \"*\"]\n").unwrap();
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("matches no built-in tool: shell_exe"), "{warnings:?}");
    }
}
