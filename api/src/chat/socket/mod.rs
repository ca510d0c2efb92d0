//! The WebSocket of an agent (spec 1, Events, WebSocket): one conversation over one connection.
//!
//! `handshake` checks the request, `pipe` is the connection, `client` and `wire` are the messages of both sides,
//! `turns` follows what this client asked for, `outbox` bounds what waits for it, and `conversation` is the loop.

mod client;
mod conversation;
mod outbox;
mod pipe;
mod turns;
pub(crate) mod wire;

pub(crate) use conversation::{Conversation, Partner};
