//! Several nodes keep one world: its journal is in NATS, one node owns it, the others follow and take over.
//!
//! | part | what it does |
//! |---|---|
//! | `nats` | the journal, the copies and the connection |
//! | `members` | what nodes tell one another, and who of them owns the world |
//! | `watch` | when a standby takes over |
//! | `join` | makes the store of a node one that the journal goes on from |
//! | `node` | follows the journal, takes the world over and gives it up: one thread |
//! | `panics` | ends a node in which something has panicked |
//! | `follow` | applies entries as they come |
//! | `takeover` | waits for the servers that a takeover needs, and takes over |
//! | `giving` | gives the world away in order: what was begun is answered first |
//! | `lease` | lets an owner know that the world is still its own |
//! | `namesake` | of two nodes with one name, the later one ends |
//! | `progress`, `synced` | how far standbys are, and which are waited for |
//! | `hole` | goes on behind entries that the journal has lost |
//! | `talk` | what nodes say to one another |
//! | `seals` | what shows that something comes from a node of the cluster |
//! | `trim` | keeps the journal short |
//! | `files` | the files that all nodes have together |
//! | `words` | tells what nodes say just now from what others say, or repeat |
//! | `claims` | what is believed of that |
//! | `verify` | compares the stores of all nodes |
//! | `servers` | the journal by itself, without a node |
//! | `service` | what the API asks of the cluster |
//! | `start` | puts these together |
//!
//! Safety needs none of the clocks and beats: an owner is who appended the newest `Open` to the journal, and what a fenced one
//! appends is void for every reader. They only decide how soon somebody tries.

mod claims;
pub mod config;
mod files;
mod follow;
mod giving;
mod hole;
mod join;
mod lease;
mod members;
mod moment;
mod namesake;
mod nats;
mod node;
mod panics;
mod progress;
mod seals;
mod servers;
mod service;
mod start;
mod synced;
mod takeover;
mod talk;
mod trim;
mod verify;
mod watch;
mod words;

use crate::kernel::domain::Domain;

pub(crate) use node::Running;
pub use servers::JournalServers;
pub(crate) use start::{Clustered, Parts};

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "cluster", uses: &["snapshot"], ..Domain::EMPTY };
