//! Chat commands on the WebSocket (spec 1, Events, chat commands).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::socket::Socket;
use crate::support::until;

/// Sends a command as plain text and gives the answer's text, which no model wrote.
#[track_caller]
fn command(socket: &mut Socket, typed: &str) -> String {
    socket.send(typed);
    let answer = socket.next();
    assert_eq!(answer["type"], "response", "{typed}: {answer}");
    for key in ["input_tokens", "output_tokens", "iterations"] {
        assert_eq!(answer[key], 0, "{answer}");
    }
    text(&answer["content"])
}

#[test]
fn help_lists_the_commands_and_an_unknown_one_is_told_them() {
    let daemon = Daemon::start();
    let mut socket = Socket::open(&daemon, &daemon.agent("a"));
    let help = command(&mut socket, "/help");
    let unknown = socket.error("/nonsense");
    for known in ["/new", "/compact", "/model", "/stop", "/usage", "/think", "/models", "/providers", "/help"] {
        assert!(help.contains(known), "{help}");
        assert!(unknown.contains(known), "{unknown}");
    }
    // As a message it is the same.
    assert_eq!(socket.answer("/help"), help);
}

#[test]
fn new_begins_a_session_and_keeps_the_old_one() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let mut socket = Socket::open(&daemon, &agent);
    socket.answer("before");
    let old = text(&daemon.detail(&agent)["session_id"]);
    let told = command(&mut socket, "/new");
    let new = text(&daemon.detail(&agent)["session_id"]);
    assert_ne!(old, new);
    assert!(told.contains(&old) && told.contains(&new), "{told}");
    socket.answer("after");
    assert_eq!(daemon.transcript(&new)[0].1, "after");
    assert_eq!(daemon.transcript(&old)[0].1, "before");
    // It is resumable.
    daemon.poke(&format!("/api/agents/{agent}/sessions/{old}/switch")).expect(200);
    socket.answer("resumed");
    assert_eq!(daemon.transcript(&old)[2].1, "resumed");
}

#[test]
fn compact_replaces_older_messages_and_holds_nothing_up() {
    let daemon = Daemon::start();
    let mut socket = Socket::open(&daemon, &daemon.agent("a"));
    socket.answer("one");
    assert!(command(&mut socket, "/compact").contains("Nothing to compact"));
    for n in 0..12 {
        socket.answer(&format!("message {n}"));
    }
    socket.send("/compact");
    socket.send(r#"{"type":"ping"}"#);
    let mut seen = [socket.next(), socket.next()];
    seen.sort_by_key(|message| message["type"].to_string());
    assert_eq!(seen[0]["type"], "pong");
    assert!(text(&seen[1]["content"]).starts_with("Compacted "), "{seen:?}");
    assert!(!socket.answer("still here").is_empty());
}

#[test]
fn model_switches_and_shows() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let mut socket = Socket::open(&daemon, &agent);
    assert!(command(&mut socket, "/model").contains("builtin"));
    assert!(command(&mut socket, "/model gpt-x").contains("gpt-x"));
    let model = |daemon: &Daemon| daemon.detail(&agent)["model"].clone();
    assert_eq!(model(&daemon)["model"], "gpt-x");
    command(&mut socket, "/model openai gpt-y");
    assert_eq!((&model(&daemon)["provider"], &model(&daemon)["model"]), (&json!("openai"), &json!("gpt-y")));
    assert!(socket.error("/model one two three").contains("/model"));
    assert!(socket.error(&format!("/model {}", "x".repeat(300))).contains("model"));
    daemon.put(&format!("/api/agents/{agent}/mode"), &json!({ "mode": "Stable" })).expect(200);
    assert!(socket.error("/model other").contains("Stable"));
    assert_eq!(model(&daemon)["model"], "gpt-y");
}

#[test]
fn stop_ends_the_running_turn() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let mut socket = Socket::open(&daemon, &daemon.agent_with("a", ""));
    assert!(command(&mut socket, "/stop").contains("No turn was running"));
    model.hold_after_first_word();
    socket.say("b c d");
    socket.until("text_delta");
    socket.send("/stop");
    let mut responses: Vec<Value> = (0..2).map(|_| socket.until("response").pop().unwrap()).collect();
    // The command's answer and the turn's come in either order.
    responses.sort_by_key(|response| response["iterations"].as_u64());
    assert!(text(&responses[0]["content"]).contains("stopped"), "{responses:?}");
    assert!("echo: b c d".starts_with(&text(&responses[1]["content"])), "{responses:?}");
    model.release();
    assert_eq!(socket.answer("go on"), "echo: go on");
}

#[test]
fn usage_counts_the_session_and_the_agent() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let mut socket = Socket::open(&daemon, &agent);
    socket.answer("hello");
    command(&mut socket, "/new");
    let usage = command(&mut socket, "/usage");
    let detail = daemon.detail(&agent);
    let total = format!("{} input and {} output tokens", detail["input_tokens"], detail["output_tokens"]);
    assert!(detail["input_tokens"].as_u64() > Some(0));
    assert!(usage.contains("0 input and 0 output tokens") && usage.contains(&total), "{usage}");
    assert!(usage.contains(&text(&detail["session_id"])) && usage.contains(" 0.00 USD"), "{usage}");
    socket.answer("again");
    until("the session's tokens are counted", || {
        (!command(&mut socket, "/usage").contains(" 0 input and 0 output tokens")).then_some(())
    });
}

#[test]
fn think_is_turned_on_and_off() {
    let daemon = Daemon::start();
    let mut socket = Socket::open(&daemon, &daemon.agent("a"));
    assert!(command(&mut socket, "/think").contains("on"));
    assert!(!socket.answer("a thought").is_empty());
    assert!(command(&mut socket, "/think").contains("off"));
    assert!(command(&mut socket, "/think on").contains("on"));
    assert!(socket.error("/think maybe").contains("/think"));
}

#[test]
fn models_and_providers_are_listed_and_no_key_is_shown() {
    let daemon = Daemon::with_env("", &[("GROQ_API_KEY", "gsk-very-secret")]);
    let mut socket = Socket::open(&daemon, &daemon.agent("a"));
    let models = command(&mut socket, "/models");
    assert!(models.contains("builtin") && models.contains("gpt-4o-mini"), "{models}");
    let providers = command(&mut socket, "/providers");
    for line in ["groq: key set", "openai: key not set", "builtin: no key required"] {
        assert!(providers.contains(line), "{providers}");
    }
    assert!(!providers.contains("secret") && !models.contains("secret"));
}
