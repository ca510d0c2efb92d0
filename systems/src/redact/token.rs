//! Things that are secret by their form: keys with a known beginning, JWTs, bearer values, private keys.

use super::Kind;
use super::plain::{Span, is_name, run};

/// A family of keys: how they begin, what they are made of and how many bytes must follow.
struct Family {
    prefix: &'static [u8],
    kind: Kind,
    class: fn(u8) -> bool,
    /// So many bytes behind the prefix are a key whatever they are.
    sure: usize,
    /// So many are one when a digit is among them.
    likely: usize,
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

const fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

const fn family(prefix: &'static [u8], kind: Kind, class: fn(u8) -> bool, sure: usize, likely: usize) -> Family {
    Family { prefix, kind, class, sure, likely }
}

/// All families. `sk-` covers `sk-proj-` and `sk-ant-`.
const FAMILIES: &[Family] = &[
    family(b"sk-", Kind::ApiKey, is_name, 20, 8),
    family(b"sk_live_", Kind::ApiKey, is_word, 16, 8),
    family(b"sk_test_", Kind::ApiKey, is_word, 16, 8),
    family(b"rk_live_", Kind::ApiKey, is_word, 16, 8),
    family(b"AIza", Kind::ApiKey, is_name, 30, 20),
    family(b"hf_", Kind::ApiKey, is_alnum, 30, 16),
    family(b"glpat-", Kind::ApiKey, is_name, 20, 16),
    family(b"npm_", Kind::ApiKey, is_alnum, 36, 30),
    family(b"AKIA", Kind::AwsKey, is_upper, 16, 12),
    family(b"ASIA", Kind::AwsKey, is_upper, 16, 12),
    family(b"ghp_", Kind::GithubToken, is_alnum, 20, 10),
    family(b"gho_", Kind::GithubToken, is_alnum, 20, 10),
    family(b"ghu_", Kind::GithubToken, is_alnum, 20, 10),
    family(b"ghs_", Kind::GithubToken, is_alnum, 20, 10),
    family(b"ghr_", Kind::GithubToken, is_alnum, 20, 10),
    family(b"github_pat_", Kind::GithubToken, is_word, 20, 10),
    family(b"xoxb-", Kind::SlackToken, is_name, 16, 8),
    family(b"xoxa-", Kind::SlackToken, is_name, 16, 8),
    family(b"xoxp-", Kind::SlackToken, is_name, 16, 8),
    family(b"xoxe-", Kind::SlackToken, is_name, 16, 8),
    family(b"xoxs-", Kind::SlackToken, is_name, 16, 8),
    family(b"xoxr-", Kind::SlackToken, is_name, 16, 8),
    family(b"xapp-", Kind::SlackToken, is_name, 16, 8),
];

/// The key that begins at `at`.
pub(super) fn key(text: &[u8], at: usize) -> Option<Span> {
    let rest = &text[at..];
    // Two bytes decide almost always.
    let family = FAMILIES.iter().find(|family| rest.starts_with(family.prefix))?;
    let from = at + family.prefix.len();
    let length = run(text, from, family.class);
    let digit = || text[from..from + length].iter().any(u8::is_ascii_digit);
    let is_key = length >= family.sure || length >= family.likely && digit();
    is_key.then(|| Span::new(at, from + length, family.kind))
}

/// The JSON Web Token that begins at `at`: `eyJ` (a brace and a quote in base64) and at least one more part.
pub(super) fn jwt(text: &[u8], at: usize) -> Option<Span> {
    const PART_BYTES_MIN: usize = 8;
    if !text[at..].starts_with(b"eyJ") {
        return None;
    }
    let mut end = at + run(text, at, is_name);
    if end - at < PART_BYTES_MIN {
        return None;
    }
    let mut parts = 1;
    // Five parts when it is encrypted; the last of a token without a signature is empty.
    while parts < 5 && text.get(end) == Some(&b'.') {
        let length = run(text, end + 1, is_name);
        if length < PART_BYTES_MIN && parts == 1 {
            return None;
        }
        if length == 0 {
            break;
        }
        (end, parts) = (end + 1 + length, parts + 1);
    }
    (parts > 1).then(|| Span::new(at, end, Kind::Jwt))
}

/// The value after the name `Bearer`, which ends at `name_end`.
pub(super) fn bearer(text: &[u8], name: &[u8], name_end: usize) -> Option<Span> {
    if !name.eq_ignore_ascii_case(b"bearer") {
        return None;
    }
    let start = name_end + run(text, name_end, |byte| byte == b' ' || byte == b'\t');
    if start == name_end {
        return None;
    }
    let length = run(text, start, |byte| is_name(byte) || b".~+/=".contains(&byte));
    let value = &text[start..start + length];
    let stop = value.iter().rev().take_while(|byte| **byte == b'.').count();
    let value = &value[..length - stop];
    // `bearer of news` is none.
    let odd = value.iter().any(|byte| byte.is_ascii_digit() || b"._~+/=-".contains(byte));
    let mixed = value.iter().skip(1).any(u8::is_ascii_uppercase);
    let is_secret = value.len() >= 16 || value.len() >= 6 && (odd || mixed);
    is_secret.then(|| Span::new(start, start + value.len(), Kind::Bearer))
}

/// The block of a private key at `at`, where `-----BEGIN ` stands. One that is cut off ends where base64 does.
pub(super) fn private_key(text: &[u8], at: usize) -> Option<Span> {
    const TITLE_BYTES_MAX: usize = 64;
    let from = at + b"-----BEGIN ".len();
    let title = run(text, from, |byte| byte.is_ascii_uppercase() || byte == b' ' || byte.is_ascii_digit());
    let is_private = title <= TITLE_BYTES_MAX && text[from..from + title].ends_with(b"PRIVATE KEY");
    if !is_private {
        return None;
    }
    let mut end = from + title;
    end += run(text, end, |byte| byte == b'-').min(5);
    loop {
        let rest = &text[end..];
        match rest.first() {
            Some(b'-') if rest.starts_with(b"-----END ") => {
                let title = run(rest, 9, |byte| byte.is_ascii_uppercase() || byte == b' ' || byte.is_ascii_digit());
                let dashes = run(rest, 9 + title, |byte| byte == b'-').min(5);
                return Some(Span::new(at, end + 9 + title + dashes, Kind::PrivateKey));
            }
            Some(b'-') if rest.starts_with(b"-----") => break,
            Some(b'\\') => {
                // A line break of a quoted text, escaped once or more.
                let slashes = run(rest, 0, |byte| byte == b'\\');
                if !matches!(rest.get(slashes), Some(b'n' | b'r' | b't')) {
                    break;
                }
                end += slashes + 1;
            }
            Some(byte) if byte.is_ascii_alphanumeric() || b"+/=-:,. \t\r\n".contains(byte) => end += 1,
            _ => break,
        }
    }
    while matches!(text[end - 1], b' ' | b'\t' | b'\r' | b'\n') {
        end -= 1;
    }
    Some(Span::new(at, end, Kind::PrivateKey))
}
