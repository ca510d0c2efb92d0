//! A summary without a model: the beginnings of what was said, newest first as far as there is room.
//!
//! It reads the transcript that every model gets (`compaction`), and keeps the lines of the summary before it.

/// What stands before the summary that a new one takes in.
pub(crate) const BEFORE: &str = "Summary of what came before:";
/// What stands before the transcript.
pub(crate) const TRANSCRIPT: &str = "Transcript:";
/// How what the user says is marked in a transcript.
pub(crate) const USER: &str = "User: ";
/// How what the agent says is marked in a transcript.
pub(crate) const ASSISTANT: &str = "Assistant: ";

/// Entries that a summary lists; the older ones are only counted.
const ENTRIES_MAX: usize = 40;
/// Bytes of one entry.
const ENTRY_BYTES_MAX: usize = 120;
/// How an entry begins.
const BULLET: &str = "- ";
/// How the line begins that counts the entries left out.
const OLDER: &str = "Older entries omitted: ";

/// Summarises the text of a request for a summary.
pub(super) fn extract(request: &str) -> String {
    let (before, transcript) = request.split_once(TRANSCRIPT).unwrap_or(("", request));
    let before = before.trim().strip_prefix(BEFORE).unwrap_or_default();
    let mut left_out = before.lines().find_map(|line| line.strip_prefix(OLDER)?.parse::<usize>().ok()).unwrap_or(0);
    let mut entries: Vec<String> =
        before.lines().filter_map(|line| line.strip_prefix(BULLET)).map(str::to_owned).collect();
    entries.extend(transcript.lines().filter_map(entry));
    let spare = entries.len().saturating_sub(ENTRIES_MAX);
    left_out += spare;
    let mut summary = String::new();
    if left_out > 0 {
        summary = format!("{OLDER}{left_out}\n");
    }
    for entry in &entries[spare..] {
        summary.push_str(BULLET);
        summary.push_str(entry);
        summary.push('\n');
    }
    if summary.is_empty() { "Nothing was said.".to_owned() } else { summary.trim_end().to_owned() }
}

/// What a line of the transcript says, in short; `None` for what is no beginning of an entry.
fn entry(line: &str) -> Option<String> {
    let (who, said) = match (line.strip_prefix(USER), line.strip_prefix(ASSISTANT)) {
        (Some(said), _) => ("The user said", said),
        (None, Some(said)) => ("The assistant said", said),
        (None, None) => return None,
    };
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = words.find(['.', '!', '?']).map_or(words.as_str(), |end| &words[..=end]);
    let cut = &sentence[..sentence.floor_char_boundary(ENTRY_BYTES_MAX)];
    let dots = if cut.len() < words.len() { " ..." } else { "" };
    Some(format!("{who}: {cut}{dots}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginnings_of_what_was_said() {
        let request = format!("{TRANSCRIPT}\nUser: I like tea. And ships.\nmore\n[look gives: rain]\nAssistant: ok\n");
        assert_eq!(extract(&request), "- The user said: I like tea. ...\n- The assistant said: ok");
        assert_eq!(extract(TRANSCRIPT), "Nothing was said.");
    }

    #[test]
    fn the_summary_before_is_taken_in_and_the_oldest_fall_out() {
        let mut summary = String::new();
        for round in 0..30 {
            let before = if summary.is_empty() { String::new() } else { format!("{BEFORE}\n{summary}\n\n") };
            summary = extract(&format!("{before}{TRANSCRIPT}\nUser: round {round}\nAssistant: {}\n", "x".repeat(500)));
        }
        let lines: Vec<&str> = summary.lines().collect();
        assert_eq!((lines.len(), lines[0]), (1 + ENTRIES_MAX, "Older entries omitted: 20"));
        assert_eq!(lines[1], "- The user said: round 10");
        assert!(lines.iter().all(|line| line.len() < ENTRY_BYTES_MAX + 40));
    }
}
