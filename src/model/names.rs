//! Names of tools and ids of calls as providers take them: letters, digits, `_` and `-`, 64 of them at most.
//!
//! A name that fits stays. Any other becomes one that fits and is told from all others by a sum of its bytes; the way back
//! is to compare with the tools that were offered.

use std::borrow::Cow;

use super::draft::Draft;
use crate::tool::toolset::ToolSpec;

/// The longest name that every provider takes.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of the sum behind a changed name, `_` included.
const SUM_BYTES: usize = 9;

/// `name` as it goes over the wire.
pub(crate) fn fitting(name: &str) -> Cow<'_, str> {
    if fits(name) {
        return Cow::Borrowed(name);
    }
    let kept = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let mut changed: String = kept.take(NAME_BYTES_MAX - SUM_BYTES).collect();
    changed.push_str(&format!("_{:08x}", sum(name)));
    Cow::Owned(changed)
}

/// Gives the calls of `draft` the names that the tools really have.
pub(crate) fn restore(draft: &mut Draft, tools: &[ToolSpec]) {
    for spec in tools.iter().filter(|spec| !fits(&spec.name)) {
        draft.rename_calls(&fitting(&spec.name), &spec.name);
    }
}

fn fits(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_plain)
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// FNV-1a.
fn sum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{fits, fitting};

    #[test]
    fn what_fits_stays_and_the_rest_is_told_apart() {
        assert_eq!(fitting("file_read-2"), "file_read-2");
        assert!(fitting("a.b").starts_with("a_b_") && fitting("a.b").len() == 3 + super::SUM_BYTES);
        assert_ne!(fitting("a.b"), fitting("a/b"));
        assert_ne!(fitting(&"x".repeat(65)), fitting(&"x".repeat(66)));
        assert!(fits(&fitting("")));
    }

    proptest! {
        #[test]
        fn every_name_fits_and_fits_for_good(name in "\\PC{0,100}") {
            let wire = fitting(&name).into_owned();
            prop_assert!(fits(&wire));
            prop_assert_eq!(fitting(&wire), wire.as_str());
        }
    }
}
