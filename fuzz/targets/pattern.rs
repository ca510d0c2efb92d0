//! Patterns of triggers: what is read is written as it is read again.
#![no_main]

use agentsvc_systems::trigger::{parse_pattern, render_pattern};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(json) = serde_json::from_str(text) else { return };
    let Ok(pattern) = parse_pattern(&json) else { return };
    assert_eq!(parse_pattern(&render_pattern(&pattern)).as_ref(), Ok(&pattern));
});
