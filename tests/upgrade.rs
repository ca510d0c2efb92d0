//! Homes that earlier releases stored open, verify and go on. Each folder of `tests/fixtures` is one home as a kill left
//! it (`home.tar.gz`) and what is expected of it (`expected.json`); `tests/fixtures/make.py` makes them.
//!
//! | key of `expected.json` | |
//! | --- | --- |
//! | `doctor` | checks of `agentsvc doctor` with the status that they have before the first start and after the last kill |
//! | `model_calls` | calls that wait for the model once the home is open |
//! | `opened` | answers by path, while the model answers nothing |
//! | `settled` | answers by path, once all turns have ended |
//! | `agent` | the agent that gets a message in the end |
//!
//! An expected object is a part of the one that is found, an array has as many items, unless `"..."` ends it.

mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use support::daemon::{Daemon, command, text};
use support::http::Client;
use support::model::Model;
use support::until;
use tempfile::TempDir;

/// The key in the configuration of a home that had one before there were users.
const KEY: &str = "old-key-of-the-home-0123456789-0123456789";
/// What an operator adds to the configuration of such a home.
const DAMP_IS_FREE: &str = "\n[prices.\"damp/*\"]\ninput_per_m = 0.0\noutput_per_m = 0.0\n";
/// The address of the model in the configuration of a fixture.
const NOWHERE: &str = "http://127.0.0.1:9/v1";
/// How long answers may differ from what is expected of them: what a start sets going is not all done at once.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

/// Every stored kind, by its keyspace and the first byte of its keys; where several share it, by what tells them apart.
const KINDS: &[&str] = &[
    "world a",
    "world m",
    "world s",
    "world t",
    "world c",
    "world w log",
    "world w agent",
    "world k",
    "world bc",
    "world bg",
    "world ba",
    "world bn",
    "world bh",
    "world bd",
    "world bm",
    "world bx",
    "world l",
    "world l agent",
    "world z",
    "world o",
    "world j",
    "world f",
    "world n",
    "world p",
    "world g",
    "world h",
    "world v",
    "world x",
    "world x left",
    "world d",
    "world e",
    "world i",
    "content b",
    "content b day",
    "content r",
    "content u",
    "content x",
    "content y",
    "content k",
    "content q",
    "content z",
    "content z checkpoint",
];

struct Fixture {
    folder: PathBuf,
    expected: Value,
}

impl Fixture {
    fn all() -> Vec<Self> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let entries = fs::read_dir(fixtures).expect("it is there").map(|entry| entry.expect("it can be read").path());
        let folders = entries.filter(|path| path.join("expected.json").exists());
        let read = |path: &Path| fs::read_to_string(path.join("expected.json")).expect("it can be read");
        let fixtures =
            folders.map(|folder| Self { expected: serde_json::from_str(&read(&folder)).expect("it is JSON"), folder });
        fixtures.collect()
    }

    /// The home, in a directory of its own.
    fn home(&self) -> TempDir {
        let home = tempfile::tempdir().expect("a temporary directory");
        let archive = File::open(self.folder.join("home.tar.gz")).expect("the home is there");
        tar::Archive::new(GzDecoder::new(archive)).unpack(home.path()).expect("the home can be unpacked");
        home
    }

    /// As [`home`](Self::home), with the model of the fixture at `address`, and `more` at the top of the configuration.
    fn configured(&self, address: &str, more: &str) -> TempDir {
        let home = self.home();
        let file = home.path().join("config.toml");
        let config = fs::read_to_string(&file).expect("a configuration");
        // Under a limit every model needs a price, which releases before did not ask for.
        let prices = if config.contains("[providers.damp]") { DAMP_IS_FREE } else { "" };
        fs::write(&file, more.to_owned() + &config.replace(NOWHERE, address) + prices).expect("it can be written");
        home
    }

    /// Compares the answers about the home with `expected[when]`.
    #[track_caller]
    fn compare(&self, daemon: &Daemon, when: &str) {
        let begun = Instant::now();
        let answers = self.expected[when].as_object().expect("answers by path");
        let found = until("answers are as expected, or time is over", || {
            let mut found = Vec::new();
            for (path, expected) in answers {
                let reply = daemon.get(path);
                let is_json = reply.header("content-type").is_some_and(|kind| kind.contains("json"));
                let answer = if is_json { reply.expect(200) } else { json!(reply.text()) };
                differences(path, expected, &answer, &mut found);
            }
            (found.is_empty() || begun.elapsed() > SETTLES_WITHIN).then_some(found)
        });
        assert!(found.is_empty(), "{}, {when}:\n{}", self.folder.display(), found.join("\n"));
    }

    /// Compares what the doctor says of a home that no daemon has.
    #[track_caller]
    fn examine(&self, home: &Path) {
        let output = command(home).args(["doctor", "--offline", "--json"]).output().expect("the binary starts");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let checks = report["checks"].as_array().expect("checks");
        for (name, status) in self.expected["doctor"].as_object().expect("checks by name") {
            let found = checks.iter().find(|check| check["name"] == **name).unwrap_or(&Value::Null);
            assert_eq!(found["status"], *status, "{}: {found}", self.folder.display());
        }
    }
}

/// Where `found` differs from what is expected of it.
fn differences(place: &str, expected: &Value, found: &Value, into: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (key, expected) in expected {
                let found = found.get(key).unwrap_or(&Value::Null);
                differences(&format!("{place} {key}"), expected, found, into);
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            let more = expected.last().is_some_and(|last| last == "...");
            let items = &expected[..expected.len() - usize::from(more)];
            if found.len() < items.len() || found.len() > items.len() && !more {
                into.push(format!("{place}: {} items and not {}: {found:?}", found.len(), items.len()));
            }
            for (number, (expected, found)) in items.iter().zip(found).enumerate() {
                differences(&format!("{place}[{number}]"), expected, found, into);
            }
        }
        _ if expected == found => {}
        _ => into.push(format!("{place}: {found} and not {expected}")),
    }
}

#[test]
fn homes_of_all_releases_open_and_go_on() {
    let fixtures = Fixture::all();
    assert!(fixtures.len() >= 2, "the homes are there");
    for fixture in fixtures {
        let model = Model::start();
        model.hold();
        let home = fixture.configured(&model.server.base_url(), "");
        fixture.examine(home.path());

        let mut daemon = Daemon::on(home);
        let calls = fixture.expected["model_calls"].as_u64().expect("a number") as usize;
        until("the turns that were open go on", || (model.waiting() == calls).then_some(()));
        fixture.compare(&daemon, "opened");
        model.release();
        let ended = |daemon: &Daemon| {
            until("every turn ends", || {
                (daemon.get("/api/queue/status").expect(200)["turns"]["open"] == 0).then_some(())
            });
        };
        ended(&daemon);
        fixture.compare(&daemon, "settled");
        for backup in daemon.get("/api/backups").expect(200)["backups"].as_array().expect("backups") {
            let body = json!({ "filename": backup["filename"], "dry_run": true });
            assert_eq!(daemon.post("/api/restore", &body).expect(200)["status"], "dry_run");
        }
        daemon.settle();
        daemon.restart();
        fixture.compare(&daemon, "settled");

        let agent = text(&fixture.expected["agent"]);
        let session = text(&daemon.detail(&agent)["session_id"]);
        let before = daemon.transcript(&session);
        daemon.say(&agent, "still here");
        daemon.restart();
        ended(&daemon);
        let after = daemon.transcript(&session);
        assert_eq!(after[..before.len()], before);
        assert_eq!(after[before.len()], ("User".to_owned(), "still here".to_owned()));
        assert_eq!(after.len(), before.len() + 2);
        daemon.kill();
        fixture.examine(daemon.home());
    }
}

#[test]
fn the_key_of_a_home_from_before_users_is_that_of_its_owner() {
    for fixture in Fixture::all() {
        let model = Model::start();
        let home = fixture.configured(&model.server.base_url(), &format!("api_key = \"{KEY}\"\n"));
        let mut daemon = Daemon::on(home);
        for _ in 0..2 {
            daemon.use_key(KEY);
            let who = daemon.get("/api/whoami").expect(200);
            assert_eq!((&who["kind"], &who["role"]), (&json!("owner"), &json!("owner")));
            assert_eq!(daemon.get("/api/users").expect(200)["users"], json!([]));
            assert_eq!(daemon.get("/api/keys").expect(200)["keys"], json!([]));
            let agent = text(&fixture.expected["agent"]);
            assert_eq!(daemon.detail(&agent)["id"], json!(agent));
            let nobody = Client::new(daemon.client().addr);
            nobody.get("/api/whoami").refused(401);
            nobody.get(&format!("/api/agents/{agent}")).refused(401);
            daemon.restart();
        }
    }
}

/// The kind of a stored row, as [`KINDS`] names it.
fn kind(space: &str, key: &[u8]) -> String {
    let first = char::from(*key.first().expect("a key"));
    let detail = match (space, first, key.len()) {
        ("world", 'b', _) => char::from(key[1]).to_string(),
        ("world", 'l', 17) | ("world", 'w', 17) => " agent".to_owned(),
        ("world", 'w', _) => " log".to_owned(),
        ("world", 'x', 10) => " left".to_owned(),
        ("content", 'b', _) if key[1] == u8::MAX => " day".to_owned(),
        ("content", 'z', 10) => " checkpoint".to_owned(),
        _ => String::new(),
    };
    format!("{space} {first}{detail}")
}

#[test]
fn the_homes_hold_every_stored_kind() {
    let mut found = BTreeSet::new();
    for fixture in Fixture::all() {
        let home = fixture.home();
        let database = fjall::Database::builder(home.path().join("data/world")).open().expect("the store opens");
        for space in ["world", "content"] {
            let rows = database.keyspace(space, fjall::KeyspaceCreateOptions::default).expect("a keyspace");
            found.extend(rows.iter().map(|row| kind(space, &row.key().expect("a row"))));
        }
    }
    let missing: Vec<_> = KINDS.iter().filter(|kind| !found.contains(**kind)).collect();
    assert!(missing.is_empty(), "no home holds {missing:?}");
}

#[test]
fn what_is_expected_is_a_part_of_what_is_found() {
    let differ = |expected: Value, found: Value| {
        let mut differences_found = Vec::new();
        differences("x", &expected, &found, &mut differences_found);
        differences_found
    };
    assert!(
        differ(json!({ "a": [{ "b": 1 }, {}] }), json!({ "a": [{ "b": 1, "c": 2 }, { "d": 3 }], "e": 4 })).is_empty()
    );
    assert!(differ(json!([1, "..."]), json!([1, 2, 3])).is_empty());
    for (expected, found) in [
        (json!({ "a": 1 }), json!({ "a": 2 })),
        (json!({ "a": 1 }), json!({})),
        (json!({ "a": 1 }), json!([])),
        (json!([{}]), json!([{}, {}])),
        (json!([1, "..."]), json!([2])),
        (json!([1, "..."]), json!([])),
    ] {
        assert_eq!(differ(expected.clone(), found.clone()).len(), 1, "{expected} {found}");
    }
}
