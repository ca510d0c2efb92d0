//! Manifests: one that is read is the same when it is rendered and read again.

use agentsvc_systems::manifest;

/// `input` is a manifest in TOML.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(parsed) = manifest::parse(text) else { return };
    let rendered = manifest::render(text, &parsed.name, &parsed.manifest);
    let again = manifest::parse(&rendered).unwrap_or_else(|error| panic!("{error}: {rendered:?}"));
    assert_eq!(again, parsed, "{rendered}");
    assert_eq!(manifest::hash(&again.manifest), manifest::hash(&parsed.manifest));
}
