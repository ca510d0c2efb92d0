//! Text that is JSON as a whole: strings are read, redacted and written again; everything else stays as it stands.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::{Kind, assign, at_level, number, plain};

/// Is `text` an object or array as a whole?
pub(super) fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// `text`, which is JSON, without secrets. Strings that are JSON themselves are taken apart `levels` deep.
pub(super) fn redact(text: &str, levels: u8) -> Cow<'_, str> {
    let mut rewrite = Rewrite { text, levels, at: 0, copied: 0, name: None, redacted: String::new() };
    rewrite.run();
    if rewrite.copied == 0 {
        return Cow::Borrowed(text);
    }
    rewrite.redacted.push_str(&text[rewrite.copied..]);
    Cow::Owned(rewrite.redacted)
}

/// One walk over the tokens of a document.
struct Rewrite<'a> {
    text: &'a str,
    levels: u8,
    at: usize,
    /// The text up to here is in `redacted`.
    copied: usize,
    /// The key whose value comes next.
    name: Option<String>,
    redacted: String,
}

impl Rewrite<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'"' => self.string(),
                b'-' | b'0'..=b'9' => self.number(),
                b'{' | b'}' | b'[' | b']' | b',' => {
                    self.name = None;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Puts `with` in the place of the token that ends at `end`.
    fn replace(&mut self, end: usize, with: &str) {
        self.redacted.push_str(&self.text[self.copied..self.at]);
        self.redacted.push_str(with);
        self.copied = end;
    }

    fn string(&mut self) {
        let end = string_end(self.text.as_bytes(), self.at);
        let raw = &self.text[self.at..end];
        let is_name = self.text[end..].trim_start().starts_with(':');
        match serde_json::from_str::<String>(raw) {
            Ok(value) => {
                let name = if is_name { None } else { self.name.take() };
                let new = self.value(name.as_deref(), &value);
                if let Cow::Owned(new) = &new {
                    self.replace(end, &quoted(new));
                }
                if is_name {
                    self.name = Some(new.into_owned());
                }
            }
            // Half of a surrogate pair: no text, but what stands beside it may hold secrets.
            Err(_) => {
                if let Cow::Owned(new) = plain::redact(raw) {
                    self.replace(end, &new);
                }
            }
        }
        self.at = end;
    }

    /// A string under a name, or without one.
    fn value<'b>(&self, name: Option<&str>, value: &'b str) -> Cow<'b, str> {
        let name = name.unwrap_or_default().as_bytes();
        if let Some(kind) = assign::kind_of(name)
            && assign::is_secret(name, value.as_bytes())
        {
            return Cow::Owned(kind.mark().to_owned());
        }
        if assign::is_phone_name(name) && number::whole(value.trim().as_bytes(), true).is_some() {
            return Cow::Owned(Kind::Phone.mark().to_owned());
        }
        at_level(value, self.levels)
    }

    fn number(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().take_while(|b| b.is_ascii_digit() || b"+-.eE".contains(b)).count();
        let (token, end) = (&rest[..length], self.at + length);
        let name = self.name.take().unwrap_or_default();
        let name = name.as_bytes();
        let kind = match assign::kind_of(name) {
            Some(kind) if assign::is_secret(name, token) && token.iter().all(u8::is_ascii_digit) => Some(kind),
            _ => number::whole(token, assign::is_phone_name(name)),
        };
        if let Some(kind) = kind {
            self.replace(end, &quoted(kind.mark()));
        }
        self.at = end;
    }
}

/// The end of the string that begins at `at`, behind its closing quote.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = text.get(end) {
        match byte {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    text.len()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
