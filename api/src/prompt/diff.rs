//! What changed between two prompts.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// After this long the differences that were found are good enough.
const TIME_MAX: Duration = Duration::from_millis(200);

/// The difference of two texts, line by line.
pub(super) struct Diff {
    /// Lines that only the second text has.
    pub(super) added: usize,
    /// Lines that only the first text has.
    pub(super) removed: usize,
    /// The unified form with three lines around each change; empty for equal texts.
    pub(super) text: String,
}

/// Compares two texts. `from` and `to` are what the header calls them.
pub(super) fn diff(before: &str, after: &str, from: &str, to: &str) -> Diff {
    let found = TextDiff::configure().timeout(TIME_MAX).diff_lines(before, after);
    let count = |tag| found.iter_all_changes().filter(|change| change.tag() == tag).count();
    let text = found.unified_diff().context_radius(3).header(from, to).to_string();
    Diff { added: count(ChangeTag::Insert), removed: count(ChangeTag::Delete), text }
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn changed_lines_are_shown_with_what_is_around_them() {
        let found = diff("a\nb\nc\n", "a\nB\nc\nd\n", "version 1", "version 2");
        assert_eq!((found.added, found.removed), (2, 1));
        assert_eq!(found.text, "--- version 1\n+++ version 2\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
        let same = diff("a", "a", "x", "y");
        assert_eq!((same.added, same.removed, &*same.text), (0, 0, ""));
    }

    #[test]
    fn the_largest_texts_take_no_long_time() {
        let text = |odd: &str| (0..16_000).map(|at| format!("{}{}\n", at % 97, odd.repeat(at % 3))).collect::<String>();
        let found = diff(&text("a"), &text("b"), "x", "y");
        assert!(found.added > 0 && found.removed > 0);
    }
}
