//! Cuts long texts into pieces.

use std::fmt::{self, Display};

/// Characters of a piece at most, and how many of them it repeats of the piece before; `None`: texts stay whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks(pub(crate) Option<(usize, usize)>);

impl Display for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((most, overlap)) => write!(f, "{most}-{overlap}"),
            None => f.write_str("whole"),
        }
    }
}

impl Chunks {
    /// The pieces of a text, at least one. They end after a word where there is one in their second half.
    pub(crate) fn of(self, text: &str) -> Vec<&str> {
        let Some((most, overlap)) = self.0 else { return vec![text] };
        let at: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let chars = at.len() - 1;
        let is_space = |place: usize| text[at[place]..].starts_with(char::is_whitespace);
        let (mut pieces, mut start) = (Vec::new(), 0);
        loop {
            let mut end = (start + most.max(1)).min(chars);
            if end < chars {
                end = (start + most / 2 + 1..=end).rev().find(|place| is_space(*place)).unwrap_or(end);
            }
            pieces.push(&text[at[start]..at[end]]);
            if end == chars {
                return pieces;
            }
            start = end.saturating_sub(overlap).max(start + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Chunks;

    #[test]
    fn pieces_end_after_words_and_repeat_the_end_of_the_one_before() {
        assert_eq!(Chunks(None).of("one two three"), ["one two three"]);
        assert_eq!(Chunks(Some((9, 0))).of("one two three four"), ["one two", " three", " four"]);
        assert_eq!(Chunks(Some((9, 3))).of("one two three"), ["one two", "two three"]);
        assert_eq!(Chunks(Some((9, 3))).of(""), [""]);
        assert_eq!(Chunks(Some((4, 2))).of("漢字仮名交じり"), ["漢字仮名", "仮名交じ", "交じり"]);
    }

    proptest! {
        #[test]
        fn pieces_cover_the_text(text in "[a-z 漢é\\n]{0,200}", most in 2_usize..40, share in 0_usize..=50) {
            let overlap = most * share / 100;
            let pieces = Chunks(Some((most, overlap))).of(&text);
            let mut covered = 0;
            for piece in &pieces {
                prop_assert!(piece.chars().count() <= most);
                let start = piece.as_ptr() as usize - text.as_ptr() as usize;
                prop_assert!(start <= covered);
                covered = covered.max(start + piece.len());
            }
            prop_assert_eq!(covered, text.len());
            prop_assert!(pieces.len() <= text.chars().count().max(1));
        }
    }
}
