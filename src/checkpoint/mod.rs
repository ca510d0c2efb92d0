//! Checkpoints: the files of a workspace before a tool changes them, in a Git repository of its own for each working
//! directory (spec 2, Checkpoint manager).
//!
//! ```text
//! {home}/checkpoints/
//!   <first 16 hex digits of the SHA-256 of the path>/.git/    an ordinary repository; `git log` and `git fsck` read it
//! ```
//!
//! A checkpoint is best effort: where it cannot be made, a warning is logged and the tool goes on.

mod cli;
pub mod config;
mod object;
mod repository;
mod restore;
mod rules;
mod sizes;
mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use agentsvc_api::checkpoint::checkpoints::Checkpoints;

pub(crate) use self::store::{Change, CheckpointStore};
use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "checkpoint",
    uses: &[],
    commands: &[Subcommand::group::<cli::Checkpoint>(
        29,
        "checkpoint",
        "List and restore files as they were before tools changed them",
    )
    .examples(&[
        Example::new("checkpoint list", "List the directories that have checkpoints"),
        Example::new("checkpoint restore ./work 3f9a", "Restore the files of one"),
    ])
    .under(Group::Operations)],
    open: |opening| {
        let store = CheckpointStore::new(opening.home.root().join("checkpoints"));
        opening.settings.set(store.clone());
        opening.provide::<dyn Checkpoints>(Arc::new(restore::Restorer::new(store, opening.workspaces.clone())));
        Ok(())
    },
    ..Domain::EMPTY
};
