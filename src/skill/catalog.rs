//! The skills of a home at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::manifest;

use super::skill::Skill;

/// A folder that is no skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its name.
    pub folder: Box<str>,
    /// Why, in a sentence.
    pub error: String,
}

/// The skills that there are, by name. Readers see one catalog or the next.
#[derive(Debug, Default)]
pub struct Catalog {
    pub(super) skills: BTreeMap<Box<str>, Arc<Skill>>,
    pub(super) failed: Vec<Failed>,
}

impl Catalog {
    /// The skill of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.skills.get(name)
    }

    /// All skills by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Folders that are no skills, by name.
    pub fn failed(&self) -> &[Failed] {
        &self.failed
    }

    /// The skills that an agent of this manifest has, by name, those with unmet needs among them.
    pub fn of<'a>(&'a self, manifest: &'a Manifest) -> impl Iterator<Item = &'a Arc<Skill>> {
        self.iter().filter(|skill| has(manifest, skill))
    }
}

/// Does an agent of this manifest have the skill? A list of skills restricts, an empty one does not.
pub fn has(manifest: &Manifest, skill: &Skill) -> bool {
    manifest::has_skill(manifest, &skill.name, &skill.content_hash)
}

/// What an agent keeps of a skill when it is frozen.
pub fn frozen(skill: &Skill) -> Box<str> {
    manifest::frozen_skill(&skill.name, &skill.content_hash)
}
