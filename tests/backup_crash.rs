//! Backups and restores while the process is killed at random moments: a backup is there whole or not at all, and after a
//! restore the home is the old one or the new one, never some of each.
//!
//! `AGENTSVC_CRASH_KILLS` says how many times (12 unless set), `AGENTSVC_CRASH_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod support;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use support::Dice;
use support::daemon::{Daemon, command, text};

const AGENTS: usize = 150;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn dice() -> Dice {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let seed = number("AGENTSVC_CRASH_SEED").unwrap_or(clock);
    eprintln!("AGENTSVC_CRASH_SEED={seed}");
    Dice(seed)
}

fn kills() -> u64 {
    number("AGENTSVC_CRASH_KILLS").unwrap_or(12)
}

/// The moment itself is the subject: a random time in the work, not a wait for anything.
fn some_time(dice: &mut Dice, longest: Duration) {
    thread::sleep(Duration::from_micros(dice.below(longest.as_micros() as usize) as u64));
}

/// A home that is `name` in everything a restore changes.
fn furnish(daemon: &Daemon, name: &str) {
    for agent in daemon.get("/api/agents").expect(200).as_array().unwrap() {
        daemon.delete(&format!("/api/agents/{}", text(&agent["id"]))).expect(200);
    }
    for n in 0..AGENTS {
        let agent = daemon.agent(&format!("{name}-{n}"));
        if n % 10 == 0 {
            daemon.say(&agent, name);
            let note = vec![b'x'; 20_000];
            daemon.send("PUT", &format!("/api/agents/{agent}/files/note.txt"), &[], Some(&note)).expect(201);
        }
    }
    let title = json!({ "title": name });
    for task in daemon.get("/api/tasks").expect(200)["tasks"].as_array().unwrap() {
        daemon.delete(&format!("/api/tasks/{}", text(&task["id"]))).expect(200);
    }
    daemon.post("/api/tasks", &title).expect(201);
    let home = daemon.home();
    let _ = fs::remove_dir_all(home.join("skills"));
    fs::create_dir_all(home.join(format!("skills/{name}"))).unwrap();
    fs::write(home.join(format!("skills/{name}/skill.toml")), name).unwrap();
    fs::write(home.join("data/hand_state.json"), name).unwrap();
    fs::write(
        home.join("config.toml"),
        format!("api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = 1000000\n# {name}\n"),
    )
    .unwrap();
}

/// Whose home it is: every part must say the same.
fn whose(daemon: &Daemon) -> String {
    let agents = daemon.get("/api/agents?limit=1000").expect(200);
    let mut names: Vec<String> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| text(&agent["name"]).split('-').next().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), AGENTS);
    names.dedup();
    assert_eq!(names.len(), 1, "agents of two worlds: {names:?}");
    let name = names.remove(0);
    for agent in agents.as_array().unwrap().iter().step_by(50) {
        let session = text(&daemon.detail(&text(&agent["id"]))["session_id"]);
        assert!(daemon.transcript(&session).iter().all(|(role, said)| role != "User" || *said == name));
    }
    let tasks = daemon.get("/api/tasks").expect(200);
    assert_eq!(tasks["tasks"][0]["title"], name.as_str());
    let home = daemon.home();
    let skills: Vec<String> = fs::read_dir(home.join("skills"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(skills, std::slice::from_ref(&name));
    assert_eq!(fs::read_to_string(home.join("data/hand_state.json")).unwrap(), name);
    assert!(fs::read_to_string(home.join("config.toml")).unwrap().ends_with(&format!("# {name}\n")));
    nothing_left(home);
    name
}

/// What a restore stages is gone.
fn nothing_left(home: &Path) {
    for path in [".restore", "data/.restore", "data/world.before", "restore.json"] {
        assert!(!home.join(path).exists(), "{path} is left");
    }
}

/// A daemon whose home is `new`, and backups of it and of what it was before, `old`.
fn house() -> (Daemon, String, String) {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let backup = || text(&daemon.post("/api/backup", &json!({})).expect(200)["filename"]);
    furnish(&daemon, "old");
    let old = backup();
    furnish(&daemon, "new");
    let new = backup();
    (daemon, old, new)
}

#[test]
fn a_kill_while_a_backup_is_made_leaves_whole_ones_only() {
    let mut dice = dice();
    let (mut daemon, old, new) = house();
    let began = Instant::now();
    daemon.post("/api/backup", &json!({})).expect(200);
    let longest = began.elapsed();
    for _ in 0..kills() {
        let client = daemon.client();
        let asked =
            thread::spawn(move || client.try_send("POST", "/api/backup", &[], Some(b"{}")).map(|reply| reply.status));
        some_time(&mut dice, longest);
        daemon.kill();
        let _ = asked.join().unwrap();
        daemon.restart();
        assert_eq!(whose(&daemon), "new");
        let listed = daemon.get("/api/backups").expect(200);
        let lines: &Vec<Value> = listed["backups"].as_array().unwrap();
        assert!(lines.iter().all(|line| line["valid"] == true), "{listed}");
    }
    // What was left on the way goes with the next one, and what is there can be restored.
    let last = text(&daemon.post("/api/backup", &json!({})).expect(200)["filename"]);
    let names: Vec<String> = fs::read_dir(daemon.home().join("backups"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|name| name.ends_with(".tar.zst")), "{names:?}");
    for (filename, name) in [(&old, "old"), (&last, "new"), (&new, "new")] {
        daemon.post("/api/restore", &json!({ "filename": filename })).expect(200);
        assert_eq!(whose(&daemon), name);
    }
}

#[test]
fn a_kill_while_a_backup_is_restored_leaves_the_old_or_the_new() {
    let mut dice = dice();
    let (mut daemon, old, new) = house();
    let began = Instant::now();
    daemon.post("/api/restore", &json!({ "filename": old })).expect(200);
    let longest = began.elapsed() + began.elapsed() / 4;
    assert_eq!(whose(&daemon), "old");
    let mut found = [0, 0];
    for kill in 0..kills() {
        let before = whose(&daemon);
        let (target, wanted) = if before == "old" { (&new, "new") } else { (&old, "old") };
        let (client, body) = (daemon.client(), json!({ "filename": target }).to_string());
        let asked = thread::spawn(move || {
            client.try_send("POST", "/api/restore", &[], Some(body.as_bytes())).ok().map(|reply| reply.status)
        });
        some_time(&mut dice, longest);
        daemon.kill();
        let answered = asked.join().unwrap();
        daemon.restart();
        let after = whose(&daemon);
        assert!(after == before || after == wanted, "kill {kill}: {after}");
        assert!(answered != Some(200) || after == wanted, "kill {kill}: what was answered lasts");
        found[usize::from(after == wanted)] += 1;
        assert_eq!(daemon.get("/api/audit/verify").expect(200)["status"], "valid", "kill {kill}");
    }
    println!("{} times the old, {} times the new", found[0], found[1]);
}

#[test]
fn a_kill_of_the_command_line_leaves_the_old_or_the_new() {
    let mut dice = dice();
    let (mut daemon, old, new) = house();
    let mut longest = Duration::from_millis(300);
    for kill in 0..kills() {
        let before = whose(&daemon);
        let (target, wanted) = if before == "old" { (&new, "new") } else { (&old, "old") };
        daemon.kill();
        let began = Instant::now();
        let mut child = command(daemon.home())
            .args(["restore", target])
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        if kill == 0 {
            assert!(child.wait().unwrap().success());
            longest = began.elapsed() + began.elapsed() / 4;
        } else {
            some_time(&mut dice, longest);
            let _ = child.kill();
        }
        let ended = child.wait().unwrap();
        daemon.restart();
        let after = whose(&daemon);
        assert!(after == before || after == wanted, "kill {kill}: {after}");
        assert!(!ended.success() || after == wanted, "kill {kill}: what was said lasts");
    }
}
