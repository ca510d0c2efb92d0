//! Hands: definitions in `{home}/hands/<id>/`, what the machine has of their requirements, and the command line.
//!
//! ```text
//! {home}/hands/<id>/HAND.toml, SKILL.md, SKILL-<role>.md     installed hands
//! {home}/hands/<id>/.origin                                  where a hand came from
//! {home}/registry/hands/<id>/                                hands that can be installed by name
//! ```
//!
//! Definitions are read by a thread of their own after the start. Only what lists show stays in memory.

mod cli;
pub mod config;
mod deps;
mod environment;
mod files;
mod install;
mod install_line;
mod programs;
mod texts;

use std::sync::Arc;

use agentsvc_api::hand::hands::Hands;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use files::HandFiles;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "hand",
    uses: &["browser", "manifest", "skill", "skill_scan", "skill_source", "tool"],
    commands: &[Subcommand::group::<cli::Hand>(30, "hand", "List, activate and control hands")
        .examples(&[
            Example::new("hand search", "List the hands that can be installed"),
            Example::new("hand info researcher", "Show what a hand does, needs and may do"),
            Example::new("hand activate researcher", "Create an instance with its own agents"),
        ])
        .under(Group::Abilities)],
    open: |opening| {
        let files = HandFiles::new(opening);
        files.start()?;
        let (vault, settings, commands) = (opening.vault.clone(), opening.settings.clone(), opening.commands.clone());
        opening.settings.set(environment::variables(vault, settings, commands));
        opening.provide::<dyn Hands>(Arc::clone(&files) as Arc<dyn Hands>);
        Ok(())
    },
    ..Domain::EMPTY
};
