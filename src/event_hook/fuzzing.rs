//! What a fuzz target does with the text of a `HOOK.yaml`.

use super::files::{EVENTS, parsed};

/// Reads the text; gives how many events its hook wants.
pub(crate) fn file(text: &str) -> usize {
    let Ok(hook) = parsed(text, super::files::Hook::default()) else { return 0 };
    assert!(!hook.command.is_empty(), "a hook without a program was taken");
    let wanted = EVENTS.iter().filter(|event| hook.wants(event)).count();
    assert!(wanted > 0, "a hook that wants nothing was taken");
    wanted
}
