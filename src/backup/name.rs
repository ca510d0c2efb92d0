//! Names: which entries an archive may hold, and what a backup's file may be called.

use std::collections::HashSet;

use agentsvc_components::kernel::limit;

use super::component::{CONFIG, Part, TREES};
use super::error::Error;
use super::manifest::{Entry, MANIFEST, Manifest};
use crate::kernel::disk_watch::RESERVE;

/// What the name of a backup ends with.
pub const ENDING: &str = ".tar.zst";
/// Bytes of one segment of a path; file systems take no more.
const SEGMENT_BYTES_MAX: usize = 255;

/// What lies under `data/` and is never in an archive: the live store, what is made beside it, its reserve, the input log
/// and the snapshots.
const RESERVED: [&str; 5] = ["world", "inputs", "snapshots", super::place::ROOM, RESERVE];

/// Is the entry of the data directory, given by its first segment, none of what a backup holds?
pub fn is_reserved(segment: &str) -> bool {
    // The store is built as `world.new-<pid>` and exchanged as `world.old`.
    let stem = segment.split('.').next().unwrap_or_default();
    RESERVED.contains(&segment) || stem == "world" && segment != "world.rows"
}

/// Does the entry of the data directory go into no backup, and stay where it is through a restore? What is of this process
/// alone, such as lists of fires of rehearsals, what is derived from the store, and what a repair has kept for a person.
pub fn is_aside(segment: &str) -> bool {
    ["rehearsals", "memory-index", "memory-vectors"].contains(&segment)
        || segment.starts_with("restore.damaged")
        || segment.starts_with("restore.json.damaged")
}

/// Checks the name of an entry: relative, plain, and one of those that an archive of ours holds.
pub fn check_entry(name: &str) -> Result<(), &'static str> {
    check_path(name)?;
    let (root, rest) = name.split_once('/').unwrap_or((name, ""));
    let is_sealed =
        |rest: &str| rest.strip_suffix(".sealed").is_some_and(|stem| !stem.is_empty() && !rest.contains('/'));
    let is_known = match root {
        _ if name == MANIFEST || name == CONFIG || Part::of_entry(name).is_some() => true,
        "vault" => is_sealed(rest),
        "data" => !rest.is_empty() && !is_reserved(rest.split('/').next().unwrap_or_default()),
        _ => !rest.is_empty() && TREES.iter().any(|(tree, _)| *tree == root),
    };
    if is_known { Ok(()) } else { Err("is not part of a backup") }
}

/// Checks that a path stays where it is put.
pub fn check_path(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("is empty");
    }
    if name.len() > limit::BACKUP_NAME_BYTES_MAX {
        return Err("is too long");
    }
    if name.starts_with('/') {
        return Err("is absolute");
    }
    // A file may be in the deepest directory, which itself may be beneath `data/`.
    if name.split('/').count() > limit::BACKUP_DEPTH_MAX + 2 {
        return Err("is nested too deeply");
    }
    if name.chars().any(char::is_control) {
        return Err("contains control characters");
    }
    for segment in name.split('/') {
        match segment {
            "" => return Err("has an empty segment"),
            "." | ".." => return Err("is outside its directory"),
            _ if segment.len() > SEGMENT_BYTES_MAX => return Err("is too long"),
            _ => {}
        }
    }
    Ok(())
}

/// Checks the file name of a backup in a request.
pub fn check_filename(name: &str) -> Result<(), &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.contains('/') || name.contains('\\') || name == "." || name == ".." {
        return Err("must be a file name, without a path");
    }
    if name.is_empty() || name.len() > SEGMENT_BYTES_MAX || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err("must be letters, digits, '.', '-' and '_'");
    }
    if !name.ends_with(ENDING) || name.len() == ENDING.len() {
        return Err("must end with .tar.zst");
    }
    Ok(())
}

/// Checks what the manifest says before anything else is read.
pub(super) fn check_manifest(manifest: &Manifest) -> Result<(), Error> {
    if manifest.entries.len() > limit::BACKUP_ENTRIES_MAX {
        return Err(Error::TooLarge(format!("it has more than {} entries", limit::BACKUP_ENTRIES_MAX)));
    }
    if manifest.bytes() > limit::BACKUP_BYTES_MAX {
        return Err(Error::TooLarge(format!("it contains more than {} bytes", limit::BACKUP_BYTES_MAX)));
    }
    let mut names = HashSet::with_capacity(manifest.entries.len());
    for Entry { name, .. } in &manifest.entries {
        let refused = |reason| Error::Unsafe { name: name.clone(), reason };
        check_entry(name).map_err(refused)?;
        if name == MANIFEST || !names.insert(name.as_str()) {
            return Err(refused("is a duplicate"));
        }
    }
    // A file cannot be a directory, too.
    for name in &names {
        let mut parents = name.match_indices('/').map(|(at, _)| &name[..at]);
        if parents.any(|parent| names.contains(parent)) {
            return Err(Error::Unsafe { name: (*name).to_owned(), reason: "has a file as its parent directory" });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::{Component as PathComponent, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_of_ours_pass() {
        for name in [
            "manifest.json",
            "config.toml",
            "world/agents.rows",
            "data/cron_jobs.rows",
            "data/world.rows",
            "audit/trail.rows",
            "data/bindings.json",
            "vault/provider-openai.sealed",
            "skills/weather/skill.toml",
            "workspaces/a b/ü/…/x..y",
            "uploads/1.json",
        ] {
            assert_eq!(check_entry(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for name in [
            "",
            "/etc/passwd",
            "../x",
            "data/../../x",
            "data/./x",
            "data//x",
            "data/",
            "skills",
            "etc/passwd",
            "vault/vault.key",
            "vault/audit.key",
            "vault/.sealed",
            "vault/a/b.sealed",
            "data/world",
            "data/world/journal",
            "data/world.new-7/x",
            "data/inputs/1",
            "data/reserve",
            "data/snapshots/1.rows.zst",
            "data/.restore/x",
            "logs/a",
            "daemon.lock",
            "data/a\nb",
            "data/a\0b",
        ] {
            assert!(check_entry(name).is_err(), "{name:?}");
        }
        assert!(check_entry(&format!("data/{}", "a".repeat(256))).is_err());
        assert!(check_entry(&format!("data{}", "/a".repeat(600))).is_err());
        assert_eq!(check_entry(&format!("data{}", "/a".repeat(65))), Ok(()));
        assert_eq!(check_entry(&format!("data{}", "/a".repeat(66))), Err("is nested too deeply"));
    }

    #[test]
    fn file_names_have_no_path() {
        assert_eq!(check_filename("agentsvc-20261122T030000Z.tar.zst"), Ok(()));
        for name in
            ["", ".tar.zst", "../a.tar.zst", "a/b.tar.zst", "a\\b.tar.zst", ".a.tar.zst", "a.zip", "a b.tar.zst"]
        {
            assert!(check_filename(name).is_err(), "{name:?}");
        }
    }

    /// Texts that are nearly paths.
    fn nearly_paths() -> impl Strategy<Value = String> {
        let segment =
            prop_oneof!["[a-z.]{0,3}", Just("..".to_owned()), Just("data".to_owned()), "\\PC{0,3}", "[\\\\/\0]{1,2}"];
        (proptest::collection::vec(segment, 0..6), prop_oneof![Just("/"), Just("//"), Just("\\")])
            .prop_map(|(segments, between)| segments.join(between))
    }

    proptest! {
        #[test]
        fn a_name_that_passes_stays_beneath(name in nearly_paths()) {
            if check_path(&name).is_ok() {
                let path = Path::new(&name);
                prop_assert!(path.components().all(|part| matches!(part, PathComponent::Normal(_))), "{name:?}");
                prop_assert_eq!(path.components().count(), name.split('/').count());
            }
        }

        #[test]
        fn a_file_name_that_passes_is_one_segment(name in "\\PC{0,12}(\\.tar\\.zst)?") {
            if check_filename(&name).is_ok() {
                prop_assert_eq!(Path::new(&name).components().count(), 1);
                let path = Path::new("/b").join(&name);
                prop_assert_eq!(path.parent(), Some(Path::new("/b")));
            }
        }

        #[test]
        fn entries_never_reach_the_store_or_keys(name in nearly_paths()) {
            if check_entry(&name).is_ok() {
                prop_assert!(!name.starts_with("data/world/") && !name.ends_with(".key"));
            }
        }
    }
}
