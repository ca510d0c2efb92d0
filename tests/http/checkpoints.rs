//! Checkpoints: what tools change can be brought back (spec 2, Checkpoint manager).

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

const TOOLS: &str = "[capabilities]\ntools = [\"*\"]\n";

fn write(path: &str, content: &str) -> String {
    json!({ "path": path, "content": content }).to_string()
}

/// Has the agent call a tool in a turn of its own.
fn turn(model: &Model, daemon: &Daemon, agent: &str, tool: &str, input: &str) {
    model.script([Reply::calls(&[("1", tool, input)])]);
    daemon.say(agent, "go");
}

fn working_dir(daemon: &Daemon) -> PathBuf {
    daemon.home().join("workspaces/a")
}

fn checkpoints(daemon: &Daemon) -> Vec<Value> {
    let dir = working_dir(daemon);
    let found = daemon.get(&format!("/api/checkpoints?working_dir={}", dir.display())).expect(200);
    found["checkpoints"].as_array().expect("checkpoints").clone()
}

fn restore(daemon: &Daemon, commit: &str) -> Value {
    daemon
        .post("/api/checkpoints/restore", &json!({ "working_dir": working_dir(daemon), "commit": commit }))
        .expect(200)
}

#[test]
fn files_come_back_as_they_were_before_tools_changed_them() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", TOOLS);
    assert_eq!(daemon.get("/api/checkpoints").expect(200)["directories"], json!([]));
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "one\n"));
    daemon.kill();
    daemon.restart();
    let patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** Add File: b.txt\n+new\n*** End Patch";
    turn(&model, &daemon, &agent, "apply_patch", &json!({ "patch": patch }).to_string());
    turn(&model, &daemon, &agent, "file_delete", &json!({ "path": "a.txt" }).to_string());
    let file = |name: &str| fs::read_to_string(working_dir(&daemon).join(name)).ok();
    assert_eq!((file("a.txt"), file("b.txt").as_deref()), (None, Some("new\n")));
    let log = checkpoints(&daemon);
    let of = |row: &Value| (text(&row["tool"]), text(&row["path"]));
    let named = |tool: &str, path: &str| (tool.to_owned(), path.to_owned());
    let expected = [named("file_delete", "a.txt"), named("apply_patch", "a.txt (+1)"), named("file_write", "a.txt")];
    assert_eq!(log.iter().map(of).collect::<Vec<_>>(), expected);
    assert!(log.iter().all(|row| row["agent_id"] == *agent && row["session_id"].is_string()), "{log:?}");
    let listed = daemon.get("/api/checkpoints?limit=1").expect(200);
    assert_eq!(listed["directories"][0]["working_dir"], json!(working_dir(&daemon)));
    assert!(listed["directories"][0]["last_at"].is_string());

    let undone = restore(&daemon, &text(&log[0]["commit"])[..8]);
    assert_eq!((&undone["status"], &undone["files"]), (&json!("restored"), &json!(2)));
    assert_eq!(undone["commit"], log[0]["commit"]);
    assert_eq!(file("a.txt").as_deref(), Some("two\n"));
    restore(&daemon, &text(&log[1]["commit"]));
    assert_eq!((file("a.txt").as_deref(), file("b.txt").as_deref()), (Some("one\n"), Some("new\n")));
    restore(&daemon, &text(&undone["checkpoint"]));
    // It had no a.txt, and a restore deletes nothing.
    assert_eq!(file("a.txt").as_deref(), Some("one\n"));
    let entries = daemon.get("/api/audit/recent?limit=100").expect(200);
    let kinds = entries["entries"].as_array().expect("entries").iter().map(|entry| text(&entry["event_type"]));
    let kinds: Vec<String> = kinds.collect();
    let noted = |wanted: &str| kinds.iter().filter(|kind| *kind == wanted).count();
    assert_eq!((noted("checkpoint_restore_started"), noted("checkpoint_restored")), (3, 3));
}

#[test]
fn wrong_requests_name_the_field_and_change_nothing() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", TOOLS);
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "one\n"));
    let (dir, commit) = (working_dir(&daemon), text(&checkpoints(&daemon)[0]["commit"]));
    let cases = [
        (json!({ "commit": commit }), 400, "working_dir"),
        (json!({ "working_dir": "workspaces/a", "commit": commit }), 400, "working_dir"),
        (json!({ "working_dir": "/../a", "commit": commit }), 400, "working_dir"),
        (json!({ "working_dir": "/".repeat(5_000), "commit": commit }), 400, "working_dir"),
        (json!({ "working_dir": dir }), 400, "commit"),
        (json!({ "working_dir": dir, "commit": "xyz1" }), 400, "commit"),
        (json!({ "working_dir": dir, "commit": "abc" }), 400, "commit"),
        (json!({ "working_dir": dir, "commit": "0".repeat(40) }), 404, "commit"),
        (json!({ "working_dir": "/tmp", "commit": commit }), 404, "working_dir"),
    ];
    for (body, status, field) in cases {
        let reply = daemon.post("/api/checkpoints/restore", &body);
        reply.refused(status);
        assert_eq!(reply.expect(status)["field"], field, "{body}: {}", reply.text());
    }
    assert_eq!(daemon.get("/api/checkpoints?working_dir=a").expect(400)["field"], "working_dir");
    assert_eq!(daemon.get("/api/checkpoints?working_dir=/nowhere").expect(404)["field"], "working_dir");
    assert_eq!(daemon.get("/api/checkpoints?limit=0").expect(400)["field"], "limit");
    assert_eq!(checkpoints(&daemon).len(), 1);
    // What was refused is on the audit log as started, and never as done.
    let entries = daemon.get("/api/audit/recent?limit=100").expect(200).to_string();
    assert!(entries.contains("checkpoint_restore_started") && !entries.contains("checkpoint_restored"), "{entries}");
}

#[test]
fn checkpoints_are_listed_and_restored_from_the_command_line_and_go_with_their_agent() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", TOOLS);
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "one\n"));
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "two\n"));
    let dir = working_dir(&daemon).display().to_string();
    let told = |args: &[&str]| {
        let output = daemon.cli(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(told(&["checkpoint", "list"]).contains(&dir));
    let commit = text(&checkpoints(&daemon)[0]["commit"]);
    assert!(told(&["checkpoint", "list", &dir]).contains(&commit));
    assert!(told(&["checkpoint", "restore", &dir, &commit[..8]]).contains("Restored 1 files"));
    assert_eq!(fs::read_to_string(working_dir(&daemon).join("a.txt")).expect("it is there"), "one\n");
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    let count = || fs::read_dir(daemon.home().join("checkpoints")).expect("it is there").count();
    until("the checkpoints are gone", || (count() == 0).then_some(()));
    assert!(working_dir(&daemon).join("a.txt").exists(), "the workspace stays");
}

#[test]
fn without_checkpoints_tools_write_all_the_same() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}[checkpoints]\nenabled = false\n", model.config()));
    let agent = daemon.agent_with("a", TOOLS);
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "one\n"));
    assert!(!daemon.home().join("checkpoints").exists());
    daemon.post("/api/config/set", &json!({ "path": "checkpoints.enabled", "value": true })).expect(200);
    // What cannot be kept is logged, and the tool goes on.
    fs::write(daemon.home().join("checkpoints"), "in the way").expect("the home can be written");
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "two\n"));
    assert_eq!(fs::read_to_string(working_dir(&daemon).join("a.txt")).expect("it is written"), "two\n");
    assert!(daemon.stderr().contains("no checkpoint could be made"), "{}", daemon.stderr());
    fs::remove_file(daemon.home().join("checkpoints")).expect("it can be removed");
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "three\n"));
    assert_eq!(checkpoints(&daemon).len(), 1);
}

#[test]
fn a_deleted_directory_comes_back() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", TOOLS);
    turn(&model, &daemon, &agent, "file_write", &write("a.txt", "one\n"));
    let by_a_person = working_dir(&daemon).join("d/e/f.txt");
    fs::create_dir_all(by_a_person.parent().expect("it has a directory")).expect("the workspace can be written");
    fs::write(&by_a_person, "kept\n").expect("the workspace can be written");
    turn(&model, &daemon, &agent, "file_delete", &json!({ "path": "d", "recursive": true }).to_string());
    assert!(!by_a_person.exists());
    restore(&daemon, &text(&checkpoints(&daemon)[0]["commit"]));
    assert_eq!(fs::read_to_string(&by_a_person).expect("it is back"), "kept\n");
}
