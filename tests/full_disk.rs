//! A disk without room, and one that may only be read: what is refused is told so, no acknowledged change is lost,
//! and when there is room again everything goes on.
//!
//! The disk is a small tmpfs in a mount namespace of its own. Where the system permits none, the tests say so and are
//! skipped.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

#[path = "full_disk/attack.rs"]
mod attack;
#[path = "full_disk/disk.rs"]
mod disk;
mod support;
#[path = "full_disk/told.rs"]
mod told;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};

use disk::Disk;
use serde_json::{Value, json};
use support::daemon::{command_behind, text};
use support::http::Client;
use support::until;
use told::Told;

/// A daemon whose home is such a disk.
struct Harness<'d> {
    disk: &'d Disk,
    child: Child,
    client: Client,
}

impl<'d> Harness<'d> {
    fn command(disk: &Disk, words: &[&str]) -> Command {
        let mut command = command_behind(disk.place.path(), &disk.launcher);
        command.args(words).stdout(Stdio::null());
        command
    }

    fn start(disk: &'d Disk) -> Self {
        let config = disk.path().join("config.toml");
        if !config.exists() {
            fs::write(config, "api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = 10000000\n").unwrap();
        }
        let child = Self::command(disk, &["start"]).stderr(Self::log(disk)).spawn().unwrap();
        let mut harness = Self { disk, child, client: Client::new(SocketAddr::from(([127, 0, 0, 1], 0))) };
        until("the daemon serves its world", || {
            if let Ok(Some(status)) = harness.child.try_wait() {
                panic!("the daemon ended ({status}): {}", harness.said());
            }
            let known = fs::read_to_string(disk.path().join("daemon.json")).ok()?;
            let known: Value = serde_json::from_str(&known).ok()?;
            harness.client.addr =
                known["listen"].as_str().filter(|_| known["pid"] == harness.child.id())?.parse().ok()?;
            (harness.client.try_send("GET", "/api/status", &[], None).ok()?.status == 200).then_some(())
        });
        harness
    }

    /// Where it writes what it has to say: not on the disk.
    fn log(disk: &Disk) -> File {
        let path = disk.place.path().with_extension("log");
        File::options().create(true).append(true).open(path).unwrap()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.disk.place.path().with_extension("log")).unwrap_or_default()
    }

    fn ends(&mut self) -> ExitStatus {
        until("the daemon is shutting down", || self.child.try_wait().unwrap())
    }

    /// Starts the binary, which must end by itself; gives what it said.
    fn refused(disk: &Disk) -> String {
        let client = Client::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let child = Self::command(disk, &["start"]).stderr(Self::log(disk)).spawn().unwrap();
        let mut harness = Harness { disk, child, client };
        let ended = until("the start is refused", || harness.child.try_wait().unwrap());
        let said = harness.said();
        assert!(!ended.success(), "it starts: {said}");
        said
    }

    /// Gives the world some bulk that does not compress.
    fn bulk(&self, agent: &str, entries: usize) {
        let mut rng = support::Rng(9);
        for n in 0..entries {
            let value: String = (0..3_500).map(|_| format!("{:016x}", rng.roll())).collect();
            let path = format!("/api/memory/agents/{agent}/kv/bulk-{n}");
            self.client.put(&path, &json!({ "value": value })).expect(200);
        }
    }
}

impl Drop for Harness<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- stderr of the daemon\n{}", self.said());
        }
        let _ = fs::remove_file(self.disk.place.path().with_extension("log"));
    }
}

/// Waits until health says whether changes are refused.
fn until_read_only(harness: &Harness<'_>, read_only: bool) {
    until("health says whether changes are refused", || {
        let health = harness.client.get("/api/health").expect(200);
        (health["read_only"] == read_only).then(|| {
            assert_eq!(health["status"], if read_only { "degraded" } else { "ok" }, "{health}");
            let ready = harness.client.get("/api/ready").expect(if read_only { 503 } else { 200 });
            assert!(!read_only || ready["code"] == "read_only", "{ready}");
        })
    });
}

/// A full disk takes no change that does not go through the store either, but lets go of files.
fn changes_nothing_outside_the_store(harness: &Harness<'_>, agent: &str) {
    let (client, disk) = (&harness.client, harness.disk);
    let files =
        |below| disk.files(below).into_iter().filter(|(name, _)| !name.starts_with("data/")).collect::<Vec<_>>();
    let config = || fs::read_to_string(disk.path().join("config.toml")).unwrap();
    let (files_before, config_before) = (files(""), config());
    let set = json!({ "path": "log_level", "value": "debug" });
    let manifest = json!({ "manifest_toml": "name = \"x\"\nsystem_prompt = \"p\"\n" });
    for (path, body) in [
        ("/api/config/set", set),
        ("/api/init", json!({ "provider": "ollama", "force": true })),
        ("/api/providers/openai/key", json!({ "api_key": "sk-0123456789" })),
        ("/api/models/aliases", json!({ "alias": "quick", "model_id": "echo" })),
        ("/api/templates", manifest),
        ("/api/approvals/totp/setup", json!({})),
        ("/api/bindings", json!({ "event": "key", "key": "Mod+K", "command": "/new" })),
    ] {
        let refused = client.post(path, &body).expect(503);
        assert_eq!(refused["code"], "read_only", "{path}: {refused}");
    }
    let path = format!("/api/agents/{agent}/files/a");
    let refused = client.send("PUT", &path, &[], Some(b"x")).expect(503);
    assert_eq!(refused["code"], "read_only", "{refused}");
    assert_eq!((files(""), config()), (files_before, config_before));
    let path = format!("/api/agents/{agent}/files/freed");
    assert_eq!(client.delete(&path).expect(200)["status"], "deleted");
}

#[test]
fn a_full_disk_is_served_read_only_and_loses_nothing_that_was_acknowledged() {
    let Some(disk) = Disk::of(400) else { return };
    let mut harness = Harness::start(&disk);
    let agent = harness.client.agent("kept");
    let mut told = Told::default();
    until("the reserve is there", || disk.path().join("data/reserve").exists().then_some(()));
    told.ask(&harness, &agent, 20);
    assert_eq!(told.refused, []);
    for _ in 0..2 {
        let path = format!("/api/agents/{agent}/files/freed");
        harness.client.send("PUT", &path, &[], Some(b"x")).expect(201);
        disk.fill(0);
        until_read_only(&harness, true);
        told.ask(&harness, &agent, 1);
        let (status, body) = told.refused.pop().unwrap();
        assert_eq!((status, &body["code"]), (503, &json!("read_only")), "{body}");
        // What needs no room is answered.
        told.is_kept(&harness.client, &agent);
        until("the store has the room of the reserve", || (disk.room() > 16 << 20).then_some(()));
        changes_nothing_outside_the_store(&harness, &agent);
        assert!(!disk.path().join("data/reserve").exists());
        disk.free();
        until_read_only(&harness, false);
        told.ask(&harness, &agent, 5);
        assert_eq!(told.refused, []);
        until("the reserve is there again", || disk.path().join("data/reserve").exists().then_some(()));
    }
    // It starts without any room, too.
    harness.child.kill().unwrap();
    harness.child.wait().unwrap();
    disk.fill(0);
    assert_eq!(disk.room(), 0);
    drop(harness);
    let mut harness = Harness::start(&disk);
    until_read_only(&harness, true);
    told.is_kept(&harness.client, &agent);
    harness.child.kill().unwrap();
    harness.child.wait().unwrap();
    drop(harness);
    let harness = Harness::start(&disk);
    until_read_only(&harness, true);
    told.is_kept(&harness.client, &agent);
    disk.free();
    until_read_only(&harness, false);
    harness.client.say(&agent, "still here");
    let query = Harness::command(&disk, &["query", "agents select count"]).status();
    assert!(query.unwrap().success());
}

#[test]
fn a_command_that_fills_the_disk_is_stopped_and_the_daemon_goes_on() {
    let Some(disk) = Disk::of(400) else { return };
    let config = "api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = 10000000\n[tool_invoke]\nenabled = true\n\
        allowlist = [\"shell_exec\"]\n[exec_policy]\nmode = \"full\"\n";
    fs::write(disk.path().join("config.toml"), config).unwrap();
    let harness = Harness::start(&disk);
    let client = &harness.client;
    let manifest = "name = \"filler\"\nsystem_prompt = \"p\"\n[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n";
    let agent = text(&client.post("/api/agents", &json!({ "manifest_toml": manifest })).expect(201)["agent_id"]);
    let path = format!("/api/tools/shell_exec/invoke?agent_id={agent}");
    let run = |command: &str| text(&client.post(&path, &json!({ "command": command })).expect(200)["content"]);
    let mut told = Told::default();
    for _ in 0..2 {
        let said = run("cat /dev/zero > big; sleep 100000");
        assert!(said.contains("The disk is full; it was killed"), "{said}");
        // The reserve has room for the audit entry, and is given up a moment after the command was stopped.
        let delete = || client.delete(&format!("/api/agents/{agent}/files/big"));
        let deleted = until("it can be deleted", || Some(delete()).filter(|reply| reply.status != 503));
        assert_eq!(deleted.expect(200)["status"], "deleted");
        until_read_only(&harness, false);
        // Files without bytes fill it as well.
        let said = run("mkdir d; cd d; for n in $(seq 30000); do true > $n; done; sleep 100000");
        assert!(said.contains("The disk is full; it was killed"), "{said}");
        // It was stopped before or after there was no room at all.
        let reply = client.post(&path, &json!({ "command": "echo hello" }));
        assert!(reply.status == 503 || reply.text().contains("commands are refused"), "{}", reply.text());
        fs::remove_dir_all(disk.path().join("workspaces/filler/d")).unwrap();
        until_read_only(&harness, false);
        told.ask(&harness, &agent, 3);
        assert_eq!(told.refused, []);
        let said = run("echo hello");
        assert!(said.contains("stdout\nhello"), "{said}");
    }
    // Where the world still has room, agents have none.
    disk.fill(56 << 10);
    let said = run("echo hello");
    assert!(said.contains("The disk is full; commands are refused"), "{said}");
    disk.free();
    told.is_kept(client, &agent);
}

#[test]
fn what_waits_for_room_is_stored_when_there_is_some_and_nothing_is_lost_by_a_kill() {
    let Some(disk) = Disk::of(400) else { return };
    let mut harness = Harness::start(&disk);
    let agent = harness.client.agent("kept");
    let mut told = Told::default();
    told.ask(&harness, &agent, 5);
    // No reserve helps when others take its room as well.
    disk.fill(0);
    until_read_only(&harness, true);
    until("the reserve is gone", || (!disk.path().join("data/reserve").exists()).then_some(()));
    disk.fill(0);
    told.ask(&harness, &agent, 1);
    assert_eq!(told.refused.pop().unwrap().0, 503);
    told.is_kept(&harness.client, &agent);
    // A start without room serves what is there, and only reads.
    harness.child.kill().unwrap();
    harness.child.wait().unwrap();
    disk.fill(0);
    drop(harness);
    let harness = Harness::start(&disk);
    until_read_only(&harness, true);
    told.is_kept(&harness.client, &agent);
    told.ask(&harness, &agent, 1);
    assert_eq!(told.refused.pop().unwrap().0, 503);
    disk.free();
    drop(harness);
    let mut harness = Harness::start(&disk);
    told.is_kept(&harness.client, &agent);
    told.ask(&harness, &agent, 5);
    assert_eq!(told.refused, []);
    disk.fill(0);
    until_read_only(&harness, true);
    until("the reserve is gone", || (!disk.path().join("data/reserve").exists()).then_some(()));
    disk.fill(0);
    // A stop waits for nobody who might free the disk.
    let _said = Harness::command(&disk, &["stop"]).status().unwrap();
    let _ended = harness.ends();
    disk.free();
    drop(harness);
    let harness = Harness::start(&disk);
    told.is_kept(&harness.client, &agent);
}

/// On a disk that is too small for the reserve there is no room for an entry on the trail once it is full.
#[test]
fn without_a_reserve_what_cannot_be_put_on_record_is_refused_and_waits_for_nobody() {
    let Some(disk) = Disk::of(140) else { return };
    let harness = Harness::start(&disk);
    let client = &harness.client;
    until("it says that there is no reserve", || {
        harness.said().contains("too small for the reserve of the store").then_some(())
    });
    let agent = client.agent("kept");
    let path = format!("/api/agents/{agent}/files/a");
    client.send("PUT", &path, &[], Some(b"x")).expect(201);
    let doctor = Harness::command(&disk, &["doctor", "--offline"]).stdout(Stdio::piped()).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("too little for the reserve of the store"), "{doctor}");
    for _ in 0..2 {
        disk.fill(0);
        until_read_only(&harness, true);
        assert!(!disk.path().join("data/reserve").exists());
        // Each of them would be on the trail first.
        for _ in 0..2 {
            let refused = client.delete(&path).expect(503);
            assert_eq!(refused["code"], "read_only", "{refused}");
        }
        assert!(disk.path().join("workspaces/kept/a").exists());
        disk.free();
        until_read_only(&harness, false);
        client.say(&agent, "hello");
    }
    assert_eq!(client.delete(&path).expect(200)["status"], "deleted");
}

#[test]
fn what_needs_room_says_that_there_is_none_and_leaves_nothing_behind() {
    let Some(disk) = Disk::of(400) else { return };
    let harness = Harness::start(&disk);
    let client = &harness.client;
    let agent = client.agent("a");
    harness.bulk(&agent, 120);
    client.say(&agent, "hello");
    client.post("/api/world/snapshots", &json!({ "label": "whole" })).expect(201);
    let whole = text(&client.post("/api/backup", &json!({})).expect(200)["filename"]);
    client.upload(&agent, "kept", b"kept");
    // Enough for what the world writes meanwhile, too little for a copy of it.
    disk.fill(56 << 10);
    let before: Vec<_> = ["snapshots", "backups", "uploads", "workspaces"].map(|below| disk.files(below)).into();
    let refused = client.post("/api/world/snapshots", &json!({ "label": "too large" })).expect(507);
    assert_eq!(refused["code"], "storage_full", "{refused}");
    let refused = client.post("/api/backup", &json!({})).expect(507);
    assert_eq!(refused["code"], "storage_full", "{refused}");
    let refused = client.upload_as(&agent, "large", None, &vec![b'x'; 8 << 20]).expect(507);
    assert_eq!(refused["code"], "storage_full", "{refused}");
    let path = format!("/api/agents/{agent}/files/large");
    let refused = client.send("PUT", &path, &[], Some(&vec![b'x'; 8 << 20])).expect(507);
    assert_eq!(refused["code"], "storage_full", "{refused}");
    let after: Vec<_> = ["snapshots", "backups", "uploads", "workspaces"].map(|below| disk.files(below)).into();
    assert_eq!(before, after, "old ones are whole and nothing is left behind");
    // The world goes on all the while.
    client.say(&agent, "still here");
    let shown = client.get("/api/world/snapshots").expect(200);
    assert_eq!(shown["total"], 1, "{shown}");
    let backups = client.get("/api/backups").expect(200);
    assert_eq!((&backups["total"], &backups["backups"][0]["valid"]), (&json!(1), &json!(true)), "{backups}");
    disk.free();
    client.post("/api/world/snapshots", &json!({ "label": "later" })).expect(201);
    client.post("/api/backup", &json!({})).expect(200);
    client.upload(&agent, "large", &vec![b'x'; 8 << 20]);
    client.post("/api/restore", &json!({ "filename": whole, "dry_run": true })).expect(200);
}

#[test]
fn a_log_of_inputs_without_room_has_a_gap_and_goes_on_when_there_is_some() {
    let Some(disk) = Disk::of(400) else { return };
    fs::write(
        disk.path().join("config.toml"),
        format!(
            "api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = 10000000\ndata_dir = {:?}\n",
            disk.place.path().join("data")
        ),
    )
    .unwrap();
    // The log is on a disk of its own, within the other one, which is full at once.
    let inputs = disk.place.path().join("data/inputs");
    fs::create_dir_all(disk.path().join("data/inputs")).unwrap();
    let (program, words) = disk.launcher.split_first().unwrap();
    let mut mount = Command::new(program);
    mount.args(words).args(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0777", "tmpfs"]).arg(&inputs);
    assert!(mount.status().unwrap().success());
    let mut harness = Harness::start(&disk);
    let agent = harness.client.agent("a");
    harness.bulk(&agent, 30);
    until("the log has said that it has a gap", || harness.said().contains("the input log").then_some(()));
    for n in 0..20 {
        harness.client.say(&agent, &format!("message {n}"));
    }
    let session = text(&harness.client.detail(&agent)["session_id"]);
    assert_eq!(harness.client.transcript(&session).len(), 40);
    // A start does as well without it.
    harness.child.kill().unwrap();
    harness.child.wait().unwrap();
    drop(harness);
    let harness = Harness::start(&disk);
    assert_eq!(harness.client.transcript(&session).len(), 40);
}

#[test]
fn a_disk_that_may_only_be_read_is_refused_at_the_start() {
    let Some(disk) = Disk::of(400) else { return };
    let mut harness = Harness::start(&disk);
    let agent = harness.client.agent("kept");
    harness.client.say(&agent, "hello");
    harness.child.kill().unwrap();
    harness.child.wait().unwrap();
    drop(harness);
    let before = disk.files("");
    disk.remount("ro");
    let said = Harness::refused(&disk);
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(said.contains(&disk.place.path().display().to_string()), "it names the place: {said}");
    assert_eq!(disk.files(""), before, "nothing was changed");
    disk.remount("rw");
    let harness = Harness::start(&disk);
    harness.client.say(&agent, "hello again");
}
