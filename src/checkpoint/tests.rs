//! Checkpoints of a workspace, read by Git itself.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use agentsvc_api::checkpoint::checkpoints::{Checkpoint, Checkpoints as _, Page};
use agentsvc_api::http::files::FilesError;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::{AgentId, SessionId};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::repository::COMMITS_MAX;
use super::restore::Restorer;
use super::store::Limits;
use super::{Change, CheckpointStore};
use crate::kernel::sandbox::{Workspace, Workspaces, Write};

const AGENT: AgentId = AgentId(Uuid::from_u128(1));
const SESSION: SessionId = SessionId(Uuid::from_u128(2));
const ALL: Page = Page { offset: 0, limit: usize::MAX };

struct Harness {
    dir: tempfile::TempDir,
    store: CheckpointStore,
    restorer: Restorer,
    workspace: Workspace,
}

fn harness() -> Harness {
    let dir = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(dir.path().join("workspaces"));
    let store = CheckpointStore::new(dir.path().join("checkpoints"));
    let workspace = workspaces.open(AGENT, "ann").unwrap();
    Harness { restorer: Restorer::new(store.clone(), workspaces), dir, store, workspace }
}

impl Harness {
    fn working_dir(&self) -> String {
        self.workspace.path().to_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let by = Change { tool: "file_write", agent: Some(AGENT), session: Some(SESSION), holder: None };
        let write = || self.workspace.write(path, text.as_bytes(), Write::Overwrite).map(drop);
        self.store.around(&self.workspace, (&by, &[path]), write).0.unwrap();
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.workspace.path().join(path)).ok()
    }

    fn log(&self) -> Vec<Checkpoint> {
        self.restorer.checkpoints(&self.working_dir(), ALL).unwrap().0
    }

    fn repository(&self) -> PathBuf {
        let mut dirs = fs::read_dir(self.dir.path().join("checkpoints")).unwrap();
        dirs.next().unwrap().unwrap().path()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.repository())
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }
}

#[test]
fn git_reads_what_was_there_before_each_write() {
    let harness = harness();
    harness.workspace.write("notes/today.md", b"by a person\n", Write::Create).unwrap();
    harness.write("notes/today.md", "one\n");
    harness.write("new.txt", "fresh\n");
    harness.write("notes/today.md", "two\n");
    harness.git(&["fsck", "--strict", "--full"]);
    assert_eq!(harness.git(&["show", "main~2:notes/today.md"]), "by a person\n");
    assert_eq!(harness.git(&["show", "main:notes/today.md"]), "one\n");
    assert_eq!(harness.git(&["ls-tree", "-r", "--name-only", "main~1"]), "notes/today.md\n");
    assert_eq!(harness.git(&["ls-tree", "-r", "--name-only", "main"]), "new.txt\nnotes/today.md\n");
    let message = harness.git(&["log", "-1", "--format=%B", "main"]);
    assert_eq!(message.trim_end(), format!("file_write: notes/today.md\n\nagent: {AGENT}\nsession: {SESSION}"));
    let name: String = harness.repository().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let (directories, total) = harness.restorer.directories(ALL).unwrap();
    assert_eq!((total, &directories[0].working_dir), (1, &harness.working_dir()));
    let log = harness.log();
    assert_eq!(
        log.iter().map(|row| row.path.as_str()).collect::<Vec<_>>(),
        ["notes/today.md", "new.txt", "notes/today.md"]
    );
    assert_eq!((log[0].agent_id, log[0].session_id), (Some(AGENT.0), Some(SESSION.0)));
    assert_eq!(harness.git(&["log", "--format=%H"]).lines().next().unwrap(), log[0].commit);
}

#[test]
fn a_restore_brings_files_back_and_can_be_undone() {
    let harness = harness();
    harness.write("run.sh", "one\n");
    fs::set_permissions(harness.workspace.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    harness.write("run.sh", "two\n");
    harness.write("later.txt", "stays\n");
    let with_one = harness.log()[1].commit.clone();
    let restored = harness.restorer.restore(&harness.working_dir(), &with_one[..12]).unwrap();
    assert_eq!((restored.commit.as_str(), restored.restored, restored.total), (with_one.as_str(), 1, 1));
    assert_eq!(harness.text("run.sh").unwrap(), "one\n");
    let mode = fs::metadata(harness.workspace.path().join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100);
    assert_eq!(harness.text("later.txt").unwrap(), "stays\n");
    assert_eq!(harness.log()[0].tool, "restore");
    harness.restorer.restore(&format!("{}/", harness.working_dir()), &restored.checkpoint.to_uppercase()).unwrap();
    assert_eq!(harness.text("run.sh").unwrap(), "two\n");
    harness.git(&["fsck", "--strict", "--full"]);
}

#[test]
fn what_is_not_kept_is_written_all_the_same() {
    let harness = harness();
    for path in ["node_modules/a/b.js", ".env", "env/x"] {
        harness.write(path, "x");
        assert_eq!(harness.text(path).unwrap(), "x");
    }
    assert!(!harness.dir.path().join("checkpoints").exists());
    harness.write("large.txt", &"x".repeat(51_201));
    harness.write("large.txt", "small");
    harness.write("exact.txt", &"x".repeat(51_200));
    harness.write("exact.txt", "small");
    assert_eq!(harness.git(&["ls-tree", "-r", "--name-only", "main"]), "exact.txt\nlarge.txt\n");
    assert_eq!(harness.git(&["ls-tree", "-r", "--name-only", "main~2"]), "");
}

#[test]
fn what_a_person_changes_or_deletes_is_seen() {
    let harness = harness();
    harness.write("a", "1");
    harness.write("b", "1");
    fs::write(harness.workspace.path().join("a"), "by hand").unwrap();
    harness.write("c", "1");
    assert_eq!(harness.git(&["show", "main:a"]), "by hand");
    fs::remove_file(harness.workspace.path().join("a")).unwrap();
    fs::create_dir(harness.workspace.path().join("a")).unwrap();
    harness.write("a/b", "1");
    harness.write("c", "2");
    assert_eq!(harness.git(&["ls-tree", "-r", "--name-only", "main"]), "a/b\nb\nc\n");
    // Another process finds the same.
    let other = CheckpointStore::new(harness.dir.path().join("checkpoints"));
    let by = Change { tool: "apply_patch", agent: Some(AGENT), session: None, holder: None };
    other.around(&harness.workspace, (&by, &["b", "c"]), || ());
    assert_eq!(harness.git(&["show", "main:c"]), "2");
    assert_eq!(harness.git(&["log", "-1", "--format=%s"]), "apply_patch: b (+1)\n");
}

#[test]
fn the_newest_are_kept() {
    let harness = harness();
    let by = Change { tool: "file_write", agent: Some(AGENT), session: None, holder: None };
    for number in 0..COMMITS_MAX + 150 {
        fs::write(harness.workspace.path().join("a"), number.to_string()).unwrap();
        harness.store.around(&harness.workspace, (&by, &["a"]), || ());
    }
    let count: usize = harness.git(&["rev-list", "--count", "main"]).trim().parse().unwrap();
    assert!((COMMITS_MAX..COMMITS_MAX + 100).contains(&count), "{count}");
    assert_eq!(harness.log().len(), count);
    harness.git(&["fsck", "--strict", "--full"]);
    let objects = harness.git(&["count-objects"]);
    let objects: usize = objects.split(' ').next().unwrap().parse().unwrap();
    assert!(objects <= 3 * count + 3, "{objects}");
    let oldest = harness.log().pop().unwrap().commit;
    harness.restorer.restore(&harness.working_dir(), &oldest).unwrap();
}

#[test]
fn wrong_restores_change_nothing() {
    let harness = harness();
    harness.write("a", "1");
    harness.write("a", "2");
    let (dir, commit) = (harness.working_dir(), harness.log()[0].commit.clone());
    let refused = |dir: &str, commit: &str| harness.restorer.restore(dir, commit).unwrap_err();
    for (dir, commit) in
        [("workspaces/ann", commit.as_str()), ("/a/../b", &commit), (&dir, "abc"), (&dir, "wxyz"), (&dir, "")]
    {
        let FilesError::Field { error, .. } = refused(dir, commit) else { panic!("{dir} {commit}") };
        assert!(matches!(*error, FilesError::Wrong(_)), "{dir} {commit}");
    }
    // The field is known without a look at the text, whatever that begins with.
    let unknown = |dir: &str, commit: &str| match refused(dir, commit) {
        FilesError::Field { field, error } => matches!(*error, FilesError::NotFound(_)).then_some(field),
        _ => None,
    };
    assert_eq!(unknown("/nowhere", &commit), Some("working_dir"));
    assert_eq!(unknown(&dir, &"0".repeat(40)), Some("commit"));
    // The id of a file is not that of a checkpoint.
    let blob = harness.git(&["rev-parse", "main:a"]);
    assert_eq!(unknown(&dir, blob.trim()), Some("commit"));
    let place = harness.store.place(&harness.store.dir(Path::new(&dir)).unwrap());
    let held = place.lock();
    assert!(matches!(refused(&dir, &commit), FilesError::Conflict(_)));
    drop(held);
    assert_eq!((harness.text("a").unwrap(), harness.log().len()), ("2".to_owned(), 2));
}

#[test]
fn a_restore_never_leaves_the_directory() {
    let harness = harness();
    harness.write("d/a", "1");
    harness.write("b", "1");
    harness.write("b", "2");
    let commit = harness.log()[0].commit.clone();
    let outside = harness.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir_all(harness.workspace.path().join("d")).unwrap();
    symlink(&outside, harness.workspace.path().join("d")).unwrap();
    fs::write(outside.join("b"), "theirs").unwrap();
    fs::remove_file(harness.workspace.path().join("b")).unwrap();
    symlink(outside.join("b"), harness.workspace.path().join("b")).unwrap();
    let restored = harness.restorer.restore(&harness.working_dir(), &commit).unwrap();
    assert_eq!((restored.restored + restored.not_restored.len(), restored.total), (2, 2));
    assert!(restored.not_restored.iter().any(|file| file.path == "d/a"), "{restored:?}");
    assert!(!outside.join("a").exists());
    assert_eq!(fs::read_to_string(outside.join("b")).unwrap(), "theirs");
}

#[test]
fn a_damaged_repository_never_stops_a_tool() {
    let harness = harness();
    harness.write("a", "1");
    harness.write("a", "2");
    let older = harness.log()[1].commit.clone();
    let newest = harness.log()[0].commit.clone();
    let object = harness.repository().join(".git/objects").join(&newest[..2]).join(&newest[2..]);
    fs::write(&object, "").unwrap();
    let other = CheckpointStore::new(harness.dir.path().join("checkpoints"));
    let by = Change { tool: "file_write", agent: None, session: None, holder: None };
    other.around(&harness.workspace, (&by, &["a"]), || ());
    assert_eq!(harness.git(&["show", "main:a"]), "2");
    // Found by its id, though it is no longer in the history.
    harness.restorer.restore(&harness.working_dir(), &older).unwrap();
    fs::remove_dir_all(harness.repository().join(".git")).unwrap();
    fs::write(harness.repository().join(".git"), "in the way").unwrap();
    CheckpointStore::new(harness.dir.path().join("checkpoints")).around(&harness.workspace, (&by, &["a"]), || {
        harness.workspace.write("a", b"3", Write::Overwrite).unwrap();
    });
    assert_eq!(harness.text("a").unwrap(), "3");
}

#[test]
fn what_cannot_be_kept_is_not_overwritten() {
    let harness = harness();
    harness.write("a", "1");
    harness.write("a", "2");
    let commit = harness.log()[0].commit.clone();
    let large = "x".repeat(60_000);
    fs::write(harness.workspace.path().join("a"), &large).unwrap();
    let restored = harness.restorer.restore(&harness.working_dir(), &commit).unwrap();
    assert_eq!((restored.restored, restored.total, restored.not_restored[0].path.as_str()), (0, 1, "a"));
    assert_eq!(harness.text("a").unwrap(), large);
}

#[test]
fn an_agent_never_gets_the_files_of_another() {
    let harness = harness();
    harness.write("a", "ann's");
    harness.write("a", "ann's second");
    let commit = harness.log()[0].commit.clone();
    let other = Workspaces::new(harness.dir.path().join("workspaces"));
    other.open(AgentId(Uuid::from_u128(9)), "ann").unwrap();
    let refused = harness.restorer.restore(&harness.working_dir(), &commit).unwrap_err();
    let FilesError::Field { field: "commit", error } = refused else { panic!("{refused}") };
    assert!(matches!(*error, FilesError::Conflict(_)), "{error}");
    assert_eq!(harness.text("a"), None);
}

#[test]
fn a_change_that_waits_too_long_is_made_without_a_checkpoint() {
    let mut harness = harness();
    let limits = Limits { wait: Duration::from_millis(1), ..Limits::default() };
    harness.store = CheckpointStore::within(harness.dir.path().join("checkpoints"), limits);
    harness.write("a", "1");
    harness.write("a", "2");
    let before = harness.log().len();
    let place = harness.store.place(&harness.store.dir(harness.workspace.path()).unwrap());
    let by = Change { tool: "file_write", agent: Some(AGENT), session: None, holder: None };
    let write = |text: &'static str| {
        let write = || harness.workspace.write("a", text.as_bytes(), Write::Overwrite).unwrap();
        harness.store.around(&harness.workspace, (&by, &["a"]), write).1
    };
    let restoring = place.lock();
    assert!(write("3"), "it says so");
    drop(restoring);
    assert_eq!((harness.text("a").unwrap(), harness.log().len()), ("3".to_owned(), before));
    assert!(!write("4"));
    assert_eq!(harness.git(&["show", "main:a"]), "3");
}

/// A text that does not become shorter.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}")
    };
    (0..2_000).map(|_| next()).collect()
}

#[test]
fn all_repositories_together_are_bounded_and_the_least_used_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    let (root, workspaces) = (dir.path().join("checkpoints"), Workspaces::new(dir.path().join("workspaces")));
    let limits = Limits { total_bytes: 40_000, ..Limits::default() };
    let change = |store: &CheckpointStore, agent: u128| {
        let agent = AgentId(Uuid::from_u128(agent));
        let workspace = workspaces.open(agent, &format!("a{}", agent.0.as_u128())).unwrap();
        fs::write(workspace.path().join("f"), noise(agent.0.as_u128() as u64)).unwrap();
        let by = Change { tool: "file_write", agent: Some(agent), session: None, holder: None };
        store.around(&workspace, (&by, &["f"]), || ());
        store.dir(workspace.path()).unwrap()
    };
    let store = CheckpointStore::within(root.clone(), limits);
    let (one, two) = (change(&store, 1), change(&store, 2));
    assert!(one.exists() && two.exists());
    // After a restart it is read what they take, and who was used last.
    let used = fs::File::options().write(true).open(one.join(".git/refs/heads/main")).unwrap();
    used.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    let store = CheckpointStore::within(root, limits);
    let place = store.place(&one);
    let in_use = place.lock();
    let three = change(&store, 3);
    assert!(one.exists() && two.exists() && three.exists(), "one that is used now is not deleted");
    drop(in_use);
    change(&store, 3);
    assert!(!one.exists() && two.exists() && three.exists());
    let four = change(&store, 4);
    assert!(!two.exists() && three.exists() && four.exists());
    change(&store, 1);
    assert!(one.exists() && !three.exists(), "it begins anew");
}

#[test]
fn a_family_that_takes_more_than_its_share_loses_its_own_checkpoints_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (root, workspaces) = (dir.path().join("checkpoints"), Workspaces::new(dir.path().join("workspaces")));
    // A share holds one of these repositories, and not two.
    let limits = Limits { total_bytes: 100_000, ..Limits::default() };
    let change = |store: &CheckpointStore, agent: u128, family: u128| {
        let agent = AgentId(Uuid::from_u128(agent));
        let workspace = workspaces.open(agent, &format!("a{}", agent.0.as_u128())).unwrap();
        fs::write(workspace.path().join("f"), noise(agent.0.as_u128() as u64)).unwrap();
        let holder = Some(Holder::Family(AgentId(Uuid::from_u128(family))));
        let by = Change { tool: "file_write", agent: Some(agent), session: None, holder };
        store.around(&workspace, (&by, &["f"]), || ());
        store.dir(workspace.path()).unwrap()
    };
    let store = CheckpointStore::within(root.clone(), limits);
    let (other, one) = (change(&store, 1, 1), change(&store, 2, 2));
    let store = CheckpointStore::within(root, limits);
    let two = change(&store, 3, 2);
    assert!(other.exists() && !one.exists() && two.exists());
}

#[tokio::test]
async fn checkpoints_go_with_their_agent_and_no_others_do() {
    let harness = harness();
    harness.write("a", "1");
    let (root, other) = (harness.dir.path().join("workspaces"), AgentId(Uuid::from_u128(9)));
    let workspaces = Workspaces::new(root);
    let theirs = workspaces.open(other, "bob").unwrap();
    fs::write(theirs.path().join("a"), "1").unwrap();
    let by = Change { tool: "file_write", agent: Some(other), session: None, holder: None };
    harness.store.around(&theirs, (&by, &["a"]), || ());
    let repository = |workspace: &Workspace| harness.store.dir(workspace.path()).unwrap();
    let (own, others) = (repository(&harness.workspace), repository(&theirs));
    assert!(own.exists() && others.exists());
    harness.store.forget(AGENT, &workspaces, &Handle::current());
    // What is blocking ends before the next piece does, on one thread.
    while harness.store.is_forgetting() {
        tokio::task::yield_now().await;
    }
    assert!(!own.exists() && others.exists());
    assert_eq!(harness.text("a").as_deref(), Some("1"), "the workspace stays");
}
