//! What imitates chat templates, roles and tool calls, and what people do not see.

use super::fold::Folded;
use super::{Finding, Level, Reason, matcher, words};

/// Signs of templates, in folded text, with their weights.
const SIGNS: &[(&str, u8)] = &[
    ("<|im_start|>", 4),
    ("<|im_end|>", 4),
    ("<|system|>", 4),
    ("<|user|>", 4),
    ("<|assistant|>", 4),
    ("<|endoftext|>", 4),
    ("<|end|>", 3),
    ("<|eot_id|>", 4),
    ("<|start_header_id|>", 4),
    ("<|begin_of_text|>", 4),
    ("<|channel|>", 4),
    ("<|message|>", 4),
    ("<|start|>", 3),
    ("<start_of_turn>", 4),
    ("<end_of_turn>", 4),
    ("[inst]", 4),
    ("[/inst]", 4),
    ("<<sys>>", 4),
    ("<system>", 3),
    ("</system>", 3),
    ("<system_prompt>", 3),
    ("</system_prompt>", 3),
    ("<system-reminder>", 3),
    ("[system]", 2),
    ("[system message]", 3),
    ("[system override]", 4),
    ("[admin override]", 4),
    ("<tool_call>", 3),
    ("<tool_calls>", 3),
    ("<function_call>", 3),
    ("<function_calls>", 3),
    ("<invoke name=", 3),
    ("<tool_use>", 3),
    ("<tool_result>", 3),
    ("</tool_result>", 3),
    ("<untrusted", 2),
    ("### instruction:", 3),
    ("### instructions:", 3),
    ("### system:", 3),
    ("### system prompt", 2),
    ("### new instructions", 3),
    ("begin system prompt", 3),
    ("begin new instructions", 3),
    ("\"tool_calls\":", 2),
    ("\"function_call\":", 2),
    ("\"role\": \"system\"", 2),
    ("\"role\":\"system\"", 2),
];
/// What a line may begin with to imitate a role.
const ROLES: &[(&str, u8)] = &[
    ("system:", 2),
    ("system prompt:", 2),
    ("system message:", 2),
    ("system override:", 4),
    ("developer:", 1),
    ("assistant:", 1),
    ("human:", 1),
    ("new instructions:", 3),
    ("new instruction:", 3),
    ("ai instructions:", 3),
    ("instructions for ai:", 3),
    ("tool result:", 2),
    ("admin override:", 4),
];
/// Zero-width characters within words from which on they are no accident.
const INVISIBLE_MIN: usize = 3;
/// Tag characters from which on they say something.
const TAGS_MIN: usize = 4;
/// Bytes of a comment that are looked at.
const COMMENT_BYTES_MAX: usize = 4 << 10;
/// What hides the text behind it on a page.
const CLOAKS: &[&str] = &[
    "display:none",
    "display: none",
    "visibility:hidden",
    "visibility: hidden",
    "font-size:0",
    "font-size: 0",
    "opacity:0",
    "opacity: 0",
    "color:white",
    "color: white",
    "color:#fff",
    "color: #fff",
    "left:-9999px",
];
/// Bytes behind a cloak that it is taken to cover.
const CLOAKED_BYTES: usize = 600;

/// Signs and roles in folded text.
pub(super) fn markup(text: &str, found: &mut Vec<Finding>) {
    for (at, byte) in text.bytes().enumerate() {
        if matches!(byte, b'<' | b'[' | b'#' | b'"' | b'b') {
            let rest = &text.as_bytes()[at..];
            let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign.as_bytes()));
            if let Some((_, weight)) = sign {
                found.push(Finding { reason: Reason::Markup, weight: *weight, at });
            }
        }
        if byte == b'!' && text.as_bytes()[at..].starts_with(b"![") {
            found.extend(image(text, at));
        }
    }
    let mut at = 0;
    for line in text.split('\n') {
        let begin = line.trim_start_matches([' ', '*', '_', '>', '-', '#']);
        if let Some((_, weight)) = ROLES.iter().find(|(role, _)| begin.starts_with(role)) {
            found.push(Finding { reason: Reason::Markup, weight: *weight, at: at + line.len() - begin.len() });
        }
        at += line.len() + 1;
    }
}

/// A picture whose address has a place for something to be put in: who shows it sends that away.
fn image(text: &str, at: usize) -> Option<Finding> {
    let rest = text[at..].get(..text[at..].floor_char_boundary(400))?;
    let open = rest.find("](http")?;
    let target = rest[open + 2..].split([')', ' ', '\n']).next()?;
    let (_, query) = target.split_once('?')?;
    let has_place = ["{", "[", "<", "%7b", "$(", "secret", "conversation", "history", "prompt", "password"]
        .iter()
        .any(|place| query.contains(place));
    has_place.then_some(Finding { reason: Reason::Exfiltration, weight: 3, at })
}

/// Comments and cloaked text of a page that hold orders.
pub(super) fn comments(text: &str, found: &mut Vec<Finding>) {
    let mut hidden = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("<!--").map(|start| from + start) {
        let end = text[start..].find("-->").map_or(text.len(), |end| start + end);
        hidden.push((start, text[start..end].floor_char_boundary(COMMENT_BYTES_MAX)));
        from = end.max(start + 4);
    }
    for cloak in CLOAKS {
        for (start, _) in text.match_indices(cloak) {
            hidden.push((start, text[start..].floor_char_boundary(CLOAKED_BYTES)));
        }
    }
    // Overlapping ones are looked at once, so that many cloaks cost no more than the text.
    hidden.sort_unstable();
    let mut seen = 0;
    for (start, length) in hidden {
        let from = text.ceil_char_boundary(start.max(seen));
        let end = start + length;
        if end > from {
            seen = end;
            let part = &text[from..end];
            let phrases = matcher::phrases(part, &words::words(part));
            if super::Report::of(phrases).level > Level::None {
                found.push(Finding { reason: Reason::Hidden, weight: 3, at: start });
            }
        }
    }
}

/// Characters that people do not see.
pub(super) fn hidden(folded: &Folded, found: &mut Vec<Finding>) {
    let (tags, at) = folded.tags();
    if tags >= TAGS_MIN {
        found.push(Finding { reason: Reason::Hidden, weight: 6, at });
    }
    let (invisible, at) = folded.invisible;
    if invisible >= INVISIBLE_MIN {
        found.push(Finding { reason: Reason::Hidden, weight: 3, at });
    }
    let (overrides, at) = folded.overrides;
    if overrides > 0 {
        found.push(Finding { reason: Reason::Hidden, weight: 3, at });
    }
}
