//! What people in chats reach: nothing that others said, and no command of the daemon.

use serde_json::{Value, json};

use crate::channel_process::{OPEN, Stage};
use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

#[test]
fn a_room_without_a_named_sender_finds_nothing_that_others_said() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", OPEN)));
    let agent = daemon.agent_with("scout", "[capabilities]\ntools = [\"session_search\"]\n");
    daemon.say(&agent, "the owner's secret word is okapi");
    let mut adapter = stage.ready(&[]);
    adapter.message("m1", "my pin is zebra", None);
    adapter.next_of("send");
    let room = |id: &str, text: &str| {
        let params =
            json!({ "user_id": "room1", "user_name": "Room", "is_group": true, "text": text, "message_id": id });
        json!({ "method": "message", "params": params })
    };
    for (query, is_theirs) in [("okapi", false), ("zebra", false), ("gnu", true)] {
        adapter.say(&room(&format!("g-{query}"), "we say gnu"));
        adapter.next_of("send");
        let search = Reply::calls(&[("1", "session_search", &json!({ "query": query }).to_string())]);
        model.script([search, Reply::text("done")]);
        adapter.say(&room(&format!("s-{query}"), "look for it"));
        adapter.next_of("send");
        let requests = model.requests();
        let found = requests.last().and_then(|it| it["messages"].as_array()?.last().cloned()).unwrap_or_default();
        let found = found["content"].to_string();
        assert!(found.contains("This conversation only") && !found.contains("is okapi"), "{found}");
        assert!(!found.contains("is zebra") && found.contains("say gnu") == is_theirs, "{query}: {found}");
    }
}

#[test]
fn commands_of_the_daemon_are_for_administrators() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", OPEN)));
    daemon.agent_with("scout", "");
    let mut adapter = stage.ready(&[]);
    let mut ask = |id: &str, text: &str| -> String {
        adapter.message(id, text, None);
        adapter.next_of("send")["text"].as_str().unwrap_or_default().to_owned()
    };
    let of_the_daemon = [
        "/schedules",
        "/schedule add scout * * * * * hi",
        "/workflow run x",
        "/budget",
        "/peers",
        "/triggers",
        "/models",
        "/providers",
    ];
    for (at, command) in of_the_daemon.iter().enumerate() {
        let told = ask(&format!("m{at}"), command);
        assert!(told.contains("only an administrator"), "{command}: {told}");
    }
    assert!(ask("s", "/status").contains("scout answers here"));
    assert_eq!(daemon.get("/api/schedules").expect(200)["total"], 0);
    assert_eq!(model.requests().len(), 0, "no command reaches the model");
}

#[test]
fn routes_of_the_configuration_are_in_force_and_shown() {
    let (model, stage) = (Model::start(), Stage::new());
    let routes = "[[bindings]]\nagent = \"clerk\"\nmatch_rule = { channel = \"bot\", peer_id = \"ann\" }\n";
    let overrides = "channel_overrides = { usage_footer = \"tokens\" }\n";
    let entry = stage.entry("bot", &format!("{OPEN}\n{overrides}"));
    let daemon = Daemon::with(&format!("{}{entry}{routes}", model.config()));
    daemon.agent_with("scout", "");
    daemon.agent_with("clerk", "[channel_overrides]\nprefix_agent_name = \"bracket\"\n");
    let mut adapter = stage.ready(&[]);
    adapter.message("m1", "hello", None);
    let answer = adapter.next_of("send")["text"].as_str().unwrap_or_default().to_owned();
    assert!(answer.starts_with("[clerk] echo: hello\n\n[") && answer.ends_with(" tokens]"), "{answer}");
    let shown = daemon.get("/api/channels/bindings").expect(200);
    let rows: Vec<(&Value, &Value)> =
        shown["bindings"].as_array().into_iter().flatten().map(|row| (&row["agent"], &row["weight"])).collect();
    assert_eq!(rows, [(&json!("clerk"), &json!(9)), (&json!("scout"), &json!(1))]);
}

#[test]
fn roles_of_a_platform_are_in_force_where_the_chat_is_paired() {
    let (model, stage) = (Model::start(), Stage::new());
    let roles = "[channel_role_mapping.bot]\nadmin_role = \"admin\"\nrole_map = { Muted = \"viewer\" }\n";
    let daemon = Daemon::with(&format!("{}{}{roles}", model.config(), stage.entry("bot", OPEN)));
    daemon.agent_with("scout", "");
    let mut adapter = stage.ready(&[]);
    let mut ask = |id: &str, roles: &[&str], text: &str| -> String {
        let metadata = json!({ "sender_user_id": "bo", "roles": roles });
        let params = json!({ "user_id": "room", "user_name": "Room", "is_group": true, "text": text, "message_id": id,
            "metadata": metadata });
        adapter.say(&json!({ "method": "message", "params": params }));
        adapter.next_of("send")["text"].as_str().unwrap_or_default().to_owned()
    };
    assert!(ask("m1", &["administrator"], "/schedules").contains("only an administrator"));
    let paired = json!({ "channel": "bot", "conversation": "room" });
    daemon.post("/api/channels/pairings", &paired).expect(201);
    assert!(ask("m2", &["administrator"], "/schedules").contains("There are no schedules"));
    assert!(ask("m3", &["member"], "/schedules").contains("only an administrator"));
    assert!(ask("m4", &["Muted"], "hello").contains("not chat"));
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_second_model_says_which_messages_of_a_group_the_agent_reads() {
    let (model, stage) = (Model::start(), Stage::new());
    let keys = "channel_overrides = { reply_precheck = true, reply_precheck_model = \"small\" }";
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", &format!("{OPEN}\n{keys}"))));
    daemon.agent_with("scout", "");
    let mut adapter = stage.ready(&["reaction"]);
    let message = |id: &str, text: &str| {
        let params =
            json!({ "user_id": "room", "user_name": "Room", "is_group": true, "text": text, "message_id": id });
        json!({ "method": "message", "params": params })
    };
    model.script([Reply::text("NO_REPLY"), Reply::text("YES"), Reply::text("I can help.")]);
    adapter.say(&message("m1", "lunch?"));
    until("the model is asked", || (model.requests().len() == 1).then_some(()));
    adapter.say(&message("m2", "who can help?"));
    let sign = adapter.next_of("reaction");
    assert_eq!(sign["message_id"], "m2", "nothing is shown on what is not answered: {sign}");
    assert_eq!(adapter.next_of("send")["text"], "I can help.");
    let asked: Vec<_> = model.requests().iter().map(|it| it["model"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[0] == "small" && asked[1] == "small" && asked[2] != "small", "{asked:?}");
    let requests = model.requests();
    assert!(requests[0]["tools"].as_array().is_none_or(Vec::is_empty), "{}", requests[0]);
    let usage = daemon.get("/api/usage/by-model").expect(200).to_string();
    assert!(usage.contains("\"small\""), "its calls are metered: {usage}");
}
