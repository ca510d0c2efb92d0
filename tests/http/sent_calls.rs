//! What turns sent to models: prompts as they went out, tries, and why a call waits.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

fn calls(client: &Client, agent: &str, turn: &str) -> Vec<Value> {
    let body = client.get(&format!("/api/agents/{agent}/traces/{turn}/calls")).expect(200);
    assert_eq!(body["total"], body["calls"].as_array().unwrap().len());
    body["calls"].as_array().unwrap().clone()
}

#[test]
fn a_prompt_is_shown_as_it_was_sent() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    model.script([Reply::calls(&[("c1", "system_time", "{}")]), Reply::text("noon")]);
    let answer = daemon.say(&agent, "what time is it");
    let (turn, session) = (text(&answer["turn_id"]), text(&answer["session_id"]));
    let sent = calls(&daemon, &agent, &turn);
    assert_eq!(sent.iter().map(|call| call["messages"].clone()).collect::<Vec<_>>(), [json!(1), json!(3)]);
    let last = &sent[1];
    assert_eq!((&last["provider"], &last["model"], &last["tools"]), (&json!("openai"), &json!("echo-1"), &json!(1)));
    assert!(last["tokens"]["results"].as_u64() > Some(0) && last["tokens"]["tools"].as_u64() > Some(0), "{last}");
    assert_eq!(last["tries"].as_array().unwrap().len(), 1);
    let whole = daemon.get(&format!("/api/agents/{agent}/traces/{turn}/calls/{}", last["id"])).expect(200);
    assert!(text(&whole["system"]).contains("helpful assistant"), "{whole}");
    assert_eq!(whole["messages"][0]["parts"], json!([{ "type": "text", "text": "what time is it" }]));
    assert_eq!(whole["messages"][1]["parts"][0]["name"], "system_time");
    assert_eq!((&whole["messages"][2]["role"], &whole["tools"][0]["name"]), (&json!("Tool"), &json!("system_time")));

    let other = daemon.agent("b");
    assert!(calls(&daemon, &other, &turn).is_empty(), "of another agent");
    daemon.get(&format!("/api/agents/{agent}/traces/{turn}/calls/0")).refused(404);
    daemon.get(&format!("/api/agents/{agent}/traces/{turn}/calls/x")).refused(404);
    daemon.get(&format!("/api/agents/{agent}/traces/x/calls")).refused_field(400, "turn_id");
    daemon.poke(&format!("/api/agents/{agent}/sessions")).expect(201);
    daemon.delete(&format!("/api/sessions/{session}")).expect(200);
    assert!(calls(&daemon, &agent, &turn).is_empty(), "the conversation was deleted");
}

#[test]
fn a_failed_call_is_named_with_its_error_and_its_tries() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.script([Reply::error(401, "bad key")]);
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hello" })).refused(500);
    let traces = daemon.get(&format!("/api/agents/{agent}/traces")).expect(200);
    let trace = &traces["traces"][0];
    let step = &trace["steps"][0];
    assert_eq!((&step["name"], &step["status"]), (&json!("openai/echo-1"), &json!("error")));
    assert!(text(&step["error"]).contains("openai"), "{step}");
    let sent = calls(&daemon, &agent, &text(&trace["turn_id"]));
    assert_eq!(sent[0]["tries"][0]["code"], "provider_auth");

    let provider = daemon.get("/api/providers/openai").expect(200);
    assert_eq!((&provider["calls"]["state"], &provider["name"]), (&json!("failing"), &json!("openai")));
    assert_eq!(provider["calls"]["last_error"]["code"], "provider_auth");
    daemon.say(&agent, "again");
    let providers = daemon.get("/api/providers").expect(200);
    let of = |name: &str| providers["providers"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    assert_eq!((&of("openai")["calls"]["state"], &of("openai")["calls"]["last_error"]), (&json!("ok"), &Value::Null));
    assert_eq!(of("groq")["calls"], Value::Null, "it was not asked");
}

#[test]
fn a_turn_that_waits_for_its_provider_says_why_and_until_when() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    model.script([Reply::error(429, "slow down").header("retry-after", "20")]);
    std::thread::scope(|scope| {
        let (client, asked) = (daemon.client(), &agent);
        let send =
            scope.spawn(move || client.post(&format!("/api/agents/{asked}/message"), &json!({ "message": "hello" })));
        let waiting = until("the call waits", || {
            let traces = daemon.get(&format!("/api/agents/{agent}/traces")).expect(200);
            Some(traces["running"][0]["waiting"].clone()).filter(Value::is_object)
        });
        assert_eq!((&waiting["provider"], &waiting["code"]), (&json!("openai"), &json!("provider_rate_limited")));
        assert!(waiting["until"].is_string() && waiting["tries"] == 1, "{waiting}");
        let provider = daemon.get("/api/providers/openai").expect(200);
        assert_eq!(provider["calls"]["state"], "limited");
        assert!(provider["calls"]["resumes_at"].is_string(), "{provider}");
        daemon.post(&format!("/api/agents/{agent}/stop"), &json!({})).expect(200);
        drop(send.join().unwrap());
    });
}
