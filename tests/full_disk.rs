//! A disk without room, and one that may only be read: what is refused is told so, No acknowledged change is lost,
//! and when there is room again everything goes on.
//!
//! The disk is a small tmpfs in a mount namespace of its own. Where the system permits none, the tests say so and are
//! skipped.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::{Value, json};
use support::daemon::{command_behind, text};
use support::http::Client;
use support::until;
use tempfile::TempDir;

/// A disk of a few megabytes. It is there as long as the process that holds its namespace.
struct Disk {
    holder: Child,
    /// Words before a program that run it where the disk is mounted.
    launcher: Vec<String>,
    place: TempDir,
}

impl Disk {
    /// One of so many MiB; `None`, and a word about it, where the system permits none.
    fn of(mib: u32) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mount =
            format!("mount -t tmpfs -o size={mib}m,mode=0777 tmpfs \"$0\" && echo mounted && exec sleep 100000");
        let mut why = String::new();
        for (unshare, enter) in [
            (&["--mount"][..], &["--mount"][..]),
            (&["--user", "--map-root-user", "--mount"], &["--user", "--preserve-credentials", "--mount"]),
        ] {
            let mut holder = Command::new("unshare");
            holder.args(unshare).args(["--propagation", "private", "sh", "-c", &mount]).arg(place.path());
            let Ok(mut holder) = holder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else { continue };
            let mut line = String::new();
            BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if line.trim() == "mounted" {
                let mut launcher = vec!["nsenter".to_owned(), "--target".to_owned(), holder.id().to_string()];
                launcher.extend(enter.iter().map(|word| (*word).to_owned()));
                launcher.push("--".to_owned());
                return Some(Self { holder, launcher, place });
            }
            let _ended = holder.wait();
            why.clear();
            let _read = holder.stderr.take().unwrap().read_to_string(&mut why);
        }
        eprintln!("SKIPPED: this system permits no mount in a namespace of its own: {}", why.trim());
        None
    }

    /// The disk as the test sees it.
    fn path(&self) -> PathBuf {
        let place = self.place.path().strip_prefix("/").unwrap();
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(place)
    }

    /// Takes up all room but so many KiB.
    fn fill(&self, spare_kib: u64) {
        let path = self.path().join("ballast");
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        let piece = [7; 4 << 10];
        while file.write_all(&piece).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(spare_kib << 10)).unwrap();
    }

    /// Gives the room back.
    fn free(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }

    /// Mounts the disk again as it is, `ro` or `rw`.
    fn remount(&self, how: &str) {
        let (program, words) = self.launcher.split_first().unwrap();
        let mut remount = Command::new(program);
        remount.args(words).args(["mount", "-o", &format!("remount,{how}")]).arg(self.place.path());
        assert!(remount.status().unwrap().success());
    }

    /// Every file, but the ballast, with its length.
    fn files(&self, below: &str) -> Vec<(String, u64)> {
        fn walk(dir: &Path, from: &Path, into: &mut Vec<(String, u64)>) {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, from, into);
                } else {
                    let name = path.strip_prefix(from).unwrap().to_string_lossy().into_owned();
                    into.push((name, entry.metadata().map_or(0, |metadata| metadata.len())));
                }
            }
        }
        let (root, mut files) = (self.path(), Vec::new());
        walk(&root.join(below), &root, &mut files);
        files.sort();
        files
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Its end is the disk's.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

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
        let mut child = Self::command(disk, &["start"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!child.wait().unwrap().success(), "it starts: {said}");
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

/// What one who asks all along was told.
#[derive(Default)]
struct Told {
    agents: Vec<String>,
    /// Session and message.
    answered: Vec<(String, String)>,
    /// Status and code of refusals.
    refused: Vec<(u16, Value)>,
}

impl Told {
    /// Asks until something is refused, or nobody answers.
    fn ask(&mut self, harness: &Harness<'_>, agent: &str) {
        for n in 0..100_000 {
            let name = format!("made-{}-{n}", self.agents.len());
            let manifest = format!("name = \"{name}\"\nsystem_prompt = \"{}\"\n", "p".repeat(4_000));
            let made = json!({ "manifest_toml": manifest }).to_string();
            let headers = [("content-type", "application/json")];
            let Ok(reply) = harness.client.try_send("POST", "/api/agents", &headers, Some(made.as_bytes())) else {
                return;
            };
            if reply.status != 201 {
                let body = reply.expect(reply.status);
                return self.refused.push((reply.status, body));
            }
            self.agents.push(text(&reply.expect(201)["agent_id"]));
            let message = format!("{name} {}", "m".repeat(4_000));
            let said = json!({ "message": message }).to_string();
            let path = format!("/api/agents/{agent}/message");
            let Ok(reply) = harness.client.try_send("POST", &path, &headers, Some(said.as_bytes())) else { return };
            if reply.status != 200 {
                let body = reply.expect(reply.status);
                return self.refused.push((reply.status, body));
            }
            self.answered.push((text(&reply.expect(200)["session_id"]), message));
        }
        panic!("the disk is never full");
    }

    /// Everything that was acknowledged is there, what was compacted since included.
    fn is_kept(&self, client: &Client, agent: &str) {
        for agent in &self.agents {
            client.get(&format!("/api/agents/{agent}")).expect(200);
        }
        let Some((session, _)) = self.answered.first() else { return };
        let trail = client.get(&format!("/api/agents/{agent}/sessions/{session}/trajectory")).expect(200);
        let said: Vec<&str> = trail["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "User")
            .filter_map(|message| message["content"].as_str())
            .collect();
        for (_, message) in &self.answered {
            let name = &message[..=message.find(' ').unwrap()];
            assert_eq!(said.iter().filter(|said| said.starts_with(name)).count(), 1, "{name}of {}", said.len());
        }
    }
}

#[test]
fn a_full_disk_ends_the_daemon_and_loses_nothing_that_was_acknowledged() {
    let Some(disk) = Disk::of(400) else { return };
    let mut harness = Harness::start(&disk);
    let agent = harness.client.agent("kept");
    let mut told = Told::default();
    disk.fill(2_000);
    told.ask(&harness, &agent);
    assert!(!told.agents.is_empty(), "there was room for some");
    for (status, body) in &told.refused {
        assert_eq!(*status, 503, "{body}");
    }
    assert!(!harness.ends().success());
    let said = harness.said();
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("free disk space") && said.contains("No acknowledged change is lost"), "{said}");
    // There is still no room: a start says so, and changes nothing.
    let said = Harness::refused(&disk);
    assert!(said.contains("No space left on device"), "{said}");
    disk.free();
    drop(harness);
    let mut harness = Harness::start(&disk);
    told.is_kept(&harness.client, &agent);
    // And once more, with kills in between.
    harness.child.kill().unwrap();
    harness.child.wait().unwrap();
    disk.fill(1_000);
    drop(harness);
    let mut harness = Harness::start(&disk);
    told.ask(&harness, &agent);
    assert!(!harness.ends().success());
    disk.free();
    drop(harness);
    let harness = Harness::start(&disk);
    told.is_kept(&harness.client, &agent);
    harness.client.say(&agent, "still here");
    let doctor = Harness::command(&disk, &["query", "agents select count"]).status();
    assert!(doctor.unwrap().success());
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
    disk.fill(1_800);
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
