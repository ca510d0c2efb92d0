//! Changes of installed skills, whole and cut short.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;

use super::super::tree::Tree;
use super::*;

fn folders() -> (tempfile::TempDir, Folders) {
    let dir = tempfile::tempdir().unwrap();
    let folders = Folders::new(dir.path().join("skills"));
    (dir, folders)
}

fn staged(folders: &Folders, text: &str) -> Staging {
    let mut staging = folders.stage().unwrap();
    staging.write("SKILL.md", &mut text.as_bytes(), false).unwrap();
    staging.write("scripts/run.sh", &mut &b"echo"[..], true).unwrap();
    staging
}

fn clean(folders: &Folders) {
    folders.leftovers().unwrap().remove();
}

fn names(folders: &Folders) -> Vec<String> {
    let names = entries(folders.root()).unwrap();
    names.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_skill_is_put_replaced_and_removed_whole() {
    let (_dir, folders) = folders();
    let lock = folders.lock("demo").unwrap();
    let error = staged(&folders, "x").put(&lock, Put::Replace).unwrap_err();
    assert!(matches!(error, FolderError::Missing(_)), "{error}");
    let path = staged(&folders, "one").put(&lock, Put::New).unwrap();
    assert_eq!(fs::read_to_string(path.join("SKILL.md")).unwrap(), "one");
    let mode = |name: &str| fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("SKILL.md"), mode("scripts/run.sh"), mode("scripts")), (0o600, 0o700, 0o700));
    let error = staged(&folders, "two").put(&lock, Put::New).unwrap_err();
    assert!(matches!(error, FolderError::Exists(_)), "{error}");
    let mut changed = folders.stage().unwrap();
    changed.copy_tree(&Tree::open(&path).unwrap()).unwrap();
    changed.replace("SKILL.md", b"three").unwrap();
    changed.replace("added.md", b"more").unwrap();
    assert!(changed.remove("scripts/run.sh").unwrap() && !changed.remove("scripts/run.sh").unwrap());
    changed.put(&lock, Put::Replace).unwrap();
    assert_eq!(fs::read_to_string(path.join("SKILL.md")).unwrap(), "three");
    assert!(path.join("added.md").exists() && !path.join("scripts/run.sh").exists());
    assert_eq!(names(&folders), ["demo"], "nothing stays beside it");
    lock.remove().unwrap();
    assert!(matches!(lock.remove().unwrap_err(), FolderError::Missing(_)));
    assert!(names(&folders).is_empty());
}

#[test]
fn a_start_removes_what_was_staged_and_brings_back_what_was_between_two_steps() {
    let (_dir, folders) = folders();
    let lock = folders.lock("demo").unwrap();
    let path = staged(&folders, "old").put(&lock, Put::New).unwrap();
    let staging = staged(&folders, "new");
    std::mem::forget(staging);
    // As a kill between the steps leaves it.
    fs::rename(&path, folders.root().join(".before-demo")).unwrap();
    clean(&folders);
    assert_eq!(
        (names(&folders), fs::read_to_string(path.join("SKILL.md")).unwrap()),
        (vec!["demo".into()], "old".into())
    );
    // And as one behind both.
    fs::create_dir(folders.root().join(".before-demo")).unwrap();
    clean(&folders);
    assert_eq!(names(&folders), ["demo"]);
    let staging = staged(&folders, "new");
    lock.in_two_steps(&staging.path(), &path).unwrap();
    drop(staging);
    assert_eq!(
        (names(&folders), fs::read_to_string(path.join("SKILL.md")).unwrap()),
        (vec!["demo".into()], "new".into())
    );
}

#[test]
fn names_are_taken_one_at_a_time_and_differ_in_more_than_case() {
    let (_dir, folders) = folders();
    for name in ["", ".x", "a/b", "..", "-x", "a b", "ä", &"x".repeat(201)] {
        assert!(matches!(folders.lock(name).unwrap_err(), FolderError::Refused(_)), "{name}");
    }
    let lock = folders.lock("Demo").unwrap();
    let other = folders.clone();
    let waiting = std::thread::spawn(move || other.lock("demo").map(|lock| lock.installed().unwrap().is_some()));
    staged(&folders, "x").put(&lock, Put::New).unwrap();
    drop(lock);
    assert!(waiting.join().unwrap().unwrap(), "it sees what was put before");
    let lock = folders.lock("demo").unwrap();
    assert!(matches!(staged(&folders, "y").put(&lock, Put::New).unwrap_err(), FolderError::Exists(_)));
}

#[test]
fn only_regular_files_are_copied_and_only_so_many_are_prepared_at_once() {
    let (dir, folders) = folders();
    let source = dir.path().join("source");
    fs::create_dir_all(source.join("references")).unwrap();
    fs::create_dir(source.join(".git")).unwrap();
    fs::write(source.join(".git/config"), "x").unwrap();
    fs::write(source.join("SKILL.md"), "text").unwrap();
    fs::write(source.join("references/a.md"), "a").unwrap();
    let mut staging = folders.stage().unwrap();
    staging.copy_tree(&Tree::open(&source).unwrap()).unwrap();
    let files = staging.files().unwrap();
    assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["SKILL.md", "references/a.md"]);
    assert_eq!((files[0].bytes, files[0].sha256.len()), (4, 64));
    symlink("/etc/passwd", source.join("link.md")).unwrap();
    let error = folders.stage().unwrap().copy_tree(&Tree::open(&source).unwrap()).unwrap_err();
    assert!(matches!(&error, FolderError::Refused(text) if text.contains("symbolic link")), "{error}");
    let many: Vec<_> = (1..STAGINGS_MAX).map(|_| folders.stage().unwrap()).collect();
    assert!(matches!(folders.stage().unwrap_err(), FolderError::Busy(_)));
    drop((many, staging));
    folders.stage().unwrap();
    assert!(names(&folders).is_empty());
}

#[test]
fn a_file_larger_than_a_skill_may_have_is_cut_off() {
    let (_dir, folders) = folders();
    let mut staging = folders.stage().unwrap();
    let error = staging.write("big", &mut std::io::repeat(0), false).unwrap_err();
    assert!(matches!(&error, FolderError::TooLarge(text) if text.contains("\"big\"")), "{error}");
}
