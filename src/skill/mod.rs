//! Skills: what others have made for agents (spec 2, Skills and marketplaces).
//!
//! A skill is a folder of `{home}/skills` with a text for the model, and perhaps tools with code. [`read`](read()) reads one
//! and writes nothing; the [`Library`] has all of them, and everything that shows or runs skills asks it. What a turn reads of a
//! skill is untrusted content.

pub(crate) mod active;
mod catalog;
pub(crate) mod cli;
pub mod config;
mod files;
mod library;
mod needs;
mod package_json;
mod prompt;
mod read;
mod review;
mod run;
mod service;
#[allow(clippy::module_inception, reason = "the domain is named after what it holds")]
mod skill;
mod skill_md;
mod skill_toml;
#[cfg(test)]
mod tests;
mod tools;
mod uses;

use std::io;
use std::sync::Arc;
use std::thread;

use agentsvc_api::agent::frozen_skills::FrozenSkills;
use agentsvc_api::skill::library::Skills as SkillService;

use crate::kernel::domain::{Domain, Opening};
use crate::kernel::effect::performers::Performers;
use crate::tool::SkillFolders;
use crate::tool::toolset::ToolParts;

pub use catalog::{Catalog, Failed, frozen, has};
pub(crate) use files::{HISTORY, is_left_out};
pub use library::{Library, Reloaded};
pub(crate) use needs::find as find_program;
pub(crate) use prompt::Skills;
pub use read::{ReadError, read};
pub(crate) use skill::our_tool;
pub use skill::{ConfigVar, Invocation, Requirements, Runtime, Skill, SkillFile, SkillTool, Source};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "skill",
    uses: &["wasm", "agent", "injection", "manifest", "taint", "tool", "turn"],
    performers,
    open,
    ..Domain::EMPTY
};

/// The name under which the tools of skills are brought.
const SOURCE: &str = "skill";

/// Reads the skills in the background: a start does not wait for them.
fn open(opening: &Opening<'_>) -> io::Result<()> {
    let library = Library::open(opening.home, opening.settings.clone());
    opening.settings.set(Skills(Some(Arc::clone(&library))));
    let shown = Arc::clone(&library);
    opening.settings.set(SkillFolders::new(move |manifest| shown.folders(manifest)));
    let service = Arc::new(service::Service(Arc::clone(&library)));
    opening.provide::<dyn SkillService>(Arc::clone(&service) as _);
    opening.provide::<dyn FrozenSkills>(service);
    thread::Builder::new().name("skills".to_owned()).spawn(move || library.reload()).map(drop)
}

/// Brings the tools of skills.
fn performers(performers: &mut Performers) {
    let ToolParts { set, settings, injection, .. } = performers.part();
    let skills = settings.get::<Skills>();
    let Some(library) = &skills.0 else { return };
    library.set_injection(injection);
    library.watch(&performers.calls().handle);
    if !library.is_loaded() {
        // Any name may be one of theirs.
        set.expect(SOURCE, vec![String::new()]);
    }
    let of = Arc::downgrade(library);
    library.on_change("tools", move |catalog| {
        let Some(library) = of.upgrade() else { return };
        for (skill, tool) in tools::clashes(catalog) {
            tracing::warn!(%skill, %tool, "another skill has a tool of this name");
        }
        set.bring(SOURCE, tools::of(catalog, &library));
        set.expect(SOURCE, Vec::new());
    });
}
