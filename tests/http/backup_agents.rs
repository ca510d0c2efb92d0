//! Backups and restores of workspaces whose agents do their worst: directories exchanged with links, endless ones, holes.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with};
use serde_json::json;

use super::backup_house::{backup, entries, manifest, restore};
use crate::support::daemon::Daemon;

/// Directories that are exchanged with links.
const PAIRS: usize = 40;
/// Directories in each other.
const LEVELS: usize = 20_000;

fn daemon() -> Daemon {
    Daemon::with("rate_limit_per_second = 1000000\n[snapshots]\nautomatic = false\n")
}

/// An agent that has a workspace.
fn workspace(daemon: &Daemon, name: &str) -> std::path::PathBuf {
    let agent = daemon.agent(name);
    daemon.send("PUT", &format!("/api/agents/{agent}/files/own"), &[], Some(b"own")).expect(201);
    daemon.home().join("workspaces").join(name)
}

fn exchange(dir: &OwnedFd, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        for n in 0..PAIRS {
            // Until the restore has removed them.
            let _ = renameat_with(dir, format!("d{n}"), dir, format!("x{n}"), RenameFlags::EXCHANGE);
        }
    }
}

fn open(path: &Path) -> OwnedFd {
    File::open(path).unwrap().into()
}

/// Makes directories in each other.
fn deepen(path: &Path) {
    let mut here = open(path);
    for _ in 0..LEVELS {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = openat(&here, "d", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
}

#[test]
fn nothing_outside_is_backed_up_or_removed_while_an_agent_exchanges_directories() {
    let daemon = daemon();
    let workspace = workspace(&daemon, "race");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "SECRET").unwrap();
    for n in 0..PAIRS {
        fs::create_dir(workspace.join(format!("d{n}"))).unwrap();
        fs::write(workspace.join(format!("d{n}/file")), "own").unwrap();
        symlink(outside.path(), workspace.join(format!("x{n}"))).unwrap();
    }
    let (stop, dir) = (AtomicBool::new(false), open(&workspace));
    thread::scope(|scope| {
        scope.spawn(|| exchange(&dir, &stop));
        let mut newest = String::new();
        for round in 0..20 {
            newest = backup(&daemon);
            let found = entries(&daemon.home().join("backups").join(&newest));
            let leaked: Vec<_> =
                found.iter().filter(|(_, content)| content == b"SECRET").map(|(name, _)| name).collect();
            assert!(leaked.is_empty(), "round {round}: {leaked:?}");
            restore(&daemon, &json!({ "filename": newest, "dry_run": true }));
        }
        // The old workspace is removed while it is still exchanged.
        restore(&daemon, &json!({ "filename": newest }));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read(outside.path().join("file")).unwrap(), b"SECRET");
    assert!(!daemon.home().join(".restore").exists());
    for entry in fs::read_dir(&workspace).unwrap() {
        let entry = entry.unwrap();
        assert!(!entry.file_type().unwrap().is_symlink(), "{entry:?}");
        assert!(!entry.path().is_dir() || fs::read(entry.path().join("file")).unwrap() == b"own", "{entry:?}");
    }
}

#[test]
fn endless_directories_hard_links_and_holes_survive_a_restore() {
    let mut daemon = daemon();
    let workspace = workspace(&daemon, "deep");
    let outside = tempfile::tempdir_in(daemon.home()).unwrap();
    fs::write(outside.path().join("file"), "SECRET").unwrap();
    fs::hard_link(outside.path().join("file"), workspace.join("linked")).unwrap();
    let mut sparse = File::create(workspace.join("sparse")).unwrap();
    sparse.set_len(300 << 20).unwrap();
    sparse.seek(SeekFrom::Start(200 << 20)).unwrap();
    sparse.write_all(b"data").unwrap();
    deepen(&workspace);
    let filename = backup(&daemon);
    let made = manifest(&daemon.home().join("backups").join(&filename));
    let warnings = made["warnings"].to_string();
    assert!(
        warnings.contains("nested too deeply") && warnings.contains("it has hard links that may be outside"),
        "{warnings}"
    );
    assert!(!made["entries"].to_string().contains("linked"), "{made}");
    let restored = restore(&daemon, &json!({ "filename": filename }));
    assert_eq!(restored["status"], "restored");
    assert!(daemon.alive() && !daemon.home().join(".restore").exists());
    assert!(!workspace.join("d/d").join("d/".repeat(70)).exists() && !workspace.join("linked").exists());
    let sparse = workspace.join("sparse");
    let metadata = sparse.metadata().unwrap();
    assert!(metadata.len() == 300 << 20 && metadata.blocks() * 512 < 1 << 20, "{metadata:?}");
    assert_eq!(&fs::read(sparse).unwrap()[200 << 20..][..5], b"data\0");
    // And a start that finds such a tree.
    let left = daemon.home().join(".restore/old");
    fs::create_dir_all(&left).unwrap();
    deepen(&left);
    daemon.kill();
    daemon.restart();
    assert!(!daemon.home().join(".restore").exists());
}
