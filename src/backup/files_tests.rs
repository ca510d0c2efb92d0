//! What goes into a backup, and what agents can do to it meanwhile.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::backup::manifest::Manifest;
use crate::backup::pack::Packer;
use crate::backup::write::ArchiveWriter;
use crate::kernel::removal;
use crate::kernel::testing::{Exchanging, deep};

fn places(root: &Path, data: PathBuf, backups: &str) -> Places {
    let (home, backups) = (Home::new(root), root.join(backups));
    Places { home, data, backups, workspaces: true, data_dir: None, read: ReadConfig::default() }
}

/// The entries, where each is, and the warnings.
fn list(places: &Places) -> (Vec<String>, Vec<PathBuf>, Vec<String>) {
    let (mut entries, mut paths) = (Vec::new(), Vec::new());
    let warnings = visit(places, &mut |found| {
        entries.push(found.entry.to_owned());
        paths.push(found.path.to_owned());
        Ok(None)
    });
    (entries, paths, warnings.unwrap().into_list())
}

/// A backup of the files, and what it says of them.
fn pack(places: &Places) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
    pack_at_most(places, 1_000)
}

/// The same, with at most so many entries.
fn pack_at_most(places: &Places, entries_max: usize) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
    let path = places.home.root().join("x.tar.zst");
    let mut archive = ArchiveWriter::begin(&path).unwrap();
    let mut names = Names::default();
    let mut count = |found: &Found<'_>| {
        names.add(found);
        Ok(None)
    };
    visit(places, &mut count).unwrap();
    let mut packer = Packer::bounded(&mut archive, places.home.root().join("spool"), names, entries_max);
    let mut warnings = visit(places, &mut |found| packer.pack(found)).unwrap();
    packer.left_out().for_each(|text| warnings.add(text));
    let warnings = warnings.into_list();
    archive.finish(Manifest::default()).unwrap();
    let mut packed = Vec::new();
    let mut archive = tar::Archive::new(zstd::Decoder::new(File::open(path).unwrap()).unwrap());
    for entry in archive.entries().unwrap().skip(1) {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        io::Read::read_to_end(&mut entry, &mut content).unwrap();
        packed.push((entry.path().unwrap().to_string_lossy().into_owned(), content));
    }
    (packed, warnings)
}

fn write(root: &Path, path: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x").unwrap();
}

#[test]
fn what_is_state_goes_in_and_what_is_not_stays_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for path in [
        "config.toml",
        "daemon.lock",
        "logs/a.log",
        "vault/vault.key",
        "vault/audit.key",
        "vault/audit.checkpoint",
        "vault/provider-x.sealed",
        "data/world/version",
        "data/world.new-1/version",
        "data/inputs/1.seg",
        "data/snapshots/1.json",
        "data/.restore/new/config.toml",
        "data/rehearsals/1.fires",
        "data/memory-index/1.segment",
        "data/memory-vectors/0a/version",
        "data/restore.damaged.2/old/bindings.json",
        "data/bindings.json",
        "data/bindings.json.new",
        "data/deep/er/file",
        "skills/s/skill.toml",
        "workspaces/a/notes/x.txt",
        "uploads/.1.part",
        "uploads/1",
        "agent-types/coder.toml",
        "backups/old.tar.zst",
    ] {
        write(root, path);
    }
    symlink("/etc/passwd", root.join("workspaces/a/link")).unwrap();
    write(root, "workspaces/a/new\nline");
    let mut places = places(root, root.join("data"), "backups");
    let (entries, paths, warnings) = list(&places);
    let expected = [
        "agent-types/coder.toml",
        "config.toml",
        "data/bindings.json",
        "data/deep/er/file",
        "skills/s/skill.toml",
        "uploads/1",
        "vault/provider-x.sealed",
        "workspaces/a/notes/x.txt",
    ];
    assert_eq!(entries, expected);
    assert!(entries.iter().zip(&paths).all(|(entry, path)| places.target(entry) == *path));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.iter().any(|text| text.contains("not a regular file")), "{warnings:?}");
    places.workspaces = false;
    assert!(!list(&places).0.iter().any(|entry| entry.starts_with("workspaces")));
}

#[test]
fn what_agents_close_or_link_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for path in ["outside", "workspaces/a/here", "workspaces/b/closed/x"] {
        write(root, path);
    }
    fs::hard_link(root.join("outside"), root.join("workspaces/a/linked")).unwrap();
    fs::hard_link(root.join("outside"), root.join("workspaces/a/linked twice")).unwrap();
    fs::hard_link(root.join("workspaces/a/here"), root.join("workspaces/a/too")).unwrap();
    // One name in each of two workspaces: neither has all of them.
    write(root, "workspaces/b/shared");
    fs::hard_link(root.join("workspaces/b/shared"), root.join("workspaces/a/shared")).unwrap();
    let _pipe = std::os::unix::net::UnixListener::bind(root.join("workspaces/a/pipe")).unwrap();
    deep(&root.join("workspaces/a/deep"), 20_000);
    let closed = root.join("workspaces/b/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let may_all = fs::read_dir(&closed).is_ok();
    let (packed, warnings) = pack(&places(root, root.join("data"), "backups"));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let packed: Vec<_> = packed.iter().map(|(entry, _)| entry.as_str()).collect();
    let mut expected = vec!["workspaces/a/here", "workspaces/a/too"];
    expected.extend(may_all.then_some("workspaces/b/closed/x"));
    assert_eq!(packed, expected);
    for why in [
        "linked\" was skipped: it has hard links",
        "linked twice\" was skipped",
        "b/shared\" was skipped",
        "nested too deeply",
        "not a regular file",
    ] {
        assert!(warnings.iter().any(|warning| warning.contains(why)), "{why}: {warnings:?}");
    }
    removal::remove(&root.join("workspaces")).unwrap();
}

#[test]
fn what_is_exchanged_before_it_is_opened_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for name in ["directory", "gone", "here", "link", "pipe"] {
        write(root, &format!("workspaces/a/{name}"));
    }
    let places = places(root, root.join("data"), "backups");
    let mut archive = ArchiveWriter::begin(&root.join("x.tar.zst")).unwrap();
    let mut packer = Packer::new(&mut archive, root.join("spool"), Names::default());
    let mut packed = Vec::new();
    visit(&places, &mut |found| {
        let name = found.path.file_name().and_then(OsStr::to_str).unwrap();
        if name != "here" {
            fs::remove_file(found.path).unwrap();
        }
        match name {
            "link" => symlink("here", found.path).unwrap(),
            "pipe" => drop(std::os::unix::net::UnixListener::bind(found.path).unwrap()),
            "directory" => fs::create_dir(found.path).unwrap(),
            _ => {}
        }
        let why = packer.pack(found)?;
        if why.is_none() {
            packed.push(name.to_owned());
        }
        Ok(why)
    })
    .unwrap();
    assert_eq!(packed, ["here"]);
}

#[test]
fn nothing_outside_is_packed_while_directories_and_links_are_exchanged() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("home"), dir.path().join("outside"));
    for path in ["file", "inner/file"] {
        write(&outside, path);
    }
    let places = places(&root, root.join("data"), "backups");
    let exchanging = Exchanging::begin(&root.join("workspaces/a"), &outside);
    let mut packed = 0;
    for round in 0..100 {
        let (files, _) = pack(&places);
        packed += files.len();
        assert!(files.iter().all(|(_, content)| content == b"own"), "round {round}");
        for entry in ["workspaces/a/f0", "workspaces/a/d0/file", "workspaces/a/d0/inner/file"] {
            let there = places.open(entry).ok().map(|file| io::read_to_string(file).unwrap());
            assert!(there.is_none_or(|there| there == "own"), "round {round}: {entry}");
        }
    }
    drop(exchanging);
    assert!(packed > 0);
}

#[test]
fn backups_among_the_data_are_not_packed_into_backups() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "data/backups/a.tar.zst");
    write(dir.path(), "data/x");
    assert_eq!(list(&places(dir.path(), dir.path().join("data"), "data/backups")).0, ["data/x"]);
}

#[test]
fn a_data_directory_that_is_the_home_gives_no_keys_away() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["vault/vault.key", "config.toml", "world/version", "bindings.json", "skills/a", "logs/x"] {
        write(dir.path(), path);
    }
    let (entries, ..) = list(&places(dir.path(), dir.path().to_owned(), "backups"));
    assert_eq!(entries, ["config.toml", "data/bindings.json", "skills/a"]);
}

#[test]
fn warnings_are_bounded() {
    let mut warnings = Warnings::default();
    (0..BACKUP_WARNINGS_MAX + 5).for_each(|n| warnings.add(n.to_string()));
    let list = warnings.into_list();
    assert_eq!((list.len(), list.last().map(String::as_str)), (BACKUP_WARNINGS_MAX + 1, Some("and 5 more")));
}

#[test]
fn a_workspace_of_too_many_files_loses_some_of_its_own_and_no_one_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for path in ["config.toml", "skills/s/skill.toml", "workspaces/b/1", "workspaces/b/2", "workspaces/c/1"] {
        write(root, path);
    }
    (0..50).for_each(|n| write(root, &format!("workspaces/a/{n:02}")));
    let places = places(root, root.join("data"), "backups");
    let (packed, warnings) = pack_at_most(&places, 15);
    let names: Vec<&str> = packed.iter().map(|(name, _)| &**name).collect();
    let of_a = names.iter().filter(|name| name.starts_with("workspaces/a/")).count();
    assert_eq!((names.len(), of_a), (15, 10), "{names:?}");
    assert_eq!(warnings, ["\"workspaces/a\": 40 files were skipped: the backup has no room for so many"]);
    let (packed, warnings) = pack_at_most(&places, 55);
    assert_eq!((packed.len(), warnings.len()), (55, 0), "all fit in");
}

#[test]
fn long_names_count_as_several_so_that_a_full_manifest_can_be_read() {
    use agentsvc_components::kernel::limit::{BACKUP_ENTRIES_MAX, BACKUP_MANIFEST_BYTES_MAX};
    for length in [1, 50, 240, 241, 500, 1_024] {
        let name = format!("workspaces/{}", "x".repeat(length));
        let line = serde_json::json!({ "name": name, "size": u64::MAX, "sha256": "f".repeat(64) }).to_string();
        let most = BACKUP_ENTRIES_MAX / counted(&name);
        assert!((most * (line.len() + 1)) as u64 <= BACKUP_MANIFEST_BYTES_MAX, "{length}");
    }
    assert_eq!(counted("workspaces/a/src/main.rs"), 1);
}
