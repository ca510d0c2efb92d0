//! The envelope form of patches.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: PATH          every line begins with +
//! *** Delete File: PATH
//! *** Update File: PATH       then, if it is renamed, *** Move to: PATH
//! @@ a line before the place, may be left out
//!  kept
//! -gone
//! +new
//! *** End of File             the place reaches to the end
//! *** End Patch
//! ```

use super::{Change, Hunk, Line};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";

/// Reads what follows the line `begin`.
pub(super) fn read(lines: &[&str], begin: usize) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    for (at, line) in lines.iter().enumerate().skip(begin + 1) {
        let wrong = |what: &str| format!("Line {} of the patch, {line:?}: {what}", at + 1);
        if line.trim_end() == END {
            return Ok(changes);
        } else if let Some(path) = named(line, ADD) {
            changes.push(Change::Add { path, text: String::new() });
        } else if let Some(path) = named(line, DELETE) {
            changes.push(Change::Delete { path });
        } else if let Some(path) = named(line, UPDATE) {
            changes.push(Change::Update { path, to: None, hunks: Vec::new() });
        } else {
            match changes.last_mut() {
                Some(Change::Add { text, .. }) => match line.strip_prefix('+') {
                    Some(line) => text.extend([line, "\n"]),
                    None if line.trim().is_empty() => {}
                    None => return Err(wrong("lines of a new file must start with +.")),
                },
                Some(Change::Update { to, hunks, .. }) => update(line, to, hunks).map_err(wrong)?,
                Some(Change::Delete { .. }) | None if line.trim().is_empty() => {}
                _ => return Err(wrong("expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `.")),
            }
        }
    }
    Err(format!("The patch has no line `{END}`; it may be truncated. Nothing was changed."))
}

fn named(line: &str, mark: &str) -> Option<String> {
    Some(line.strip_prefix(mark)?.trim().to_owned())
}

/// Takes one line of an updated file.
fn update(line: &str, to: &mut Option<String>, hunks: &mut Vec<Hunk>) -> Result<(), &'static str> {
    if let Some(path) = named(line, MOVE) {
        if !hunks.is_empty() || to.is_some() {
            return Err("`*** Move to:` must appear once, directly after `*** Update File:`.");
        }
        *to = Some(path);
    } else if let Some(heading) = line.strip_prefix("@@") {
        let heading = heading.trim().trim_end_matches("@@").trim();
        // Headings may be piled up; what follows a place that has lines is the next place.
        if hunks.last().is_none_or(|hunk| !hunk.lines.is_empty()) {
            hunks.push(Hunk::default());
        }
        if let Some(hunk) = hunks.last_mut()
            && !heading.is_empty()
        {
            hunk.headings.push(heading.to_owned());
        }
    } else if line.trim_end() == END_OF_FILE {
        hunks.last_mut().ok_or("there is no place yet that could reach to the end.")?.at_end = true;
    } else {
        let line = Line::read(line).ok_or("lines of a change must start with a space, - or +.")?;
        if hunks.is_empty() {
            hunks.push(Hunk::default());
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.lines.push(line);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tool::patch::{Change, Hunk, Line, read};

    #[test]
    fn the_three_kinds() {
        let text = "```\n*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** Delete File: b.txt\n*** Update File: c.txt\n\
            *** Move to: d.txt\n@@ fn main\n keep\n-gone\n+new\n@@\n+more\n*** End of File\n*** End Patch\n```\n";
        let line = |text: &str| Line::read(text).unwrap();
        let first = Hunk {
            headings: vec!["fn main".into()],
            lines: vec![line(" keep"), line("-gone"), line("+new")],
            ..Hunk::default()
        };
        let second = Hunk { lines: vec![line("+more")], at_end: true, ..Hunk::default() };
        assert_eq!(
            read(text).unwrap(),
            [
                Change::Add { path: "a.txt".into(), text: "one\n\n".into() },
                Change::Delete { path: "b.txt".into() },
                Change::Update { path: "c.txt".into(), to: Some("d.txt".into()), hunks: vec![first, second] },
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| read(text).unwrap_err();
        assert!(wrong("*** Begin Patch\n*** Add File: a\n+x\n").contains("no line `*** End Patch`"));
        assert!(wrong("*** Begin Patch\n*** Add File: a\nx\n*** End Patch").starts_with("Line 3 of the patch, \"x\""));
        assert!(wrong("*** Begin Patch\nx\n*** End Patch").contains("expected `*** Add File: `"));
        assert!(wrong("*** Begin Patch\n*** End Patch").contains("changes nothing"));
        assert!(wrong("hello").contains("changes nothing"));
    }
}
