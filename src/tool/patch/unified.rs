//! Unified diffs, as `diff -u` and `git diff` write them, and nearly as well as models do: counts in `@@` lines may be
//! wrong, and what stands before the first `---` is skipped.

use super::{Change, Hunk, Line};

/// No file: the old one of a new file, the new one of a deleted one.
const NOTHING: &str = "/dev/null";

/// Reads a diff.
pub(super) fn read(lines: &[&str]) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if let Some((from, to)) = header(lines, at) {
            let hunks;
            (hunks, at) = read_hunks(lines, at + 2)?;
            changes.push(change(&from, &to, hunks)?);
        } else if lines[at].starts_with("@@ -") {
            return Err(format!(
                "Line {} of the patch begins a change, but no `--- ` and `+++ ` lines name its file.",
                at + 1
            ));
        } else {
            at += 1;
        }
    }
    Ok(changes)
}

/// The two files, when a header begins here.
fn header(lines: &[&str], at: usize) -> Option<(String, String)> {
    let from = lines.get(at)?.strip_prefix("--- ")?;
    let to = lines.get(at + 1)?.strip_prefix("+++ ")?;
    Some((path(from, "a/"), path(to, "b/")))
}

/// The path of a header: without the time behind it and the letter before it.
fn path(text: &str, letter: &str) -> String {
    let text = text.split('\t').next().unwrap_or_default().trim();
    text.strip_prefix(letter).unwrap_or(text).to_owned()
}

fn change(from: &str, to: &str, hunks: Vec<Hunk>) -> Result<Change, String> {
    if from == NOTHING {
        let mut text = String::new();
        for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
            match line {
                Line::Add(line) => text.extend([line, "\n"]),
                Line::Keep(line) if line.is_empty() => {}
                _ => return Err(format!("{to} is a new file; all of its lines must start with +.")),
            }
        }
        if hunks.last().is_some_and(|hunk| hunk.no_newline) {
            text.pop();
        }
        return Ok(Change::Add { path: to.to_owned(), text });
    }
    if to == NOTHING {
        return Ok(Change::Delete { path: from.to_owned() });
    }
    if hunks.is_empty() && from == to {
        return Err(format!("{from}: no `@@` line follows its header."));
    }
    let to = (from != to).then(|| to.to_owned());
    Ok(Change::Update { path: from.to_owned(), to, hunks })
}

/// Reads the places of one file; gives them and the line behind them.
fn read_hunks(lines: &[&str], mut at: usize) -> Result<(Vec<Hunk>, usize), String> {
    let mut hunks: Vec<Hunk> = Vec::new();
    // Lines of the old and the new file that the place still has, as its `@@` line says.
    let mut left = (0, 0);
    while let Some(line) = lines.get(at) {
        let done = left == (0, 0);
        // "-- " is how a mailed patch ends.
        if done && (header(lines, at).is_some() || line.trim_end() == "--") {
            break;
        }
        if let Some(start) = line.strip_prefix("@@") {
            let (old, counts) = range(start).ok_or_else(|| {
                format!("Line {} of the patch, {line:?}: expected `@@ -LINE,COUNT +LINE,COUNT @@`.", at + 1)
            })?;
            left = counts;
            hunks.push(Hunk { line: old, ..Hunk::default() });
        } else if line.starts_with('\\') {
            // "\ No newline at end of file", said of the line before it.
            if let Some(hunk) = hunks.last_mut() {
                hunk.no_newline = matches!(hunk.lines.last(), Some(Line::Add(_) | Line::Keep(_)));
            }
        } else {
            let Some(hunk) = hunks.last_mut() else { break };
            match Line::read(line) {
                // Behind the counted lines an empty one is the end of the text, and no line of the file.
                Some(_) if done && line.is_empty() => {}
                Some(line) => {
                    left.0 -= usize::from(left.0 > 0 && line.before().is_some());
                    left.1 -= usize::from(left.1 > 0 && !matches!(line, Line::Remove(_)));
                    hunk.lines.push(line);
                }
                None if header(lines, at).is_none() && !done => {
                    return Err(format!(
                        "Line {} of the patch, {line:?}: lines of a change must start with a space, - or +.",
                        at + 1
                    ));
                }
                None => break,
            }
        }
        at += 1;
    }
    Ok((hunks, at))
}

/// `" -1,3 +1,4 @@ heading"`: the old line and both counts. A bare `@@` says nothing of the place.
fn range(text: &str) -> Option<(Option<usize>, (usize, usize))> {
    let mut words = text.split_whitespace();
    let Some(old) = words.next().and_then(|word| word.strip_prefix('-')) else {
        return Some((None, (0, 0)));
    };
    let new = words.next()?.strip_prefix('+')?;
    let numbers = |text: &str| match text.split_once(',') {
        Some((line, count)) => Some((line.parse::<usize>().ok()?, count.parse::<usize>().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let ((line, old), (_, new)) = (numbers(old)?, numbers(new)?);
    Some((Some(line), (old, new)))
}

#[cfg(test)]
mod tests {
    use crate::tool::patch::{Change, Line, read};

    #[test]
    fn git_diffs() {
        let text = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\t2026-01-01\n+++ b/x\n@@ -1,3 +1,3 @@ fn\n a\n--- b\n+c\n\n\
            @@ -9 +9 @@\n-y\n+z\n\\ No newline at end of file\ndiff --git a/n b/n\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n\
            +1\n+2\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n--- a/p\n+++ b/q\n";
        let changes = read(text).unwrap();
        let Change::Update { path, to: None, hunks } = &changes[0] else { panic!("{changes:?}") };
        assert_eq!((path.as_str(), hunks.len(), hunks[0].line, hunks[1].line), ("x", 2, Some(1), Some(9)));
        assert_eq!(hunks[0].lines[1], Line::Remove("-- b".into()));
        assert_eq!(hunks[0].lines[3], Line::Keep(String::new()));
        assert!(hunks[1].no_newline && !hunks[0].no_newline);
        assert_eq!(changes[1], Change::Add { path: "n".into(), text: "1\n2\n".into() });
        assert_eq!(changes[2], Change::Delete { path: "old".into() });
        assert_eq!(changes[3], Change::Update { path: "p".into(), to: Some("q".into()), hunks: vec![] });
    }

    #[test]
    fn wrong_counts_are_forgiven_and_nonsense_is_not() {
        let changes = read("--- x\n+++ x\n@@ -1,9 +1,9 @@\n a\n-b\n+c\n").unwrap();
        assert_eq!(changes.len(), 1);
        assert!(read("@@ -1 +1 @@\n-a\n+b\n").unwrap_err().contains("no `--- ` and `+++ ` lines"));
        assert!(read("--- x\n+++ x\n@@ -1,2 +1,2 @@\n a\n*b\n").unwrap_err().contains("Line 5"));
        assert!(read("--- x\n+++ x\n").unwrap_err().contains("no `@@` line"));
        assert!(read("--- x\n+++ x\n@@ -a +b @@\n").unwrap_err().contains("expected `@@ -LINE"));
    }
}
