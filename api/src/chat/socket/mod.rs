//! The WebSocket of an agent (spec 1, Events, WebSocket): one conversation over one connection.
//!
//! `http::handshake` checks the request and `http::socket` is the connection; `client` and `wire` are the messages of both
//! sides, `turns` follows what this client asked for, and `conversation` is the loop.

mod client;
mod conversation;
mod turns;
pub(crate) mod wire;

pub(crate) use conversation::{Conversation, Partner};
