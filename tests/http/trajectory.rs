//! Trajectory: the export of a session without secrets and personal data (spec 1, Trajectory).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;

fn path(agent: &str, session: &str) -> String {
    format!("/api/agents/{agent}/sessions/{session}/trajectory")
}

fn current(client: &Client, agent: &str) -> String {
    text(&client.detail(agent)["session_id"])
}

#[test]
fn json_has_metadata_and_every_message() {
    let daemon = Daemon::start();
    let agent = daemon.agent("auditee");
    let session = current(&daemon, &agent);
    daemon.say(&agent, "hello");
    let reply = daemon.get(&format!("/api/agents/{agent}/sessions/{session}/trajectory"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.expect(200);
    let metadata = &body["metadata"];
    assert_eq!(metadata["agent_id"], agent.as_str());
    assert_eq!(metadata["agent_name"], "auditee");
    assert_eq!(metadata["session_id"], session.as_str());
    assert_eq!((&metadata["provider"], &metadata["model"]), (&json!("builtin"), &json!("builtin")));
    assert_eq!((&metadata["service"], &metadata["redacted"]), (&json!("agentsvc"), &json!(true)));
    assert_eq!(metadata["message_count"], 2);
    let fingerprint = text(&metadata["system_prompt_fingerprint"]);
    assert_eq!(fingerprint.len(), "sha256:".len() + 64, "{fingerprint}");
    for key in ["version", "exported_at", "created_at"] {
        assert!(metadata[key].is_string(), "{key}: {metadata}");
    }
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!((&messages[0]["role"], &messages[0]["content"]), (&json!("User"), &json!("hello")));
    assert_eq!((&messages[1]["role"], &messages[1]["model"]), (&json!("Assistant"), &json!("builtin/builtin")));
    assert!(messages[1]["usage"]["output_tokens"].is_u64() && messages[1]["usage"]["cost_usd"].is_f64());
    assert!(messages.iter().all(|m| m["created_at"].is_string() && m["turn_id"] == messages[0]["turn_id"]));
}

#[test]
fn jsonl_is_one_value_a_line() {
    let daemon = Daemon::start();
    let agent = daemon.agent("auditee");
    let session = current(&daemon, &agent);
    let empty = daemon.get(&format!("{}?format=jsonl", path(&agent, &session)));
    assert_eq!(empty.text().lines().count(), 1, "the metadata alone");
    // More rows than one chunk reads, so that the body is streamed.
    for n in 0..20 {
        daemon.say(&agent, &format!("message {n}\nwith two lines"));
    }
    let reply = daemon.get(&format!("{}?format=jsonl", path(&agent, &session)));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = reply.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1 + 40);
    assert_eq!((&lines[0]["type"], &lines[0]["message_count"]), (&json!("metadata"), &json!(40)));
    assert_eq!(lines[39]["content"], "message 19\nwith two lines");
    assert!(lines[1..].iter().all(|line| line["type"] == "message"));
    let whole = daemon.get(&path(&agent, &session)).expect(200);
    assert_eq!(whole["messages"].as_array().unwrap()[..], lines[1..]);
}

#[test]
fn secrets_and_personal_data_do_not_leave() {
    let model = Model::start();
    let arguments = r#"{"format":"date","password":"hunter2","mail":"line\njoe@example.com"}"#;
    let answer = Reply::text("Call +49 170 1234567 or pay with 4111 1111 1111 1111.");
    model.script([Reply::calls(&[("c1", "system_time", arguments)]), answer]);
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("auditee", "[capabilities]\ntools = [\"*\"]\n");
    let session = current(&daemon, &agent);
    daemon.say(&agent, "my key is sk-abcdefghijklmnop1234567890 and I am jane@example.org");
    for format in ["json", "jsonl"] {
        let shown = daemon.get(&format!("{}?format={format}", path(&agent, &session))).text();
        for secret in ["sk-abcdef", "jane@", "hunter2", "joe@", "170 1234567", "4111 1111"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
    let body = daemon.get(&path(&agent, &session)).expect(200);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "my key is [redacted:api_key] and I am [redacted:email]");
    let input = &messages[1]["tool_calls"][0]["input"];
    assert_eq!(*input, json!({"format": "date", "password": "[redacted:secret]", "mail": "line\n[redacted:email]"}));
    assert_eq!(messages[2]["role"], "Tool");
    assert_eq!(messages[2]["tool_results"][0]["call_id"], "c1");
    assert_eq!(messages[3]["content"], "Call [redacted:phone] or pay with [redacted:card].");
    // The session itself is as it was.
    assert!(daemon.transcript(&session)[0].1.contains("jane@example.org"));
}

#[test]
fn what_is_not_there_and_what_is_wrong() {
    let daemon = Daemon::start();
    let (agent, other) = (daemon.agent("a"), daemon.agent("b"));
    let (session, foreign) = (current(&daemon, &agent), current(&daemon, &other));
    let nobody = "018f0000-0000-7000-8000-00000000dead";
    daemon.get(&path("nonsense", &session)).refused_field(400, "id");
    daemon.get(&path(&agent, "nonsense")).refused_field(400, "session_id");
    daemon.get(&format!("{}?format=xml", path(&agent, &session))).refused_field(400, "format");
    daemon.get(&path(nobody, &session)).refused(404);
    daemon.get(&path(&agent, nobody)).refused(404);
    daemon.get(&path(&agent, &foreign)).refused(404);
}
