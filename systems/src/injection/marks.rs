//! What imitates chat templates, roles and tool calls, and what people do not see.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Match};

use super::fold::Folded;
use super::{Finding, Level, Reason, matcher, phrases, words};

/// Signs of templates, with their weights.
static SIGNS: LazyLock<(AhoCorasick, Vec<u8>)> = LazyLock::new(|| {
    let (signs, weights): (Vec<&str>, Vec<u8>) = phrases::weighed(phrases::SIGNS).unzip();
    (AhoCorasick::new(signs).expect("an automaton of a few signs"), weights)
});
/// What a line may begin with to imitate a role.
static ROLES: LazyLock<Vec<(&str, u8)>> = LazyLock::new(|| phrases::weighed(phrases::ROLES).collect());
/// What hides the text behind it on a page.
static CLOAKS: LazyLock<AhoCorasick> =
    LazyLock::new(|| AhoCorasick::new(phrases::CLOAKS.lines()).expect("an automaton of a few words"));
/// Zero-width characters within words from which on they are no accident.
const INVISIBLE_MIN: usize = 3;
/// Tag characters from which on they say something.
const TAGS_MIN: usize = 4;
/// Bytes of a comment that are looked at.
const COMMENT_BYTES_MAX: usize = 4 << 10;
/// Bytes behind a cloak that it is taken to cover.
const CLOAKED_BYTES: usize = 600;

/// Signs and roles in folded text.
pub(super) fn markup(text: &str, found: &mut Vec<Finding>) {
    let (signs, weights) = &*SIGNS;
    let of_sign = |sign: Match| Finding { reason: Reason::Markup, weight: weights[sign.pattern()], at: sign.start() };
    found.extend(signs.find_overlapping_iter(text).map(of_sign));
    found.extend(text.match_indices("![").filter_map(|(at, _)| image(text, at)));
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
    let cloaked = |cloak: Match| (cloak.start(), text[cloak.start()..].floor_char_boundary(CLOAKED_BYTES));
    hidden.extend(CLOAKS.find_overlapping_iter(text).map(cloaked));
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
