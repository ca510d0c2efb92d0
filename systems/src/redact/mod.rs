//! The privacy redactor: takes secrets and personal data out of text before it leaves the daemon
//! (spec 1, Trajectory: "every message passes the privacy redactor").
//!
//! | kind | what is found |
//! |------|---------------|
//! | `api_key` | `sk-`, `sk-proj-`, `sk-ant-`, `sk_live_`, `AIza`, `hf_`, `glpat-`, `npm_` keys |
//! | `aws_key` | `AKIA` and `ASIA` access key ids |
//! | `github_token` | `ghp_`, `gho_`, `ghu_`, `ghs_`, `ghr_`, `github_pat_` |
//! | `slack_token` | `xoxb-`, `xoxa-`, `xoxp-`, `xoxe-`, `xoxs-`, `xoxr-`, `xapp-` |
//! | `jwt` | `eyJ...` with two parts or more |
//! | `bearer` | the value after `Bearer` |
//! | `authorization` | the value of an `Authorization` header |
//! | `private_key` | PEM blocks of private keys, cut-off ones too |
//! | `secret` | what is assigned to a key, password, secret or token, in text or JSON |
//! | `email` | addresses |
//! | `phone` | international numbers, national ones in their usual groups, and digits that are called a phone number |
//! | `card` | 13 to 19 digits in card groups, of a card network's prefix, with a right check digit |
//!
//! Each is replaced by `[redacted:<kind>]`. Redacting twice changes nothing more. Time is linear in the length:
//! hand-written scanners, each of which looks at a byte a bounded number of times. Text that is JSON as a whole stays
//! valid JSON, with everything that holds no secret exactly as it was; so does JSON within its strings.

mod assign;
mod json;
mod number;
mod plain;
mod token;

use crate::kernel::domain::Domain;
use std::borrow::Cow;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { uses: &[], ..Domain::named("redact") };

/// JSON within strings of JSON is taken apart so deep; what is deeper is read as text.
const JSON_LEVELS: u8 = 8;

/// What was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ApiKey,
    AwsKey,
    GithubToken,
    SlackToken,
    Jwt,
    Bearer,
    Authorization,
    PrivateKey,
    Secret,
    Email,
    Phone,
    Card,
}

impl Kind {
    /// What stands in its place.
    const fn mark(self) -> &'static str {
        match self {
            Self::ApiKey => "[redacted:api_key]",
            Self::AwsKey => "[redacted:aws_key]",
            Self::GithubToken => "[redacted:github_token]",
            Self::SlackToken => "[redacted:slack_token]",
            Self::Jwt => "[redacted:jwt]",
            Self::Bearer => "[redacted:bearer]",
            Self::Authorization => "[redacted:authorization]",
            Self::PrivateKey => "[redacted:private_key]",
            Self::Secret => "[redacted:secret]",
            Self::Email => "[redacted:email]",
            Self::Phone => "[redacted:phone]",
            Self::Card => "[redacted:card]",
        }
    }
}

/// The longest mark, so that looking for one is bounded.
const MARK_BYTES_MAX: usize = 40;

/// The end of a mark that begins at `at`, ours or another release's; `None` when there is none.
fn mark_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?.strip_prefix(b"[redacted:")?;
    let name = rest.iter().take(MARK_BYTES_MAX).take_while(|b| b.is_ascii_lowercase() || **b == b'_').count();
    (name > 0 && rest.get(name) == Some(&b']')).then(|| at + b"[redacted:".len() + name + 1)
}

/// How often one text is looked at.
const PASSES_MAX: usize = 8;

/// `text` without secrets and personal data; borrowed when there was nothing to take out.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    // What was taken out may have hidden its neighbour: a number that touched a key stands alone behind it. So what
    // changed is looked at again; each time there is less to find.
    let mut redacted = at_level(text, JSON_LEVELS);
    for _ in 1..PASSES_MAX {
        let Cow::Owned(before) = &redacted else { break };
        let again = at_level(before, JSON_LEVELS);
        if again == before.as_str() {
            break;
        }
        redacted = Cow::Owned(again.into_owned());
    }
    redacted
}

/// Does `text` hold what looks like a secret? Personal data is none.
#[must_use]
pub fn holds_secret(text: &str) -> bool {
    let Cow::Owned(redacted) = redact(text) else { return false };
    let marks = |kind: Kind| redacted.matches(kind.mark()).count() > text.matches(kind.mark()).count();
    SECRETS.into_iter().any(marks)
}

/// The kinds that are secrets.
const SECRETS: [Kind; 9] = [
    Kind::ApiKey,
    Kind::AwsKey,
    Kind::GithubToken,
    Kind::SlackToken,
    Kind::Jwt,
    Kind::Bearer,
    Kind::Authorization,
    Kind::PrivateKey,
    Kind::Secret,
];

/// As [`redact`], taking apart JSON within JSON `levels` deep.
fn at_level(text: &str, levels: u8) -> Cow<'_, str> {
    if let Some(level) = levels.checked_sub(1)
        && json::is_document(text)
    {
        return json::redact(text, level);
    }
    plain::redact(text)
}

#[cfg(test)]
mod tests;
