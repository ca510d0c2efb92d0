//! The OpenAI-compatible driver against a scripted server over real HTTP: what it sends, how it retries, how its
//! failures look (spec 1, Errors; issue, Models), and what the built-in model does.

use serde_json::json;

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::stream::{Events, text_of};

fn busy() -> Reply {
    Reply::error(429, "slow down").header("retry-after", "0")
}

fn broken() -> Reply {
    Reply::error(503, "overloaded").header("retry-after", "0")
}

fn call(tool: &str, input: &str) -> Reply {
    Reply::calls(&[("call_1", tool, input)])
}

fn harness() -> (Model, Daemon, String) {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "system_prompt = \"Be terse.\"\n[capabilities]\ntools = [\"system_time\"]\n");
    (model, daemon, agent)
}

#[test]
fn a_prompt_is_system_then_history_then_message() {
    let (model, daemon, agent) = harness();
    let answer = daemon.say(&agent, "one");
    assert_eq!(answer["response"], "echo: one");
    assert_eq!((&answer["input_tokens"], &answer["output_tokens"]), (&json!(11), &json!(7)));
    assert_eq!(answer["iterations"], 1);
    daemon.say(&agent, "two");
    let request = model.requests().pop().unwrap();
    assert_eq!(request["model"], "echo-1");
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "system");
    assert!(messages[0]["content"].to_string().contains("Be terse."), "{}", messages[0]);
    let said: Vec<_> = messages[1..].iter().map(|m| (text(&m["role"]), m["content"].to_string())).collect();
    let roles: Vec<_> = said.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "{said:?}");
    assert!(said[0].1.contains("one") && said[1].1.contains("echo: one") && said[2].1.contains("two"), "{said:?}");
    assert!(request["tools"].to_string().contains("system_time"), "{request}");
}

#[test]
fn a_failed_call_is_tried_again() {
    let (model, daemon, agent) = harness();
    model.script([busy(), broken(), Reply::text("cut off").break_after(0)]);
    assert_eq!(daemon.say(&agent, "hello")["response"], "echo: hello");
    assert_eq!(model.requests().len(), 4);
    model.script([busy()]);
    let events = Events::message(&daemon, &agent, &json!({ "message": "again" })).all();
    assert_eq!(text_of(&events), "echo: again");
}

#[test]
fn failures_are_clear_and_the_session_goes_on() {
    let (model, daemon, agent) = harness();
    let path = format!("/api/agents/{agent}/message");
    let refused = |reply: Reply| {
        model.script([reply]);
        let body = daemon.post(&path, &json!({ "message": "hello" }));
        assert!(body.status >= 400, "{}", body.text());
        let sentence = body.refused(body.status);
        (body.status, body.expect(body.status)["code"].clone(), sentence)
    };
    let (status, code, _) = refused(Reply::error(401, "bad key"));
    assert_eq!((status, code), (500, json!("provider_auth")));
    let (status, code, sentence) = refused(Reply::error(400, "no such option"));
    assert_eq!((status, code), (500, json!("provider_refused")));
    assert!(sentence.contains("no such option"), "{sentence}");
    let (status, code, _) = refused(Reply::raw(200, &[("content-type", "application/json")], "<html>"));
    assert_eq!((status, code), (500, json!("provider_protocol")));
    assert_eq!(daemon.say(&agent, "and now?")["response"], "echo: and now?");
}

#[test]
fn secrets_of_the_provider_never_reach_a_client() {
    let (model, daemon, agent) = harness();
    model.fail(401);
    let reply = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hello" }));
    assert!(!reply.text().contains("key-of-the"), "the key's value is shown: {}", reply.text());
}

#[test]
fn retries_end() {
    let (model, daemon, agent) = harness();
    model.script(std::iter::repeat_n(broken(), 10));
    let reply = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hello" }));
    assert_eq!(reply.status, 500);
    assert_eq!(reply.expect(500)["code"], "provider_error");
    assert_eq!(model.requests().len(), 4, "max_retries 3 is up to 4 attempts");
}

#[test]
fn a_stream_that_breaks_off_is_an_error_or_a_second_try() {
    let (model, daemon, agent) = harness();
    model.script([Reply::text("one two three four").break_after(3)]);
    let events = Events::message(&daemon, &agent, &json!({ "message": "hello" })).all();
    let last = events.last().unwrap();
    assert!(last.name == "error" || last.name == "done", "{events:?}");
    assert_eq!(daemon.say(&agent, "next")["response"], "echo: next");
}

#[test]
fn an_unreachable_provider_is_named() {
    let config = "[default_model]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"TEST_MODEL_KEY\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let daemon = Daemon::with(config);
    let agent = daemon.agent_with("a", "");
    let reply = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hello" }));
    assert_eq!(reply.expect(500)["code"], "provider_unreachable", "{}", reply.text());
}

#[test]
fn a_tool_call_runs_and_its_result_goes_back() {
    let (model, daemon, agent) = harness();
    model.script([call("system_time", "{}"), Reply::text("Late.")]);
    let answer = daemon.say(&agent, "what time is it?");
    assert_eq!((&answer["response"], &answer["iterations"]), (&json!("Late."), &json!(2)));
    assert_eq!((&answer["input_tokens"], &answer["output_tokens"]), (&json!(22), &json!(14)));
    let request = model.requests().pop().unwrap();
    let [.., asked, told] = request["messages"].as_array().unwrap().as_slice() else { panic!("{request}") };
    assert_eq!((&asked["role"], &told["role"]), (&json!("assistant"), &json!("tool")));
    assert_eq!(asked["tool_calls"][0]["function"]["name"], "system_time");
    assert_eq!((&asked["tool_calls"][0]["id"], &told["tool_call_id"]), (&json!("call_1"), &json!("call_1")));
    assert!(text(&told["content"]).contains("20"), "{told}");
}

#[test]
fn a_streamed_tool_call_shows_its_events() {
    let (model, daemon, agent) = harness();
    model.script([call("system_time", "{}"), Reply::text("Done it.")]);
    let events = Events::message(&daemon, &agent, &json!({ "message": "what time is it?" })).all();
    let names: Vec<_> = events.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["tool_use", "tool_result", "chunk", "chunk", "done"], "{events:?}");
    assert_eq!(events[0].data["tool"], "system_time");
    assert_eq!((&events[1].data["tool"], &events[1].data["input"]), (&json!("system_time"), &json!({})));
    assert_eq!(events[4].data["usage"], json!({ "input_tokens": 22, "output_tokens": 14 }));
}

#[test]
fn a_tool_that_is_not_there_or_not_granted_is_refused_to_the_model() {
    let (model, daemon, granted) = harness();
    let bare = daemon.agent_with("bare", "");
    for (agent, tool, input) in [
        (&granted, "no_such_tool", "{}"),
        (&granted, "system_time", "{ malformed"),
        (&granted, "system_time", "[]"),
        (&bare, "system_time", "{}"),
    ] {
        model.script([call(tool, input), Reply::text("I see.")]);
        assert_eq!(daemon.say(agent, "try")["response"], "I see.", "{tool} {input}");
        let request = model.requests().pop().unwrap();
        let told = request["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(told["role"], "tool", "{request}");
        assert!(!text(&told["content"]).contains("\"rfc3339\":\"20"), "{tool} {input}: {told}");
    }
}

#[test]
fn the_thirty_first_tool_call_ends_the_turn() {
    let (model, daemon, agent) = harness();
    model.script((0..40).map(|_| call("system_time", "{}")));
    let reply = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "go" }));
    assert!((2..=32).contains(&model.requests().len()), "{} calls", model.requests().len());
    assert!(reply.status == 200 || reply.status == 500, "{}", reply.text());
}

#[test]
fn several_calls_of_one_answer_all_run() {
    let (model, daemon, agent) = harness();
    model.script([
        Reply::calls(&[("c1", "system_time", "{}"), ("c2", "no_such_tool", "{}"), ("c3", "system_time", "{}")]),
        Reply::text("All three."),
    ]);
    assert_eq!(daemon.say(&agent, "go")["response"], "All three.");
    let request = model.requests().pop().unwrap();
    let told = request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool");
    let ids: Vec<_> = told.map(|m| text(&m["tool_call_id"])).collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
}

#[test]
fn the_builtin_model_says_what_it_is() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let answer = text(&daemon.say(&agent, "hello")["response"]);
    let about = text(&daemon.say(&agent, "what are you?")["response"]);
    assert!(format!("{answer} {about}").to_lowercase().contains("built-in"), "{answer} / {about}");
    let other = daemon.agent("b");
    assert_eq!(text(&daemon.say(&other, "say the same twice")["response"]), {
        let third = daemon.agent("c");
        text(&daemon.say(&third, "say the same twice")["response"])
    });
}
