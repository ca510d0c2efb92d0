//! Globs over the names of agents, as patterns of triggers have them: `*` is any text, `?` one character, `[abc]`,
//! `[a-z]` and `[!abc]` one character of a set, and `\` takes the character behind it as it is. Upper and lower case
//! differ, as they do in names.

use agentsvc_components::kernel::limit;

use crate::kernel::glob;

/// A glob that was found to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob(Vec<Piece>);

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
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("must not be empty; leave it out to match every name".to_owned());
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
                '[' => set(&mut chars).ok_or_else(|| format!("has a `[` without its `]` (character {at})"))??,
                '\\' => {
                    let (_, c) = chars.next().ok_or_else(|| format!("ends in a `\\` (character {at})"))?;
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
    pub(super) fn exact(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text that every name it matches begins with; empty when there is none.
    pub(super) fn head(&self) -> &str {
        match self.0.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }

    /// The texts that every name it matches has in it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| if let Piece::Text(text) = piece { Some(&**text) } else { None })
    }

    /// Does `name` match? Linear in memory, at worst quadratic in time.
    pub(super) fn matches(&self, name: &str) -> bool {
        glob::walk(&self.0, name, |piece| *piece == Piece::Star, Piece::step, skip)
    }
}

/// What is left of `text` behind its first character.
fn skip(text: &str) -> Option<&str> {
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
            Self::One => skip(text),
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
                return Some(Err(format!("has the range `{from}-{to}`, which is empty (character {place})")));
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
            ("web-[", "`[` without its `]` (character 5)"),
            ("[a-", "`[` without its `]` (character 1)"),
            ("[]", "`[` without its `]`"),
            ("[z-a]", "`z-a`"),
            ("a\\", "ends in a `\\` (character 2)"),
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
            prop_assert_eq!(Glob::parse(&glob).unwrap().matches(&name), crate::kernel::glob::matches(&glob, &name));
        }
    }
}
