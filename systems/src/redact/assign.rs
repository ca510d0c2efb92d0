//! Assignments: `password=...`, `"api_key": "..."`, `Authorization: ...`.

use super::plain::{Span, run};
use super::{Kind, mark_end};

/// Bytes of a name that is looked at; longer ones are no names.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a value that are kept: too short to be worth hiding, or a word such as `yes`.
const SHORT: usize = 3;

/// How names of secrets end, in lower case and without `_` and `-`.
const SECRETS: &[&str] = &[
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "credential",
    "credentials",
    "authkey",
];
/// How names of secrets end whose value may be a number.
const NUMERIC: &[&str] = &["password", "passwd", "passcode", "pwd", "secret"];
/// Names of headers whose value is a secret as a whole.
const HEADERS: &[&str] = &["authorization", "proxyauthorization"];
/// Names that say that a phone number follows.
const PHONES: &[&str] =
    &["phone", "tel", "telephone", "mobile", "cell", "cellphone", "fax", "whatsapp", "sms", "phonenumber", "telefon"];

/// A name in lower case without what joins its parts.
struct Folded([u8; NAME_BYTES_MAX], usize);

impl Folded {
    fn of(name: &[u8]) -> Option<Self> {
        // A name that holds a mark is ours.
        if name.len() > NAME_BYTES_MAX || name.contains(&b'[') {
            return None;
        }
        let mut folded = Self([0; NAME_BYTES_MAX], 0);
        for byte in name.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
            folded.0[folded.1] = byte.to_ascii_lowercase();
            folded.1 += 1;
        }
        Some(folded)
    }

    fn text(&self) -> &[u8] {
        &self.0[..self.1]
    }

    fn ends(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.text().ends_with(ending.as_bytes()))
    }

    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.text() == name.as_bytes())
    }
}

/// Does a number follow that is a phone number?
pub(super) fn is_phone_name(name: &[u8]) -> bool {
    Folded::of(name).is_some_and(|name| name.is(PHONES) || name.ends(&["phonenumber", "mobilenumber"]))
}

/// What a value under this name is, when it is a secret.
pub(super) fn kind_of(name: &[u8]) -> Option<Kind> {
    let name = Folded::of(name)?;
    if name.is(HEADERS) { Some(Kind::Authorization) } else { name.ends(SECRETS).then_some(Kind::Secret) }
}

/// Is `value`, under a name of secrets, one? Numbers are so only for passwords.
pub(super) fn is_secret(name: &[u8], value: &[u8]) -> bool {
    if value.len() <= SHORT || mark_end(value, 0).is_some() {
        return false;
    }
    let word = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    if word(&["true", "false", "null", "none", "undefined"]) {
        return false;
    }
    !value.iter().all(u8::is_ascii_digit) || Folded::of(name).is_some_and(|name| name.ends(NUMERIC))
}

/// The secret that is assigned to `name`, which ends at `name_end`. To a `flag`, such as `--password`, a blank assigns.
pub(super) fn value(text: &[u8], name: &[u8], name_end: usize, flag: bool) -> Option<Span> {
    let kind = kind_of(name)?;
    let key_quote = Quote::at(text, name_end);
    let after_key = key_quote.map_or(name_end, |quote| quote.end);
    let blank = || run(text, name_end, |byte| byte == b' ');
    let start = match separator_end(text, after_key) {
        Some(start) => start,
        None if flag && blank() > 0 && text.get(name_end + blank()) != Some(&b'-') => name_end + blank(),
        None => return None,
    };
    if let Some(quote) = Quote::at(text, start) {
        let end = quote.close(text);
        return is_secret(name, &text[quote.end..end]).then(|| Span::new(quote.end, end, kind));
    }
    let end = if kind == Kind::Authorization { header_end(text, start) } else { start + run(text, start, is_bare) };
    let value = &text[start..end];
    if !is_secret(name, value) {
        return None;
    }
    // `the password is hunter2` tells it, `the password is required` does not.
    let spoken = start > after_key && text[after_key..start].iter().any(|byte| byte.eq_ignore_ascii_case(&b's'));
    if spoken && value.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let is_number = value.iter().all(u8::is_ascii_digit);
    let quote = key_quote.filter(|_| is_number).map(|quote| (quote.start, quote.end));
    Some(Span { quote, ..Span::new(start, end, kind) })
}

/// The password in `://user:password@`, where `://` stands at `at`.
pub(super) fn url_password(text: &[u8], at: usize) -> Option<Span> {
    let from = at + b"://".len();
    let length = run(text, from, |byte| byte.is_ascii_graphic() && !b"/@?#\"'`<>\\[]".contains(&byte));
    if text.get(from + length) != Some(&b'@') {
        return None;
    }
    let user = run(text, from, |byte| byte != b':');
    (user + 1 < length).then(|| Span::new(from + user + 1, from + length, Kind::Secret))
}

/// What a value without quotes is made of.
const fn is_bare(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
        && !matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b',' | b';' | b'&' | b'<' | b'>')
        && !matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}')
}

/// The end of a header's value: a scheme and its token, or one token.
fn header_end(text: &[u8], start: usize) -> usize {
    let word = start + run(text, start, is_bare);
    let scheme = &text[start..word];
    let blank = run(text, word, |byte| byte == b' ');
    let known = [&b"basic"[..], b"bearer", b"token", b"bot", b"apikey", b"negotiate"];
    if blank > 0 && known.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return word + blank + run(text, word + blank, is_bare);
    }
    let long = [&b"digest"[..], b"aws4-hmac-sha256", b"oauth", b"hawk"];
    if blank > 0 && long.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return start + run(text, start, |byte| !matches!(byte, b'\r' | b'\n' | b'\\' | b'\'' | b'[' | b'{' | b'}'));
    }
    word
}

/// The start of the value behind `:`, `=`, `:=`, `=>` or a spoken `is`.
fn separator_end(text: &[u8], at: usize) -> Option<usize> {
    let blank = |at: usize| at + run(text, at, |byte| byte == b' ' || byte == b'\t');
    let sign = blank(at);
    let length = run(text, sign, |byte| matches!(byte, b':' | b'=' | b'>'));
    if length > 0 {
        return (length <= 2 && text[sign] != b'>').then(|| blank(sign + length));
    }
    let spoken = sign > at && text.get(sign..sign + 3).is_some_and(|word| word.eq_ignore_ascii_case(b"is "));
    spoken.then(|| blank(sign + 3))
}

/// A quote as it stands in the text: with the backslashes of the strings that it stands in.
#[derive(Clone, Copy)]
struct Quote {
    start: usize,
    /// Behind the quote itself.
    end: usize,
    mark: u8,
    slashes: usize,
}

impl Quote {
    fn at(text: &[u8], start: usize) -> Option<Self> {
        let slashes = run(text, start, |byte| byte == b'\\');
        let mark = *text.get(start + slashes)?;
        matches!(mark, b'"' | b'\'' | b'`').then_some(Self { start, end: start + slashes + 1, mark, slashes })
    }

    /// Where the quoted text ends: before the same quote, before a quote of a string around it, or at the end of the
    /// line. A quote with more backslashes is a part of it.
    fn close(&self, text: &[u8]) -> usize {
        let mut at = self.end;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'\n' => return at,
                b'\\' => {
                    let slashes = run(text, at, |byte| byte == b'\\');
                    if text.get(at + slashes) != Some(&self.mark) {
                        // An escape of another kind: it stays whole.
                        at += slashes;
                        continue;
                    }
                    let unit = 2 * (self.slashes + 1);
                    match slashes % unit {
                        own if own == self.slashes => return at + slashes - self.slashes,
                        deeper if deeper == unit - 1 => at += slashes + 1,
                        _ => return at,
                    }
                }
                _ if byte == self.mark => return at,
                _ => at += 1,
            }
        }
        at
    }
}
