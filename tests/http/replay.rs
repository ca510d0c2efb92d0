//! The input log of a real daemon: what was lived through under load is lived through again after a kill, step by step,
//! and any step of it can be put back (docs/replay.md).

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, command, text};
use crate::support::model::Model;
use crate::support::until;

#[track_caller]
fn replayed(output: &Output) -> Value {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {error}\n{out}", output.status);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("not JSON ({error}): {out}"))
}

/// A bit of everything.
fn live(daemon: &Daemon, round: usize) -> String {
    let agent = daemon.agent(&format!("agent-{round}"));
    let trigger = json!({ "agent_id": agent, "pattern": { "task_posted": {} }, "prompt_template": "{{event}}" });
    daemon.post("/api/triggers", &trigger).expect(201);
    for said in 0..4 {
        daemon.say(&agent, &format!("message {said}"));
    }
    daemon.post("/api/tasks", &json!({ "title": "do it" })).expect(201);
    daemon.put(&format!("/api/memory/agents/{agent}/kv/k"), &json!({ "value": round })).expect(200);
    daemon.post("/api/goals", &json!({ "title": "win", "agent_id": agent })).expect(201);
    daemon.post("/api/agents", &json!({ "manifest_toml": "name = 3" })).refused(400);
    agent
}

#[test]
fn a_killed_daemon_is_lived_through_again() {
    let model = Model::start();
    let mut daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let agent = live(&daemon, 0);
    daemon.say(&agent, "My name is Ana Lima.");
    let count = || daemon.get(&format!("/api/memory/agents/{agent}/count")).expect(200)["count"] == 1;
    until("the turn is memorised", || count().then_some(()));
    // While it runs.
    let report = replayed(&daemon.cli(&["replay", "--json"]));
    assert_eq!((report["equal"].as_bool(), report["differing"].as_u64()), (Some(true), Some(0)), "{report}");
    daemon.kill();
    let report = replayed(&daemon.cli(&["replay", "--json"]));
    assert_eq!(report["equal"], true, "{report}");
    assert!(report["commands"].as_u64() > Some(8) && report["outcomes"].as_u64() >= Some(4), "{report}");
    assert_eq!(report["world_hash"].as_str().map(str::len), Some(64));
    let (last, hash) = (report["to"].as_u64().unwrap(), report["world_hash"].clone());

    // Another life behind it: the second epoch goes on where the first one ended.
    daemon.restart();
    live(&daemon, 1);
    daemon.kill();
    let report = replayed(&daemon.cli(&["replay", "--from", "1", "--json"]));
    assert_eq!(report["equal"], true, "{report}");
    let epochs = report["epochs"].as_array().unwrap();
    assert_eq!((epochs.len(), &epochs[1]["continues"]), (2, &json!(true)), "{report}");
    assert!(report["to"].as_u64() > Some(last));
    let report = replayed(&daemon.cli(&["replay", "--from", "1", "--to", &last.to_string(), "--json"]));
    assert_eq!((&report["world_hash"], report["to"].as_u64()), (&hash, Some(last)));

    // For people, and one step of it.
    let out = daemon.cli(&["replay", "--at", "1"]);
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(page.contains("took in  note_action from system") && page.contains("stored  world"), "{page}");
    let nothing = daemon.cli(&["replay", "--to", "999999"]);
    assert_eq!(nothing.status.code(), Some(4), "{nothing:?}");
}

#[test]
fn any_step_can_be_put_back() {
    let mut daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let agent = live(&daemon, 0);
    let session = text(&daemon.say(&agent, "the last one")["session_id"]);
    let transcript = daemon.transcript(&session);
    let now = daemon.post("/api/world/snapshots", &json!({})).expect(201);
    let step = now["step"].as_u64().expect("step numbers continue");
    daemon.put(&format!("/api/memory/agents/{agent}/kv/k"), &json!({ "value": "other" })).expect(200);
    daemon.say(&agent, "later");
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);

    let past = until("the step in the log", || {
        let reply = daemon.post("/api/world/snapshots", &json!({ "step": step, "label": "then" }));
        (reply.status == 201).then(|| reply.expect(201))
    });
    assert_eq!(past["step"], step);
    for counted in ["agents", "sessions", "triggers", "goals", "tasks", "memories", "messages"] {
        assert_eq!(past["counts"][counted], now["counts"][counted], "{counted}: {past} {now}");
    }
    assert_eq!(past["lost"], json!({ "logs": 0, "overwritten": 0 }), "all of it was written since the epoch began");
    assert!(now.get("lost").is_none(), "only those of an older step say it: {now}");
    let id = text(&past["id"]);
    daemon.poke(&format!("/api/world/snapshots/{id}/restore")).expect(200);
    assert_eq!(daemon.transcript(&session), transcript);
    let value = daemon.get(&format!("/api/memory/agents/{agent}/kv/k")).expect(200);
    assert_eq!(value["value"], 0, "{value}");
    daemon.say(&agent, "it lives");

    daemon.post("/api/world/snapshots", &json!({ "step": 0 })).refused_field(400, "step");
    let refused = daemon.post("/api/world/snapshots", &json!({ "step": 99_999_999 }));
    assert_eq!(refused.expect(409)["code"], "step_not_kept");

    // Without a daemon, into a file.
    let file = daemon.home().join("then.rows.zst");
    let arguments = ["replay", "--to", "3", "--out", file.to_str().unwrap()];
    let busy = daemon.cli(&arguments);
    assert_eq!(busy.status.code(), Some(6), "{busy:?}");
    daemon.kill();
    let done = daemon.cli(&arguments);
    assert!(done.status.success(), "{done:?}");
    assert!(fs::metadata(&file).unwrap().len() > 100);
}

fn stop(daemon: &mut Daemon) {
    assert!(daemon.cli(&["stop"]).status.success());
    assert!(daemon.wait().success(), "it ends well: {}", daemon.stderr());
}

#[test]
fn what_of_an_older_step_cannot_come_back_is_counted() {
    let mut daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let (silenced, other) = (daemon.agent("silenced"), daemon.agent("other"));
    let session = text(&daemon.say(&silenced, "hello")["session_id"]);
    let entry = format!("/api/memory/agents/{other}/kv/k");
    daemon.put(&entry, &json!({ "value": 1 })).expect(200);
    // Another epoch: what was said and kept before it is in the store alone. A stop writes all of the log.
    stop(&mut daemon);
    daemon.restart();
    // What is answered is stored: the newest step is one of this epoch from here on.
    daemon.agent("later");
    let step = daemon.post("/api/world/snapshots", &json!({})).expect(201)["step"].as_u64().expect("it is numbered");
    daemon.put(&entry, &json!({ "value": 2 })).expect(200);
    daemon.delete(&format!("/api/agents/{silenced}")).expect(200);
    let past = until("the messages are erased", || {
        let reply = daemon.post("/api/world/snapshots", &json!({ "step": step }));
        let past = (reply.status == 201).then(|| reply.expect(201))?;
        (past["lost"]["logs"] == 1).then_some(past)
    });
    assert!(past["lost"]["overwritten"].as_u64() >= Some(1), "the first value of the entry: {past}");
    daemon.poke(&format!("/api/world/snapshots/{}/restore", text(&past["id"]))).expect(200);
    assert_eq!(daemon.detail(&silenced)["name"], "silenced", "the agent itself is back");
    assert!(daemon.transcript(&session).is_empty());
    daemon.get(&entry).expect(404);

    // Steps before the restore can still be replayed, and the seam is told.
    stop(&mut daemon);
    let report = replayed(&daemon.cli(&["replay", "--from", "1", "--json"]));
    assert_eq!(report["equal"], true, "{report}");
    let seams: Vec<_> = report["epochs"].as_array().unwrap().iter().map(|epoch| &epoch["seam"]["kind"]).collect();
    assert_eq!(seams, [&Value::Null, &Value::Null, &json!("other_world")], "{report}");
    assert!(text(&report["epochs"][2]["begun_by"]).starts_with("note_action from api"), "{report}");
    let page = String::from_utf8(daemon.cli(&["replay", "--from", "1"]).stdout).unwrap();
    assert!(page.contains("--- the world was replaced by a restore") && page.ends_with("equal\n"), "{page}");
}

#[test]
fn in_a_home_without_a_world_none_is_made() {
    let home = tempfile::tempdir().unwrap();
    assert!(command(home.path()).arg("init").output().unwrap().status.success());
    let out_of_it = ["replay", "--to", "1", "--out", "rows"];
    let runs: [(&[&str], i32); 3] = [(&["replay"], 4), (&out_of_it, 4), (&["doctor", "--repair"], 1)];
    for (arguments, code) in runs {
        let output = command(home.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
    assert_eq!(fs::read_dir(home.path().join("data/world")).unwrap().count(), 0, "the next start is the first one");
}

#[test]
fn without_the_log_nothing_is_kept() {
    let mut daemon = Daemon::with("[inputs]\nenabled = false\n");
    daemon.agent("a");
    daemon.kill();
    assert!(!daemon.home().join("data").join("inputs").exists());
    let nothing = daemon.cli(&["replay"]);
    assert_eq!(nothing.status.code(), Some(4), "{nothing:?}");
}
