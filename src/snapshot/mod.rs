//! Snapshots: the whole world in a file, beside its database.
//!
//! | part | what it does |
//! |------|--------------|
//! | `worlds` | takes, lists, deletes and restores snapshots of the running world |
//! | [`archives`] | the snapshots of a home: which there are, which go |
//! | `write` | writes a view of the store into a file |
//! | `stats` | counters for the metrics page |
//!
//! The form of the file is that of [`rows`](crate::kernel::store::rows).

pub mod archives;
pub(crate) mod cli;
pub mod config;
pub(crate) mod stats;
pub(crate) mod worlds;
pub mod write;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "snapshot",
    uses: &["agent", "replay"],
    commands: &[Subcommand::group::<cli::Snapshot>(
        10,
        "snapshot",
        "Create, list, delete and restore snapshots of the world",
    )
    .examples(&[
        Example::new("snapshot create --label before", "Copy the world as it is now"),
        Example::new("snapshot restore before", "Show what a restore would change"),
        Example::new("snapshot restore before --apply", "Restore it"),
    ])
    .under(Group::Operations)],
    ..Domain::EMPTY
};
