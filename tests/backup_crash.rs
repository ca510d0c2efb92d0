//! Backups, snapshots and restores while the process is killed at random moments: a backup or a snapshot is there whole or not
//! at all, and after a restore the home is the old one or the new one, never some of each.
//!
//! `AGENTSVC_CRASH_KILLS` says how many times (12 unless set), `AGENTSVC_CRASH_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod support;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::daemon::{Daemon, command, text};
use support::{Rng, number, seed_of_run, some_time};

const AGENTS: usize = 150;

fn rng() -> Rng {
    Rng(seed_of_run(&format!("{} kills", kills())))
}

fn kills() -> u64 {
    number("AGENTSVC_CRASH_KILLS").unwrap_or(12)
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
    let name = whose_agents(daemon);
    assert_eq!(whose_tasks(daemon), name);
    assert_eq!(whose_files(daemon), name);
    name
}

/// Whose agents there are, with their sessions.
fn whose_agents(daemon: &Daemon) -> String {
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
    name
}

/// Whose task there is.
fn whose_tasks(daemon: &Daemon) -> String {
    let tasks = daemon.get("/api/tasks").expect(200);
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1, "{tasks}");
    text(&tasks["tasks"][0]["title"])
}

/// Whose files there are, those of agents left out; and what a restore stages is gone.
fn whose_files(daemon: &Daemon) -> String {
    let home = daemon.home();
    let name = fs::read_to_string(home.join("data/hand_state.json")).unwrap();
    let skills: Vec<String> = fs::read_dir(home.join("skills"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(skills, std::slice::from_ref(&name));
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
fn harness() -> (Daemon, String, String) {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let backup = || text(&daemon.post("/api/backup", &json!({})).expect(200)["filename"]);
    furnish(&daemon, "old");
    let old = backup();
    furnish(&daemon, "new");
    let new = backup();
    (daemon, old, new)
}

/// Has the daemon killed while it restores what it is not, `old` or `new`, again and again. `ask` gives the path and the body
/// that restore the one of this name; `whose` says which of the two is there after a kill, and looks at the rest.
#[allow(clippy::print_stdout, reason = "whoever runs it wants to know how often each was found")]
fn kill_while_restoring(
    daemon: &mut Daemon,
    rng: &mut Rng,
    longest: Duration,
    ask: impl Fn(&str) -> (String, Value),
    whose: impl Fn(&Daemon) -> String,
) {
    let mut found = [0, 0];
    let mut before = whose_agents(daemon);
    for kill in 0..kills() {
        let wanted = if before == "old" { "new" } else { "old" };
        let (client, (path, body)) = (daemon.client(), ask(wanted));
        let asked = thread::spawn(move || {
            client.try_send("POST", &path, &[], Some(body.to_string().as_bytes())).ok().map(|reply| reply.status)
        });
        some_time(rng, longest);
        daemon.kill();
        let answered = asked.join().unwrap();
        daemon.restart();
        let after = whose(daemon);
        assert!(after == before || after == wanted, "kill {kill}: {after}");
        assert!(answered != Some(200) || after == wanted, "kill {kill}: what was answered lasts");
        found[usize::from(after == wanted)] += 1;
        assert_eq!(daemon.get("/api/audit/verify").expect(200)["status"], "valid", "kill {kill}");
        before = after;
    }
    println!("{} times the old, {} times the new", found[0], found[1]);
}

#[test]
fn a_kill_while_a_backup_is_made_leaves_whole_ones_only() {
    let mut rng = rng();
    let (mut daemon, old, new) = harness();
    let began = Instant::now();
    daemon.post("/api/backup", &json!({})).expect(200);
    let longest = began.elapsed();
    for _ in 0..kills() {
        let client = daemon.client();
        let asked =
            thread::spawn(move || client.try_send("POST", "/api/backup", &[], Some(b"{}")).map(|reply| reply.status));
        some_time(&mut rng, longest);
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
    let mut rng = rng();
    let (mut daemon, old, new) = harness();
    let began = Instant::now();
    daemon.post("/api/restore", &json!({ "filename": old })).expect(200);
    let longest = began.elapsed() + began.elapsed() / 4;
    assert_eq!(whose(&daemon), "old");
    let ask = |wanted: &str| {
        let filename = if wanted == "old" { &old } else { &new };
        ("/api/restore".to_owned(), json!({ "filename": filename }))
    };
    kill_while_restoring(&mut daemon, &mut rng, longest, ask, whose);
}

#[test]
fn a_kill_of_the_command_line_leaves_the_old_or_the_new() {
    let mut rng = rng();
    let (mut daemon, old, new) = harness();
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
            some_time(&mut rng, longest);
            let _ = child.kill();
        }
        let ended = child.wait().unwrap();
        daemon.restart();
        let after = whose(&daemon);
        assert!(after == before || after == wanted, "kill {kill}: {after}");
        assert!(!ended.success() || after == wanted, "kill {kill}: what was said lasts");
    }
}

#[test]
fn a_kill_while_agents_alone_are_restored_leaves_everything_else_as_it_was() {
    let mut rng = rng();
    let (mut daemon, old, new) = harness();
    let body = |filename: &str| json!({ "filename": filename, "components": ["agents"] });
    let began = Instant::now();
    daemon.post("/api/restore", &body(&old)).expect(200);
    let longest = began.elapsed() + began.elapsed() / 4;
    assert_eq!(whose_agents(&daemon), "old");
    let rest_is_new = |daemon: &Daemon| {
        assert_eq!((whose_tasks(daemon), whose_files(daemon)), ("new".to_owned(), "new".to_owned()));
    };
    rest_is_new(&daemon);
    let ask = |wanted: &str| ("/api/restore".to_owned(), body(if wanted == "old" { &old } else { &new }));
    kill_while_restoring(&mut daemon, &mut rng, longest, ask, |daemon| {
        rest_is_new(daemon);
        whose_agents(daemon)
    });
}

/// The snapshots that are listed; every one has its rows, and nothing else is on the shelf.
fn snapshots(daemon: &Daemon) -> Vec<Value> {
    let listed = daemon.get("/api/world/snapshots").expect(200);
    let snapshots = listed["snapshots"].as_array().unwrap().clone();
    let shelf = daemon.home().join("data/snapshots");
    for snapshot in &snapshots {
        let rows = shelf.join(format!("{}.rows.zst", text(&snapshot["id"])));
        assert_eq!(fs::metadata(rows).unwrap().len(), snapshot["size_bytes"], "{snapshot}");
    }
    let files = fs::read_dir(&shelf).map_or(0, Iterator::count);
    assert_eq!(files, 2 * snapshots.len(), "each has two files, and nothing is left: {listed}");
    snapshots
}

#[test]
fn a_kill_while_a_snapshot_is_taken_leaves_whole_ones_only() {
    let mut rng = rng();
    let (mut daemon, ..) = harness();
    let began = Instant::now();
    let first = daemon.post("/api/world/snapshots", &json!({})).expect(201);
    let mut longest = began.elapsed();
    let step = first["step"].as_u64().unwrap();
    for kill in 0..kills() {
        // Every other one is of an older step: that takes a replay first.
        let body = if kill % 2 == 0 { json!({}) } else { json!({ "step": step }) };
        if kill == 1 {
            let began = Instant::now();
            daemon.post("/api/world/snapshots", &body).expect(201);
            longest = longest.max(began.elapsed());
        }
        let (client, body) = (daemon.client(), body.to_string());
        let asked = thread::spawn(move || {
            let reply = client.try_send("POST", "/api/world/snapshots", &[], Some(body.as_bytes())).ok()?;
            (reply.status == 201).then(|| text(&reply.expect(201)["id"]))
        });
        some_time(&mut rng, longest);
        daemon.kill();
        let answered = asked.join().unwrap();
        daemon.restart();
        let listed = snapshots(&daemon);
        assert!(answered.is_none_or(|id| listed.iter().any(|one| one["id"] == id.as_str())), "kill {kill}: {listed:?}");
    }
    assert_eq!(whose(&daemon), "new");
    for snapshot in snapshots(&daemon) {
        daemon.poke(&format!("/api/world/snapshots/{}/restore", text(&snapshot["id"]))).expect(200);
        assert_eq!((whose_agents(&daemon), whose_tasks(&daemon)), ("new".to_owned(), "new".to_owned()));
    }
    assert_eq!(daemon.get("/api/audit/verify").expect(200)["status"], "valid");
}

#[test]
fn a_kill_while_a_snapshot_is_restored_leaves_the_old_or_the_new() {
    let mut rng = rng();
    let (mut daemon, old, _) = harness();
    let take = |daemon: &Daemon| text(&daemon.post("/api/world/snapshots", &json!({})).expect(201)["id"]);
    let new = take(&daemon);
    // The world of the old home, in a harness whose files are the new ones.
    let components = ["agents", "workflows", "cron_jobs"];
    daemon.post("/api/restore", &json!({ "filename": old, "components": components })).expect(200);
    let old = take(&daemon);
    let restore = |id: &str| format!("/api/world/snapshots/{id}/restore");
    let began = Instant::now();
    daemon.poke(&restore(&new)).expect(200);
    let longest = began.elapsed() + began.elapsed() / 4;
    let ask = |wanted: &str| (restore(if wanted == "old" { &old } else { &new }), json!({}));
    kill_while_restoring(&mut daemon, &mut rng, longest, ask, |daemon| {
        assert_eq!((whose_tasks(daemon), whose_files(daemon)), ("new".to_owned(), "new".to_owned()));
        snapshots(daemon);
        whose_agents(daemon)
    });
}

#[test]
fn what_was_answered_is_on_the_trail_when_the_process_dies_at_once() {
    let (mut daemon, old, new) = harness();
    let snapshot = text(&daemon.post("/api/world/snapshots", &json!({})).expect(201)["id"]);
    let entries = |daemon: &Daemon, kind: &str| {
        let recent = daemon.get("/api/audit/recent?limit=500").expect(200);
        recent["entries"].as_array().unwrap().iter().filter(|entry| entry["event_type"] == kind).count()
    };
    for round in 0..kills() as usize {
        let (kind, path, body) = match round % 2 {
            0 => ("snapshot_restored", format!("/api/world/snapshots/{snapshot}/restore"), json!({})),
            _ => {
                let filename = if round % 4 == 1 { &old } else { &new };
                ("backup_restored", "/api/restore".to_owned(), json!({ "filename": filename }))
            }
        };
        daemon.post(&path, &body).expect(200);
        daemon.kill();
        daemon.restart();
        assert_eq!(entries(&daemon, kind), round / 2 + 1, "{kind} in round {round}");
        assert_eq!(daemon.get("/api/audit/verify").expect(200)["status"], "valid", "round {round}");
    }
}
