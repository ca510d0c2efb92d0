//! `auto_dream_enabled` and what goes with it: read, refused, written back.

use agentsvc_components::manifest::AutoDream;
use proptest::prelude::*;

use super::{parse, render};

fn read(keys: &str) -> Result<AutoDream, String> {
    parse(&format!("name = 'x'\n{keys}")).map(|parsed| parsed.manifest.auto_dream).map_err(|error| error.to_string())
}

#[test]
fn the_keys_are_read_and_checked() {
    assert!(read("").unwrap().is_unset());
    let keys = "auto_dream_enabled = true\nauto_dream_min_hours = 12\nauto_dream_min_sessions = 3";
    let all = AutoDream { enabled: Some(true), min_hours: Some(12), min_sessions: Some(3) };
    assert_eq!(read(keys).unwrap(), all);
    for (key, wrong) in [
        ("auto_dream_enabled = 1", "line 2: `auto_dream_enabled`: expected true or false, found a whole number"),
        ("auto_dream_min_hours = -1", "line 2: `auto_dream_min_hours`: expected a whole number from 0 to 4294967295"),
        ("auto_dream_min_sessions = 'x'", "line 2: `auto_dream_min_sessions`: expected a whole number, found a string"),
    ] {
        assert_eq!(read(key).unwrap_err(), wrong);
    }
}

proptest! {
    #[test]
    fn rendered_texts_say_what_was_asked(
        was in any::<bool>(), asked in any::<(Option<bool>, Option<u32>, Option<u32>)>(),
    ) {
        let original = if was { "name = 'x'\nauto_dream_min_hours = 5 # c\n" } else { "name = 'x'\n" };
        let mut manifest = parse(original).unwrap().manifest;
        let (enabled, min_hours, min_sessions) = asked;
        manifest.auto_dream = AutoDream { enabled, min_hours, min_sessions };
        let rendered = render(original, "x", &manifest);
        prop_assert_eq!(parse(&rendered).unwrap().manifest, manifest);
    }
}
