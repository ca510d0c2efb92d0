//! Skills that change (spec 2, Skills and marketplaces): created and edited over the API and by agents, with their versions.
//!
//! ```text
//! {home}/skills/<name>/
//!   .evolution.json           versions, newest last, and counts
//!   .evolution/<hash>.json    the files of each of these versions, for a rollback
//! {data_dir}/skill-pending/
//!   <id>.json                 a change that an agent proposed, until a person has decided
//! ```
//!
//! A change prepares the whole folder beside the skill, history and kept versions in it, and takes its place in one step: a kill
//! leaves the old skill with the old history, or the new one with the new. What comes of a change is scanned before.
//!
//! What an agent writes is read by other agents later, so it is untrusted: it waits for a person, unless `[skills] evolution`
//! is `on`, the turn has read nothing untrusted, and the change neither runs anything nor takes anything away.

mod content;
mod edit;
mod evolver;
mod history;
mod pending;
mod propose;
mod service;
#[cfg(test)]
mod tests;
mod tools;

use std::sync::Arc;

use agentsvc_api::skill_evolution::evolution::SkillEvolution;
use agentsvc_components::Timestamp;
use parking_lot::Mutex;

use self::evolver::Evolver;
use self::pending::Pending;
use crate::kernel::domain::{Domain, Opening};
use crate::kernel::world_loop::Clock;
use crate::skill::Skills;
use crate::skill_source::folders::SkillFolders;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "skill_evolution",
    uses: &["audit", "config", "manifest", "security", "skill", "skill_scan", "skill_source", "tool"],
    brings: |brought| brought.add(tools::TOOLS),
    open,
    ..Domain::EMPTY
};

/// The evolver of this home, for tools.
#[derive(Clone, Default)]
struct InForce(Option<Arc<Evolver>>);

fn open(opening: &Opening<'_>) -> std::io::Result<()> {
    let (skills, folders) = (opening.settings.get::<Skills>(), opening.settings.get::<SkillFolders>());
    let (Some(library), Some(folders)) = (skills.library(), &folders.0) else { return Ok(()) };
    let pending = Pending::new(opening.data_dir.join("skill-pending"));
    let evolver = Arc::new(Evolver {
        library: Arc::clone(library),
        folders: folders.clone(),
        pending,
        deciding: Mutex::default(),
    });
    opening.settings.set(InForce(Some(Arc::clone(&evolver))));
    opening.provide::<dyn SkillEvolution>(evolver);
    Ok(())
}

/// The time of day.
fn now() -> Timestamp {
    (Clock::system().wall)()
}
