//! Tools that the client of a completion runs itself, beside those that the agent has.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::stream::Events;
use crate::v1::no_hidden_session;

fn tool(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name, "description": "Looks.", "strict": true,
        "parameters": { "type": "object", "properties": { "z": { "type": "string" }, "a": { "type": "string" } } } } })
}

fn body(messages: Value, tools: &[Value]) -> Value {
    json!({ "model": "ada", "messages": messages, "tools": tools })
}

/// An agent `ada` that may call every tool, on a scripted model.
fn harness() -> (Model, Daemon, String) {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("ada", "[capabilities]\ntools = [\"system_time\"]\n");
    (model, daemon, agent)
}

/// The names of the tools that a request offered.
fn offered(request: &Value) -> Vec<String> {
    request["tools"].as_array().into_iter().flatten().map(|tool| text(&tool["function"]["name"])).collect()
}

#[test]
fn a_call_of_a_clients_tool_goes_to_the_client_and_its_result_comes_back() {
    let (model, daemon, _) = harness();
    model.script([Reply::calls(&[("c1", "look", "{\"z\": \"up\"}"), ("c2", "look", "{}")]).saying("Let me look.")]);
    let question = json!({ "role": "user", "content": "what is up?" });
    let asked = json!({ "tool_choice": "required", "parallel_tool_calls": true });
    let mut first = body(json!([question]), &[tool("look")]);
    first.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
    let answer = daemon.post("/v1/chat/completions", &first).expect(200);
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &json!("Let me look."))
    );
    let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "look", "arguments": arguments } });
    assert_eq!(choice["message"]["tool_calls"], json!([call("c1", "{\"z\": \"up\"}"), call("c2", "{}")]));
    let request = model.requests().pop().unwrap();
    assert_eq!(offered(&request), ["system_time", "look"]);
    assert_eq!((&request["tool_choice"], &request["parallel_tool_calls"]), (&json!("required"), &json!(true)));
    let sent = request["tools"][1]["function"].clone();
    assert_eq!((&sent["description"], &sent["strict"]), (&json!("Looks."), &json!(true)));
    assert_eq!(sent["parameters"], tool("look")["function"]["parameters"]);

    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": format!("result of {id}") });
    let second = body(json!([question, choice["message"], result("c1"), result("c2")]), &[tool("look")]);
    let answer = daemon.post("/v1/chat/completions", &second).expect(200);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let messages = model.requests().pop().unwrap()["messages"].clone();
    let roles: Vec<_> = messages.as_array().unwrap().iter().map(|message| text(&message["role"])).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(messages[4]["content"], "result of c2");
    no_hidden_session(&daemon);
}

#[test]
fn own_tools_run_here_and_only_a_clients_call_ends_the_turn() {
    let (model, daemon, _) = harness();
    let ask = body(json!([{ "role": "user", "content": "time?" }]), &[tool("look")]);
    model.script([Reply::calls(&[("c1", "system_time", "{}")]), Reply::text("It is late.")]);
    let answer = daemon.post("/v1/chat/completions", &ask).expect(200);
    assert_eq!(answer["choices"][0]["message"]["content"], "It is late.");
    assert_eq!(answer["usage"]["total_tokens"], 36, "of both model calls");
    let asked = model.requests().len();

    // Mixed: the client's call ends the turn, the agent's own did not run and is left out.
    model.script([Reply::calls(&[("c1", "system_time", "{}"), ("c2", "look", "{}")])]);
    let answer = daemon.post("/v1/chat/completions", &ask).expect(200);
    let calls = answer["choices"][0]["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(
        (calls.len(), &calls[0]["id"], &answer["choices"][0]["message"]["content"]),
        (1, &json!("c2"), &Value::Null)
    );
    assert_eq!(model.requests().len(), asked + 1);

    // The same name: for this request the client's is meant.
    model.script([Reply::calls(&[("c1", "system_time", "{\"z\": 1}")])]);
    let own = body(json!([{ "role": "user", "content": "time?" }]), &[tool("system_time")]);
    let answer = daemon.post("/v1/chat/completions", &own).expect(200);
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(offered(&model.requests().pop().unwrap()), ["system_time"]);
}

#[test]
fn a_forced_choice_holds_for_the_first_answer_only() {
    let (model, daemon, _) = harness();
    model.script([Reply::calls(&[("c1", "system_time", "{}")]), Reply::text("done")]);
    let mut ask = body(json!([{ "role": "user", "content": "time?" }]), &[]);
    ask["tool_choice"] = json!({ "type": "function", "function": { "name": "system_time" } });
    daemon.post("/v1/chat/completions", &ask).expect(200);
    let requests = model.requests();
    assert_eq!(requests[0]["tool_choice"], ask["tool_choice"]);
    assert!(requests[1].get("tool_choice").is_none());
}

#[test]
fn a_kept_session_takes_the_results_of_the_clients_tools() {
    let (model, daemon, agent) = harness();
    let question = json!({ "role": "user", "content": "what is up?" });
    let send = |messages: Value| {
        let bytes = body(messages, &[tool("look")]).to_string();
        let header = [("x-agentsvc-session", "current")];
        daemon.send("POST", "/v1/chat/completions", &header, Some(bytes.as_bytes())).expect(200)
    };
    model.script([Reply::calls(&[("c1", "look", "{}")]), Reply::text("The sky.")]);
    let first = send(json!([question]));
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "blue" });
    let answer = send(json!([question, first["choices"][0]["message"], result]));
    assert_eq!(answer["choices"][0]["message"]["content"], "The sky.");
    let messages = model.requests().pop().unwrap()["messages"].clone();
    let roles: Vec<_> = messages.as_array().unwrap().iter().map(|message| text(&message["role"])).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(messages[3]["content"], "blue");
    let session = text(&daemon.detail(&agent)["session_id"]);
    let said: Vec<_> = daemon.transcript(&session).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said.first().map(String::as_str), Some("what is up?"));
    assert_eq!(said.last().map(String::as_str), Some("The sky."));
}

#[test]
fn streamed_calls_come_whole_after_the_text() {
    let (model, daemon, _) = harness();
    model.script([Reply::calls(&[("c1", "look", "{\"z\": \"up\"}"), ("c2", "look", "{}")])]);
    let mut ask = body(json!([{ "role": "user", "content": "look" }]), &[tool("look")]);
    ask["stream"] = json!(true);
    let events: Vec<_> =
        Events::open(&daemon, "POST", "/v1/chat/completions", Some(&ask)).map(|event| event.data).collect();
    assert_eq!(events.len(), 4, "{events:?}");
    let delta = |at: usize| events[at]["choices"][0]["delta"].clone();
    assert_eq!(delta(0)["role"], "assistant");
    let call = json!([{ "index": 0, "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{\"z\": \"up\"}" } }]);
    assert_eq!(delta(0)["tool_calls"], call);
    assert_eq!((&delta(1)["tool_calls"][0]["index"], &delta(1)["tool_calls"][0]["id"]), (&json!(1), &json!("c2")));
    assert_eq!((&delta(2), &events[2]["choices"][0]["finish_reason"]), (&json!({}), &json!("tool_calls")));
    assert_eq!(events[3], json!("[DONE]"));
}

#[test]
fn wrong_tools_are_refused_by_name() {
    let (_, daemon, _) = harness();
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    for (tools, field) in [
        (json!([{ "type": "web_search" }]), "tools[0].type"),
        (json!([{ "type": "function" }]), "tools[0].function"),
        (json!([named("a"), named("a")]), "tools[1].function.name"),
        (json!([named("no spaces")]), "tools[0].function.name"),
        (json!([named("")]), "tools[0].function.name"),
        (
            json!([{ "type": "function", "function": { "name": "a", "parameters": "x" } }]),
            "tools[0].function.parameters",
        ),
        (json!((0..200).map(|n| named(&n.to_string())).collect::<Vec<_>>()), "tools"),
    ] {
        let ask = json!({ "model": "ada", "messages": [{ "role": "user", "content": "x" }], "tools": tools });
        daemon.post("/v1/chat/completions", &ask).refused_field(400, field);
    }
}
