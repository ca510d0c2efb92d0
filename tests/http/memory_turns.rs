//! What turns are given of the memory entries of their agent (`docs/memory.md`, In turns).

use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

const TITLE: &str = "[Notes from your memory";

fn add(client: &Client, agent: &str, content: &str, more: Value) -> String {
    let mut body = json!({ "agent_id": agent, "content": content });
    let more = more.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(more);
    text(&client.post("/api/memory", &body).expect(201)["id"])
}

/// The messages of the `at`-th request to the model.
fn asked(model: &Model, at: usize) -> Vec<Value> {
    model.requests()[at]["messages"].as_array().expect("messages").clone()
}

fn newest_trace(daemon: &Daemon, agent: &str) -> Value {
    daemon.get(&format!("/api/agents/{agent}/traces?limit=1")).expect(200)["traces"][0].clone()
}

#[test]
fn a_turn_is_given_the_entries_that_match_its_message_and_its_trace_names_them() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let (agent, other) = (daemon.agent_with("a", ""), daemon.agent_with("other", ""));
    let tea = add(&daemon, &agent, "Prefers tea from Ceylon.", json!({ "category": "preference" }));
    add(&daemon, &agent, "Takes tea with milk.", json!({ "user_id": "bo" }));
    add(&daemon, &agent, "The deploy window is on Tuesday.", json!({ "level": "agent" }));
    add(&daemon, &other, "Tea is for others.", json!({}));
    model.script([Reply::text("The usual one.")]);
    let answer = daemon.say(&agent, "Which tea should I order?");
    let messages = asked(&model, 0);
    let said = text(&messages.last().expect("a message")["content"]);
    assert!(said.starts_with(TITLE) && said.ends_with("[End of the notes]\n\nWhich tea should I order?"), "{said}");
    assert!(said.contains("\n- Prefers tea from Ceylon. (preference)\n"), "{said}");
    for foreign in ["milk", "Tuesday", "others"] {
        assert!(!said.contains(foreign), "{said}");
    }
    let trace = newest_trace(&daemon, &agent);
    assert_eq!((&trace["turn_id"], &trace["memory_search"]), (&answer["turn_id"], &json!("done")));
    let [memory] = &trace["memories"].as_array().expect("a list")[..] else { panic!("{trace}") };
    assert_eq!((&memory["id"], &memory["mode"]), (&json!(tea), &json!("lexical")));
    assert_eq!((&memory["content"], &memory["category"]), (&json!("Prefers tea from Ceylon."), &json!("preference")));
    assert!(memory["score"].as_f64().unwrap() > 0.0 && memory["taint"].is_null(), "{memory}");
    until("the entry was counted", || {
        let list = daemon.get(&format!("/api/memory/agents/{agent}")).expect(200)["memories"].as_array().cloned();
        list.and_then(|list| list.iter().any(|entry| entry["id"] == *tea && entry["access_count"] == 1).then_some(()))
    });

    // The notes belong to their turn: neither the session nor the next turn has them.
    let session = text(&answer["session_id"]);
    assert_eq!(daemon.transcript(&session)[0].1, "Which tea should I order?");
    daemon.say(&agent, "Thank you!");
    assert!(!json!(asked(&model, 1)).to_string().contains(TITLE));
    assert!(newest_trace(&daemon, &agent)["memories"].is_null());
    assert_eq!(asked(&model, 1)[0], messages[0], "the beginning stays the same");

    // The user of a request is the one that entries are about.
    let chat = json!({ "model": "agentsvc:a", "user": "bo", "messages": [{ "role": "user", "content": "any tea?" }] });
    daemon.post("/v1/chat/completions", &chat).expect(200);
    let of_bo = json!(asked(&model, 2)).to_string();
    assert!(of_bo.contains("milk") && of_bo.contains("Ceylon"), "{of_bo}");
}

#[test]
fn the_manifest_and_the_configuration_say_whether_turns_are_given_entries() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let off = daemon.agent_with("off", "[proactive_memory]\nauto_retrieve = false\n");
    let on = daemon.agent_with("on", "");
    for agent in [&off, &on] {
        add(&daemon, agent, "Prefers tea from Ceylon.", json!({}));
        add(&daemon, agent, "Drinks tea at five.", json!({}));
    }
    daemon.say(&off, "tea?");
    assert!(!json!(asked(&model, 0)).to_string().contains("Ceylon"));
    assert!(newest_trace(&daemon, &off)["memory_search"].is_null());
    let config = daemon.home().join("config.toml");
    let plain = std::fs::read_to_string(&config).unwrap();
    let reload = |table: &str| {
        std::fs::write(&config, format!("{plain}\n[proactive_memory]\n{table}\n")).unwrap();
        daemon.post("/api/config/reload", &json!({})).expect(200);
        daemon.say(&on, "tea?");
        newest_trace(&daemon, &on)["memories"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(reload("max_retrieve = 1"), 1);
    assert_eq!(reload("max_retrieve = 2"), 2);
    assert_eq!(reload("format_context_max_chars = 150"), 1);
    assert_eq!(daemon.get("/api/memory/stats").expect(200)["auto_retrieve_enabled"], true);
    assert_eq!(reload("auto_retrieve = false"), 0);
    assert_eq!(daemon.get("/api/memory/stats").expect(200)["auto_retrieve_enabled"], false);
}

#[test]
fn an_entry_of_untrusted_content_is_marked_and_closes_sensitive_tools() {
    let model = Model::start();
    let config = format!("{}[exec_policy]\nmode = \"full\"\n[security]\ntaint = \"deny\"\n", model.config());
    let daemon = Daemon::with(&config);
    let grants = "[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n";
    for (name, taint, ran) in [("clean", json!([]), true), ("tainted", json!(["web"]), false)] {
        let agent = daemon.agent_with(name, grants);
        let entries = json!([{ "content": "The deploy command is echo it ran.", "taint": taint }]);
        daemon.post(&format!("/api/memory/agents/{agent}/import"), &entries).expect(200);
        model.script([Reply::calls(&[("s", "shell_exec", r#"{"argv": ["echo", "it ran"]}"#)]), Reply::text("done")]);
        let before = model.requests().len();
        assert_eq!(daemon.say(&agent, "deploy now")["response"], "done");
        let (first, second) = (asked(&model, before), asked(&model, before + 1));
        let said = text(&first.last().expect("a message")["content"]);
        assert_eq!(said.contains("(untrusted content: web)"), !ran, "{said}");
        // The second call of the turn shows the same.
        assert_eq!(second[..first.len()], first[..]);
        let result = text(&second.last().expect("a result")["content"]);
        assert_eq!(result.contains("it ran"), ran, "{result}");
        let memories = newest_trace(&daemon, &agent)["memories"].clone();
        assert_eq!(memories[0]["taint"], if ran { Value::Null } else { json!(["web"]) });
    }
}

#[test]
fn after_a_kill_a_turn_shows_what_it_was_given_before() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let session = text(&daemon.detail(&agent)["session_id"]);
    let id = add(&daemon, &agent, "Prefers tea from Ceylon.", json!({}));
    model.hold();
    let (client, path) = (daemon.client(), format!("/api/agents/{agent}/message"));
    let body = json!({ "message": "Which tea?" }).to_string();
    let caller = thread::spawn(move || client.try_send("POST", &path, &[], Some(body.as_bytes())));
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    // What was found came into the world before this, and is on disk when it is answered.
    daemon.delete(&format!("/api/memory/items/{id}")).expect(200);
    daemon.kill();
    assert!(caller.join().expect("no panic").is_err(), "no answer was given");
    model.release();
    daemon.restart();
    until("the answer is in the session", || (daemon.transcript(&session).len() == 2).then_some(()));
    for at in 0..2 {
        let messages = json!(asked(&model, at)).to_string();
        assert_eq!(messages.matches("Prefers tea from Ceylon.").count(), 1, "{messages}");
    }
    let trace = newest_trace(&daemon, &agent);
    assert_eq!((&trace["status"], &trace["memory_search"]), (&json!("done"), &json!("done")));
    assert_eq!((&trace["memories"][0]["id"], trace["memories"].as_array().map(Vec::len)), (&json!(id), Some(1)));
}

#[test]
fn a_turn_goes_on_without_an_index_that_cannot_be_opened() {
    let model = Model::start();
    let config = format!("{}[proactive_memory]\nmax_memories_per_agent = 5000\n", model.config());
    let daemon = Daemon::with(&config);
    let agent = daemon.agent_with("a", "");
    // So many that they are not read as they are.
    let entries: Vec<Value> = (0..2_100).map(|n| json!({ "content": format!("tea number {n}") })).collect();
    daemon.post(&format!("/api/memory/agents/{agent}/import"), &json!(entries)).expect(200);
    std::fs::write(daemon.home().join("data/memory-index"), "no folder").unwrap();
    assert_eq!(daemon.say(&agent, "tea?")["response"], "echo: tea?");
    let trace = newest_trace(&daemon, &agent);
    assert!(["late", "failed"].contains(&trace["memory_search"].as_str().unwrap()), "{trace}");
    assert!(trace["memories"].is_null() && trace["memory_search_ms"].as_u64().is_some(), "{trace}");
    assert!(!json!(asked(&model, 0)).to_string().contains(TITLE));
}
