//! Several nodes keep one world: its journal is in NATS, one node owns it, the others follow and take over.
//!
//! | part | what it does |
//! |---|---|
//! | `nats` | the journal, the copies and the connection |
//! | `members` | what nodes tell one another, and who of them owns the world |
//! | `watch` | when a standby takes over |
//! | `join` | makes the store of a node one that the journal goes on from |
//! | `node` | follows the journal, takes the world over and gives it up: one thread |
//! | `talk` | what nodes say to one another |
//! | `seals` | what shows that something comes from a node of the cluster |
//! | `trim` | keeps the journal short |
//! | `words` | tells what nodes say just now from what others say, or repeat |
//! | `claims` | what is believed of that |
//! | `verify` | compares the stores of all nodes |
//! | `service` | what the API asks of the cluster |
//! | `start` | puts these together |
//!
//! Safety needs none of the clocks and beats: an owner is who appended the newest `Open` to the journal, and what a fenced one
//! appends is void for every reader. They only decide how soon somebody tries.

mod claims;
pub mod config;
mod join;
mod members;
mod moment;
mod nats;
mod node;
mod seals;
mod service;
mod start;
mod talk;
mod trim;
mod verify;
mod watch;
mod words;

use crate::kernel::domain::Domain;

pub(crate) use node::Running;
pub(crate) use start::{Clustered, Parts};

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "cluster", uses: &["snapshot"], ..Domain::EMPTY };
