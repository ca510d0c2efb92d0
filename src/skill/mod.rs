//! Skills: what others have made for agents (spec 2, Skills and marketplaces).
//!
//! A skill is a folder of `{home}/skills` with a text for the model, and perhaps tools with code. [`read`](read()) reads one
//! and writes nothing; the [`Library`] has all of them, and everything that shows or runs skills asks it.

mod catalog;
pub mod config;
mod files;
mod library;
mod needs;
mod package_json;
mod read;
#[allow(clippy::module_inception, reason = "the domain is named after what it holds")]
mod skill;
mod skill_md;
mod skill_toml;

pub use catalog::{Catalog, Failed, frozen, has};
pub use library::{Library, Reloaded};
pub use read::{ReadError, read};
pub(crate) use skill::our_tool;
pub use skill::{ConfigVar, Invocation, Requirements, Runtime, Skill, SkillFile, SkillTool, Source};
