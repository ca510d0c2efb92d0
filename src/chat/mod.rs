//! Chats: their bindings, and the chat of the command line.

pub mod bindings;
pub(crate) mod cli;
