//! Backups: made while the daemon works, listed, sent, deleted, by the command line and by themselves (spec 2, Backup and
//! restore).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use super::backup_house::{COMPONENTS, backup, daemon, done, entries, furnish, manifest, picture, restore};
use super::providers::{KEY, agent, config, holds, send, set_key};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::until;

#[test]
fn a_backup_is_made_listed_sent_and_deleted() {
    let daemon = daemon();
    furnish(&daemon, "a");
    let made = daemon.post("/api/backup", &json!({})).expect(200);
    let filename = text(&made["filename"]);
    assert!(filename.starts_with("agentsvc-") && filename.ends_with("Z.tar.zst"), "{filename}");
    let path = daemon.home().join("backups").join(&filename);
    assert_eq!(made["size_bytes"], fs::metadata(&path).unwrap().len());
    assert_eq!(made["counts"]["agents"], 2, "and the assistant");
    assert!(made["counts"]["messages"].as_u64().unwrap() >= 2, "{made}");
    for component in COMPONENTS {
        assert!(made["components"][component]["entries"].as_u64().unwrap() > 0, "{component}: {made}");
    }
    let listed = daemon.get("/api/backups").expect(200);
    let line = &listed["backups"][0];
    assert_eq!((&listed["total"], &line["filename"], &line["valid"]), (&json!(1), &json!(filename), &json!(true)));
    assert_eq!((&line["counts"], &line["created_at"]), (&made["counts"], &made["created_at"]));
    let sent = daemon.get(&format!("/api/backups/{filename}"));
    assert_eq!(sent.status, 200);
    assert!(sent.body == fs::read(&path).unwrap());
    assert_eq!(daemon.get("/api/backups/status").expect(200)["phase"], "idle");
    let names: Vec<String> = entries(&path).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[0], "manifest.json");
    assert!(!names.iter().any(|name| name.ends_with(".key") || name.starts_with("data/world/")), "{names:?}");
    assert_eq!(daemon.delete(&format!("/api/backups/{filename}")).expect(200)["status"], "deleted");
    daemon.delete(&format!("/api/backups/{filename}")).refused(404);
    daemon.get(&format!("/api/backups/{filename}")).refused(404);
    assert_eq!(daemon.get("/api/backups").expect(200)["total"], 0);
    let kinds: Vec<String> = daemon.get("/api/audit/recent?limit=4").expect(200)["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| text(&entry["event_type"]))
        .collect();
    assert_eq!(kinds[..3], ["backup_deleted", "backup_downloaded", "backup_created"]);
}

#[test]
fn a_large_download_leaves_its_address_its_rate() {
    let daemon = Daemon::with("rate_limit_per_second = 20\n");
    let filename = text(&daemon.post("/api/backup", &json!({})).expect(200)["filename"]);
    let file = fs::File::options().write(true).open(daemon.home().join("backups").join(&filename)).unwrap();
    file.set_len(80 << 20).unwrap();
    let sent = daemon.get(&format!("/api/backups/{filename}"));
    assert_eq!((sent.status, sent.body.len()), (200, 80 << 20));
    for _ in 0..10 {
        daemon.get("/api/health").expect(200);
    }
}

#[test]
fn messages_that_are_sent_meanwhile_are_whole_or_not_there() {
    let daemon = daemon();
    let agents: Vec<String> = (0..4).map(|n| daemon.agent(&format!("a{n}"))).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let loaders: Vec<_> = agents
        .iter()
        .map(|agent| {
            let (client, agent, stop) = (daemon.client(), agent.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                let mut said = 0;
                while !stop.load(Ordering::Relaxed) {
                    client.say(&agent, &format!("message {said}"));
                    said += 1;
                }
                said
            })
        })
        .collect();
    let counted = |filename: &str| {
        let manifest = manifest(&daemon.home().join("backups").join(filename));
        manifest["counts"]["messages"].as_u64().unwrap_or(0)
    };
    let backups: Vec<String> = (0..5).map(|_| backup(&daemon)).collect();
    until("the world goes on meanwhile", || (counted(&backups[0]) < counted(&backup(&daemon))).then_some(()));
    stop.store(true, Ordering::Relaxed);
    let said: Vec<u64> = loaders.into_iter().map(|loader| loader.join().unwrap()).collect();
    restore(&daemon, &json!({ "filename": backups[2] }));
    for (agent, said) in agents.iter().zip(said) {
        let session = text(&daemon.detail(agent)["session_id"]);
        // A turn that was open then is carried to its end now. What was compacted meanwhile is looked for, too.
        let transcript = until("open turns end", || {
            let transcript = daemon.trail(agent, &session);
            transcript.len().is_multiple_of(2).then_some(transcript)
        });
        assert!(transcript.len() as u64 <= 2 * said);
        for (n, pair) in transcript.chunks(2).enumerate() {
            assert_eq!((pair[0].0.as_str(), pair[0].1.clone()), ("User", format!("message {n}")));
            assert_eq!(pair[1].0, "Assistant");
        }
        daemon.say(agent, "and on it goes");
    }
}

#[test]
fn the_command_line_makes_lists_deletes_and_restores() {
    let daemon = daemon();
    furnish(&daemon, "a");
    let made = done(&daemon.cli(&["backup"]));
    let filename = made.split_whitespace().next().unwrap().to_owned();
    assert!(done(&daemon.cli(&["backup", "list"])).contains(&filename));
    let before = picture(&daemon);
    furnish(&daemon, "b");
    let dry = done(&daemon.cli(&["restore", &filename, "--dry-run"]));
    assert!(dry.contains("dry run"), "{dry}");
    // A file from elsewhere is handed over.
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy.tar.zst");
    fs::copy(daemon.home().join("backups").join(&filename), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
    done(&daemon.cli(&["restore", copy.to_str().unwrap(), "--components", "agents,cron_jobs"]));
    let handed_over = fs::metadata(daemon.home().join("backups/copy.tar.zst")).unwrap();
    assert_eq!(handed_over.permissions().mode() & 0o777, 0o600, "it is its owner's alone");
    assert_eq!(picture(&daemon)["agents"], before["agents"]);
    assert_ne!(picture(&daemon)["workflows"], before["workflows"]);
    done(&daemon.cli(&["restore", &filename]));
    assert_eq!(picture(&daemon), before);
    done(&daemon.cli(&["backup", "delete", "copy.tar.zst"]));
    assert_eq!(daemon.cli(&["backup", "delete", "copy.tar.zst"]).status.code(), Some(4));
    assert_eq!(daemon.cli(&["restore", &filename, "--components", "soul"]).status.code(), Some(2));
    assert_eq!(daemon.cli(&["restore", "none.tar.zst"]).status.code(), Some(4));
}

#[test]
fn backups_are_made_by_themselves_and_the_oldest_go() {
    let config = "[backup]\nenabled = true\nschedule = \"every 1s\"\nkeep = 2\n";
    let daemon = Daemon::with(config);
    let listed = || daemon.get("/api/backups").expect(200)["backups"].as_array().unwrap().clone();
    let first = until("a backup is made", || listed().first().map(|line| text(&line["filename"])));
    until("it goes for newer ones", || (!listed().iter().any(|line| line["filename"] == first)).then_some(()));
    assert!(listed().len() <= 3, "{:?}", listed());
    let status = daemon.get("/api/backups/status").expect(200);
    assert!(status["scheduled"]["filename"].is_string() && status["next_scheduled"].is_string(), "{status}");
    let metrics = daemon.get("/api/metrics").text();
    assert!(metrics.contains("agentsvc_backups_total{outcome=\"made\"}"), "{metrics}");
}

#[test]
fn how_old_the_newest_is_is_known_after_a_restart() {
    let mut daemon = daemon();
    backup(&daemon);
    daemon.restart();
    until("it is known", || {
        let metrics = daemon.get("/api/metrics").text();
        let mut lines = metrics.lines();
        let line = lines.find(|line| line.starts_with("agentsvc_backup_newest_seconds "))?;
        (!line.ends_with(" 0")).then_some(())
    });
}

#[test]
fn a_backup_that_fails_is_seen() {
    let blocked = tempfile::tempdir().unwrap();
    let file = blocked.path().join("file");
    fs::write(&file, "").unwrap();
    let config = format!("[backup]\nenabled = true\nschedule = \"every 1s\"\ndirectory = \"{}/x\"\n", file.display());
    let daemon = Daemon::with(&config);
    let scheduled = until("it fails", || {
        Some(daemon.get("/api/backups/status").expect(200)["scheduled"].clone()).filter(|one| one["error"].is_string())
    });
    assert!(!text(&scheduled["error"]).contains(&*file.to_string_lossy()), "no path of the machine: {scheduled}");
    until("it is on record", || {
        let trail = daemon.get("/api/audit/recent?limit=5").expect(200);
        trail["entries"].as_array().unwrap().iter().any(|entry| entry["event_type"] == "backup_failed").then_some(())
    });
    // One that is being tried on time stands in the way for a moment.
    let refused =
        until("it is tried", || Some(daemon.post("/api/backup", &json!({}))).filter(|reply| reply.status != 409));
    refused.refused(500);
}

#[test]
fn one_thing_at_a_time() {
    let daemon = daemon();
    let agent = daemon.agent("a");
    (0..50).for_each(|n| drop(daemon.say(&agent, &format!("{n}"))));
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let client = daemon.client();
            thread::spawn(move || client.post("/api/backup", &json!({})).status)
        })
        .collect();
    let statuses: Vec<u16> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(statuses.contains(&200) && statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
    let made = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(daemon.get("/api/backups").expect(200)["total"], made);
}

#[test]
fn no_entry_of_a_backup_holds_a_key_in_clear() {
    let model = Model::start();
    let daemon = Daemon::with(&config(&model));
    let mine = agent(&daemon, "a", false);
    set_key(&daemon, "mine", KEY);
    send(&daemon, &mine).expect(200);
    let note = "a note to be found";
    daemon.send("PUT", &format!("/api/agents/{mine}/files/note.txt"), &[], Some(note.as_bytes())).expect(201);
    let entries = entries(&daemon.home().join("backups").join(backup(&daemon)));
    assert!(entries.iter().any(|(_, content)| holds(content, note)), "what is there in clear is found");
    for (name, content) in &entries {
        assert!(!holds(content, KEY) && !name.contains(KEY), "{name} holds the key");
    }
}
