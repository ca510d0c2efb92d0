//! The inbox: files become messages, each once, also over a kill.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::until;

fn daemon(model: &Model, more: &str) -> Daemon {
    let config = format!("{}[inbox]\nenabled = true\npoll_interval_secs = 1\n{more}", model.config());
    Daemon::with(&config)
}

/// A file that was written a minute ago.
pub(crate) fn drop_file(daemon: &Daemon, name: &str, bytes: &[u8]) -> PathBuf {
    let inbox = daemon.home().join("inbox");
    until("the inbox is there", || inbox.join("failed").is_dir().then_some(()));
    let (part, path) = (inbox.join(format!(".{name}")), inbox.join(name));
    fs::write(&part, bytes).expect("the test can prepare its files");
    let then = SystemTime::now() - Duration::from_secs(60);
    fs::File::options()
        .append(true)
        .open(&part)
        .expect("the test can prepare its files")
        .set_modified(then)
        .expect("the test can prepare its files");
    fs::rename(&part, &path).expect("the test can prepare its files");
    path
}

pub(crate) fn gone(path: &Path) {
    until("the file is taken", || fs::symlink_metadata(path).is_err().then_some(()));
}

fn said(model: &Model) -> Vec<String> {
    let last = |request: &crate::support::model_server::Received| {
        request.messages().last().and_then(|last| last["content"].as_str().map(str::to_owned))
    };
    model.server.requests().iter().filter_map(last).collect()
}

#[test]
fn a_file_becomes_a_message_of_the_agent_that_it_names() {
    let model = Model::start();
    let daemon = daemon(&model, "default_agent = \"scout\"\n");
    daemon.agent_with("scout", "");
    daemon.agent_with("other", "");
    gone(&drop_file(&daemon, "todo.txt", b"agent:other\nbuy milk"));
    gone(&drop_file(&daemon, "note.md", b"remember this"));
    until("both were told", || (said(&model).len() == 2).then_some(()));
    let mut told = said(&model);
    told.sort();
    assert_eq!(told, ["[INBOX FILE: note.md]\nremember this", "[INBOX FILE: todo.txt]\nbuy milk"]);
    let status = until("both are counted", || {
        Some(daemon.get("/api/inbox/status").expect(200)).filter(|status| status["processed_count"] == 2)
    });
    assert_eq!((&status["enabled"], &status["default_agent"]), (&json!(true), &json!("scout")));
    assert_eq!((&status["pending_count"], &status["pending"]), (&json!(0), &json!({ "directory": 0 })));
    let moved = fs::read_dir(daemon.home().join("inbox/processed")).unwrap().count();
    assert_eq!(moved, 2);
    // The same file may come again once it was taken.
    gone(&drop_file(&daemon, "note.md", b"remember this"));
    until("it is told again", || (said(&model).len() == 3).then_some(()));
}

#[test]
fn what_is_no_text_or_a_link_goes_to_failed_with_its_reason() {
    let model = Model::start();
    let daemon = daemon(&model, "");
    daemon.agent_with("scout", "");
    gone(&drop_file(&daemon, "a.bin", &[0xff, 0xfe, 0]));
    gone(&drop_file(&daemon, "b.txt", b"no agent is named"));
    gone(&drop_file(&daemon, "c.txt", b"agent:nobody\nhello"));
    let link = daemon.home().join("inbox/link.txt");
    symlink(daemon.home().join("config.toml"), &link).unwrap();
    gone(&link);
    let reasons = || {
        let files = fs::read_dir(daemon.home().join("inbox/failed")).unwrap().map(|file| file.unwrap().path());
        let mut all: Vec<_> = files
            .filter(|path| path.extension().is_some_and(|it| it == "reason"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        all.sort();
        all
    };
    let all = until("all reasons are there", || Some(reasons()).filter(|all| all.len() == 4));
    for (reason, part) in all.iter().zip(["symbolic link", "not text", "names no agent", "no agent \"nobody\""]) {
        assert!(reason.contains(part), "{all:?}");
    }
    until("all are counted", || (daemon.get("/api/inbox/status").expect(200)["failed_count"] == 4).then_some(()));
    assert!(said(&model).is_empty());
}

#[test]
fn a_file_is_told_once_however_often_the_daemon_is_killed() {
    let model = Model::start();
    let mut daemon = daemon(&model, "default_agent = \"scout\"\n");
    let agent = daemon.agent_with("scout", "");
    for round in 0..6_u64 {
        let files: Vec<_> = (0..4)
            .map(|n| drop_file(&daemon, &format!("f{round}-{n}.txt"), format!("r{round}-{n}").as_bytes()))
            .collect();
        // Killed as soon as some of the files have moved, while others wait.
        let left = usize::try_from(round % 4).unwrap_or(0);
        until("some are taken", || (files.iter().filter(|file| file.exists()).count() <= left).then_some(()));
        daemon.restart();
        files.iter().for_each(|file| gone(file));
    }
    daemon.settle();
    let session = daemon.detail(&agent)["session_id"].as_str().unwrap().to_owned();
    let transcript = daemon.transcript(&session);
    let mut told: Vec<_> = transcript.iter().filter(|(_, said)| said.starts_with("[INBOX FILE")).collect();
    told.sort();
    told.dedup();
    let all = transcript.iter().filter(|(_, said)| said.starts_with("[INBOX FILE")).count();
    assert_eq!((told.len(), all), (24, 24), "each file once");
}
