//! Which skills an agent has.

use agentsvc_components::manifest::Manifest;

/// Digits of a content hash that are kept of a frozen skill.
const HASH_DIGITS: usize = 32;

/// Does an agent of this manifest have the skill of this name and content hash? A list of skills restricts, an empty one does not.
/// A frozen agent has a skill only as it was.
#[must_use]
pub fn has_skill(manifest: &Manifest, name: &str, content_hash: &str) -> bool {
    let is_frozen_so = |frozen: &Vec<Box<str>>| {
        frozen.iter().any(|entry| {
            let rest = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix('@'));
            rest.is_some_and(|hash| hash == short(content_hash))
        })
    };
    !manifest.skills_disabled
        && (manifest.skills.is_empty() || manifest.skills.iter().any(|skill| **skill == *name))
        && manifest.frozen_skills.as_ref().is_none_or(is_frozen_so)
}

/// What an agent keeps of a skill when it is frozen: `<name>@<beginning of the content hash>`.
#[must_use]
pub fn frozen_skill(name: &str, content_hash: &str) -> Box<str> {
    format!("{name}@{}", short(content_hash)).into()
}

fn short(content_hash: &str) -> &str {
    content_hash.get(..HASH_DIGITS).unwrap_or(content_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_restricts_and_a_freeze_keeps_the_content() {
        let (old, new) = ("a".repeat(64), "b".repeat(64));
        let mut manifest = Manifest::default();
        assert!(has_skill(&manifest, "x", &old));
        manifest.skills = vec!["x".into()];
        assert!(has_skill(&manifest, "x", &old) && !has_skill(&manifest, "y", &old));
        manifest.frozen_skills = Some(vec![frozen_skill("x", &old)]);
        assert!(has_skill(&manifest, "x", &old) && !has_skill(&manifest, "x", &new));
        manifest.frozen_skills = Some(Vec::new());
        assert!(!has_skill(&manifest, "x", &old));
        manifest.frozen_skills = None;
        manifest.skills_disabled = true;
        assert!(!has_skill(&manifest, "x", &old));
    }
}
