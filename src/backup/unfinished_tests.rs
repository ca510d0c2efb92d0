//! Restores that cannot be carried out.

use super::super::place::tests::{FILES, decided, expected_new, expected_old, seen};
use super::*;

fn mended(dir: &Path) -> Result<Option<Mended>, Error> {
    mend(&Home::new(dir), &dir.join("data"))
}

fn taken_back(dir: &Path) -> String {
    match mended(dir) {
        Ok(Some(Mended::TakenBack { archive, reason })) if archive == "a.tar.zst" => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_one_there_is_nothing_to_do() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(mended(dir.path()).unwrap(), None);
}

#[test]
fn one_that_can_be_carried_out_is() {
    let (dir, ..) = decided();
    assert_eq!(mended(dir.path()).unwrap(), Some(Mended::Completed { archive: "a.tar.zst".to_owned() }));
    assert_eq!(seen(dir.path()), expected_new());
    assert_eq!(mended(dir.path()).unwrap(), None);
}

#[test]
fn one_whose_new_world_is_gone_is_taken_back() {
    let (dir, ..) = decided();
    fs::remove_dir_all(dir.path().join("data/world.next")).unwrap();
    let error = complete(&Home::new(dir.path())).unwrap_err().to_string();
    assert!(error.contains("a.tar.zst") && error.contains("agentsvc doctor --repair"), "{error}");
    let reason = taken_back(dir.path());
    assert!(reason.contains("world.next"), "{reason}");
    assert_eq!(seen(dir.path()), expected_old());
    assert!(!dir.path().join(ROOM).exists() && !dir.path().join(PLAN).exists());
    assert_eq!(complete(&Home::new(dir.path())).unwrap(), None, "a start has nothing to do");
}

/// Somebody took the rooms for leftovers. What was never replaced must not go with them.
#[test]
fn one_whose_staged_files_are_gone_is_taken_back_and_loses_nothing() {
    for world_is_there in [true, false] {
        let (dir, ..) = decided();
        for room in [dir.path().join(ROOM), dir.path().join("data").join(ROOM)] {
            fs::remove_dir_all(room).unwrap();
        }
        if !world_is_there {
            fs::remove_dir_all(dir.path().join("data/world.next")).unwrap();
        }
        let error = complete(&Home::new(dir.path())).unwrap_err().to_string();
        assert!(error.contains("agentsvc doctor --repair"), "{error}");
        let reason = taken_back(dir.path());
        assert!(reason.contains("cannot find"), "{reason}");
        assert_eq!(seen(dir.path()), expected_old(), "{world_is_there}");
        assert!(!dir.path().join(ROOM).exists() && !dir.path().join(PLAN).exists());
    }
}

/// The files cannot come into their places once the world has: it goes back, wherever the old one stands now.
#[test]
fn one_that_stops_behind_its_world_is_taken_back_with_the_world() {
    for was_exchanged_in_one_step in [false, true] {
        let (dir, rooms, plan) = decided();
        if was_exchanged_in_one_step {
            assert!(
                crate::kernel::store::exchange::in_one_step(&rooms.world(), &rooms.next_world()).unwrap().is_some()
            );
        } else {
            rooms.exchange_world(&plan).unwrap();
        }
        // Where the old one of these files would go is something that is no directory.
        fs::create_dir_all(dir.path().join(ROOM)).unwrap();
        fs::write(dir.path().join(ROOM).join("old"), "in the way").unwrap();
        let reason = taken_back(dir.path());
        assert!(reason.contains("old"), "{reason}");
        assert_eq!(seen(dir.path()), expected_old(), "{was_exchanged_in_one_step}");
        assert!(!dir.path().join(PLAN).exists());
    }
}

#[test]
fn one_whose_old_world_is_gone_stays_decided() {
    let (dir, rooms, plan) = decided();
    rooms.exchange_world(&plan).unwrap();
    fs::remove_dir_all(dir.path().join("data").join(ROOM).join("old")).unwrap();
    fs::write(dir.path().join(ROOM).join("old"), "in the way").unwrap();
    let error = mended(dir.path()).unwrap_err().to_string();
    assert!(error.contains("cannot be completed"), "{error}");
    assert!(dir.path().join(PLAN).exists());
    // What stood in the way goes, and it is carried out after all.
    fs::remove_file(dir.path().join(ROOM).join("old")).unwrap();
    assert_eq!(mended(dir.path()).unwrap(), Some(Mended::Completed { archive: "a.tar.zst".to_owned() }));
    assert_eq!(seen(dir.path()), expected_new());
}

#[test]
fn a_plan_that_cannot_be_read_is_kept_with_all_that_belongs_to_it() {
    let (dir, ..) = decided();
    fs::write(dir.path().join(PLAN), "{ \"archive\":").unwrap();
    let error = complete(&Home::new(dir.path())).unwrap_err().to_string();
    assert!(error.contains("agentsvc doctor --repair"), "{error}");
    let Ok(Some(Mended::SetAside { kept, .. })) = mended(dir.path()) else { panic!("it is set aside") };
    let names: Vec<_> = kept.iter().map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["restore.json.damaged", "restore.damaged", "data/restore.damaged"]);
    assert_eq!(fs::read_to_string(dir.path().join("restore.damaged/new/config.toml")).unwrap(), "new config");
    for (path, text) in FILES {
        assert_eq!(fs::read_to_string(dir.path().join(path)).unwrap(), text);
    }
    assert_eq!(mended(dir.path()).unwrap(), None);
}
