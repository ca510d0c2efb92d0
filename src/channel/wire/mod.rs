//! What a channel adapter and the daemon write to each other: one JSON object per line, both ways (facts of channels, 1.2
//! to 1.4).

pub(crate) mod bytes;
pub(crate) mod command;
pub(crate) mod content;
pub(crate) mod event;
#[cfg(test)]
mod tests;

pub(crate) use command::Command;
pub(crate) use content::Content;
pub(crate) use event::Event;
