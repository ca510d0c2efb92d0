//! Lines of adapters of chat platforms, and the files of event hooks.

/// Reads the input as the output of an adapter, and as a `HOOK.yaml`.
pub fn run(input: &[u8]) {
    agentsvc::fuzzing::adapter(input);
    if let Ok(text) = std::str::from_utf8(input) {
        agentsvc::fuzzing::event_hook(text);
    }
}
