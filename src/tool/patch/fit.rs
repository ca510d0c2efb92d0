//! Fitting hunks to the text of a file.
//!
//! The lines that a hunk says were there are looked for where it says they are, then nearer and further; first exactly,
//! then without spaces at their ends, then without spaces at both ends. Lines that stay keep what the file says.

use std::borrow::Cow;
use std::cell::Cell;

use super::{Hunk, Line};

/// How two lines are compared, the strictest first.
const COMPARISONS: &[fn(&str, &str) -> bool] =
    &[|a, b| a == b, |a, b| a.trim_end() == b.trim_end(), |a, b| a.trim() == b.trim()];
/// Characters of a line that an error shows.
const SHOWN_CHARS_MAX: usize = 120;
/// Looks that may be taken to fit one patch to its files, half a second's worth; a patch whose places are not found by then
/// is refused. Without it, a long run of equal lines is looked at once for each of its lines. To compare two lines is one
/// look, and one more for every [`LOOK_BYTES`] of the longer.
const LOOKS_MAX: u32 = 10_000_000;
/// Bytes that take about as long as all else of a comparison.
const LOOK_BYTES: usize = 64;
/// What is said at that bound.
const TOO_LONG: &str = "finding its position takes too long. Give fewer lines of context, or make smaller changes.";

/// Lines of a file that a patch is fitted to: each takes memory, however short it is.
const LINES_MAX: usize = 1_000_000;

/// How many looks may still be taken for a patch.
pub(crate) struct Looks(Cell<u32>);

impl Looks {
    /// Those of a whole patch.
    pub(crate) const fn of_patch() -> Self {
        Self(Cell::new(LOOKS_MAX))
    }

    /// Those that it takes to compare two lines, unless all are used up.
    fn take(&self, one: &str, other: &str) -> bool {
        let looks = 1 + one.len().max(other.len()) / LOOK_BYTES;
        let left = u32::try_from(looks).ok().and_then(|looks| self.0.get().checked_sub(looks));
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Whether what was not found was looked for everywhere.
    fn are_enough(&self) -> Result<(), String> {
        if self.0.get() == 0 { Err(TOO_LONG.to_owned()) } else { Ok(()) }
    }
}

/// The text with the hunks carried out.
///
/// # Errors
/// A sentence for the model: which hunk does not fit, and what stands there instead.
pub(crate) fn fit(text: &str, hunks: &[Hunk], looks: &Looks) -> Result<String, String> {
    if text.lines_kept().nth(LINES_MAX).is_some() {
        return Err(format!("it has more than {LINES_MAX} lines."));
    }
    let lines: Vec<&str> = text.lines_kept().collect();
    // A file of another system keeps its line ends.
    let returns = lines.iter().filter(|line| line.ends_with('\r')).count() * 2 > lines.len();
    let mut newline = text.is_empty() || text.ends_with('\n');
    let mut after = Vec::with_capacity(lines.len());
    // The first line that the next hunk may touch: hunks stand in the order of the file.
    let mut from = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let at = place(&lines, hunk, from, looks).map_err(|why| format!("Change {}: {why}", number + 1))?;
        after.extend(lines[from..at].iter().copied().map(Cow::Borrowed));
        from = replace(&lines, hunk, at, returns, &mut after);
        if from == lines.len() && hunk.lines.iter().any(|line| !matches!(line, Line::Keep(_))) {
            newline = !hunk.no_newline;
        }
    }
    after.extend(lines[from..].iter().copied().map(Cow::Borrowed));
    let mut text = after.join("\n");
    if newline && !after.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

/// Lines without their `\n`; the empty text has none.
trait LinesKept {
    fn lines_kept(&self) -> impl Iterator<Item = &str>;
}

impl LinesKept for str {
    fn lines_kept(&self) -> impl Iterator<Item = &str> {
        let text = self.strip_suffix('\n').unwrap_or(self);
        text.split('\n').filter(move |_| !self.is_empty())
    }
}

/// Adds what comes in place of the lines from `at` on; gives the line behind those.
fn replace<'t>(lines: &[&'t str], hunk: &'t Hunk, at: usize, returns: bool, after: &mut Vec<Cow<'t, str>>) -> usize {
    let mut next = at;
    for line in &hunk.lines {
        match line {
            Line::Keep(_) => {
                after.push(Cow::Borrowed(lines[next]));
                next += 1;
            }
            Line::Remove(_) => next += 1,
            Line::Add(text) if returns && !text.ends_with('\r') => after.push(Cow::Owned(format!("{text}\r"))),
            Line::Add(text) => after.push(Cow::Borrowed(text)),
        }
    }
    next
}

/// Where the hunk begins, from 0.
fn place(lines: &[&str], hunk: &Hunk, mut from: usize, looks: &Looks) -> Result<usize, String> {
    for heading in &hunk.headings {
        let first = |same: &dyn Fn(&str, &str) -> bool| {
            (from..lines.len()).take_while(|at| looks.take(lines[*at], heading)).find(|at| same(lines[*at], heading))
        };
        let found =
            COMPARISONS.iter().find_map(|same| first(same)).or_else(|| first(&|line, part| line.contains(part)));
        looks.are_enough()?;
        from = found.ok_or_else(|| format!("no line matches {:?}.", shown(heading)))? + 1;
    }
    let before: Vec<&str> = hunk.lines.iter().filter_map(Line::before).collect();
    let wanted = hunk.line.map(|line| line.saturating_sub(1));
    if before.is_empty() {
        // Only new lines: "-N,0" puts them behind line N; without a number they come behind the heading, or last.
        let heading = (!hunk.headings.is_empty() && !hunk.at_end).then_some(from);
        return Ok(hunk.line.or(heading).unwrap_or(lines.len()).clamp(from.min(lines.len()), lines.len()));
    }
    let no_place = || mismatch(lines, &before, wanted.unwrap_or(from), looks);
    let last = lines.len().checked_sub(before.len()).ok_or_else(no_place)?;
    for same in COMPARISONS {
        let fits = |at: &usize| {
            before.iter().zip(&lines[*at..]).all(|(text, line)| looks.take(text, line) && same(line, text))
        };
        let mut places = (from..=last).filter(fits);
        let found = match wanted {
            Some(wanted) => places.min_by_key(|at| at.abs_diff(wanted)),
            None if hunk.at_end => places.next_back(),
            None => places.next(),
        };
        looks.are_enough()?;
        if let Some(at) = found {
            return Ok(at);
        }
    }
    Err(no_place())
}

/// Says what does not fit: the place where most of the lines do, and the first that does not.
fn mismatch(lines: &[&str], before: &[&str], near: usize, looks: &Looks) -> String {
    let fitting = |at: usize| {
        let pairs = before.iter().zip(&lines[at..]).take_while(|(a, b)| looks.take(a, b));
        pairs.filter(|(a, b)| a.trim() == b.trim()).count()
    };
    let best = (0..lines.len()).max_by_key(|at| (fitting(*at), std::cmp::Reverse(at.abs_diff(near))));
    if looks.are_enough().is_err() {
        return TOO_LONG.to_owned();
    }
    let Some(best) = best.filter(|at| fitting(*at) > 0) else {
        return format!("no line of the file matches {:?}. Read the file and try again.", shown(before[0]));
    };
    let wrong =
        before.iter().enumerate().find(|(at, text)| lines.get(best + at).is_none_or(|line| line.trim() != text.trim()));
    let Some((at, text)) = wrong else { return "it does not follow the previous change.".to_owned() };
    let instead =
        lines.get(best + at).map_or_else(|| "is not there".to_owned(), |line| format!("says {:?}", shown(line)));
    format!(
        "it does not fit. Nearest is line {}, but line {} {instead} where the patch expects {:?}.",
        best + 1,
        best + at + 1,
        shown(text)
    )
}

fn shown(text: &str) -> String {
    text.trim_end().chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, Looks, fit};
    use crate::tool::patch::{Change, read};

    /// Carries out the update that a patch of one file holds.
    fn patched(text: &str, patch: &str) -> Result<String, String> {
        match &read(patch)?[..] {
            [Change::Update { hunks, .. }] => fit(text, hunks, &Looks::of_patch()),
            other => panic!("{other:?}"),
        }
    }

    fn unified(text: &str, body: &str) -> Result<String, String> {
        patched(text, &format!("--- a/f\n+++ b/f\n{body}"))
    }

    fn envelope(text: &str, body: &str) -> Result<String, String> {
        patched(text, &format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n"))
    }

    #[test]
    fn exact_hunks() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(unified(text, "@@ -2,1 +2,2 @@\n-b\n+B\n+BB\n@@ -4 +5 @@\n-d\n+D\n").unwrap(), "a\nB\nBB\nc\nD\n");
        assert_eq!(unified(text, "@@ -2,0 +3 @@\n+x\n").unwrap(), "a\nb\nx\nc\nd\n");
        assert_eq!(unified("", "@@ -0,0 +1 @@\n+x\n").unwrap(), "x\n");
        assert_eq!(unified("x\n", "@@ -1 +0,0 @@\n-x\n").unwrap(), "");
        assert_eq!(envelope(text, " b\n-c\n+C\n").unwrap(), "a\nb\nC\nd\n");
        assert_eq!(envelope(text, "@@\n+end\n").unwrap(), "a\nb\nc\nd\nend\n");
    }

    #[test]
    fn what_would_be_looked_for_everywhere_is_given_up() {
        // Every one of these would take billions of comparisons.
        let (equal, spaced) = ("x\n".repeat(200_000), " x\n".repeat(200_000));
        // And this one a million, of a thousand bytes each.
        let long = "x".repeat(1_024);
        let long_lines = format!("{long}\n").repeat(2_000);
        for (text, patch) in [
            (&equal, format!("{}-y\n+z\n", " x\n".repeat(20_000))),
            (&equal, format!("-y\n{}", " x\n".repeat(20_000))),
            (&spaced, format!("{}-y\n+z\n", "@@ x\n".repeat(20_000))),
            (&long_lines, format!("{}-y\n+z\n", format!(" {long}\n").repeat(1_000))),
        ] {
            assert!(envelope(text, &patch).unwrap_err().contains("finding its position takes too long"));
        }
        let end = format!("{}-y\n+z\n", " x\n".repeat(20));
        assert_eq!(envelope(&format!("{equal}y\n"), &end).unwrap(), format!("{equal}z\n"));
    }

    #[test]
    fn what_one_change_looked_for_is_missing_to_the_next() {
        let (text, looks) = (format!("{}y\n", "x\n".repeat(200_000)), Looks::of_patch());
        let changes = read("*** Begin Patch\n*** Update File: f\n-y\n+z\n*** End Patch\n").unwrap();
        let [Change::Update { hunks, .. }] = &changes[..] else { panic!("{changes:?}") };
        let done = (0..100).map_while(|_| fit(&text, hunks, &looks).ok()).count();
        assert!((10..100).contains(&done), "{done}");
    }

    #[test]
    fn lines_are_bounded() {
        let patch = "@@ -1 +1 @@\n-x\n+y\n";
        assert!(unified(&"x\n".repeat(LINES_MAX), patch).is_ok());
        assert!(unified(&"x\n".repeat(LINES_MAX + 1), patch).unwrap_err().contains("lines"));
    }

    #[test]
    fn the_nearest_of_equal_places_is_taken() {
        let text = "x\n1\nx\n2\nx\n3\n";
        assert_eq!(unified(text, "@@ -5 +5 @@\n-x\n+y\n").unwrap(), "x\n1\nx\n2\ny\n3\n");
        assert_eq!(envelope(text, "@@ 1\n-x\n+y\n").unwrap(), "x\n1\ny\n2\nx\n3\n");
        assert_eq!(envelope("x\nx\n", "-x\n+y\n*** End of File\n").unwrap(), "x\ny\n");
        assert_eq!(envelope(text, "@@ 1\n@@ 2\n-x\n+y\n").unwrap(), "x\n1\nx\n2\ny\n3\n");
        // Two changes to equal lines are two places.
        assert_eq!(envelope("x\nx\n", "-x\n+y\n@@\n-x\n+z\n").unwrap(), "y\nz\n");
    }

    #[test]
    fn spaces_are_forgiven_and_kept() {
        assert_eq!(
            envelope("\tif a {\n\t\tb();  \n", " if a {\n-    b();\n+\t\tc();\n").unwrap(),
            "\tif a {\n\t\tc();\n"
        );
        assert_eq!(unified("a\nb\nc\n", "@@ -90,2 +90,2 @@\n b\n-c\n+C\n").unwrap(), "a\nb\nC\n");
    }

    #[test]
    fn line_ends_are_kept() {
        assert_eq!(envelope("a\r\nb\r\n", " a\n-b\n+c\n").unwrap(), "a\r\nc\r\n");
        assert_eq!(unified("a\nb", "@@ -1 +1 @@\n-a\n+c\n").unwrap(), "c\nb");
        assert_eq!(unified("a\n", "@@ -1 +1 @@\n-a\n+c\n\\ No newline at end of file\n").unwrap(), "c");
        assert_eq!(unified("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+c\n").unwrap(), "c\n");
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        let error = unified("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-x\n+y\n c\n").unwrap_err();
        assert_eq!(
            error,
            "Change 1: it does not fit. Nearest is line 1, but line 2 says \"b\" where the patch expects \"x\"."
        );
        assert!(envelope("a\n", "-zzz\n").unwrap_err().contains("no line of the file matches \"zzz\""));
        assert!(envelope("a\n", "@@ nowhere\n-a\n").unwrap_err().contains("no line matches \"nowhere\""));
        assert!(envelope("a\n", " a\n b\n-c\n").unwrap_err().contains("line 2 is not there"));
        assert!(envelope("", "-a\n+b\n").is_err());
    }
}
