//! Event hooks: programs in `{home}/hooks` that run when something happens.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::until;

fn hook(daemon: &Daemon, folder: &str, yaml: &str, script: &str) {
    let directory = daemon.home().join("hooks").join(folder);
    fs::create_dir_all(&directory).expect("the test can prepare its files");
    let path = directory.join("run.sh");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the test can prepare its files");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("the test can prepare its files");
    fs::write(directory.join("HOOK.yaml"), yaml).expect("the test can prepare its files");
}

fn hooks(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/event-hooks").expect(200)["event_hooks"].as_array().expect("a list").clone()
}

#[test]
fn hooks_run_with_their_event_and_failures_are_shown() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("scout", "");
    let log = "printf '%s %s\\n' \"$HOOK_EVENT\" \"$HOOK_EVENT_DATA\" >> seen";
    hook(&daemon, "all", "name: everything\nevents: ['agent:*', gateway:startup]\ncommand: ./run.sh\n", log);
    hook(&daemon, "bad", "events: [agent:end]\ncommand: sh\nargs: [run.sh]\n", "echo went wrong >&2; exit 3");
    hook(&daemon, "wrong", "events: [agent:sleeps]\ncommand: ./run.sh\n", "exit 0");
    assert!(hooks(&daemon).is_empty(), "they are read at the start and with a reload");
    daemon.restart();
    let seen = daemon.home().join("hooks/all/seen");
    let lines = |count: usize| {
        until("the hook has run", || {
            let text = fs::read_to_string(&seen).unwrap_or_default();
            (text.lines().count() >= count).then_some(text)
        })
    };
    assert!(lines(1).starts_with("gateway:startup "));
    daemon.say(&agent, "hello");
    let text = lines(3);
    assert!(text.contains("agent:start {") && text.contains("agent:end {") && text.contains(&agent), "{text}");
    let listed = until("the failure is counted", || Some(hooks(&daemon)).filter(|all| all[1]["failures"] == 1));
    assert_eq!((&listed[0]["name"], &listed[0]["failures"]), (&json!("everything"), &json!(0)));
    let error = listed[1]["last_run"]["error"].as_str().unwrap();
    assert!(error.contains("exit code 3") && error.contains("went wrong"), "{error}");
    assert!(listed[2]["problem"].as_str().unwrap().contains("agent:sleeps"));
    let shown = daemon.cli(&["hooks"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("everything") && shown.contains("went wrong"), "{shown}");
}

#[test]
fn a_hook_does_not_change_what_it_may_do() {
    let daemon = Daemon::start();
    let yaml = "events: ['session:start']\ncommand: ./run.sh\nnetwork: false\n";
    let script = "echo 'network: true' >> HOOK.yaml; cp run.sh HOOK.yaml; mv run.sh HOOK.yaml; rm -f HOOK.yaml; ln HOOK.yaml other\n\
                  mkdir -p else; mv HOOK.yaml else; cat HOOK.yaml > seen.part; mv seen.part seen";
    hook(&daemon, "greedy", yaml, script);
    daemon.poke("/api/config/reload").expect(200);
    until("the hook is there", || (hooks(&daemon).len() == 1).then_some(()));
    daemon.agent("scout");
    let directory = daemon.home().join("hooks/greedy");
    let seen = until("the hook has run", || fs::read_to_string(directory.join("seen")).ok());
    assert_eq!(seen, yaml);
    assert_eq!(fs::read_to_string(directory.join("HOOK.yaml")).expect("it is there"), yaml);
    assert!(!directory.join("other").exists() && directory.join("run.sh").exists());
}

#[test]
fn hooks_hear_of_sessions_that_begin_end_and_are_reset() {
    let daemon = Daemon::start();
    let log = "printf '%s %s\\n' \"$HOOK_EVENT\" \"$HOOK_EVENT_DATA\" >> seen";
    hook(&daemon, "sessions", "events: ['session:*']\ncommand: ./run.sh\n", log);
    daemon.poke("/api/config/reload").expect(200);
    until("the hook is there", || (hooks(&daemon).len() == 1).then_some(()));
    let seen = daemon.home().join("hooks/sessions/seen");
    let heard = |event: &str, session: &str, agent: &str| {
        let line = until("the hook has run", || {
            let text = fs::read_to_string(&seen).unwrap_or_default();
            let is_meant = |line: &&str| line.starts_with(&format!("{event} ")) && line.contains(session);
            text.lines().find(is_meant).map(str::to_owned)
        });
        let data: Value = serde_json::from_str(line.split_once(' ').expect("data").1).expect("JSON");
        assert_eq!((&data["agent_id"], &data["session_id"]), (&json!(agent), &json!(session)));
        assert!(data["at"].is_string() && data["kind"].as_str().is_some_and(|kind| kind.starts_with("session_")));
        assert_eq!(data["reason"].is_string(), event != "session:start", "{data}");
    };
    let agent = daemon.agent("scout");
    let list = daemon.get(&format!("/api/agents/{agent}/sessions")).expect(200);
    let first = list["sessions"][0]["session_id"].as_str().expect("its session").to_owned();
    heard("session:start", &first, &agent);
    let made = daemon.post(&format!("/api/agents/{agent}/sessions"), &json!({})).expect(201);
    let second = made["session_id"].as_str().expect("a session").to_owned();
    heard("session:start", &second, &agent);
    daemon.delete(&format!("/api/sessions/{second}")).expect(200);
    heard("session:end", &second, &agent);
    daemon.poke(&format!("/api/agents/{agent}/session/reset")).expect(200);
    heard("session:reset", &first, &agent);
}

#[test]
fn a_reload_of_the_configuration_reads_the_hooks_again() {
    let daemon = Daemon::start();
    hook(&daemon, "late", "events: ['*']\ncommand: ./run.sh\n", "exit 0");
    daemon.poke("/api/config/reload").expect(200);
    until("the hook is there", || (hooks(&daemon).len() == 1).then_some(()));
}
