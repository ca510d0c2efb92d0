//! Channels over HTTP, as far as no adapter runs: their lists, what can be set up, and wrong requests (spec 3, Channels).

use std::fs;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::until;

/// A platform as the registry has it.
const PLATFORM: &str = r#"
id = "pager"
name = "Pager"
description = "Short messages"
category = "push"
tags = ["sms", "old"]
icon = "📟"
protocol = "sidecar"
[metadata]
url = "https://pager.example"
docs = "https://pager.example/docs"
[i18n.de]
name = "Piepser"
description = "Kurze Nachrichten"
"#;

fn names(list: &Value) -> Vec<String> {
    list["channels"].as_array().unwrap().iter().map(|row| text(row.get("name").unwrap())).collect()
}

#[test]
fn a_daemon_without_channels_has_empty_lists() {
    let daemon = Daemon::start();
    assert_eq!(daemon.get("/api/channels").expect(200), json!({ "channels": [], "total": 0 }));
    assert_eq!(daemon.get("/api/channels/bindings").expect(200)["total"], 0);
    assert_eq!(daemon.get("/api/channels/pairings").expect(200)["pairings"], json!([]));
    let reloaded = daemon.poke("/api/channels/reload").expect(200);
    assert_eq!((&reloaded["status"], &reloaded["total"]), (&json!("reloaded"), &json!(0)));
}

#[test]
fn unknown_names_are_404_and_change_nothing() {
    let daemon = Daemon::with("rate_limit_per_second = 100000\n");
    for name in ["nothing", "a%2Fb", "registry-of-mine"] {
        for answer in [
            daemon.get(&format!("/api/channels/{name}")),
            daemon.get(&format!("/api/channels/{name}/logs")),
            daemon.get(&format!("/api/channels/{name}/conversations")),
            daemon.get(&format!("/api/channels/{name}/sends")),
            daemon.get(&format!("/api/channels/{name}/qr")),
            daemon.get(&format!("/api/channels/{name}/qr/status")),
            daemon.poke(&format!("/api/channels/{name}/qr/start")),
            daemon.poke(&format!("/api/channels/{name}/test")),
            daemon.delete(&format!("/api/channels/{name}/configure")),
            daemon.delete(&format!("/api/channels/sidecar/{name}")),
            daemon.post(&format!("/api/channels/{name}/configure"), &json!({ "token": "t" })),
            daemon.post(&format!("/api/channels/sidecar/{name}/configure"), &json!({ "values": {} })),
        ] {
            assert!(answer.refused(404).contains("channel not found"), "{}", answer.text());
        }
    }
    daemon.get("/api/channels/registry/nothing").refused(404);
    daemon.post("/api/channels/pairings", &json!({ "channel": "nothing" })).refused(404);
    daemon.delete(&format!("/api/channels/pairings/{}", Uuid::nil())).refused(404);
    assert_eq!(daemon.get("/api/channels").expect(200)["total"], 0);
    assert!(!daemon.home().join("secrets.env").exists(), "no secret was stored");
}

#[test]
fn wrong_bodies_are_refused_by_field_before_anything_is_looked_up() {
    let daemon = Daemon::with("rate_limit_per_second = 100000\n");
    for (path, body, field) in [
        ("bot/configure", json!({ "values": "x" }), "values"),
        ("bot/configure", json!({ "values": { "A": 7 } }), "values"),
        ("bot/configure", json!({ "values": { "A B": "x" } }), "values"),
        ("bot/configure", json!({ "values": { "A": "x\ny" } }), "values"),
        ("bot/configure", json!({ "values": { "LD_PRELOAD": "/tmp/x.so" } }), "values"),
        ("bot/configure", json!({ "token": "" }), "token"),
        ("bot/configure", json!({ "agent": 7 }), "agent"),
        ("sidecar/bot/configure", json!({ "agent": "a", "agent_name": "b" }), "agent_name"),
        ("sidecar/bot/configure", json!({ "adapter": "" }), "adapter"),
        ("reload/configure", json!({ "adapter": "ntfy" }), "name"),
        ("a b/configure", json!({ "adapter": "ntfy" }), "name"),
        ("bot/test", json!({ "message": " " }), "message"),
        ("bot/test", json!({ "recipient": "" }), "recipient"),
        ("pairings", json!({}), "channel"),
        ("pairings", json!({ "channel": "bot", "conversation": "" }), "conversation"),
        ("pairings", json!({ "channel": "bot", "valid_secs": 0 }), "valid_secs"),
    ] {
        let path = format!("/api/channels/{}", path.replace(' ', "%20"));
        let answer = daemon.post(&path, &body);
        answer.refused_field(400, field);
        assert!(!answer.text().contains("/tmp/x.so"), "{}", answer.text());
    }
    assert_eq!(daemon.get("/api/channels").expect(200)["total"], 0);
}

#[test]
fn platforms_come_from_the_files_of_the_home_and_from_the_sdk() {
    let daemon = Daemon::start();
    let known = names(&daemon.get("/api/channels/registry").expect(200)).len();
    assert!(known >= 20, "the adapters of the SDK: {known}");
    let folder = daemon.home().join("channels");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("pager.toml"), PLATFORM).unwrap();
    let list = daemon.get("/api/channels/registry").expect(200);
    assert_eq!(list["total"], known + 1);
    let pager = list["channels"].as_array().unwrap().iter().find(|entry| entry["id"] == "pager").unwrap();
    assert_eq!((&pager["name"], &pager["category"], &pager["icon"]), (&json!("Pager"), &json!("push"), &json!("📟")));
    assert_eq!((&pager["url"], &pager["tags"]), (&json!("https://pager.example"), &json!(["sms", "old"])));
    assert_eq!((&pager["i18n"]["de"]["name"], &pager["adapter"]), (&json!("Piepser"), &Value::Null));
    let id = "pager";
    let detail = daemon.get(&format!("/api/channels/registry/{id}")).expect(200);
    assert!(detail["schema"].is_null() && text(&detail["schema_error"]).contains("config.toml"), "{detail}");
    // A file that is broken does not hide the others.
    fs::write(folder.join("pager.toml"), "id = [").unwrap();
    let list = daemon.get("/api/channels/registry").expect(200);
    let broken = list["channels"].as_array().unwrap().iter().find(|entry| entry["id"] == "pager").unwrap();
    assert!(broken["error"].is_string() && names(&list).len() == known + 1, "{broken}");
}

#[test]
fn a_channel_whose_program_is_missing_says_so_and_is_never_connected() {
    let config =
        "[[sidecar_channels]]\nname = \"bot\"\ncommand = \"/nowhere/adapter\"\nagent = \"a\"\nrestart = false\n";
    let daemon = Daemon::with(config);
    let bot = until("the channel has failed", || {
        let bot = daemon.get("/api/channels/bot").expect(200);
        bot["last_error"].is_string().then_some(bot)
    });
    assert_eq!((&bot["connected"], &bot["agent"], &bot["channel_type"]), (&json!(false), &json!("a"), &json!("bot")));
    assert!(bot["fields"].is_null() && bot["fields_error"].is_string(), "{bot}");
    assert_eq!(bot["policy"]["dm_policy"], "allowed_only", "nothing says who may speak");
    assert_eq!(names(&daemon.get("/api/channels").expect(200)), ["bot"]);
    assert_eq!(daemon.get("/api/channels/bot/conversations").expect(200)["conversations"], json!([]));
    assert_eq!(daemon.get("/api/channels/bot/sends").expect(200)["sends"], json!([]));
    assert_eq!(daemon.get("/api/channels/bot/logs").expect(200)["name"], "bot");
    daemon.get("/api/channels/bot/qr").refused(404);
    let rules = daemon.get("/api/channels/bindings").expect(200);
    assert_eq!((&rules["bindings"][0]["kind"], &rules["bindings"][0]["agent"]), (&json!("channel"), &json!("a")));
}

#[test]
fn chats_are_let_in_by_a_code_and_shut_out_again() {
    let config = "[[sidecar_channels]]\nname = \"bot\"\ncommand = \"/nowhere/adapter\"\nrestart = false\n";
    let daemon = Daemon::with(config);
    let offer = until("the world knows the channel", || {
        let answer = daemon.post("/api/channels/pairings", &json!({ "channel": "bot" }));
        (answer.status == 201).then(|| answer.expect(201))
    });
    assert_eq!((text(&offer["code"]).len(), &offer["state"]), (8, &json!("offered")));
    let chat = daemon.post("/api/channels/pairings", &json!({ "channel": "bot", "conversation": "c9", "name": "Ann" }));
    assert_eq!(chat.expect(201)["state"], "paired");
    let list = daemon.get("/api/channels/pairings").expect(200);
    assert_eq!(list["pairings"].as_array().unwrap().len(), 2);
    assert!(!list.to_string().contains(&text(&offer["code"])), "codes are shown once: {list}");
    for pairing in list["pairings"].as_array().unwrap() {
        assert_eq!(daemon.delete(&format!("/api/channels/pairings/{}", text(&pairing["id"]))).status, 204);
    }
    assert_eq!(daemon.get("/api/channels/pairings").expect(200)["pairings"], json!([]));
}

#[test]
fn the_command_line_lists_channels_and_lets_chats_in() {
    let config = "[[sidecar_channels]]\nname = \"bot\"\ncommand = \"/nowhere/adapter\"\nrestart = false\n";
    let daemon = Daemon::with(config);
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr)
    };
    let (code, listed, _) = run(&["channel", "list"]);
    assert!(code == Some(0) && listed.lines().any(|line| line.starts_with("bot")), "{listed}");
    let (code, available, _) = run(&["channel", "list", "--available"]);
    assert!(code == Some(0) && available.lines().any(|line| line.starts_with("ntfy")), "{available}");
    until("the world knows the channel", || (run(&["channel", "pair", "bot"]).0 == Some(0)).then_some(()));
    let (_, offered, _) = run(&["channel", "pair", "bot"]);
    assert!(offered.contains("\n\n/start "), "{offered}");
    let (_, let_in, _) = run(&["channel", "pair", "bot", "--chat", "c9"]);
    assert_eq!(let_in, "c9 of bot is paired\n");
    let (code, pairings, _) = run(&["channel", "pair"]);
    assert!(code == Some(0) && pairings.contains("paired") && pairings.contains("offered"), "{pairings}");
    assert_eq!(run(&["channel", "logs", "nothing"]).0, Some(4), "there is no such channel");
    assert_eq!(run(&["channel", "add", "nothing"]).0, Some(4));
}
