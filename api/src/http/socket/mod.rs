//! A WebSocket whatever it is about: the connection behind the handshake, what waits to be sent on it, and whether the client
//! lives.

mod metered;
mod outbox;
mod pipe;

pub(crate) use outbox::Outbox;
pub(crate) use pipe::{End, LOOK_PERIOD, Pipe};

#[cfg(test)]
mod tests;
