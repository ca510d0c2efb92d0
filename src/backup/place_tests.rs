//! Plans that are carried out, taken back, or cut off by a death at any point.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use super::*;

pub(in crate::backup) const FILES: [(&str, &str); 5] = [
    ("config.toml", "old config"),
    ("skills/a/x", "old a"),
    ("data/world/version", "old world"),
    ("data/bindings.json", "old bindings"),
    ("data/gone.json", "old gone"),
];
const STAGED: [(&str, &str); 5] = [
    (".restore/new/config.toml", "new config"),
    (".restore/new/skills/b/y", "new b"),
    (".restore/new/agent-types/t.toml", "new type"),
    ("data/world.next/version", "new world"),
    ("data/.restore/new/bindings.json", "new bindings"),
];

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn to(base: Base, path: &str) -> Move {
    Move { base, path: path.to_owned(), remove: false, replaces: None }
}

fn plan(root: &Path, rooms: &Rooms) -> Plan {
    let moves = vec![
        to(Base::Home, "config.toml"),
        to(Base::Home, "skills"),
        to(Base::Home, "agent-types"),
        to(Base::Data, "bindings.json"),
        Move { remove: true, ..to(Base::Data, "gone.json") },
    ];
    let moves = rooms.replacing(&moves).unwrap();
    let world = Some(root.join("data/world.next").metadata().unwrap().ino());
    let details = serde_json::json!({ "filename": "a.tar.zst" });
    Plan { archive: "a.tar.zst".to_owned(), details, data: root.join("data"), world, moves }
}

/// Every file beneath, without what is in the rooms.
pub(in crate::backup) fn seen(root: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(ROOM) {
                continue;
            }
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found.remove(PLAN);
    found.remove(DONE);
    found.remove("data/world.next/version");
    found
}

pub(in crate::backup) fn expected_new() -> BTreeMap<String, String> {
    let new = [
        ("config.toml", "new config"),
        ("skills/b/y", "new b"),
        ("agent-types/t.toml", "new type"),
        ("data/world/version", "new world"),
        ("data/bindings.json", "new bindings"),
    ];
    new.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

pub(in crate::backup) fn expected_old() -> BTreeMap<String, String> {
    FILES.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

/// A restore that is decided and not carried out.
pub(in crate::backup) fn decided() -> (tempfile::TempDir, Rooms, Plan) {
    let (dir, _, rooms, plan) = staged();
    rooms.decide(&plan).unwrap();
    (dir, rooms, plan)
}

fn staged() -> (tempfile::TempDir, Home, Rooms, Plan) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &FILES);
    write(dir.path(), &STAGED);
    let home = Home::new(dir.path());
    let rooms = Rooms::new(&home, &dir.path().join("data"));
    let plan = plan(dir.path(), &rooms);
    (dir, home, rooms, plan)
}

#[test]
fn a_plan_is_carried_out_and_leaves_nothing() {
    let (dir, home, rooms, plan) = staged();
    assert_eq!(complete(&home).unwrap(), None, "nothing is decided");
    rooms.decide(&plan).unwrap();
    assert_eq!(complete(&home).unwrap().as_deref(), Some("a.tar.zst"));
    assert_eq!(seen(dir.path()), expected_new());
    assert!(!dir.path().join(ROOM).exists() && !dir.path().join("data").join(ROOM).exists());
    assert_eq!(complete(&home).unwrap(), None);
    assert_eq!(done(&home).unwrap()["filename"], "a.tar.zst");
    forget_done(&home).unwrap();
    assert_eq!(done(&home), None);
}

#[test]
fn what_is_not_decided_is_not_done() {
    let (dir, home, _, _) = staged();
    let before = seen(dir.path());
    // A kill while the plan was written.
    let half = dir.path().join("restore.json.new");
    fs::write(&half, "{").unwrap();
    tidy(&home, &dir.path().join("data")).unwrap();
    assert_eq!(seen(dir.path()), before);
    assert!(!dir.path().join(ROOM).exists() && !half.exists());
}

/// As the module cache of Go is made, which agents have in their workspaces.
#[test]
fn directories_that_nobody_may_write_into_go_with_the_rest() {
    let (dir, home, _, _) = staged();
    for closed in [".restore/old/workspaces/a/go/pkg", ".restore/old/workspaces/a/go"] {
        let path = dir.path().join(closed);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("mod.go"), "x").unwrap();
    }
    for (closed, mode) in [(".restore/old/workspaces/a/go/pkg", 0o000), (".restore/old/workspaces/a/go", 0o555)] {
        fs::set_permissions(dir.path().join(closed), fs::Permissions::from_mode(mode)).unwrap();
    }
    tidy(&home, &dir.path().join("data")).unwrap();
    assert!(!dir.path().join(ROOM).exists());
}

/// Every state that a death may leave: after each of the renames, and in the middle of each move.
#[test]
fn a_death_at_any_point_is_carried_on_or_taken_back() {
    for done in 0..=14 {
        for back in [false, true] {
            let (dir, home, rooms, plan) = staged();
            let before = seen(dir.path());
            rooms.decide(&plan).unwrap();
            let mut left = done;
            // The world first: its old store steps aside, or both change places at once.
            let world_is_new = left > 0;
            if left == 1 {
                fs::rename(rooms.world(), dir.path().join("data/world.before")).unwrap();
            } else if left > 1 {
                rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    rooms.world(),
                    rustix::fs::CWD,
                    rooms.next_world(),
                    rustix::fs::RenameFlags::EXCHANGE,
                )
                .unwrap();
            }
            left = usize::saturating_sub(left, 2);
            for step in &plan.moves {
                let (new, old) = (rooms.new_path(step.base, &step.path), rooms.old_path(step.base, &step.path));
                let place = rooms.place(step.base, &step.path);
                if left > 0 && place.exists() {
                    rename(&place, &old).unwrap();
                }
                left = usize::saturating_sub(left, 1);
                if left > 0 && !step.remove {
                    rename(&new, &place).unwrap();
                }
                left = usize::saturating_sub(left, 1);
            }
            if back {
                // The world is taken back by whoever exchanges it.
                rooms.take_back(&plan).unwrap();
                rooms.give_up().unwrap();
                let without_world = |mut files: BTreeMap<String, String>| {
                    files.retain(|path, _| !path.starts_with("data/world"));
                    files
                };
                assert_eq!(without_world(seen(dir.path())), without_world(before), "{done} renames");
            } else {
                complete(&home).unwrap();
                let mut found = seen(dir.path());
                found.remove("data/world.before/version");
                assert_eq!(found, expected_new(), "{done} renames, {world_is_new}");
            }
        }
    }
}
