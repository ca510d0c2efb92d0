//! Damage on the disk: what is torn at the end of the journal is dropped, everything else is refused with the way out, and
//! `agentsvc doctor --repair` is that way.

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use support::daemon::{Daemon, command, text};
use support::{Rng, some_time, until};

const AGENTS: usize = 30;

/// A home with agents and messages, that no daemon has.
fn home() -> (Daemon, Vec<String>) {
    let mut daemon = Daemon::start();
    let agents: Vec<String> = (0..AGENTS).map(|n| daemon.agent(&format!("kept-{n}"))).collect();
    for agent in &agents[..5] {
        daemon.say(agent, "remember this");
    }
    daemon.kill();
    (daemon, agents)
}

fn world(daemon: &Daemon) -> PathBuf {
    daemon.home().join("data/world")
}

fn journal(daemon: &Daemon) -> PathBuf {
    let files =
        fs::read_dir(world(daemon)).expect("the store is there").map(|entry| entry.expect("it can be read").path());
    let mut journals: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "jnl")).collect();
    journals.sort();
    journals.pop().expect("a store has a journal")
}

/// Turns over the bits of one byte.
fn flip(path: &Path, at: u64) {
    let mut file = File::options().read(true).write(true).open(path).expect("it can be opened");
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut byte)).expect("it is that long");
    file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(&[!byte[0]])).expect("it can be written");
}

/// Every file of a store, with what is written in it.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("it can be read");
            found.insert(path, bytes);
        }
    }
    found
}

/// Starts the binary, which must end by itself; gives what it said.
fn refused(daemon: &Daemon) -> String {
    let mut child = command(daemon.home());
    let mut child = child.arg("start").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    assert!(!child.wait().expect("it can be waited for").success(), "it starts on a damaged store: {said}");
    said
}

fn repair(daemon: &Daemon) -> Value {
    let done = daemon.cli(&["doctor", "--repair", "--json"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    serde_json::from_slice(&done.stdout).expect("it is JSON")
}

#[test]
fn a_torn_end_of_the_journal_is_dropped_and_nothing_else() {
    let (mut daemon, agents) = home();
    let path = journal(&daemon);
    let length = fs::metadata(&path).expect("it is there").len();
    File::options().write(true).open(&path).and_then(|file| file.set_len(length - 9)).expect("it can be cut");
    daemon.restart();
    for agent in &agents {
        daemon.get(&format!("/api/agents/{agent}")).expect(200);
    }
    daemon.agent("after");
}

#[test]
fn a_damaged_journal_is_refused_and_repaired_but_for_the_damage() {
    let (mut daemon, agents) = home();
    let path = journal(&daemon);
    let length = fs::metadata(&path).expect("it is there").len();
    flip(&path, length - length / 8);
    let said = refused(&daemon);
    assert!(said.contains("damaged") && said.contains("agentsvc doctor --repair"), "{said}");
    let told = repair(&daemon);
    assert!(text(&told["damage"][0]).contains("journal"), "{told}");
    let old = PathBuf::from(text(&told["old_store"]));
    assert!(old.join("version").exists() && old != world(&daemon), "the old store stays: {told}");
    daemon.restart();
    // What was stored before and after the damaged batch is there.
    let kept = agents.iter().filter(|agent| daemon.get(&format!("/api/agents/{agent}")).status == 200);
    assert!(kept.count() >= AGENTS - 1);
    let next = daemon.agent("after");
    assert_eq!(daemon.say(&next, "echo still here")["response"].as_str().map(str::is_empty), Some(false));
    daemon.restart();
    daemon.get(&format!("/api/agents/{next}")).expect(200);
}

#[test]
fn a_store_without_the_small_files_of_the_engine_is_refused_and_repaired_whole() {
    let (mut daemon, agents) = home();
    for keyspace in ["0", "1", "2"] {
        for entry in fs::read_dir(world(&daemon).join("keyspaces").join(keyspace)).expect("it is there") {
            let path = entry.expect("it can be read").path();
            if path.is_file() {
                fs::write(path, b"not what it was").expect("it can be written");
            }
        }
    }
    fs::remove_file(world(&daemon).join("lock")).expect("it is there");
    fs::write(world(&daemon).join("version"), b"").expect("it can be written");
    let said = refused(&daemon);
    assert!(said.contains("agentsvc doctor --repair") && said.contains("restore a backup"), "{said}");
    let told = repair(&daemon);
    assert_eq!(told["lost"], json!([]), "{told}");
    daemon.restart();
    for agent in &agents {
        let session = text(&daemon.detail(agent)["session_id"]);
        let expected = if agents[..5].contains(agent) { 2 } else { 0 };
        assert_eq!(daemon.transcript(&session).len(), expected, "{agent}");
    }
}

#[test]
fn a_store_without_its_list_of_keyspaces_is_not_emptied_by_a_start() {
    let (mut daemon, agents) = home();
    fs::remove_file(world(&daemon).join("keyspaces/0/current")).expect("it is there");
    let before = files(&world(&daemon));
    refused(&daemon);
    assert!(files(&world(&daemon)) == before, "the start has changed it");
    assert_eq!(repair(&daemon)["lost"], json!([]));
    daemon.restart();
    for agent in &agents {
        daemon.get(&format!("/api/agents/{agent}")).expect(200);
    }
}

#[test]
fn a_repair_that_saves_nothing_changes_nothing_and_does_not_suggest_itself() {
    let (daemon, _) = home();
    fs::remove_file(journal(&daemon)).expect("it is there");
    let before = files(&world(&daemon));
    let said = refused(&daemon);
    assert!(said.contains("agentsvc doctor --repair") && said.contains("restore a backup"), "{said}");
    let done = daemon.cli(&["doctor", "--repair"]);
    assert!(!done.status.success());
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("cannot be repaired") && said.contains("Restore a backup"), "{said}");
    assert!(!said.contains("--repair"), "{said}");
    assert!(files(&world(&daemon)) == before, "the repair has changed it");
    let names: Vec<String> = fs::read_dir(daemon.home().join("data"))
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("world"))
        .collect();
    assert_eq!(names, ["world"], "nothing is left behind");
}

#[test]
fn a_home_in_use_is_not_repaired_and_a_whole_one_is_the_same_after_it() {
    let (mut daemon, agents) = home();
    daemon.restart();
    let done = daemon.cli(&["doctor", "--repair"]);
    assert!(!done.status.success(), "a daemon has it");
    daemon.kill();
    let before = files(&world(&daemon));
    let told = repair(&daemon);
    assert_eq!((&told["damage"], &told["lost"], &told["old_store"]), (&json!([]), &json!([]), &Value::Null), "{told}");
    assert!(files(&world(&daemon)) == before, "an intact store was changed");
    daemon.restart();
    let sessions: Vec<Value> = agents[..5].iter().map(|agent| daemon.detail(agent)).collect();
    for detail in sessions {
        let session = text(&detail["session_id"]);
        assert_eq!(daemon.transcript(&session).len(), 2, "{session}");
    }
}

#[test]
fn a_kill_of_the_repair_leaves_a_whole_world_and_never_loses_the_old_store() {
    let (mut daemon, agents) = home();
    let harm = |daemon: &Daemon| fs::write(world(daemon).join("version"), b"damaged").expect("it can be written");
    harm(&daemon);
    let began = Instant::now();
    repair(&daemon);
    let longest = began.elapsed();
    let mut rng = Rng(u64::from(daemon.pid()));
    for kill in 0..12 {
        harm(&daemon);
        let mut child = command(daemon.home());
        let mut child =
            child.args(["doctor", "--repair"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        some_time(&mut rng, longest);
        child.kill().and_then(|()| child.wait()).expect("it is killed");
        for entry in fs::read_dir(daemon.home().join("data")).expect("it is there") {
            let path = entry.expect("it can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_kept = name.starts_with("world.damaged-");
            assert!(!is_kept || path.join("version").exists(), "kill {kill}: {name} is whole");
        }
        assert_eq!(repair(&daemon)["lost"], json!([]), "kill {kill}");
        daemon.restart();
        for agent in &agents {
            daemon.get(&format!("/api/agents/{agent}")).expect(200);
        }
        daemon.kill();
    }
    assert_eq!(repair(&daemon)["lost"], json!([]));
}

#[test]
fn a_restore_that_cannot_be_completed_is_refused_and_taken_back_by_the_doctor() {
    let (mut daemon, agents) = home();
    let plan = daemon.home().join("restore.json");
    // Decided, and then somebody took the new world away that it knows by its inode.
    let decided = json!({ "archive": "gone.tar.zst", "data": daemon.home().join("data"), "world": 1, "moves": [] });
    fs::write(&plan, decided.to_string()).expect("it can be written");
    let said = refused(&daemon);
    assert!(said.contains("gone.tar.zst") && said.contains("agentsvc doctor --repair"), "{said}");
    let checks = daemon.cli(&["doctor", "--offline", "--json"]);
    let report: Value = serde_json::from_slice(&checks.stdout).expect("it is JSON");
    let check = report["checks"].as_array().expect("checks").iter().find(|check| check["name"] == "restore");
    assert_eq!(check.expect("it is looked at")["status"], "fail", "{report}");
    let told = repair(&daemon);
    assert_eq!((&told["restore"], &told["archive"]), (&json!("taken_back"), &json!("gone.tar.zst")), "{told}");
    assert!(!plan.exists());
    daemon.restart();
    for agent in &agents {
        daemon.get(&format!("/api/agents/{agent}")).expect(200);
    }
}

#[test]
fn a_terminated_daemon_under_load_keeps_what_it_acknowledged() {
    let mut daemon = Daemon::start();
    let agents: Vec<(String, String)> =
        (0..4).map(|n| format!("busy-{n}")).map(|name| (daemon.agent(&name), name)).collect();
    let (client, pid) = (daemon.client(), daemon.pid().to_string());
    let count = AtomicUsize::new(0);
    let answered: Vec<String> = std::thread::scope(|scope| {
        let speak = |(agent, name): &(String, String)| {
            let (client, agent, name, count) = (client.clone(), agent.clone(), name.clone(), &count);
            let mut answered = Vec::new();
            move || {
                for n in 0..10_000 {
                    let message = format!("{name} says {n}");
                    let path = format!("/api/agents/{agent}/message");
                    let body = json!({ "message": message }).to_string();
                    let headers = [("content-type", "application/json")];
                    match client.try_send("POST", &path, &headers, Some(body.as_bytes())) {
                        Ok(reply) if reply.status == 200 => answered.push(message),
                        _ => break,
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
                answered
            }
        };
        let threads: Vec<_> = agents.iter().map(|agent| scope.spawn(speak(agent))).collect();
        until("some answers", || (count.load(Ordering::Relaxed) > 0).then_some(()));
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
    });
    assert!(daemon.wait().success(), "it ends well: {}", daemon.stderr());
    assert!(!answered.is_empty());
    daemon.restart();
    for (agent, name) in &agents {
        let session = text(&daemon.detail(agent)["session_id"]);
        let said: Vec<String> = daemon.trail(agent, &session).into_iter().map(|(_, text)| text).collect();
        for message in answered.iter().filter(|message| message.starts_with(name.as_str())) {
            assert_eq!(said.iter().filter(|text| *text == message).count(), 1, "{message}");
        }
    }
}

#[test]
fn a_read_only_disk_is_refused_with_a_reason() {
    let (daemon, _) = home();
    if Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n") {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let data = world(&daemon);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o500)).expect("its owner may");
    let said = refused(&daemon);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).expect("its owner may");
    assert!(said.contains("cannot be used") || said.contains("ermission"), "{said}");
}
