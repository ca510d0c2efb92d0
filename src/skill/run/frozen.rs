//! Skills of agents in the mode `Stable`: their code runs only as long as it is the code that was frozen.

use sha2::{Digest as _, Sha256};

use crate::skill::files::Folder;
use crate::skill::read::ReadError;
use crate::skill::skill::Skill;

/// Compares the folder with what was read of it: sizes and times, and if those differ, every byte. The catalog has compared its
/// hash with the frozen one. What is changed after this is not seen; skills are read-only for commands of agents. Blocks on the
/// disk.
///
/// # Errors
/// A sentence for the model: it changed, or cannot be read.
pub(super) fn check(skill: &Skill) -> Result<(), String> {
    match is_same(skill) {
        Ok(true) => Ok(()),
        Ok(false) => Err(changed(skill)),
        Err(error) => Err(format!("The files of the skill {:?} cannot be checked: {error}.", skill.name)),
    }
}

/// Compares the bytes of a module that were read with those that were frozen.
///
/// # Errors
/// As [`check`].
pub(super) fn check_entry(skill: &Skill, bytes: &[u8]) -> Result<(), String> {
    let entry = skill.entry.as_deref().unwrap_or_default();
    let known = skill.files.iter().find(|file| *file.path == *entry);
    // A hidden one is in no list: its folder was compared a moment ago.
    match known.is_none_or(|known| known.sha256 == <[u8; 32]>::from(Sha256::digest(bytes))) {
        true => Ok(()),
        false => Err(changed(skill)),
    }
}

fn changed(skill: &Skill) -> String {
    format!("The skill {:?} was changed since this agent's skills were frozen.", skill.name)
}

fn is_same(skill: &Skill) -> Result<bool, ReadError> {
    let folder = Folder::open(&skill.folder)?;
    let listing = folder.list()?;
    Ok(skill.stamp == Some(listing.stamp()) || folder.sums(&listing)?.1 == skill.content_hash)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::skill::read;

    #[test]
    fn only_the_files_that_were_read_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("code");
        fs::create_dir(&path).unwrap();
        let put = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
        put("skill.toml", "[skill]\nname = \"code\"\n[runtime]\ntype = \"python\"\nentry = \"main.py\"\n");
        put("main.py", "print(1)");
        let skill = read(&path).unwrap();
        assert_eq!(check(&skill), Ok(()));
        assert_eq!(check_entry(&skill, b"print(1)"), Ok(()));
        assert!(check_entry(&skill, b"print(2)").unwrap_err().contains("was changed"));
        put("main.py", "print(2)");
        assert!(check(&skill).unwrap_err().contains("was changed"));
        // The same bytes at another time are the same skill.
        put("main.py", "print(1)");
        assert_eq!(check(&skill), Ok(()));
        put(".env", "hidden, and imported");
        assert!(check(&skill).unwrap_err().contains("was changed"));
        fs::remove_dir_all(&path).unwrap();
        assert!(check(&skill).unwrap_err().contains("cannot be checked"));
    }
}
