//! Globs over names: `*` stands for any text, `?` for one character.

/// Does `text` match? Linear in memory, at worst quadratic in time.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // The last star, and the place in the text that it was last made to reach to.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if (byte == b'?' && text[t] != b'*') || byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, reach)) => {
                    (p, t) = (at + 1, reach + 1);
                    star = Some((at, reach + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
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
