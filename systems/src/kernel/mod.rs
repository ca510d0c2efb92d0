//! What every domain's behaviour is built on; it names no domain.

pub(crate) mod automation;
pub mod check;
pub mod clock;
pub mod command;
pub mod engine;
pub(crate) mod expr;
pub mod footprint;
pub mod glob;
pub mod index;
pub mod laps;
pub mod mint;
pub(crate) mod outbox;
pub(crate) mod persist;
pub(crate) mod quota;
pub mod record;
pub(crate) mod restore;
pub mod stage;
pub mod stats;
pub mod stored;
pub(crate) mod table;
pub mod watch;
