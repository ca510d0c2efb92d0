//! Patterns of triggers: what is read is written as it is read again, and matches what happens without harm.

use agentsvc_systems::event::{parse_pattern, render_pattern};

/// `input` is a pattern in JSON.
pub fn run(input: &[u8]) {
    let Ok(json) = serde_json::from_slice(input) else { return };
    let Ok(pattern) = parse_pattern(&json) else { return };
    assert_eq!(parse_pattern(&render_pattern(&pattern)).as_ref(), Ok(&pattern));
}
