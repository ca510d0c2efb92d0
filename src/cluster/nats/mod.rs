//! NATS JetStream keeps the journal: one stream, whose messages are the entries in their order.
//!
//! | part | what it does |
//! |---|---|
//! | `wire` | the connection, and what is known of the stream |
//! | `check` | refuses servers and streams that could lose what they acknowledged |
//! | `append` | the journal of an owner: appends with the sequence that it expects, and finds out what became of it |
//! | `tail` | reads entries as they come |
//! | `parts` | entries that are larger than a message |
//! | `copies` | copies of the whole world in the object store |

mod append;
mod check;
mod copies;
mod parts;
mod tail;
mod wire;

pub(crate) use append::{NatsJournal, Standing};
pub(crate) use copies::Copy;
pub(crate) use tail::Tail;
pub(crate) use wire::{NotReady, Relation, Wire};
