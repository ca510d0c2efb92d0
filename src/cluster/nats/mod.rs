//! NATS JetStream keeps the journal: one stream, whose messages are the entries in their order.
//!
//! | part | what it does |
//! |---|---|
//! | `wire` | the connection, and what is known of the stream |
//! | `check` | refuses servers and streams that could lose what they acknowledged |
//! | `log` | the stream as a log, and the journal of an owner over it |
//! | `tail` | reads entries as they come |
//! | `copies` | copies of the whole world in the object store |
//! | `files` | files that all nodes have together |

mod check;
mod copies;
mod files;
mod log;
mod tail;
mod wire;

pub(crate) use files::Blocking;
pub(crate) use log::{NatsJournal, Standing};
pub(crate) use tail::Tail;
pub(crate) use wire::{NotReady, Wire};
