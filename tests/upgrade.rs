//! A stored home of every released record version opens. The fixtures are made by `tests/fixtures/make.py`, one for each
//! release whose records differ from those before.

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::daemon::{Daemon, text};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it can be made");
    for entry in fs::read_dir(from).expect("it can be read") {
        let entry = entry.expect("it can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

#[test]
fn worlds_of_all_releases_open_and_go_on() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let releases = fs::read_dir(fixtures).expect("it is there").map(|entry| entry.expect("it can be read").path());
    let releases: Vec<_> = releases.filter(|path| path.join("expected.json").exists()).collect();
    assert!(!releases.is_empty(), "there is a world of one release at least");
    for release in releases {
        let expected = fs::read_to_string(release.join("expected.json")).expect("it is there");
        let expected: Value = serde_json::from_str(&expected).expect("it is JSON");
        let (agent, session) = (text(&expected["agent"]), text(&expected["session"]));
        let mut daemon = Daemon::start();
        daemon.kill();
        let world = daemon.home().join("data/world");
        fs::remove_dir_all(&world).expect("it can be removed");
        copy(&release.join("world"), &world);
        // Git keeps no empty directories, nor is the lock a part of a release.
        fs::write(world.join("lock"), "").expect("it can be written");
        for keyspace in fs::read_dir(world.join("keyspaces")).expect("it can be read") {
            let tables = keyspace.expect("it can be read").path().join("tables");
            fs::create_dir_all(tables).expect("it can be made");
        }
        daemon.restart();
        let detail = daemon.detail(&agent);
        assert_eq!(text(&detail["name"]), "ada", "{}", release.display());
        let said: Vec<String> =
            daemon.transcript(&text(&detail["session_id"])).into_iter().map(|(_, text)| text).collect();
        assert!(said.len() == 4 && said.iter().any(|text| text.contains("milk")), "{said:?}");
        daemon.get(&format!("/api/sessions/{session}")).expect(200);
        for (path, key) in
            [("triggers", "triggers"), ("schedules", "schedules"), ("goals", "goals"), ("tasks", "tasks")]
        {
            let listed = daemon.get(&format!("/api/{path}")).expect(200);
            let items = listed[key].as_array().or_else(|| listed.as_array()).cloned().unwrap_or_default();
            assert_eq!(items.len(), 1, "{path}: {listed}");
        }
        let memory = daemon.get(&format!("/api/memory/agents/{agent}/kv/colour")).expect(200);
        assert_eq!(memory["value"], "green");
        let budget = daemon.get("/api/budget").expect(200);
        assert_eq!(budget["daily_limit_usd"], 5.0, "{budget}");
        daemon.say(&agent, "still here");
        daemon.restart();
        assert_eq!(daemon.transcript(&text(&detail["session_id"])).len(), 6);
    }
}
