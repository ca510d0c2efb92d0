//! Events that clients and agents publish themselves (spec 1, Trigger event kinds, `custom`).

mod publish;

pub use publish::PublishEvent;

use agentsvc_components::limit;

/// The beginning of a text, as much of it as an event carries.
pub(crate) fn cut(text: &str) -> Box<str> {
    let end = text.floor_char_boundary(limit::EVENT_TEXT_BYTES_MAX);
    text[..end].into()
}

#[cfg(test)]
mod tests;
