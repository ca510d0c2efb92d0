//! Room for texts that the world keeps in memory: so many bytes of each kind. The index of a kind keeps the sum, and its
//! `check` compares that with a scan.

use agentsvc_components::{ErrorCode, Refusal};

/// Refuses texts that are `more` bytes longer, where those of all `what` have `now` bytes and may have `most`. There
/// always is room for those that are not longer: what was loaded may have more.
pub(crate) fn has_room(now: usize, more: usize, most: usize, what: &str, code: ErrorCode) -> Result<(), Refusal> {
    if more > 0 && now.saturating_add(more) > most {
        return Err(Refusal::full(format!("{what} take {now} bytes; the limit is {most}"), code));
    }
    Ok(())
}
