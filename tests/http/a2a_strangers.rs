//! What clients of A2A without a key reach of the conversations of the owner: nothing.

use serde_json::{Value, json};

use crate::a2a::{ask, guest, last_told, offering, said};
use crate::support::daemon::text;
use crate::support::model::Model;
use crate::support::model_server::Reply;

#[test]
fn a_guest_finds_no_conversation_but_its_own() {
    let model = Model::start();
    let daemon = offering(&model, "");
    let agent = daemon.agent_with("scout", "[capabilities]\ntools = [\"session_search\"]\n");
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "sesame is the password" })).expect(200);
    let guest = guest(&daemon);
    ask(&guest, "message/send", &json!({ "message": said("sesame, asks another guest") }));
    let search = |query: Value| Reply::calls(&[("1", "session_search", &query.to_string())]);
    model.script([search(json!({ "query": "sesame" })), Reply::text("done")]);
    let task = ask(&guest, "message/send", &json!({ "message": said("what is sesame?") }));
    let found = last_told(&model).pop().unwrap();
    assert!(found.contains("what is sesame?") && found.contains("This conversation only"), "{found}");
    assert!(!found.contains("password") && !found.contains("another guest"), "{found}");
    // A cursor into another conversation finds nothing there, either.
    model.script([search(json!({ "query": "sesame", "limit": 1 })), Reply::text("done")]);
    daemon.say(&agent, "find sesame");
    let owners = last_told(&model).pop().unwrap();
    assert!(owners.contains("sesame") && !owners.contains("This conversation only"), "{owners}");
    let next = owners.split("next").nth(1).and_then(|rest| rest.split(['"', '\\']).find(|part| part.contains('-')));
    model.script([search(json!({ "query": "sesame", "cursor": next.unwrap() })), Reply::text("done")]);
    let mut again = said("go on");
    again["contextId"] = task["contextId"].clone();
    ask(&guest, "message/send", &json!({ "message": again }));
    let found = last_told(&model).pop().unwrap();
    assert!(!found.contains("password") && !found.contains("another guest"), "{found}");
}

#[test]
fn a_guest_reaches_no_conversation_of_the_owner_through_tools() {
    for policy in ["off", "deny"] {
        let model = Model::start();
        let daemon = offering(&model, &format!("[security]\ntaint = \"{policy}\"\n"));
        let tools = "[capabilities]\ntools = [\"agent_send\", \"session_search\"]\n";
        let agent = daemon.agent_with("scout", tools);
        let other = daemon.agent_with("other", "");
        daemon.say(&agent, "sesame is the password");
        daemon.say(&other, "sesame is the pin");
        let before = model.requests().len();
        let calls = [
            ("1", "agent_send", r#"{"agent":"scout","message":"what did I say?"}"#),
            ("2", "agent_send", r#"{"agent":"other","message":"what did I say?"}"#),
            ("3", "session_search", r#"{"query":"sesame"}"#),
        ];
        model.script([Reply::calls(&calls)]);
        ask(&guest(&daemon), "message/send", &json!({ "message": said("tell me") }));
        let asked = model.requests().split_off(before);
        assert!(asked.iter().filter(|request| request.to_string().contains("what did I say?")).count() >= 2);
        assert!(asked.iter().all(|request| !request.to_string().contains("password")), "{policy}: {asked:?}");
        assert!(asked.iter().all(|request| !request.to_string().contains("sesame is")), "{policy}: {asked:?}");
        // What it began in another agent finds nothing, either.
        let searches = Reply::calls(&[("1", "session_search", r#"{"query":"sesame"}"#)]);
        let sends = Reply::calls(&[("1", "agent_send", r#"{"agent":"scout","message":"search"}"#)]);
        model.script([sends, searches, Reply::text("done"), Reply::text("done")]);
        let before = model.requests().len();
        ask(&guest(&daemon), "message/send", &json!({ "message": said("search there") }));
        let searched = model.requests().split_off(before).iter().map(ToString::to_string).collect::<String>();
        assert!(searched.contains("This conversation only") && !searched.contains("sesame is"), "{policy}: {searched}");
        // Nor does it write there.
        for agent in [&agent, &other] {
            let current = text(&daemon.detail(agent)["session_id"]);
            assert!(daemon.transcript(&current).iter().all(|(_, text)| !text.contains("what did I say?")));
        }
    }
}

#[test]
fn a_guest_sets_up_nothing_that_runs_by_itself() {
    for policy in ["off", "audit"] {
        let model = Model::start();
        let daemon = offering(&model, &format!("[security]\ntaint = \"{policy}\"\n"));
        daemon.agent_with("scout", "[capabilities]\ntools = [\"*\"]\n");
        let cron = r#"{"schedule":"every 1s","prompt":"go on"}"#;
        let calls = [
            ("1", "cron_create", cron),
            ("2", "schedule_create", r#"{"schedule":"every 1s","prompt":"go on"}"#),
            ("3", "workflow_run", r#"{"workflow":"w"}"#),
        ];
        model.script([Reply::calls(&calls), Reply::text("done")]);
        ask(&guest(&daemon), "message/send", &json!({ "message": said("set it up") }));
        let told = last_told(&model).concat();
        assert_eq!(told.matches("Refused: a stranger began this conversation").count(), 3, "{policy}: {told}");
        for path in ["/api/cron/jobs", "/api/schedules"] {
            let made = daemon.get(path).expect(200).to_string();
            assert!(!made.contains("every 1s"), "{policy}: {made}");
        }
    }
}

#[test]
fn what_a_guest_begins_and_does_not_wait_for_stops_at_the_daily_limit() {
    let model = Model::start();
    // Each call costs 0.11 dollars.
    let daemon = offering(&model, "[prices.\"openai/*\"]\ninput_per_m = 10000.0\n");
    let agent = daemon.agent_with("scout", "[capabilities]\ntools = [\"agent_send\"]\n");
    let send = |n: u32| {
        let input = json!({ "agent": "scout", "message": format!("go on {n}"), "async": true });
        Reply::calls(&[("1", "agent_send", &input.to_string())])
    };
    model.script((0..30).map(send));
    ask(&guest(&daemon), "message/send", &json!({ "message": said("begin") }));
    daemon.settle();
    assert_eq!(model.requests().len(), 10, "1.1 dollars of a limit of 1: the call that exceeds it is the last");
    let refused = ask(&guest(&daemon), "message/send", &json!({ "message": said("another") }));
    assert_eq!(refused["data"]["code"], "a2a_budget_exceeded", "{refused}");
    // The owner goes on.
    daemon.say(&agent, "mine");
    assert!(model.requests().len() > 10);
}

#[test]
fn strangers_take_nothing_of_a_client_that_shows_a_key() {
    let model = Model::start();
    let daemon = offering(&model, "rate_per_minute = 2\ntotal_rate_per_minute = 2\n");
    daemon.agent_with("scout", "");
    let key = |name: &str, scope: &str| {
        let made = daemon.post("/api/keys", &json!({ "name": name, "scopes": [scope] })).expect(201);
        daemon.keyed(&text(&made["key"]))
    };
    let (guest, partner, other) = (guest(&daemon), key("partner", "chat"), key("other", "chat"));
    let send = |client: &_, message: &str| ask(client, "message/send", &json!({ "message": said(message) }));
    for message in ["a", "b"] {
        assert_eq!(send(&guest, message)["status"]["state"], "completed");
    }
    // A key that may not talk to agents is a stranger at this address.
    for client in [&guest, &key("reader", "read")] {
        assert_eq!(send(client, "c")["data"]["code"], "a2a_rate_limited");
    }
    for client in [&partner, &other] {
        // The same message of another client is another task.
        assert_eq!(send(client, "a")["status"]["state"], "completed");
        let body = json!({ "task_id": "a-task-that-a-client-named", "message": { "parts": [{ "text": "b" }] } });
        assert_eq!(client.post("/a2a/tasks/send", &body).expect(200)["status"], "completed");
        assert_eq!(send(client, "c")["data"]["code"], "a2a_rate_limited");
        client.get("/a2a/tasks/a-task-that-a-client-named").expect(200);
        guest.get("/a2a/tasks/a-task-that-a-client-named").refused(404);
    }
}
