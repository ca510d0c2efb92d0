//! Backups: the whole home in one file, and back (spec 2, Backup and restore).
//!
//! | file | holds |
//! |---|---|
//! | [`component`] | what an archive is made of, and what of it a restore takes |
//! | [`manifest`] | its first entry: what every other one must be |
//! | [`name`] | which names are safe |
//! | [`create`], `write`, `files`, `pack`, `rows` | how one is made |
//! | `read`, `stage` | how one is read that anybody may have made |
//! | `merge`, [`restore`] | the world that comes of it |
//! | [`place`] | how the new takes the place of the old |
//! | [`unfinished`] | what becomes of a restore that was cut off and cannot be carried out |
//! | [`offline`] | the same for a home that no daemon has |
//! | [`archives`] | the directory of backups |
//! | [`progress`] | how far it is |

pub mod archives;
pub(crate) mod cli;
pub mod component;
pub mod config;
pub mod create;
pub mod error;
mod files;
pub(crate) mod live;
pub mod manifest;
mod merge;
pub mod name;
pub mod offline;
mod pack;
pub mod place;
pub mod progress;
pub mod read;
pub mod restore;
mod rows;
mod stage;
pub mod unfinished;
mod write;

pub use create::create;
pub use error::Error;
pub use files::Places;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::store::view::StoreView;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "backup",
    uses: &["agent", "audit", "config", "snapshot", "schedule", "upload"],
    commands: &[
        Subcommand::new::<cli::Backup>(11, "backup", "Create, list and delete backups of the whole home")
            .examples(&[
                Example::new("backup", "Make a backup now"),
                Example::new("backup list", "List the backups"),
                Example::new("restore agentsvc-1.tar.zst --dry-run", "See what a restore would change"),
            ])
            .under(Group::Operations),
        Subcommand::new::<cli::restore::Restore>(
            12,
            "restore",
            "Restore a backup into the running daemon or an unused home",
        )
        .examples(&[
            Example::new("restore agentsvc-1.tar.zst --dry-run", "Show what would change"),
            Example::new("restore agentsvc-1.tar.zst --components agents,skills", "Only these parts"),
        ])
        .under(Group::Operations),
    ],
    ..Domain::EMPTY
};

/// The number of the newest step of a view; `None` while steps are not numbered.
fn step_of(view: &StoreView) -> Result<Option<u64>, Error> {
    Ok(Some(view.step()?.number).filter(|number| *number > 0))
}
