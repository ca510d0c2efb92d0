//! Patches of files, as models write them: read, fitted or refused.

use super::feed::parts;

/// `input` is a file and, behind a line `====`, a patch.
pub fn run(input: &[u8]) {
    let parts = parts(input, "====");
    let file = String::from_utf8_lossy(parts[0]);
    let patch = String::from_utf8_lossy(parts.get(1).copied().unwrap_or_default());
    if let Err(why) = agentsvc::fuzzing::patched(&file, &patch) {
        assert!(!why.is_empty());
    }
}
