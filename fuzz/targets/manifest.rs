//! A manifest that is read is the same when it is rendered and read again.
#![no_main]

use agentsvc_systems::manifest;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(parsed) = manifest::parse(text) else { return };
    let rendered = manifest::render(text, &parsed.name, &parsed.manifest);
    let again = manifest::parse(&rendered).unwrap_or_else(|error| panic!("{error}: {rendered:?}"));
    assert_eq!(again, parsed, "{rendered}");
    assert_eq!(manifest::hash(&again.manifest), manifest::hash(&parsed.manifest));
});
