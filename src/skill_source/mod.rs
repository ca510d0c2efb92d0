//! Where skills come from (spec 2, Skills and marketplaces): paths, archives, Git repositories, sites, hubs and the registry.
//!
//! ```text
//! source.rs     what a client writes, read
//! fetch.rs ...  its files in a staging folder, checksums compared
//! look.rs       read as a skill, converted, scanned
//! folders.rs    the folder in its place, in one step
//! ```

mod archive;
mod cache;
pub(crate) mod cli;
pub mod config;
mod convert;
pub(crate) mod entry;
mod fetch;
mod fetcher;
pub(crate) mod folders;
mod git;
mod hub;
mod hub_install;
mod look;
mod marketplace;
mod registry;
mod registry_place;
mod select;
mod service;
mod site;
mod source;
pub(crate) mod staging;
mod sums;
mod tree;
mod wire;

use std::io;
use std::sync::Arc;

use agentsvc_api::skill_source::sources::Sources;

pub(crate) use self::config::Registry as RegistryUrl;
pub(crate) use self::fetcher::Fetcher;
use self::folders::{Folders, SkillFolders};
use self::registry::Registry;
pub(crate) use self::registry_place::RegistryPlace;
use self::service::Service;
use self::wire::Wire;
use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::{Domain, Opening};
use crate::skill::Skills;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "skill_source",
    uses: &["skill", "skill_scan"],
    commands: &[Subcommand::group::<cli::SkillCommand>(31, "skill", "Find, install, show and remove skills")
        .examples(&[
            Example::new("skill search 'pull request'", "Find skills"),
            Example::new("skill install ./my-skill", "Install one from a folder"),
            Example::new("skill list", "List the skills, and what they lack"),
        ])
        .under(Group::Abilities)],
    open,
    ..Domain::EMPTY
};

fn open(opening: &Opening<'_>) -> io::Result<()> {
    let skills = opening.settings.get::<Skills>();
    let Some(library) = skills.library() else { return Ok(()) };
    let folders = Folders::new(library.folder().to_owned());
    opening.settings.set(SkillFolders(Some(folders.clone())));
    let (wire, settings) = (Wire::new(opening.web.clone()), opening.settings.clone());
    let registry = Registry::new(opening.home);
    settings.set(RegistryPlace::new(Arc::clone(&registry), wire.clone(), settings.clone()));
    settings.set(Fetcher::new(wire.clone(), opening.commands.clone()));
    let way = (wire, opening.commands.clone());
    let service = Service::new((folders, Arc::clone(library)), way, settings, registry);
    if let Err(error) = service.clean() {
        tracing::warn!(%error, "what earlier installations left in the folder of skills cannot be removed");
    }
    opening.provide::<dyn Sources>(Arc::new(service));
    Ok(())
}
