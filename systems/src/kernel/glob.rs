//! Globs over names: `*` stands for any text, `?` for one character; upper and lower case differ. [`matches`] takes a
//! pattern as it is written, in which every other character stands for itself; a [`Glob`] is read first and has sets of
//! characters, too. And texts whose case does not matter.
//!
//! The crate `globset` matches bytes, so that its `?` is not one character, has braces that are letters here, and makes
//! an automaton of each pattern, of which the triggers of a world have 100,000.

use std::borrow::Cow;

use agentsvc_components::kernel::limit;

/// Does `text` match? Linear in memory, at worst quadratic in time.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    walk(pattern.as_bytes(), text.as_bytes(), |piece| *piece == b'*', step, skip)
}

/// What is left of `text` behind a piece of a pattern that is no star.
fn step<'t>(piece: &u8, text: &'t [u8]) -> Option<&'t [u8]> {
    match (*piece, *text.first()?) {
        // A star in the text is no character: see `covers`.
        (b'?', b'*') => None,
        (b'?', _) => skip(text),
        (piece, first) => (piece == first).then(|| &text[1..]),
    }
}

/// What is left of `text` behind its first character.
fn skip(text: &[u8]) -> Option<&[u8]> {
    text.get(char_bytes(*text.first()?)..)
}

/// Bytes of the character that begins with `first`.
const fn char_bytes(first: u8) -> usize {
    match first {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        _ => 1,
    }
}

/// Do `pieces` match the whole of `text`, where those that are stars match any part of it? `step` gives what is left of the
/// text behind a piece, `skip` what is left behind its first unit; `None` when there is nothing of the kind. It is enough to
/// come back to the last star. Linear in memory, at worst quadratic in time.
fn walk<P, T: Copy>(
    pieces: &[P],
    text: T,
    is_star: impl Fn(&P) -> bool,
    step: impl Fn(&P, T) -> Option<T>,
    skip: impl Fn(T) -> Option<T>,
) -> bool {
    let (mut at, mut rest) = (0, text);
    // The place behind the last star, and what was left of the text when it was last moved on.
    let mut star: Option<(usize, T)> = None;
    loop {
        let left = match pieces.get(at) {
            None if skip(rest).is_none() => return true,
            None => None,
            Some(piece) if is_star(piece) => {
                star = Some((at + 1, rest));
                Some(rest)
            }
            Some(piece) => step(piece, rest),
        };
        if let Some(left) = left {
            (at, rest) = (at + 1, left);
            continue;
        }
        let Some((behind, reach)) = star else { return false };
        let Some(reach) = skip(reach) else { return false };
        (at, rest) = (behind, reach);
        star = Some((behind, reach));
    }
}

/// `text` without the difference of upper and lower case; one that has no difference to lose is not copied.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    let is_folded = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_folded {
        return Cow::Borrowed(text);
    }
    // Character by character: what the one is does not depend on those beside it, so that a part is found in any place.
    Cow::Owned(text.chars().flat_map(char::to_lowercase).collect())
}

/// Does one of `patterns` match?
#[must_use]
pub fn any<S: AsRef<str>>(patterns: &[S], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern.as_ref(), text))
}

/// Does one of `outer` match everything that `inner` matches? May say no where it is so only by several together.
///
/// The text of `inner` is matched as if its own wildcards were letters that only a star stands for.
#[must_use]
pub fn covers<S: AsRef<str>>(outer: &[S], inner: &str) -> bool {
    let is_covered = |outer: &str| outer == inner || matches(outer, inner);
    outer.iter().any(|outer| is_covered(outer.as_ref()))
}

/// A glob over names of agents, as patterns of triggers have it, read once and matched often. Beside the two wildcards
/// `[abc]`, `[a-z]` and `[!abc]` are one character of a set, and `\` takes the character behind it as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Exactly this text.
    Text(Box<str>),
    /// Any text.
    Star,
    /// One character.
    One,
    /// One character that lies, or does not lie, in one of these ranges.
    Set { inside: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    /// What is wrong with it, with the character, counted from 1.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("must not be empty; omit it to match every name".to_owned());
        }
        if text.len() > limit::GLOB_BYTES_MAX {
            return Err(format!("is longer than {} bytes", limit::GLOB_BYTES_MAX));
        }
        let mut chars = text.chars().enumerate().map(|(at, c)| (at + 1, c));
        let (mut pieces, mut literal) = (Vec::new(), String::new());
        while let Some((at, c)) = chars.next() {
            let piece = match c {
                '*' => Piece::Star,
                '?' => Piece::One,
                '[' => set(&mut chars).ok_or_else(|| format!("has an unclosed `[` (character {at})"))??,
                '\\' => {
                    let (_, c) = chars.next().ok_or_else(|| format!("ends with a `\\` (character {at})"))?;
                    literal.push(c);
                    continue;
                }
                c if c.is_control() => return Err(format!("has a control character (character {at})")),
                c => {
                    literal.push(c);
                    continue;
                }
            };
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
            }
            // Two stars match what one does, and would only cost.
            if piece != Piece::Star || pieces.last() != Some(&Piece::Star) {
                pieces.push(piece);
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        Ok(Self(pieces))
    }

    /// The one name that it matches, when it has no wildcard.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text that every name it matches begins with; empty when there is none.
    pub(crate) fn head(&self) -> &str {
        match self.0.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }

    /// The texts that every name it matches has in it.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| if let Piece::Text(text) = piece { Some(&**text) } else { None })
    }

    /// Does `name` match? Linear in memory, at worst quadratic in time.
    pub(crate) fn matches(&self, name: &str) -> bool {
        walk(&self.0, name, |piece| *piece == Piece::Star, Piece::step, skip_char)
    }
}

/// What is left of `text` behind its first character.
fn skip_char(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    chars.next().map(|_| chars.as_str())
}

impl Piece {
    /// What is left of `text` behind this piece; `None` when it does not begin so.
    fn step<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut chars = text.chars();
        match self {
            Self::Text(literal) => text.strip_prefix(&**literal),
            Self::Star => Some(text),
            Self::One => skip_char(text),
            Self::Set { inside, ranges } => {
                let c = chars.next()?;
                let is_inside = ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
                (is_inside == *inside).then_some(chars.as_str())
            }
        }
    }
}

/// The set behind a `[`; `None` when it has no end.
fn set(chars: &mut impl Iterator<Item = (usize, char)>) -> Option<Result<Piece, String>> {
    let (mut inside, mut members) = (true, Vec::new());
    loop {
        let (at, c) = chars.next()?;
        match c {
            // A `]` that comes first is a member.
            ']' if !members.is_empty() => break,
            '!' | '^' if members.is_empty() && inside => inside = false,
            '\\' => members.push((chars.next()?, true)),
            c => members.push(((at, c), false)),
        }
    }
    let (mut ranges, mut at) = (Vec::new(), 0);
    while let Some(((_, from), _)) = members.get(at).copied() {
        let dash = members.get(at + 1).is_some_and(|((_, c), escaped)| *c == '-' && !escaped);
        match members.get(at + 2).filter(|_| dash).copied() {
            Some(((place, to), _)) if to < from => {
                return Some(Err(format!("has the empty range `{from}-{to}` (character {place})")));
            }
            Some(((_, to), _)) => {
                ranges.push((from, to));
                at += 3;
            }
            None => {
                ranges.push((from, from));
                at += 1;
            }
        }
    }
    Some(Ok(Piece::Set { inside, ranges }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("system_*", "system_time", true),
            ("system_*", "system", false),
            ("*_time", "system_time", true),
            ("s*m*t*e", "system_time", true),
            ("s*x*", "system_time", false),
            ("system_tim?", "system_time", true),
            ("system_time?", "system_time", false),
            ("**a", "aaa", true),
            ("a*b*c", "aXbXbXc", true),
            ("system", "system_time", false),
            ("b?r", "b\u{e4}r", true),
            ("b??r", "b\u{e4}r", false),
            ("*?", "\u{1f600}", true),
            ("*\u{e4}?", "x\u{e4}\u{e4}y", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        for (outer, inner, expected) in [
            ("*", "web_*", true),
            ("web_*", "web_fetch", true),
            ("web_*", "web_f*", true),
            ("web_f*", "web_*", false),
            ("web_?", "web_*", false),
            ("a?", "a?", true),
            ("a?", "a*", false),
            ("file_read", "file_*", false),
        ] {
            assert_eq!(covers(&[outer], inner), expected, "{outer} {inner}");
        }
    }

    proptest! {
        #[test]
        fn what_is_covered_matches_no_more(outer in "[ab*?]{0,5}", inner in "[ab*?]{0,5}", text in "[ab]{0,6}") {
            if covers(&[&outer], &inner) && matches(&inner, &text) {
                prop_assert!(matches(&outer, &text), "{outer} covers {inner} but not {text}");
            }
        }
    }

    #[test]
    fn names_match() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("web-*", "web-1", true),
            ("web-*", "web", false),
            ("*-1", "web-1", true),
            ("w*b*1", "web-11", true),
            ("**1", "web-1", true),
            ("we?", "weü", true),
            ("we?", "we", false),
            ("Web", "web", false),
            ("web-[0-9]", "web-7", true),
            ("web-[0-9]", "web-x", false),
            ("web-[!0-9]", "web-x", true),
            ("web-[^0-9]", "web-7", false),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("[\\]x]", "]", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("*a*b", "xaxbxb", true),
            ("*a*b", "xaxbx", false),
        ] {
            assert_eq!(Glob::parse(glob).unwrap().matches(name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn what_is_no_glob_says_why() {
        for (glob, why) in [
            ("", "must not be empty"),
            ("web-[", "an unclosed `[` (character 5)"),
            ("[a-", "an unclosed `[` (character 1)"),
            ("[]", "unclosed `[`"),
            ("[z-a]", "`z-a`"),
            ("a\\", "ends with a `\\` (character 2)"),
            ("a\nb", "control character (character 2)"),
            (&"x".repeat(300), "longer than 256 bytes"),
        ] {
            let error = Glob::parse(glob).unwrap_err();
            assert!(error.contains(why), "{glob}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_a_name_matches_itself(glob in "[ab*?\\[\\]!\\\\-]{0,8}", name in "[abü]{1,8}") {
            if let Ok(glob) = Glob::parse(&glob) {
                let is_match = glob.matches(&name);
                prop_assert!(!is_match || name.starts_with(glob.head()));
                prop_assert!(!is_match || glob.texts().all(|text| name.contains(text)));
            }
            prop_assert!(Glob::parse(&name).unwrap().matches(&name));
        }

        #[test]
        fn stars_and_letters_match_as_the_plain_globs_do(glob in "[ab*?]{1,8}", name in "[ab]{0,8}") {
            prop_assert_eq!(Glob::parse(&glob).unwrap().matches(&name), matches(&glob, &name));
        }
    }
}
