//! Messages that a gateway of a chat platform passes on, such as that of WhatsApp.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;

fn said(daemon: &Daemon, agent: &str, body: &Value) -> Value {
    daemon.post(&format!("/api/agents/{agent}/message"), body).expect(200)
}

#[test]
fn each_chat_of_a_gateway_has_a_session_of_its_own() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("scout", "");
    let body = |chat: &str, message: &str| {
        json!({ "message": message, "channel_type": format!("whatsapp:{chat}"), "sender_id": "49151", "sender_name": "Ann",
            "is_group": false, "was_mentioned": false, "was_mentioned_source": "none", "group_participants": [] })
    };
    let current = text(&daemon.detail(&agent)["session_id"]);
    let first = said(&daemon, &agent, &body("1@s.whatsapp.net", "hello"));
    assert_eq!((&first["response"], first.get("silent")), (&json!("echo: hello"), None));
    let session = text(&first["session_id"]);
    assert_ne!(session, current);
    daemon.restart();
    let again = said(&daemon, &agent, &body("1@s.whatsapp.net", "and?"));
    assert_eq!(text(&again["session_id"]), session);
    let other = said(&daemon, &agent, &body("2@s.whatsapp.net", "hello"));
    assert_ne!(text(&other["session_id"]), session);
    let own = json!({ "message": "hi", "channel_type": "whatsapp:1@s.whatsapp.net", "session_id": current });
    assert_eq!(text(&said(&daemon, &agent, &own)["session_id"]), current, "a session that is named wins");
}

#[test]
fn in_a_group_the_agent_reads_names_and_may_be_silent() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("scout", "");
    model.script([Reply::text("NO_REPLY"), Reply::text("Yes")]);
    let body = |was_mentioned: bool| {
        json!({ "message": "who is there?", "channel_type": "whatsapp:9@g.us", "sender_id": "1", "sender_name": "Ann\nB",
            "is_group": true, "was_mentioned": was_mentioned })
    };
    assert_eq!(said(&daemon, &agent, &body(false))["silent"], true);
    assert_eq!(said(&daemon, &agent, &body(true)).get("silent"), None);
    let requests = model.requests();
    assert!(requests[0].to_string().contains("Ann B: who is there?"), "{}", requests[0]);
    let system = |at: usize| requests[at]["messages"][0].to_string();
    assert!(system(0).contains("NO_REPLY") && !system(1).contains("NO_REPLY"), "{}", system(1));
    for (extra, field) in [
        (json!({ "sender_id": "1" }), "sender_id"),
        (json!({ "sender_name": "A" }), "sender_name"),
        (json!({ "channel_type": "" }), "channel_type"),
        (json!({ "channel_type": "a\u{7}" }), "channel_type"),
        (json!({ "channel_type": 7 }), "channel_type"),
        (json!({ "channel_type": "a", "is_group": "yes" }), "is_group"),
    ] {
        let mut body = extra;
        body["message"] = json!("x");
        daemon.post(&format!("/api/agents/{agent}/message"), &body).refused_field(400, field);
    }
    assert_eq!(model.requests().len(), 2, "what is refused asks no model");
}

#[test]
fn the_policies_of_the_agent_hold_for_messages_of_gateways() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let rules = "[channel_overrides]\ngroup_policy = \"mention_only\"\ngroup_trigger_patterns = ['\\bhelp\\b']\n\
                 dm_policy = \"allowed_only\"\n";
    let agent = daemon.agent_with("scout", rules);
    let body = |message: &str, is_group: bool, was_mentioned: bool| {
        json!({ "message": message, "channel_type": "whatsapp:9@g.us", "sender_id": "1", "is_group": is_group,
            "was_mentioned": was_mentioned })
    };
    let silent = said(&daemon, &agent, &body("good morning", true, false));
    assert_eq!((&silent["silent"], &silent["response"], silent.get("turn_id")), (&json!(true), &json!(""), None));
    let path = format!("/api/agents/{agent}/message/stream");
    let streamed = daemon.post(&path, &body("good morning", true, false)).text();
    assert!(
        streamed.contains("event: done\n")
            && !streamed.contains("event: chunk")
            && streamed.contains("\"silent\":true"),
        "{streamed}"
    );
    assert_eq!(said(&daemon, &agent, &body("hello", false, false))["silent"], true, "a stranger");
    assert_eq!(model.requests().len(), 0, "no model was asked");
    assert_eq!(said(&daemon, &agent, &body("good morning", true, true)).get("silent"), None);
    assert_eq!(said(&daemon, &agent, &body("I need HELP", true, false)).get("silent"), None);
    let user = json!({ "name": "ann", "role": "user", "channel_bindings": { "whatsapp": "1" } });
    daemon.post("/api/users", &user).expect(201);
    assert_eq!(said(&daemon, &agent, &body("hello", false, false)).get("silent"), None);
    assert_eq!(model.requests().len(), 3);
}
