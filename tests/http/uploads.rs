//! Uploads: what is taken, what is refused, how they are served, and that a kill leaves whole ones or none.

use std::fs;
use std::io::{Read, Write};

use serde_json::json;
use uuid::Uuid;

use crate::people::person;
use crate::support::daemon::{Daemon, text};
use crate::support::form::{PNG, Part, form};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// Names in the uploads directory.
fn stored(daemon: &Daemon) -> Vec<String> {
    let Ok(entries) = fs::read_dir(daemon.home().join("uploads")) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_kept_and_given_back() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let kept = daemon.upload_as(&agent, "notes é.md", Some("text/markdown"), "# Hi é".as_bytes()).expect(201);
    assert_eq!(kept["filename"], "notes é.md");
    assert_eq!((&kept["content_type"], &kept["size"]), (&json!("text/markdown"), &json!(7)));
    let id = text(&kept["file_id"]);
    assert_eq!(Uuid::parse_str(&id).unwrap().get_version_num(), 4);
    let reply = daemon.get(&format!("/api/uploads/{id}"));
    assert_eq!((reply.status, reply.text().as_str()), (200, "# Hi é"));
    for (name, value) in [
        ("content-type", "text/markdown"),
        ("content-disposition", "attachment; filename=\"notes _.md\"; filename*=UTF-8''notes%20%C3%A9.md"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "private, no-cache"),
        ("content-length", "7"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    let head = daemon.send("HEAD", &format!("/api/uploads/{id}"), &[], None);
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("7"), 0));
    let tag = reply.header("etag").unwrap();
    for name in ["etag", "content-type", "content-disposition", "content-security-policy", "accept-ranges"] {
        assert_eq!(head.header(name), reply.header(name), "{name}");
    }
    let known = daemon.send("GET", &format!("/api/uploads/{id}"), &[("if-none-match", tag)], None);
    assert_eq!((known.status, known.body.len()), (304, 0));
    // A copy is in the workspace, under its name or one like it.
    assert_eq!(kept["path"], "notes é.md");
    let again = daemon.upload_as(&agent, "notes é.md", None, b"other").expect(201);
    assert_eq!(again["path"], "notes é-2.md");
    let copy = daemon.get(&format!("/api/agents/{agent}/files/notes%20%C3%A9.md"));
    assert_eq!(copy.text(), "# Hi é");
}

#[test]
fn a_file_is_compared_with_its_checksum_only_when_it_is_sent() {
    let daemon = crate::people::daemon();
    let ((_, ann), (_, bob)) = (person(&daemon, "ann", "user"), person(&daemon, "bob", "user"));
    let agent = daemon.agent("a");
    let id = text(&daemon.upload_as(&agent, "a.txt", None, b"hello").expect(201)["file_id"]);
    let path = format!("/api/uploads/{id}");
    let tag = daemon.get(&path).header("etag").unwrap().to_owned();
    fs::write(daemon.home().join("uploads").join(&id), b"other").unwrap();
    let damaged = daemon.get(&path);
    assert!(damaged.status >= 400 && damaged.text().contains("damaged"), "{}", damaged.text());
    assert_eq!(daemon.send("GET", &path, &[("if-none-match", &tag)], None).status, 304);
    for other in [&ann, &bob] {
        other.get(&path).refused(404);
    }
}

#[test]
fn a_large_file_is_compared_with_its_checksum_while_it_is_sent() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let id = daemon.upload(&agent, "a.bin", &content);
    let (path, stored) = (format!("/api/uploads/{id}"), daemon.home().join("uploads").join(&id));
    let whole = daemon.get(&path);
    assert!(whole.body == content, "the content came back changed");
    let mut damaged = content.clone();
    damaged[0] ^= 1;
    fs::write(&stored, &damaged).unwrap();
    // It begins at once, and never looks like a whole one.
    let (head, mut body) = daemon.client().open("GET", &path, &[], None).unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some("2000000")));
    let mut read = Vec::new();
    let end = body.read_to_end(&mut read);
    assert!(read.len() < content.len(), "{end:?}");
    until("it is counted", || {
        daemon.get("/api/metrics").text().contains("agentsvc_uploads_damaged_total 1\n").then_some(())
    });
    // Another size is found before anything is sent; what is known of it needs no content at all.
    fs::write(&stored, &content[1..]).unwrap();
    assert_eq!(daemon.get(&path).expect(500)["code"], "file_damaged");
    fs::remove_file(&stored).unwrap();
    let head = daemon.send("HEAD", &path, &[], None);
    assert_eq!((head.status, head.header("content-length")), (200, Some("2000000")));
    assert_eq!(head.header("etag"), whole.header("etag"));
    daemon.get(&path).refused(404);
}

#[test]
fn types_are_found_in_the_bytes_before_words_are_believed() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let kept = |name, declared, content: &[u8]| {
        let body = daemon.upload_as(&agent, name, declared, content).expect(201);
        (text(&body["file_id"]), text(&body["content_type"]))
    };
    let (picture, kind) = kept("a.bin", None, PNG);
    assert_eq!(kind, "image/png");
    let reply = daemon.get(&format!("/api/uploads/{picture}"));
    assert!(reply.header("content-disposition").unwrap().starts_with("inline; "));
    assert_eq!(reply.body, PNG);
    let (page, kind) = kept("a.png", Some("image/png"), b"<html><script>alert(1)</script>");
    assert_eq!(kind, "application/octet-stream");
    let reply = daemon.get(&format!("/api/uploads/{page}"));
    assert!(reply.header("content-disposition").unwrap().starts_with("attachment; "));
    assert_eq!(kept("a.html", Some("text/html"), b"<html>").1, "text/html");
    assert_eq!(kept("a.rs", None, b"fn main() {}").1, "text/x-rust");
    assert_eq!(kept("noname", None, b"x").1, "application/octet-stream");
    assert_eq!(kept("empty.txt", None, b"").1, "text/plain");
}

#[test]
fn names_lose_their_directories() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    for (name, plain) in [("../../etc/passwd", "passwd"), ("C:\\\\x\\\\evil.txt", "evil.txt"), ("/abs.txt", "abs.txt")]
    {
        let kept = daemon.upload_as(&agent, name, None, b"x").expect(201);
        assert_eq!((&kept["filename"], &kept["path"]), (&json!(plain), &json!(plain)));
    }
    for wrong in ["..", "a/..", "."] {
        daemon.upload_as(&agent, wrong, None, b"x").refused_field(400, "file");
    }
    daemon.upload_as(&agent, &"x".repeat(300), None, b"x").refused_field(400, "file");
    let unnamed = form(&[Part { name: "file", filename: None, content_type: None, content: b"x" }]);
    assert_eq!(daemon.send_form(&agent, &unnamed).expect(201)["filename"], "upload");
    assert_eq!(stored(&daemon).len(), 8);
}

#[test]
fn what_is_no_form_with_one_file_is_refused() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let part = |name, content| Part { name, filename: Some("a.txt"), content_type: None, content };
    daemon.send_form(&agent, &form(&[])).refused(400);
    daemon.send_form(&agent, &form(&[part("other", b"x")])).refused_field(400, "file");
    daemon.send_form(&agent, &form(&[part("file", b"x"), part("file", b"y")])).refused_field(400, "file");
    let whole = form(&[part("file", b"some content")]);
    daemon.send_form(&agent, &whole[..whole.len() - 20]).refused(400);
    daemon.send_form(&agent, b"nonsense").refused(400);
    daemon.send_form(&agent, b"").refused(400);
    let path = format!("/api/agents/{agent}/upload");
    daemon.send("POST", &path, &[], Some(b"{}")).refused(415);
    daemon.send("POST", &path, &[("content-type", "multipart/form-data")], Some(&whole)).refused(400);
    daemon.send("POST", &path, &[], None).refused(415);
    let endless = [b"------a-boundary-of-the-test\r\nx: ".to_vec(), vec![b'x'; 1 << 20]].concat();
    daemon.send_form(&agent, &endless).refused(400);
    // What had come of it is removed behind the answer.
    until("nothing is left", || stored(&daemon).is_empty().then_some(()));
    daemon.send_form(&agent, &form(&[part("comment", b"hi"), part("file", b"x"), part("after", b"y")])).expect(201);
    daemon.upload_as(&Uuid::nil().to_string(), "a", None, b"x").refused(404);
    daemon.upload_as("nonsense", "a", None, b"x").refused_field(400, "id");
    daemon.get(&format!("/api/uploads/{}", Uuid::nil())).refused(404);
    daemon.get("/api/uploads/..%2f..%2fconfig.toml").refused_field(400, "file_id");
}

#[test]
fn sizes_are_bounded() {
    let daemon = Daemon::with("[uploads]\nmax_bytes = 1000\nmax_total_bytes = 2500\n");
    let agent = daemon.agent("a");
    daemon.upload(&agent, "a", &[7; 1_000]);
    let refused = daemon.upload_as(&agent, "b", None, &[7; 1_001]);
    refused.refused_field(413, "file");
    assert_eq!(refused.expect(413)["limit_bytes"], 1_000);
    // Far beyond, also when the length is announced.
    daemon.upload_as(&agent, "b", None, &vec![7; 3 << 20]).refused(413);
    daemon.upload(&agent, "b", &[7; 1_000]);
    let full = daemon.upload_as(&agent, "c", None, &[7; 501]);
    full.refused(507);
    assert_eq!(full.expect(507)["code"], "storage_full");
    daemon.upload(&agent, "c", &[7; 500]);
    assert_eq!(stored(&daemon).len(), 6);
}

#[test]
fn an_agent_with_those_it_spawned_and_a_user_have_a_share() {
    const KEY: &str = "the-key-of-the-configuration";
    let model = Model::start();
    let limits = "[uploads]\nmax_agent_bytes = 1000\nmax_user_bytes = 1500\n";
    let mut daemon =
        Daemon::with(&format!("api_key = \"{KEY}\"\nrate_limit_per_second = 1000000\n{}{limits}", model.config()));
    daemon.use_key(KEY);
    let full = |agent: &str, bytes: usize, limit: u64| {
        let refused = daemon.upload_as(agent, "more", None, &vec![7; bytes]);
        refused.refused_field(507, "file");
        let body = refused.expect(507);
        assert_eq!((&body["code"], &body["limit_bytes"]), (&json!("quota_exceeded"), &json!(limit)), "{body}");
    };
    let parent = daemon.agent_with("parent", "[capabilities]\ntools = [\"*\"]\nagent_spawn = true\n");
    model.script([
        Reply::calls(&[("c", "agent_spawn", r#"{"name": "child", "system_prompt": "p"}"#)]),
        Reply::text("done"),
    ]);
    daemon.say(&parent, "go");
    let agents = daemon.get("/api/agents").expect(200);
    let child = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "child").expect("it was spawned");
    let child = text(&child["id"]);
    daemon.upload(&parent, "a", &[7; 600]);
    daemon.upload(&child, "b", &[7; 400]);
    full(&child, 1, 1_000);
    full(&parent, 1, 1_000);
    // Others are not affected, until their user has a share.
    let (ann_id, ann) = person(&daemon, "ann", "user");
    let anns: Vec<String> = ["first", "second", "third"].map(|name| daemon.agent(name)).into();
    for agent in &anns {
        daemon.put(&format!("/api/agents/{agent}/owner"), &json!({ "user_id": ann_id })).expect(200);
    }
    ann.upload(&anns[0], "c", &[7; 1_000]);
    ann.upload(&anns[1], "c", &[7; 500]);
    full(&anns[2], 1, 1_500);
    let nobodys = daemon.agent("nobodys");
    daemon.upload(&nobodys, "d", &[7; 1_000]);
    // A kill changes nothing, once what is there is counted.
    daemon.kill();
    daemon.restart();
    let total = "agentsvc_uploads_bytes 3500\n";
    until("all are counted", || daemon.get("/api/metrics").text().contains(total).then_some(()));
    let full = |agent: &str| daemon.upload_as(agent, "more", None, &[7]).expect(507)["limit_bytes"].clone();
    assert_eq!((full(&child), full(&anns[2]), full(&nobodys)), (json!(1_000), json!(1_500), json!(1_000)));
    // An agent that goes makes room for the others of its family and its user.
    for (gone, next, bytes) in [(&child, &parent, 400), (&anns[0], &anns[2], 1_000)] {
        daemon.delete(&format!("/api/agents/{gone}")).expect(200);
        until("there is room", || (daemon.upload_as(next, "e", None, &vec![7; bytes]).status == 201).then_some(()));
        full(next);
    }
}

/// Resident memory of the daemon, in bytes.
fn resident(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[test]
fn the_largest_file_is_never_whole_in_memory() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    daemon.upload(&agent, "first", b"x");
    let before = resident(&daemon);
    let content: Vec<u8> = (0..25_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let id = daemon.upload(&agent, "big", &content);
    let reply = daemon.get(&format!("/api/uploads/{id}"));
    assert_eq!(reply.header("content-length"), Some("26214400"));
    assert!(reply.body == content, "the content came back changed");
    let grown = resident(&daemon).saturating_sub(before);
    assert!(grown < 16 << 20, "25 MiB in and out took {grown} bytes of memory");
    daemon.upload_as(&agent, "bigger", None, &[content, vec![0]].concat()).refused_field(413, "file");
}

#[test]
fn an_upload_that_breaks_off_leaves_nothing() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let wire = daemon.connect().unwrap();
    let head = format!(
        "POST /api/agents/{agent}/upload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\
         content-type: multipart/form-data; boundary=b\r\n\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; \
         filename=\"a\"\r\n\r\n{}",
        "x".repeat(1 << 20)
    );
    (&wire).write_all(head.as_bytes()).unwrap();
    until("the upload begins", || (!stored(&daemon).is_empty()).then_some(()));
    drop(wire);
    until("the leftover goes", || stored(&daemon).is_empty().then_some(()));
}

#[test]
fn a_kill_leaves_whole_uploads_or_none() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let content = |n: usize| vec![n as u8; 200_000 + n];
    let mut kept = vec![(0, daemon.upload(&agent, "f0", &content(0)))];
    for round in 0..3 {
        let (client, owner) = (daemon.client(), agent.clone());
        let load = std::thread::spawn(move || {
            let mut acknowledged = Vec::new();
            for n in (1..).map(|n| round * 1_000 + n) {
                let content = content(n);
                let part = Part { name: "file", filename: Some("f"), content_type: None, content: &content };
                let path = format!("/api/agents/{owner}/upload");
                let kind = "multipart/form-data; boundary=----a-boundary-of-the-test";
                match client.try_send("POST", &path, &[("content-type", kind)], Some(&form(&[part]))) {
                    Ok(reply) if reply.status == 201 => acknowledged.push((n, text(&reply.expect(201)["file_id"]))),
                    _ => return acknowledged,
                }
            }
            acknowledged
        });
        let before = stored(&daemon).len();
        until("some uploads are kept", || (stored(&daemon).len() > before + 4 + round).then_some(()));
        daemon.kill();
        kept.extend(load.join().unwrap());
        daemon.restart();
        until("leftovers are gone", || stored(&daemon).iter().all(|name| !name.starts_with('.')).then_some(()));
        for (n, id) in &kept {
            assert!(daemon.get(&format!("/api/uploads/{id}")).body == content(*n), "upload {n} is not whole");
        }
        // What was not acknowledged is whole or not there: content and record come in pairs.
        until("content without a record is gone", || {
            let names = stored(&daemon);
            let paired = |name: &String| name.ends_with(".json") || names.contains(&format!("{name}.json"));
            names.iter().all(paired).then_some(())
        });
        for name in stored(&daemon).iter().filter_map(|name| name.strip_suffix(".json")) {
            daemon.get(&format!("/api/uploads/{name}")).header("etag").unwrap();
        }
    }
}

#[test]
fn uploads_go_with_their_agent() {
    let daemon = Daemon::start();
    let (agent, other) = (daemon.agent("a"), daemon.agent("b"));
    let (gone, stays) = (daemon.upload(&agent, "a", b"x"), daemon.upload(&other, "b", b"y"));
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    until("the upload goes", || (daemon.get(&format!("/api/uploads/{gone}")).status == 404).then_some(()));
    assert_eq!(daemon.get(&format!("/api/uploads/{stays}")).text(), "y");
}

#[test]
fn a_damaged_upload_is_not_served_and_is_named() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let (whole, damaged) = (daemon.upload(&agent, "whole.txt", b"whole"), daemon.upload(&agent, "a.txt", b"content"));
    let cut = daemon.upload(&agent, "cut.png", PNG);
    fs::write(daemon.home().join("uploads").join(&damaged), b"c0ntent").unwrap();
    fs::write(daemon.home().join("uploads").join(&cut), &PNG[..PNG.len() - 1]).unwrap();
    for id in [&damaged, &cut] {
        let refused = daemon.get(&format!("/api/uploads/{id}")).expect(500);
        assert_eq!(refused["code"], "file_damaged", "{refused}");
        let message = json!({ "message": "see", "attachments": [{ "file_id": id }] });
        let refused = daemon.post(&format!("/api/agents/{agent}/message"), &message).expect(500);
        assert_eq!(refused["code"], "file_damaged", "{refused}");
    }
    assert_eq!(daemon.get(&format!("/api/uploads/{whole}")).text(), "whole");
    let metrics = daemon.get("/api/metrics").text();
    assert!(metrics.contains("agentsvc_uploads_damaged_total 4\n"), "{metrics}");
    assert!(daemon.stderr().contains(&damaged));
    // A backup keeps what there is, and says which of it is damaged.
    let made = daemon.post("/api/backup", &json!({})).expect(200);
    let warnings = made["warnings"].to_string();
    assert_eq!(made["warnings"].as_array().unwrap().len(), 2, "{made}");
    assert!(warnings.contains(&damaged) && warnings.contains(&cut), "{made}");
    let restored = daemon.post("/api/restore", &json!({ "filename": made["filename"] })).expect(200);
    assert!(restored["warnings"].to_string().contains(&damaged), "{restored}");
    assert_eq!(daemon.get(&format!("/api/uploads/{damaged}")).expect(500)["code"], "file_damaged");
    let report = daemon.cli(&["doctor", "--json", "--offline"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "uploads").unwrap();
    assert_eq!(check["status"], "warn");
    assert!(text(&check["message"]).starts_with("2 of 3 uploads are damaged"), "{check}");
}

#[test]
fn a_clock_that_is_far_ahead_deletes_nothing() {
    const DAY_MS: i64 = 86_400_000;
    let mut daemon = Daemon::with("[uploads]\nretention_days = 7\n");
    let (agent, other) = (daemon.agent("a"), daemon.agent("b"));
    let id = daemon.upload(&agent, "a.txt", b"old");
    let home = daemon.home().to_owned();
    let (record, clock) = (home.join("uploads").join(format!("{id}.json")), home.join("clock.json"));
    let read =
        |path: &std::path::Path| -> serde_json::Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    // The same as a clock that jumps ahead by 40 days while the daemon is off.
    daemon.kill();
    let mut known = read(&record);
    known["created_at"] = json!(known["created_at"].as_i64().unwrap() - 40 * DAY_MS);
    fs::write(&record, known.to_string()).unwrap();
    let mut seen = read(&clock);
    let now = seen["seen_ms"].as_i64().unwrap();
    seen["seen_ms"] = json!(now - 39 * DAY_MS);
    fs::write(&clock, seen.to_string()).unwrap();
    daemon.restart();
    let gone = daemon.upload(&other, "b.txt", b"gone");
    daemon.delete(&format!("/api/agents/{other}")).expect(200);
    until("the uploads are swept", || (daemon.get(&format!("/api/uploads/{gone}")).status == 404).then_some(()));
    assert_eq!(daemon.get(&format!("/api/uploads/{id}")).text(), "old");
    assert!(daemon.stderr().contains("clock"), "{}", daemon.stderr());
    assert_eq!(read(&clock)["seen_ms"], seen["seen_ms"], "it is remembered when it is believed");
    // When it is known that so much time has passed, what is old goes.
    daemon.kill();
    fs::write(&clock, json!({ "seen_ms": now }).to_string()).unwrap();
    daemon.restart();
    until("the old upload is swept", || (daemon.get(&format!("/api/uploads/{id}")).status == 404).then_some(()));
}
