//! Long results: the conversation gets both ends and the way to read on; the whole text stands beside its row.

use agentsvc_components::kernel::limit::{TOOL_RESULT_BYTES_MAX, TOOL_RESULT_STORED_BYTES_MAX};

/// Bytes of the start of a long result that the model reads at once.
const HEAD_BYTES: usize = 8 << 10;
/// Bytes of its end.
const TAIL_BYTES: usize = 2 << 10;
/// Bytes of the answer of another agent or a workflow that a call gets.
pub(super) const SCANNED_BYTES_MAX: usize = 64 << 10;

/// The content for the conversation, and the whole where that is longer. The row that it is for names it for
/// `result_read`, as `<ordinal>.<index>`.
#[must_use]
pub fn fit(mut text: String, ordinal: u32, index: u32) -> (String, Option<String>) {
    if text.len() <= TOOL_RESULT_BYTES_MAX {
        return (text, None);
    }
    let cut = text.len().saturating_sub(TOOL_RESULT_STORED_BYTES_MAX);
    text.truncate(text.floor_char_boundary(TOOL_RESULT_STORED_BYTES_MAX));
    let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL_BYTES)..];
    let lost = if cut > 0 { format!(" {cut} more bytes were discarded.") } else { String::new() };
    let excerpt = format!(
        "{head}\n[... the result is {} bytes long; this is its start and its end.{lost} Read on with result_read, \
         result \"{ordinal}.{index}\", from offset {} ...]\n{tail}",
        text.len(),
        head.len()
    );
    (excerpt, Some(text))
}

/// What others wrote, as much of it as is scanned.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > SCANNED_BYTES_MAX {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(SCANNED_BYTES_MAX));
        let lost = bytes - text.len();
        text.push_str(&format!("\n[... {lost} more bytes were discarded ...]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_of_others_are_cut() {
        let text = "\u{e9}".repeat(SCANNED_BYTES_MAX / 2);
        assert_eq!(cut(text.clone()), text);
        let cut = cut(format!("{text}xyz"));
        assert_eq!(cut.strip_prefix(&*text).unwrap(), "\n[... 3 more bytes were discarded ...]");
    }

    #[test]
    fn a_result_that_fits_stays_as_it_is() {
        let text = "x".repeat(TOOL_RESULT_BYTES_MAX);
        assert_eq!(fit(text.clone(), 1, 2), (text, None));
    }

    #[test]
    fn a_long_result_becomes_its_ends_and_the_way_to_read_on() {
        let text = format!("begin{}end", "é".repeat(TOOL_RESULT_BYTES_MAX));
        let (excerpt, whole) = fit(text.clone(), 3, 4);
        assert!(excerpt.len() < TOOL_RESULT_BYTES_MAX && excerpt.starts_with("beginé") && excerpt.ends_with("éend"));
        assert!(excerpt.contains("result \"3.4\", from offset 8191"), "{excerpt}");
        assert_eq!(whole, Some(text));
    }

    #[test]
    fn what_is_too_long_to_keep_is_cut_and_said() {
        let (excerpt, whole) = fit("y".repeat(TOOL_RESULT_STORED_BYTES_MAX + 7), 1, 1);
        assert_eq!(whole.map(|text| text.len()), Some(TOOL_RESULT_STORED_BYTES_MAX));
        assert!(excerpt.contains("7 more bytes were discarded"));
    }
}
