//! Rust source as tokens, without comments and, on request, without what is compiled for tests only.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or an identifier.
    Word,
    /// `::` or one character of punctuation.
    Mark,
    /// A string literal, its quotes included.
    Text,
    /// A number, a character or a lifetime.
    Other,
}

/// One token of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: &'static str,
    /// Counted from one.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

impl Token {
    /// The token is this punctuation.
    pub(crate) fn is(self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    fn opens(self) -> bool {
        self.is("(") || self.is("[") || self.is("{")
    }

    fn closes(self) -> bool {
        self.is(")") || self.is("]") || self.is("}")
    }
}

/// The text of the token at `at`; empty past the end.
pub(crate) fn text_at(tokens: &[Token], at: usize) -> &'static str {
    tokens.get(at).map_or("", |token| token.text)
}

/// The tokens of a source file, without comments.
pub(crate) fn tokens(source: &'static str) -> Vec<Token> {
    let (mut found, mut rest, mut line) = (Vec::new(), source, 1);
    while !rest.is_empty() {
        let (length, kind) = lexeme(rest);
        let (text, after) = rest.split_at(length);
        found.extend(kind.map(|kind| Token { text, line, kind }));
        line += text.matches('\n').count();
        rest = after;
    }
    found
}

/// The length of what `rest` begins with, and its kind; none for white space and comments.
fn lexeme(rest: &str) -> (usize, Option<Kind>) {
    let first = rest.chars().next().unwrap_or_default();
    if first.is_whitespace() {
        return (rest.len() - rest.trim_start().len(), None);
    }
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(length) = string(rest) {
        return (length, Some(Kind::Text));
    }
    if let Some(length) = quote(rest) {
        return (length, Some(Kind::Other));
    }
    let word = rest.strip_prefix("r#").unwrap_or(rest);
    let length = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
    if length > 0 {
        let kind = if first.is_ascii_digit() { Kind::Other } else { Kind::Word };
        return (rest.len() - word.len() + length, Some(kind));
    }
    let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
    (length, Some(Kind::Mark))
}

/// The length of a block comment; they nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        let next = rest[at..].find("/*").map_or(rest.len(), |next| at + next);
        let end = rest[at..].find("*/").map_or(rest.len(), |end| at + end);
        if next < end {
            depth += 1;
            at = next + 2;
        } else {
            depth -= 1;
            at = (end + 2).min(rest.len());
            if depth == 0 || end == rest.len() {
                return at;
            }
        }
    }
}

/// The length of a string literal.
fn string(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    if let Some(raw) = body.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(inside) = raw[hashes..].strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
            return Some(rest.len() - inside.len() + length);
        }
    }
    let inside = body.strip_prefix('"')?;
    let mut escaped = false;
    let end = inside.find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(rest.len() - inside.len() + end.map_or(inside.len(), |end| end + 1))
}

/// The length of a character literal or of a lifetime.
fn quote(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('\'')?;
    let before = rest.len() - inside.len();
    let mut chars = inside.chars();
    let first = chars.next()?;
    if first == '\\' {
        let skipped = 1 + chars.next()?.len_utf8();
        return Some(before + skipped + inside[skipped..].find('\'')? + 1);
    }
    if chars.next() == Some('\'') {
        return Some(before + first.len_utf8() + 1);
    }
    Some(before + inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len()))
}

/// The place after the bracketed group that begins at `at`.
pub(crate) fn after_group(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        if token.opens() {
            depth += 1;
        } else if token.closes() {
            depth -= 1;
            if depth == 0 {
                return place + 1;
            }
        }
    }
    tokens.len()
}

/// What an item begins with; what else has an attribute is a field, an arm or a statement.
const ITEMS: &[&str] = &[
    "fn",
    "mod",
    "use",
    "struct",
    "enum",
    "trait",
    "impl",
    "const",
    "static",
    "type",
    "extern",
    "unsafe",
    "async",
    "let",
    "pub",
    "macro_rules",
    "union",
];

/// Does an attribute say that what follows is compiled for tests only?
fn is_for_tests(attribute: &[Token]) -> bool {
    let says = |word: &str| attribute.iter().any(|token| token.text == word);
    match text_at(attribute, 0) {
        "test" => true,
        "cfg" => says("test") && !says("not") && !says("any"),
        _ => false,
    }
}

/// The tokens without what is for tests only, and the names of the modules that are declared for tests only.
pub(crate) fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<&'static str>) {
    let (mut kept, mut modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        let begins =
            |place: usize, marks: &[&str]| marks.iter().enumerate().all(|(n, m)| text_at(tokens, place + n) == *m);
        if begins(at, &["#", "!", "["]) {
            let end = after_group(tokens, at + 2);
            if is_for_tests(&tokens[at + 3..end]) {
                return (Vec::new(), Vec::new());
            }
            at = end;
        } else if begins(at, &["#", "["]) {
            let (mut end, mut for_tests) = (at, false);
            while begins(end, &["#", "["]) {
                let next = after_group(tokens, end + 1);
                for_tests |= is_for_tests(&tokens[end + 2..next]);
                end = next;
            }
            if for_tests {
                modules.extend(module_name(tokens, end));
                at = after_item(tokens, end);
            } else {
                kept.extend_from_slice(&tokens[at..end]);
                at = end;
            }
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    (kept, modules)
}

/// Where an item begins behind its visibility.
fn after_visibility(tokens: &[Token], at: usize) -> usize {
    match (text_at(tokens, at), text_at(tokens, at + 1)) {
        ("pub", "(") => after_group(tokens, at + 1),
        ("pub", _) => at + 1,
        _ => at,
    }
}

/// The name of the module that an item declares.
fn module_name(tokens: &[Token], at: usize) -> Option<&'static str> {
    let at = after_visibility(tokens, at);
    (text_at(tokens, at) == "mod").then(|| text_at(tokens, at + 1))
}

/// The place after the item, field, arm or statement that begins at `at`.
fn after_item(tokens: &[Token], mut at: usize) -> usize {
    let item = ITEMS.contains(&text_at(tokens, at));
    let word = after_visibility(tokens, at);
    let to_semicolon =
        ["use", "let", "const", "static", "type"].contains(&text_at(tokens, word)) && text_at(tokens, word + 1) != "fn";
    while let Some(token) = tokens.get(at) {
        if token.is("{") && item && !to_semicolon {
            return after_group(tokens, at);
        } else if token.opens() {
            at = after_group(tokens, at);
        } else if token.is(";") || (token.is(",") && !item) {
            return at + 1;
        } else if token.closes() {
            return at;
        } else {
            at += 1;
        }
    }
    at
}

#[test]
fn comments_and_literals_are_told_from_code() {
    let texts = |source| tokens(source).iter().map(|token| token.text).collect::<Vec<_>>();
    assert_eq!(texts("a::b /* c /* d */ e */ f // g\nh"), ["a", "::", "b", "f", "h"]);
    assert_eq!(
        texts(r#"("a\"::b", 'c', '\'', '\u{1f}')"#),
        ["(", r#""a\"::b""#, ",", "'c'", ",", r"'\''", ",", r"'\u{1f}'", ")"]
    );
    assert_eq!(
        texts("r#\"x \"y\" z\"# b\"w\" r#type &'a str"),
        ["r#\"x \"y\" z\"#", "b\"w\"", "r#type", "&", "'a", "str"]
    );
    assert_eq!(texts("0..10_u8"), ["0", ".", ".", "10_u8"]);
    assert_eq!(tokens("a\n\"b\nc\"\nd").iter().map(|token| token.line).collect::<Vec<_>>(), [1, 2, 4]);
}

#[test]
fn what_is_for_tests_is_left_out() {
    let kept = |source| {
        let (tokens, modules) = without_tests(&tokens(source));
        (tokens.iter().map(|token| token.text).collect::<Vec<_>>().join(" "), modules)
    };
    assert_eq!(kept("a; #[cfg(test)] mod tests { use b::{c}; } d;"), ("a ; d ;".to_owned(), vec!["tests"]));
    assert_eq!(kept("#[cfg(test)] pub(crate) mod made; a"), ("a".to_owned(), vec!["made"]));
    assert_eq!(kept("#[cfg(test)] use a::{b, c}; d"), ("d".to_owned(), vec![]));
    assert_eq!(kept("#[cfg(test)] #[must_use] fn a<B, C>(b: B) -> C { b } d"), ("d".to_owned(), vec![]));
    assert_eq!(kept("S { #[cfg(test)] a: b(), c }"), ("S { c }".to_owned(), vec![]));
    assert_eq!(kept("#[cfg(not(test))] a"), ("# [ cfg ( not ( test ) ) ] a".to_owned(), vec![]));
    assert_eq!(kept("#![cfg(test)] use a::b;"), (String::new(), vec![]));
}
