//! Snapshots of the whole world over HTTP: taken, listed, put back in a running daemon, refused when damaged, kept and
//! let go.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::until;

const SNAPSHOTS: &str = "/api/world/snapshots";

fn take(client: &Client, label: &str) -> Value {
    client.post("/api/world/snapshots", &json!({ "label": label })).expect(201)
}

fn list(client: &Client) -> Vec<Value> {
    let body = client.get("/api/world/snapshots").expect(200);
    let snapshots = body["snapshots"].as_array().expect("snapshots").clone();
    assert_eq!(body["total"], snapshots.len());
    snapshots
}

fn restore(client: &Client, id: &str) -> Value {
    client.poke(&format!("/api/world/snapshots/{id}/restore")).expect(200)
}

fn dir(daemon: &Daemon) -> PathBuf {
    daemon.home().join("data").join("snapshots")
}

/// What of the world can be seen from outside, without what moves by itself.
fn picture(client: &Client, agent: &str, session: &str) -> Value {
    let get = |path: &str| client.get(path).expect(200);
    json!({
        "agents": get("/api/agents"),
        "agent": get(&format!("/api/agents/{agent}")),
        "messages": get(&format!("/api/sessions/{session}")),
        "triggers": get("/api/triggers"),
        "schedules": get("/api/schedules"),
        "memory": get(&format!("/api/memory/agents/{agent}/kv")),
    })
}

fn agents(client: &Client) -> Vec<String> {
    let agents = client.get("/api/agents").expect(200);
    let mut names: Vec<_> = agents.as_array().expect("agents").iter().map(|agent| text(&agent["name"])).collect();
    names.sort();
    names
}

/// A daemon whose clients are not slowed down.
fn harness() -> Daemon {
    Daemon::with("rate_limit_per_second = 1000000\n")
}

fn delete_all(client: &Client, body: &Value) {
    client.send("DELETE", "/api/agents/bulk", &[], Some(body.to_string().as_bytes())).expect(200);
}

/// Is this sample on the metrics page?
#[track_caller]
fn is_told(client: &Client, sample: &str) {
    let metrics = client.get("/api/metrics").text();
    assert!(metrics.lines().any(|line| line == sample), "{sample}\n{metrics}");
}

fn is_trail_whole(client: &Client) {
    let verdict = client.get("/api/audit/verify").expect(200);
    assert_eq!(verdict["status"], "valid", "{verdict}");
}

/// Arenas that the allocator of the system has set up for threads: 64 MiB of addresses each, of which the begin is used.
fn system_arenas(daemon: &Daemon) -> usize {
    const ARENA: u64 = 64 << 20;
    let maps = fs::read_to_string(format!("/proc/{}/maps", daemon.pid())).unwrap();
    let ranges: Vec<(u64, u64, &str)> = maps
        .lines()
        .map(|line| {
            let (range, rest) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap();
            (number(from), number(to), &rest[..3])
        })
        .collect();
    let arenas = ranges.windows(2).filter(|pair| {
        let ((from, used, is_used), (unused, to, is_unused)) = (pair[0], pair[1]);
        from.is_multiple_of(ARENA) && to == from + ARENA && used == unused && (is_used, is_unused) == ("rw-", "---")
    });
    arenas.count()
}

#[test]
fn what_compressors_free_stays_in_no_arena_of_the_system() {
    let daemon = harness();
    daemon.agent("scout");
    for label in ["one", "two", "three"] {
        take(&daemon, label);
    }
    assert_eq!(system_arenas(&daemon), 0);
}

#[test]
fn a_world_comes_back_as_it_was_and_stays_so_over_a_kill() {
    let mut daemon = harness();
    let agent = daemon.agent("scout");
    let session = text(&daemon.say(&agent, "hello")["session_id"]);
    daemon.put(&format!("/api/memory/agents/{agent}/kv/k"), &json!({ "value": 1 })).expect(200);
    let pattern = json!({ "agent_spawned": { "name_pattern": "web-*" } });
    let trigger = json!({ "agent_id": agent, "pattern": pattern, "prompt_template": "x" });
    let trigger = text(&daemon.post("/api/triggers", &trigger).expect(201)["trigger_id"]);
    let schedule = json!({ "agent_id": agent, "cron": "30 9 1 1 *", "prompt": "go", "enabled": true });
    daemon.post("/api/schedules", &schedule).expect(201);
    let before = picture(&daemon, &agent, &session);
    let snapshot = take(&daemon, "good");
    let id = text(&snapshot["id"]);
    assert_eq!(snapshot["reason"], "manual");
    assert_eq!(snapshot["label"], "good");
    assert_eq!(snapshot["counts"]["triggers"], 1);
    assert_eq!(snapshot["counts"]["schedules"], 1);
    assert_eq!(snapshot["counts"]["messages"], 2);
    assert_eq!(fs::metadata(dir(&daemon).join(format!("{id}.rows.zst"))).unwrap().len(), snapshot["size_bytes"]);
    assert_eq!(daemon.get(&format!("/api/world/snapshots/{id}")).expect(200)["sha256"], snapshot["sha256"]);

    // The world goes on, in every one of these respects.
    daemon.say(&agent, "more");
    daemon.delete(&format!("/api/memory/agents/{agent}/kv/k")).expect(200);
    daemon.delete(&format!("/api/triggers/{trigger}")).expect(200);
    let other = daemon.agent("other");
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    assert!(!agents(&daemon).contains(&"scout".to_owned()));

    let restored = restore(&daemon, &id);
    assert_eq!(restored["status"], "restored");
    assert_eq!(restored["snapshot"]["id"], snapshot["id"]);
    assert_eq!(restored["before"]["reason"], "auto");
    assert_eq!(restored["before"]["before"], "restore");
    is_told(&daemon, "agentsvc_snapshots_total{reason=\"manual\",outcome=\"taken\"} 1");
    is_told(&daemon, "agentsvc_snapshots_total{reason=\"auto\",outcome=\"taken\"} 1");
    is_told(&daemon, "agentsvc_world_exchanges_total{outcome=\"done\"} 1");
    is_told(&daemon, "agentsvc_world_exchanges_total{outcome=\"brought_back\"} 0");
    assert_eq!(picture(&daemon, &agent, &session), before);
    daemon.get(&format!("/api/agents/{other}")).expect(404);
    is_trail_whole(&daemon);

    // It lives: it takes messages, and another kill and start is as any other.
    daemon.say(&agent, "again");
    let lived = picture(&daemon, &agent, &session);
    daemon.restart();
    assert_eq!(picture(&daemon, &agent, &session), lived);
    is_trail_whole(&daemon);
    let left: Vec<_> = fs::read_dir(daemon.home().join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("world"))
        .collect();
    assert_eq!(left, ["world"], "nothing is left of the exchange");

    // And back to the world before the restore.
    restore(&daemon, &text(&restored["before"]["id"]));
    assert!(agents(&daemon).contains(&"other".to_owned()) && !agents(&daemon).contains(&"scout".to_owned()));
    is_trail_whole(&daemon);
}

#[test]
fn the_trail_goes_on_over_a_restore() {
    let daemon = harness();
    let id = text(&take(&daemon, "early")["id"]);
    daemon.agent("later");
    restore(&daemon, &id);
    daemon.delete(&format!("/api/world/snapshots/{id}")).expect(200);
    let entries = daemon.get("/api/audit/recent?limit=100").expect(200);
    let entries = entries["entries"].as_array().expect("entries").clone();
    let kinds: Vec<_> = entries.iter().rev().map(|entry| text(&entry["event_type"])).collect();
    let ours: Vec<_> = kinds.iter().map(String::as_str).filter(|kind| *kind != "daemon_started").collect();
    let expected =
        ["agent_spawned", "snapshot_taken", "agent_spawned", "snapshot_taken", "snapshot_restored", "snapshot_deleted"];
    assert_eq!(ours, expected, "what was done after the snapshot is still on the trail");
    let restored = entries.iter().find(|entry| entry["event_type"] == "snapshot_restored").expect("it is there");
    let details: Value = serde_json::from_str(&text(&restored["details"])).expect("JSON");
    assert_eq!(details["snapshot"], id);
    assert_eq!(restored["actor"], "api");
    is_trail_whole(&daemon);
    assert_eq!(agents(&daemon), ["assistant"]);
}

/// Sets a flag at its end, however that comes: who asks until then does not ask for ever when the test fails.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn requests_during_an_exchange_are_told_and_never_hang() {
    let daemon = harness();
    let agent = daemon.agent("scout");
    let id = text(&take(&daemon, "x")["id"]);
    let (done, refused, answered) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let end = Sets(&done);
        let asking = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let answer = daemon.put(&format!("/api/memory/agents/{agent}/kv/k"), &json!({ "value": 1 }));
                match answer.status {
                    200 => answered.fetch_add(1, Ordering::AcqRel),
                    503 => {
                        let body = answer.expect(503);
                        assert_eq!(body["code"], "exchanging", "{body}");
                        refused.fetch_add(1, Ordering::AcqRel)
                    }
                    other => panic!("{other}"),
                };
                assert_eq!(daemon.get("/api/health").expect(200)["status"], "ok");
            }
        });
        // How many exchanges it takes until a request falls into one is a matter of luck.
        until("requests are answered and refused", || {
            restore(&daemon, &id);
            let both = refused.load(Ordering::Acquire) > 0 && answered.load(Ordering::Acquire) > 0;
            (both || asking.is_finished()).then_some(())
        });
        drop(end);
        asking.join().expect("no panic");
    });
    is_trail_whole(&daemon);
}

#[test]
fn turns_of_the_old_world_are_told_and_turns_of_the_restored_one_go_on() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let agent = daemon.agent_with("scout", "");
    let session = text(&daemon.say(&agent, "zero")["session_id"]);
    model.hold();
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let body = json!({ "message": "one" });
            daemon.post(&format!("/api/agents/{agent}/message"), &body).expect(503)
        });
        let streaming = scope.spawn(|| {
            let body = json!({ "message": "two" });
            String::from_utf8(daemon.post(&format!("/api/agents/{agent}/message/stream"), &body).body).unwrap()
        });
        until("both are taken and one is out", || {
            let open = text(&take(&daemon, "busy")["id"]);
            let all = list(&daemon);
            (model.waiting() == 1 && all[0]["id"] == open && all[0]["counts"]["turns"] == 2).then_some(())
        });
        let id = text(&list(&daemon)[0]["id"]);
        restore(&daemon, &id);
        let told = asking.join().expect("no panic");
        assert_eq!(told["code"], "exchanging", "{told}");
        let told = streaming.join().expect("no panic");
        assert!(told.contains("event: error") && told.contains("\"exchanging\""), "{told}");
    });
    // The turns of the restored world are resumed as after a crash; what the old call brings counts for nothing.
    until("the call is made again", || (model.waiting() == 2).then_some(()));
    model.release();
    let answers =
        || daemon.transcript(&session).into_iter().filter(|(role, _)| role.to_lowercase() == "assistant").count();
    until("both turns have ended", || (answers() == 3).then_some(()));
    assert_eq!(daemon.transcript(&session).len(), 6, "no answer came twice");
    is_trail_whole(&daemon);
}

#[test]
fn a_damaged_file_is_refused_and_nothing_changes() {
    let daemon = harness();
    daemon.agent("scout");
    let id = text(&take(&daemon, "x")["id"]);
    let file = dir(&daemon).join(format!("{id}.rows.zst"));
    daemon.agent("later");
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cut = whole[..whole.len() - 7].to_vec();
    let mut longer = whole.clone();
    longer.push(0);
    for damaged in [flipped, cut, longer, b"not a snapshot".to_vec(), Vec::new()] {
        fs::write(&file, damaged).unwrap();
        let refused = daemon.poke(&format!("/api/world/snapshots/{id}/restore")).expect(409);
        assert_eq!(refused["code"], "snapshot_damaged", "{refused}");
        assert_eq!(agents(&daemon), ["assistant", "later", "scout"]);
    }
    assert_eq!(list(&daemon).len(), 1, "no automatic one was taken for a restore that was refused");
    assert!(!daemon.home().join("data").join("world.next").exists());
    fs::remove_file(&file).unwrap();
    daemon.poke(&format!("/api/world/snapshots/{id}/restore")).expect(409);
    is_told(&daemon, "agentsvc_restores_refused_total{source=\"snapshot\"} 6");
    is_told(&daemon, "agentsvc_world_exchanges_total{outcome=\"brought_back\"} 0");
    fs::write(&file, &whole).unwrap();
    restore(&daemon, &id);
    assert_eq!(agents(&daemon), ["assistant", "scout"]);
}

#[test]
fn unknown_ids_and_bad_bodies_are_refused() {
    let daemon = harness();
    let nobody = "01890000-0000-7000-8000-000000000000";
    daemon.get(&format!("/api/world/snapshots/{nobody}")).expect(404);
    daemon.delete(&format!("/api/world/snapshots/{nobody}")).expect(404);
    daemon.poke(&format!("/api/world/snapshots/{nobody}/restore")).expect(404);
    daemon.get("/api/world/snapshots/..%2f..%2fconfig").expect(400);
    for label in [json!(""), json!("x".repeat(257)), json!("a\nb"), json!(7)] {
        let refused = daemon.post(SNAPSHOTS, &json!({ "label": label })).expect(400);
        assert_eq!(refused["field"], "label", "{refused}");
    }
    assert_eq!(list(&daemon), Vec::<Value>::new());
}

#[test]
fn what_a_kill_left_is_swept_and_whole_ones_stay() {
    let mut daemon = harness();
    let id = text(&take(&daemon, "whole")["id"]);
    let other = "01890000-0000-7000-8000-000000000000";
    fs::write(dir(&daemon).join(format!("{other}.rows.zst.new")), "half").unwrap();
    fs::write(dir(&daemon).join(format!("{other}.rows.zst")), "rows without a card").unwrap();
    fs::create_dir(daemon.home().join("data").join("world.next")).unwrap();
    daemon.restart();
    let kept: Vec<_> = list(&daemon).iter().map(|snapshot| text(&snapshot["id"])).collect();
    assert_eq!(kept, std::slice::from_ref(&id));
    assert_eq!(fs::read_dir(dir(&daemon)).unwrap().count(), 2, "rows and card");
    assert!(!daemon.home().join("data").join("world.next").exists());
    restore(&daemon, &id);
}

#[test]
fn automatic_ones_come_before_what_cannot_be_undone_and_go_by_number() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n[snapshots]\nkeep = 2\n");
    let manual = text(&take(&daemon, "mine")["id"]);
    let some: Vec<_> = (0..3).map(|n| daemon.agent(&format!("few-{n}"))).collect();
    delete_all(&daemon, &json!({ "agent_ids": some }));
    assert_eq!(list(&daemon).len(), 1, "a few agents need none");
    for round in 0..3 {
        let many: Vec<_> =
            (0..100).map(|n| json!({ "manifest_toml": format!("name = \"many-{round}-{n}\"\n") })).collect();
        let made = daemon.post("/api/agents/bulk", &json!({ "agents": many })).expect(200);
        let ids: Vec<_> = made["results"].as_array().unwrap().iter().map(|item| item["agent_id"].clone()).collect();
        delete_all(&daemon, &json!({ "agent_ids": ids }));
    }
    let snapshots = list(&daemon);
    let why: Vec<_> = snapshots.iter().map(|snapshot| snapshot["before"].as_str().unwrap_or("-")).collect();
    assert_eq!(why, ["deletion", "deletion", "-"], "two automatic ones stay, and the manual one");
    assert_eq!(snapshots[2]["id"], manual);
    assert_eq!(snapshots[0]["counts"]["agents"], 101);
    let bytes = |of: &[Value]| of.iter().map(|snapshot| snapshot["size_bytes"].as_u64().unwrap()).sum::<u64>();
    is_told(&daemon, "agentsvc_snapshots_kept 3");
    is_told(&daemon, &format!("agentsvc_snapshots_kept_bytes {}", bytes(&snapshots)));
    daemon.delete(&format!("/api/world/snapshots/{}", text(&snapshots[1]["id"]))).expect(200);
    is_told(&daemon, "agentsvc_snapshots_kept 2");
    restore(&daemon, &text(&snapshots[0]["id"]));
    assert_eq!(agents(&daemon).len(), 101);
}

#[test]
fn without_automatic_ones_a_restore_takes_none() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n[snapshots]\nautomatic = false\nkeep_manual = 1\n");
    take(&daemon, "first");
    let id = text(&take(&daemon, "second")["id"]);
    let labels: Vec<_> = list(&daemon).iter().map(|snapshot| text(&snapshot["label"])).collect();
    assert_eq!(labels, ["second"]);
    assert!(restore(&daemon, &id).get("before").is_none());
    assert_eq!(list(&daemon).len(), 1);
}

/// Has a restore come so far?
type Reached<'a> = &'a dyn Fn(&Client) -> bool;

#[test]
fn a_kill_at_any_point_of_a_restore_leaves_one_world_whole() {
    let mut daemon = harness();
    let bulk = |daemon: &Daemon, name: &str| {
        let many: Vec<_> = (0..1_000).map(|n| json!({ "manifest_toml": format!("name = \"{name}-{n}\"\n") })).collect();
        daemon.post("/api/agents/bulk", &json!({ "agents": many })).expect(200);
    };
    bulk(&daemon, "old");
    let id = text(&take(&daemon, "x")["id"]);
    bulk(&daemon, "new");
    let data = daemon.home().join("data");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&data).unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    // How far it is, as it can be seen from outside.
    let phases: [(&str, Reached<'_>); 5] = [
        ("the store is being built", &|_| names().iter().any(|name| name.starts_with("world.next.new-"))),
        ("the store is built", &|_| names().iter().any(|name| name == "world.next")),
        ("the snapshot before it is written", &|_| {
            let shelf = fs::read_dir(data.join("snapshots")).unwrap().flatten();
            shelf.filter(|entry| entry.file_name().to_string_lossy().ends_with(".new")).count() > 0
        }),
        ("no world takes commands", &|client| client.get("/api/agents?limit=1").status == 503),
        ("it is done", &|client| {
            // A list that is under way while the world goes breaks off.
            let answered = client.try_send("GET", "/api/agents", &[], None).ok().filter(|reply| reply.status == 200);
            answered.is_some_and(|reply| reply.expect(200).as_array().is_some_and(|agents| agents.len() == 1_001))
        }),
    ];
    for (what, is_reached) in phases {
        let client = daemon.client();
        let asked = client.clone();
        let path = format!("/api/world/snapshots/{id}/restore");
        let restoring = thread::spawn(move || asked.try_send("POST", &path, &[], None).map(|reply| reply.status));
        // Some phases are short: whichever comes first, this one or the end, the kill comes then.
        until(what, || (is_reached(&client) || restoring.is_finished()).then_some(()));
        daemon.restart();
        let _killed = restoring.join();
        let count = agents(&daemon).len();
        assert!(count == 1_001 || count == 2_001, "{count} agents, killed when {what}");
        assert_eq!(names().iter().filter(|name| name.starts_with("world")).count(), 1, "{:?}", names());
        is_trail_whole(&daemon);
        if count == 1_001 {
            bulk(&daemon, "new");
        }
        let unfinished = fs::read_dir(data.join("snapshots")).unwrap().flatten();
        assert!(unfinished.into_iter().all(|entry| !entry.file_name().to_string_lossy().ends_with(".new")));
    }
}

#[test]
fn a_home_holds_so_many() {
    let daemon = harness();
    let id = text(&take(&daemon, "the first")["id"]);
    let card = fs::read_to_string(dir(&daemon).join(format!("{id}.json"))).unwrap();
    let others: Vec<String> = (1..1_000).map(|n| format!("01890000-0000-7000-8000-{n:012x}")).collect();
    for other in &others {
        fs::write(dir(&daemon).join(format!("{other}.json")), card.replace(&id, other)).unwrap();
    }
    assert_eq!(list(&daemon).len(), 1_000);
    let refused = daemon.post(SNAPSHOTS, &json!({}));
    assert_eq!(refused.expect(409)["code"], "too_many_snapshots");
    refused.refused(409);
    is_told(&daemon, "agentsvc_snapshots_total{reason=\"manual\",outcome=\"failed\"} 0");
    assert_eq!(list(&daemon).len(), 1_000, "none goes for one that is not taken");
    daemon.delete(&format!("{SNAPSHOTS}/{}", others[0])).expect(200);
    daemon.post(SNAPSHOTS, &json!({})).expect(201);
}
