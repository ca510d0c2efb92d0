//! Globs over names: `*` stands for any text, `?` for one character. And texts whose case does not matter.

use std::borrow::Cow;

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
pub(crate) fn walk<P, T: Copy>(
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
    if is_folded { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
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
}
