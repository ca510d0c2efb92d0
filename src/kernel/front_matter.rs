//! The YAML head of a `SKILL.md` as people write it: with colons in values that have no quotes, and JSON5 in `metadata`. What loads
//! a skill and what scans it read the same.

use serde_json::Value;

use super::text_formats::{without_comments, yaml};

/// Reads YAML; then, as people write it: with values that have a colon and no quotes, and with comments of JSON5.
pub(crate) fn lenient(head: &str) -> Result<Value, String> {
    let head = &without_json5_comments(head);
    let first = match yaml(head) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if first.contains("budget") {
        return Err(format!("the front matter is not valid YAML: {first}"));
    }
    let quoted = quoted(head);
    let again = yaml(&quoted).or_else(|_| yaml(&without_comments(head))).or_else(|_| yaml(&without_comments(&quoted)));
    again.map_err(|_| format!("the front matter is not valid YAML: {first}"))
}

/// The text without comments of JSON5 in a `metadata` that is written so: YAML takes them for keys.
fn without_json5_comments(head: &str) -> String {
    let key = "metadata:";
    let at = if head.starts_with(key) { Some(0) } else { head.find("\nmetadata:").map(|at| at + 1) };
    let Some((before, rest)) = at.and_then(|at| head.split_at_checked(at + key.len())) else { return head.to_owned() };
    match rest.rfind('}') {
        Some(end) if rest.trim_start().starts_with('{') => {
            let (object, behind) = rest.split_at(end);
            format!("{before}{}{behind}", without_comments(object))
        }
        _ => head.to_owned(),
    }
}

/// The text with quotes around values of one line that have a colon and none yet.
fn quoted(head: &str) -> String {
    let mut out = String::with_capacity(head.len() + 16);
    for line in head.split_inclusive('\n') {
        out.push_str(&quoted_line(line).unwrap_or_else(|| line.to_owned()));
    }
    out
}

fn quoted_line(line: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let value = value.strip_prefix(' ')?.trim();
    if key.trim().is_empty() || !key.chars().all(is_key) || !value.contains(':') {
        return None;
    }
    if value.starts_with(['"', '\'', '[', '{', '|', '>', '&', '*']) {
        return None;
    }
    let end = if line.ends_with('\n') { "\n" } else { "" };
    Some(format!("{key}: {}{end}", Value::from(value)))
}
