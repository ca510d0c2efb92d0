//! The web page and what it asks for beside the routes of spec 1: its files, a conversation in full, an answer from its
//! beginning, commands and manifest checks.

use std::io::Read;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::stream::{Event, Events, text_of};

/// The version that the addresses of the page's files have.
fn version(page: &str) -> String {
    page.split("assets/").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned()
}

#[test]
fn files_are_compressed_and_kept_for_ever_and_the_page_is_not() {
    let daemon = Daemon::start();
    let page = daemon.get("/");
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let tag = page.header("etag").unwrap().to_owned();
    let known = daemon.send("GET", "/", &[("if-none-match", &tag)], None);
    assert_eq!((known.status, known.text()), (304, String::new()));
    let version = version(&page.text());
    let path = format!("/assets/{version}/app.js");
    let plain = daemon.get(&path);
    assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(plain.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(plain.header("content-encoding"), None);
    for path in [&path, "/"] {
        let packed = daemon.send("GET", path, &[("accept-encoding", "br, gzip")], None);
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, daemon.get(path).text());
    }
    // Of another version nothing is given: half a page of each would be worse than none.
    daemon.get("/assets/0123456789abcdef/app.js").refused(404);
    for file in ["nothing.js", "..%2Findex.html", "index.html"] {
        daemon.get(&format!("/assets/{version}/{file}")).refused(404);
    }
}

#[test]
fn a_conversation_is_read_in_full() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("ada", "[capabilities]\ntools = [\"*\"]\nmemory_write = [\"*\"]\n");
    let session = text(&daemon.detail(&agent)["session_id"]);
    let read = |query: &str| daemon.get(&format!("/api/sessions/{session}/messages{query}")).expect(200);
    let empty = read("");
    assert_eq!((&empty["messages"], &empty["next_cursor"], &empty["queued"]), (&json!([]), &Value::Null, &json!(0)));
    model.script([
        Reply::calls(&[("c1", "memory_store", "{\"key\": \"colour\", \"value\": \"blue\"}")]),
        Reply::text("Noted."),
        Reply::text("Again."),
    ]);
    daemon.say(&agent, "remember blue");
    daemon.say(&agent, "and now?");
    let body = read("");
    assert_eq!((&body["agent_id"], &body["current"]), (&json!(agent), &json!(true)));
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| text(&message["role"])).collect();
    assert_eq!(roles, ["User", "Assistant", "Tool", "Assistant", "User", "Assistant"], "{body}");
    let (call, result) = (&messages[1]["tool_calls"][0], &messages[2]["tool_results"][0]);
    assert_eq!((&call["name"], &call["input"]["value"]), (&json!("memory_store"), &json!("blue")));
    assert_eq!(
        (&result["call_id"], &result["is_error"], &result["cut_bytes"]),
        (&call["id"], &json!(false), &json!(0))
    );
    assert!(messages[3]["usage"]["input_tokens"].is_u64() && messages[3]["model"].is_string(), "{}", messages[3]);
    assert_eq!(messages[0]["turn_id"], messages[3]["turn_id"]);
    assert_ne!(messages[0]["turn_id"], messages[4]["turn_id"]);
    // By pages, the newest first, turns whole.
    let newest = read("?limit=3");
    assert_eq!(newest["messages"].as_array().unwrap().len(), 2, "{newest}");
    let older = read(&format!("?limit=3&cursor={}", newest["next_cursor"]));
    assert_eq!(older["messages"].as_array().unwrap()[..], messages[..4]);
    assert_eq!(older["next_cursor"], Value::Null);
    daemon.get(&format!("/api/sessions/{session}/messages?limit=0")).refused_field(400, "limit");
    daemon.get(&format!("/api/sessions/{session}/messages?cursor=x")).refused_field(400, "cursor");
    daemon.get(&format!("/api/sessions/{}/messages", uuid::Uuid::nil())).refused(404);
}

#[test]
fn a_turn_that_is_larger_than_a_page_is_split() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("ada", "[capabilities]\ntools = [\"*\"]\n");
    let session = text(&daemon.detail(&agent)["session_id"]);
    let arguments = |n: usize| format!("{{\"zone\":\"{n}{}\"}}", "x".repeat(2_000_000));
    let calls = (0..6).map(|n| Reply::calls(&[(&format!("c{n}"), "system_time", &arguments(n))]));
    model.script(calls.chain([Reply::text("Done.")]));
    daemon.say(&agent, "what time is it?");
    let (mut pages, mut ids, mut cursor) = (0, Vec::new(), String::new());
    loop {
        let reply = daemon.get(&format!("/api/sessions/{session}/messages?limit=1000{cursor}"));
        assert!(reply.text().len() < (4 << 20) + (64 << 10), "{} bytes", reply.text().len());
        let body = reply.expect(200);
        let calls =
            body["messages"].as_array().unwrap().iter().rev().flat_map(|message| message["tool_calls"].as_array());
        ids.extend(calls.flatten().map(|call| text(&call["id"])));
        pages += 1;
        match body["next_cursor"].as_u64() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(ids, ["c5", "c4", "c3", "c2", "c1", "c0"]);
    assert!(pages >= 3, "{pages}");
}

#[test]
fn who_attaches_from_the_start_gets_what_was_said() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.hold_after_first_word();
    let first = Events::message(&daemon, &agent, &json!({ "message": "b c d" }));
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || first.for_each(|event| sender.send(event).unwrap_or_default()));
    let begun: Event = receiver.recv_timeout(crate::support::PATIENCE).unwrap();
    assert_eq!(begun.name, "chunk");
    let late = Events::open(&daemon, "GET", &format!("/api/agents/{agent}/attach?from=start"), None);
    model.release();
    assert_eq!(text_of(&late.all()), "echo: b c d");
    reader.join().unwrap();
    daemon.get(&format!("/api/agents/{agent}/attach?from=yesterday")).refused_field(400, "from");
}

#[test]
fn commands_are_typed_over_plain_http() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let path = format!("/api/agents/{agent}/command");
    let typed = |body: &Value| daemon.post(&format!("/api/agents/{agent}/command"), body);
    let help = typed(&json!({ "command": "/help" })).expect(200);
    assert!(text(&help["response"]).contains("/usage"), "{help}");
    assert_eq!(typed(&json!({ "command": "/think on" })).expect(200)["thinking"], true);
    assert_eq!(typed(&json!({ "command": "/help", "thinking": true })).expect(200)["thinking"], true);
    typed(&json!({ "command": "hello" })).refused_field(400, "command");
    assert!(typed(&json!({ "command": "/nothing" })).refused(400).contains("/help"));
    typed(&json!({})).refused(400);
    let other = text(&daemon.detail(&daemon.agent("b"))["session_id"]);
    daemon.post(&path, &json!({ "command": "/usage", "session_id": other })).refused(403);
    daemon.post(&format!("/api/agents/{}/command", uuid::Uuid::nil()), &json!({ "command": "/usage" })).refused(404);
    // The session that is named is the one that is meant.
    daemon.say(&agent, "one two three");
    let made = daemon.post(&format!("/api/agents/{agent}/sessions"), &json!({})).expect(201);
    let empty = typed(&json!({ "command": "/usage", "session_id": made["session_id"] })).expect(200);
    assert!(text(&empty["response"]).contains(": 0 input and 0 output tokens, 0 messages"), "{empty}");
}

#[test]
fn a_manifest_is_checked_without_an_agent() {
    let daemon = Daemon::start();
    let check = |toml: &str| daemon.post("/api/agents/check", &json!({ "manifest_toml": toml }));
    let before = daemon.get("/api/agents").expect(200);
    let good =
        check("name = \"x\"\ndescription = \"d\"\n[model]\nprovider = \"builtin\"\n[capabilities]\ntools = [\"*\"]\n");
    let good = good.expect(200);
    assert_eq!((&good["name"], &good["name_taken"], &good["tools"]), (&json!("x"), &json!(false), &json!(["*"])));
    assert_eq!((&good["description"], &good["provider"]), (&json!("d"), &json!("builtin")));
    assert_eq!((&good["manifest"]["description"], &good["manifest"]["tags"]), (&json!("d"), &json!([])));
    let bad = check("name = \"x\"\nsystem_prompt = 5\n");
    bad.refused_field(400, "manifest_toml");
    assert_eq!((&bad.expect(400)["line"], &bad.expect(400)["key"]), (&json!(2), &json!("system_prompt")));
    assert_eq!(daemon.get("/api/agents").expect(200), before);
    daemon.agent("x");
    assert_eq!(check("name = \"x\"\n").expect(200)["name_taken"], true);
}

#[test]
fn sessions_come_newest_first_when_asked() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    for _ in 0..4 {
        daemon.post(&format!("/api/agents/{agent}/sessions"), &json!({})).expect(201);
    }
    let ids = |query: &str| {
        let body = daemon.get(&format!("/api/agents/{agent}/sessions{query}")).expect(200);
        let ids: Vec<_> = body["sessions"].as_array().unwrap().iter().map(|session| text(&session["id"])).collect();
        (ids, body["next_cursor"].clone())
    };
    let (mut oldest, _) = ids("");
    oldest.reverse();
    let (mut newest, next) = ids("?order=newest&limit=3");
    newest.extend(ids(&format!("?order=newest&limit=3&cursor={}", text(&next))).0);
    assert_eq!(newest, oldest);
    daemon.get(&format!("/api/agents/{agent}/sessions?order=random")).refused_field(400, "order");
}
