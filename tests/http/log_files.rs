//! The log files have a bound in bytes, and whoever makes the daemon log cannot make it log without end.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::until;

const MOST: u64 = 65_536;
/// What a failed turn is in the log.
const FAILED: &str = "turn ended without an answer";

/// The log files and their sizes. One may go while they are looked at.
fn files(daemon: &Daemon) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(daemon.home().join("logs")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter_map(|path| Some((path.clone(), fs::metadata(path).ok()?.len()))).collect()
}

/// The log, as its files have it.
fn lines(daemon: &Daemon) -> Vec<Value> {
    let read = files(daemon).into_iter().filter_map(|(path, _)| fs::read_to_string(path).ok());
    read.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
}

fn turn_fails(daemon: &Daemon, agent: &str) {
    let reply = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hi" }));
    assert!(reply.status >= 400, "{}", reply.text());
}

#[test]
fn failing_turns_do_not_fill_the_disk() {
    let model = Model::start();
    model.fail(400);
    let daemon = Daemon::with(&format!("log_level = \"debug\"\n{}[log]\nmax_bytes = {MOST}\n", model.config()));
    let agent = daemon.agent_with("a", "");
    let (mut is_told, mut turns) = (false, 0);
    while !is_told {
        turns += 1;
        assert!(turns < 2_000, "the files are never full");
        turn_fails(&daemon, &agent);
        let files = files(&daemon);
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes <= MOST, "{files:?}");
        is_told = files.iter().any(|(path, _)| {
            fs::read_to_string(path).is_ok_and(|text| text.contains("log.max_bytes is reached: 1 of the oldest"))
        });
    }
    assert!(files(&daemon).len() > 2, "{:?}", files(&daemon));
    // A tail that is longer than one file is there all the same.
    let shown = daemon.cli(&["logs", "-n", "120"]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout).lines().count(), 120);
}

#[test]
fn lines_that_repeat_are_counted_for_each_agent() {
    const TURNS: u64 = 60;
    let model = Model::start();
    model.fail(400);
    let mut daemon = Daemon::with(&model.config());
    let (agent, other) = (daemon.agent_with("a", ""), daemon.agent_with("b", ""));
    (0..TURNS).for_each(|_| turn_fails(&daemon, &agent));
    turn_fails(&daemon, &other);
    // The end says what is left.
    daemon.poke("/api/shutdown").expect(200);
    assert!(daemon.wait().success());
    let lines = lines(&daemon);
    let about = |of: &str| -> Vec<&Value> {
        let is_failure = |line: &&Value| line["message"].as_str().is_some_and(|text| text.starts_with(FAILED));
        let is_about = |line: &&Value| line["agent"] == of && is_failure(line);
        lines.iter().filter(is_about).collect()
    };
    let (told, plain): (Vec<_>, Vec<_>) = about(&agent).into_iter().partition(|line| line["left_out"].is_u64());
    let left_out: u64 = told.iter().map(|line| line["left_out"].as_u64().unwrap()).sum();
    assert!(!told.is_empty(), "{lines:?}");
    assert_eq!(plain.len() as u64 + left_out, TURNS, "{told:?}");
    // A slow test may take more than one minute, which has lines of its own.
    assert!(plain.len() <= 20 * told.len().max(2), "{} of {TURNS} are written", plain.len());
    let last = told.last().unwrap();
    assert_eq!(last["message"], format!("{FAILED} … and {} more", last["left_out"]));
    assert_eq!(about(&other).len(), 1);
}

#[test]
fn stored_lines_are_listed_newest_first_also_from_before_a_restart() {
    let mut daemon = Daemon::start();
    let names_of = |page: &Value| -> Vec<String> {
        let lines = page["logs"].as_array().unwrap().iter();
        lines.filter(|line| line["kind"] == "agent_spawned").map(|line| line["name"].to_string()).collect()
    };
    let is_stored = |daemon: &Daemon, name: &str| {
        let page = daemon.get("/api/logs?limit=1000").expect(200);
        names_of(&page).contains(&format!("{name:?}")).then_some(())
    };
    daemon.agent("early");
    // A kill takes along what is not written yet.
    until("the line is stored", || is_stored(&daemon, "early"));
    daemon.restart();
    daemon.agent("late");
    until("the line is stored", || is_stored(&daemon, "late"));
    let (mut names, mut path) = (Vec::new(), "/api/logs?limit=3".to_owned());
    loop {
        let page = daemon.get(&path).expect(200);
        assert!(page["logs"].as_array().unwrap().len() <= 3);
        names.extend(names_of(&page));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/logs?limit=3&cursor={cursor}");
    }
    let place = |name: &str| names.iter().position(|found| found.contains(name)).unwrap();
    assert!(place("late") < place("early"), "{names:?}");
    daemon.get("/api/logs?cursor=none").refused_field(400, "cursor");
    daemon.get("/api/logs?limit=0").refused_field(400, "limit");
}
