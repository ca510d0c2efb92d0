//! Plain text: one walk over the bytes that tries each detector where it may begin.

use std::borrow::Cow;

use super::{Kind, assign, mark_end, number, token};

/// A part of the text to replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
    /// The quote to put around the mark, as a part of the text, where a bare number of a JSON fragment becomes text.
    pub(super) quote: Option<(usize, usize)>,
}

impl Span {
    pub(super) const fn new(start: usize, end: usize, kind: Kind) -> Self {
        Self { start, end, kind, quote: None }
    }
}

/// `text` with every span replaced.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let spans = Walk::new(text.as_bytes()).run();
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut redacted = String::with_capacity(text.len());
    let mut from = 0;
    for Span { start, end, kind, quote } in spans {
        let quote = quote.map_or("", |(start, end)| &text[start..end]);
        for part in [&text[from..start], quote, kind.mark(), quote] {
            redacted.push_str(part);
        }
        from = end;
    }
    redacted.push_str(&text[from..]);
    Cow::Owned(redacted)
}

/// Letters, digits and what joins them in names and keys.
pub(super) const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// How many bytes from `at` on are of the class.
pub(super) fn run(text: &[u8], at: usize, class: impl Fn(u8) -> bool) -> usize {
    text.get(at..).unwrap_or_default().iter().take_while(|byte| class(**byte)).count()
}

/// One walk over a text.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    /// Where looking back ends: behind the last span, mark or escape.
    floor: usize,
    /// The end of the last name that says that a phone number follows, and of what may stand in between.
    phone_at: Option<usize>,
    spans: Vec<Span>,
}

impl<'a> Walk<'a> {
    const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, floor: 0, phone_at: None, spans: Vec::new() }
    }

    fn run(mut self) -> Vec<Span> {
        while let Some(&byte) = self.text.get(self.at) {
            let next = match byte {
                b'[' => mark_end(self.text, self.at).map(|end| self.atom(end)),
                b'\\' => Some(self.atom(escape_end(self.text, self.at))),
                b'@' => email(self.text, self.floor, self.at).map(|span| self.take(span)),
                b':' if self.text[self.at..].starts_with(b"://") => {
                    assign::url_password(self.text, self.at).map(|span| self.take(span))
                }
                b'-' if self.text[self.at..].starts_with(b"-----BEGIN ") => {
                    token::private_key(self.text, self.at).map(|span| self.take(span))
                }
                b'0'..=b'9' | b'+' | b'(' => self.number(),
                _ => None,
            };
            match next.or_else(|| self.word()) {
                Some(next) => self.at = next,
                None => self.at += 1,
            }
        }
        self.spans
    }

    /// What stands before the place, as far as looking back goes; a blank where it does not.
    fn before(&self) -> u8 {
        if self.at > self.floor { self.text[self.at - 1] } else { b' ' }
    }

    /// Goes on at `end`, behind which nothing looks back.
    fn atom(&mut self, end: usize) -> usize {
        self.floor = end;
        end
    }

    fn take(&mut self, span: Span) -> usize {
        let end = span.end;
        self.spans.push(span);
        self.atom(end)
    }

    /// A run of digits and what may stand between them, taken as a whole.
    fn number(&mut self) -> Option<usize> {
        let before = self.before();
        if before.is_ascii_alphanumeric() || matches!(before, b'_' | b'-' | b'.' | b'+') {
            return None;
        }
        let unit = number::Unit::at(self.text, self.at)?;
        let labelled = self.phone_at.is_some_and(|from| is_label_gap(&self.text[from..self.at]));
        let end = unit.end;
        let spans = unit.spans(labelled);
        if let Some(last) = spans.last() {
            self.floor = last.end;
        }
        self.spans.extend(spans);
        Some(end)
    }

    /// Words: keys by their first letters, and names to which something is assigned.
    fn word(&mut self) -> Option<usize> {
        let before = self.before();
        if before.is_ascii_alphanumeric() || !self.text[self.at].is_ascii_alphanumeric() {
            return None;
        }
        if let Some(span) = token::key(self.text, self.at) {
            return Some(self.take(span));
        }
        if is_name(before) && self.goes_on() {
            return None;
        }
        if let Some(span) = token::jwt(self.text, self.at) {
            return Some(self.take(span));
        }
        let name_end = self.at + run(self.text, self.at, is_name);
        let name = &self.text[self.at..name_end];
        if let Some(span) = token::bearer(self.text, name, name_end) {
            return Some(self.take(span));
        }
        if assign::is_phone_name(name) {
            self.phone_at = Some(name_end);
        }
        let flag = before == b'-';
        assign::value(self.text, name, name_end, flag).map(|span| self.take(span))
    }

    /// Is this the middle of a name, such as `b` in `a-b`? Not so in `--b`.
    fn goes_on(&self) -> bool {
        let back = &self.text[self.floor..self.at];
        let joints = back.iter().rev().take_while(|byte| matches!(byte, b'-' | b'_')).count();
        back.len() > joints && back[back.len() - joints - 1].is_ascii_alphanumeric()
    }
}

/// May this stand between a name such as `phone` and its number?
fn is_label_gap(gap: &[u8]) -> bool {
    gap.len() <= 8 && gap.iter().all(|byte| b" :=.\"'\\".contains(byte))
}

/// The end of an escape, which is never taken apart: the backslashes and what they escape. Behind `\n` a word begins.
fn escape_end(text: &[u8], at: usize) -> usize {
    let slashes = at + run(text, at, |byte| byte == b'\\');
    match text.get(slashes) {
        Some(b'u') if run(text, slashes + 1, |b| b.is_ascii_hexdigit()) >= 4 => slashes + 5,
        Some(b'n' | b'r' | b't' | b'b' | b'f' | b'"' | b'\'' | b'/') => slashes + 1,
        _ => slashes,
    }
}

/// The address around the `@` at `at`: a local part not before `floor`, and a domain that ends in letters.
fn email(text: &[u8], floor: usize, at: usize) -> Option<Span> {
    let local =
        text[floor..at].iter().rev().take_while(|b| b.is_ascii_alphanumeric() || b"._%+-'~".contains(b)).count();
    let mut start = at - local;
    // Letters of Latin scripts beyond ASCII: two bytes each, so that no character is split.
    while start >= floor + 2 && matches!(text[start - 2], 0xc3..=0xc9) && text[start - 1] >= 0x80 {
        start -= 2;
        let more = text[floor..start].iter().rev().take_while(|b| b.is_ascii_alphanumeric() || b"._%+-".contains(b));
        start -= more.count();
    }
    while start < at && matches!(text[start], b'.' | b'\'' | b'-') {
        start += 1;
    }
    if start == at {
        return None;
    }
    domain_end(text, at + 1).map(|end| Span::new(start, end, Kind::Email))
}

/// The end of the longest domain at `at` whose last label is of letters.
fn domain_end(text: &[u8], at: usize) -> Option<usize> {
    let is_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte >= 0x80;
    let (mut at, mut labels, mut best) = (at, 0, None);
    loop {
        let length = run(text, at, is_label);
        if length == 0 {
            return best;
        }
        let label = &text[at..at + length];
        let ascii = label.iter().take_while(|byte| byte.is_ascii()).count();
        let letters = label[..ascii].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        // Behind a top-level domain may stand text of another script, but no more of the same word.
        if labels > 0 && (2..=24).contains(&letters) && letters == ascii {
            best = Some(at + letters);
        }
        (at, labels) = (at + length, labels + 1);
        if text.get(at) != Some(&b'.') {
            return best;
        }
        at += 1;
    }
}
