//! The OpenAI-compatible endpoints (spec 1): models, resolution, conversations, continuity, parameters and errors.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::until;

/// A request of one user message.
fn ask(model: &str, content: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": content }] })
}

/// The completion that answers `body`.
#[track_caller]
fn complete(daemon: &Daemon, body: &Value) -> Value {
    daemon.post("/v1/chat/completions", body).expect(200)
}

/// The number of a metric without labels.
#[track_caller]
pub(crate) fn gauge(daemon: &Daemon, name: &str) -> f64 {
    let page = daemon.get("/api/metrics").text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no metric {name}")).parse().unwrap()
}

/// Waits until the metrics, which lag behind a little, show no hidden session.
#[track_caller]
pub(crate) fn no_hidden_session(daemon: &Daemon) {
    until("every hidden session is gone", || (gauge(daemon, "agentsvc_sessions_hidden") == 0.0).then_some(()));
}

#[test]
fn a_completion_has_openais_shape() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("ada", "");
    let reply = daemon.post("/v1/chat/completions", &ask("agentsvc:ada", "hello"));
    let body = reply.expect(200);
    let id = text(&body["id"]);
    assert!(Uuid::parse_str(id.strip_prefix("chatcmpl-").unwrap()).is_ok(), "{id}");
    assert_eq!((&body["object"], &body["model"]), (&json!("chat.completion"), &json!("ada")));
    assert!(body["created"].as_u64().is_some_and(|seconds| (1_700_000_000..10_000_000_000).contains(&seconds)));
    let choice = &body["choices"][0];
    assert_eq!(body["choices"].as_array().unwrap().len(), 1);
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    assert_eq!(
        (&choice["message"]["role"], &choice["message"]["content"]),
        (&json!("assistant"), &json!("echo: hello"))
    );
    assert!(choice["message"].get("tool_calls").is_none());
    assert_eq!(body["usage"], json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 }));
    assert!(reply.header("x-agentsvc-session").is_none(), "a hidden session is nobody's business");
    let sessions = daemon.get(&format!("/api/agents/{agent}/sessions")).expect(200);
    assert_eq!((sessions["total"].as_u64(), &sessions["sessions"][0]["message_count"]), (Some(1), &json!(0)));
}

#[test]
fn a_model_name_finds_its_agent_or_the_first() {
    let daemon = Daemon::start();
    let first = text(&daemon.get("/api/agents").expect(200)[0]["name"]);
    let (ada, bob) = (daemon.agent("ada"), daemon.agent("bob"));
    for (model, name) in [
        ("agentsvc:ada", "ada"),
        (bob.as_str(), "bob"),
        ("bob", "bob"),
        ("gpt-4o", first.as_str()),
        ("agentsvc:nobody", first.as_str()),
        ("00000000-0000-0000-0000-000000000000", first.as_str()),
        ("", first.as_str()),
    ] {
        assert_eq!(complete(&daemon, &ask(model, "hello"))["model"], json!(name), "{model}");
    }
    for agent in daemon.get("/api/agents").expect(200).as_array().unwrap() {
        let id = text(&agent["id"]);
        if id != ada {
            daemon.delete(&format!("/api/agents/{id}")).expect(200);
        }
    }
    assert_eq!(complete(&daemon, &ask("bob", "hello"))["model"], "ada", "the first of those that are left");
    daemon.delete(&format!("/api/agents/{ada}")).expect(200);
    daemon.post("/v1/chat/completions", &ask("ada", "hello")).refused(404);
}

#[test]
fn models_are_the_agents() {
    let daemon = Daemon::start();
    let ada = daemon.agent("ada");
    let list = daemon.get("/v1/models").expect(200);
    assert_eq!(list["object"], "list");
    let found = list["data"].as_array().unwrap().iter().find(|model| model["id"] == "agentsvc:ada").unwrap();
    assert_eq!((&found["object"], &found["owned_by"]), (&json!("model"), &json!("agentsvc")));
    assert!(found["created"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000));
    assert_eq!(list["data"].as_array().unwrap().len(), daemon.get("/api/agents").expect(200).as_array().unwrap().len());
    for name in ["agentsvc:ada", "agentsvc%3Aada", "ada", &ada] {
        assert_eq!(daemon.get(&format!("/v1/models/{name}")).expect(200), *found, "{name}");
    }
    let missing = daemon.get("/v1/models/agentsvc:nobody");
    missing.refused(404);
    assert_eq!(missing.expect(404)["code"], "model_not_found");
}

#[test]
fn the_conversation_in_the_request_is_the_context() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("ada", "[model]\nsystem_prompt = \"You are Ada.\"\n");
    daemon.say(&agent, "in the agent's own session");
    let own = text(&daemon.detail(&agent)["session_id"]);
    let before = (daemon.transcript(&own), daemon.get("/api/sessions").expect(200));
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{\"x\":1}" } });
    let body = json!({ "model": "ada", "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "text", "text": "look " }, { "type": "text", "text": "there" }] },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "content": "a cat" },
        { "role": "assistant", "content": "A cat.", "refusal": null },
        { "role": "developer", "content": "Be kind." },
        { "role": "user", "content": "and now?", "name": "tom" },
    ]});
    let reply = daemon.post("/v1/chat/completions", &body);
    assert_eq!(reply.expect(200)["choices"][0]["message"]["content"], "echo: and now?");
    assert!(reply.header("warning").is_none(), "{:?}", reply.header("warning"));
    let asked = model.requests().pop().unwrap();
    let messages = asked["messages"].as_array().unwrap();
    let system = text(&messages[0]["content"]);
    assert!(system.starts_with("You are Ada.") && system.ends_with("\n\nBe brief.\n\nBe kind."), "{system}");
    let roles: Vec<_> = messages.iter().map(|message| text(&message["role"])).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    assert_eq!((&messages[1]["content"], &messages[2]["tool_calls"][0]), (&json!("look \n\nthere"), &call));
    assert_eq!((&messages[3]["content"], &messages[3]["tool_call_id"]), (&json!("a cat"), &json!("c1")));
    assert_eq!((&messages[4]["content"], &messages[5]["content"]), (&json!("A cat."), &json!("and now?")));
    assert_eq!((daemon.transcript(&own), daemon.get("/api/sessions").expect(200)), before);
    no_hidden_session(&daemon);
}

#[test]
fn a_hidden_session_is_in_no_list_while_it_lives() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("ada", "");
    let before = daemon.get("/api/sessions").expect(200);
    model.hold();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| complete(&daemon, &ask("ada", "needle")));
        until("the model is asked", || (model.waiting() == 1).then_some(()));
        until("the metrics see it", || (gauge(&daemon, "agentsvc_sessions_hidden") == 1.0).then_some(()));
        assert_eq!(daemon.get("/api/sessions").expect(200), before);
        assert_eq!(gauge(&daemon, "agentsvc_sessions") as u64, before["total"].as_u64().unwrap());
        let listed = daemon.get(&format!("/api/agents/{agent}/sessions")).expect(200);
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
        let found = daemon.get("/api/sessions/search?q=needle").expect(200);
        assert_eq!(found["sessions"].as_array().map(Vec::len), Some(0), "{found}");
        daemon.delete(&format!("/api/agents/{agent}/history")).expect(200);
        model.release();
        assert_eq!(asked.join().unwrap()["choices"][0]["message"]["content"], "echo: needle");
    });
    no_hidden_session(&daemon);
}

#[test]
fn continuity_is_asked_for_by_header_or_user() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("ada", "");
    let own = text(&daemon.detail(&agent)["session_id"]);
    let send = |session: &str, body: &Value| {
        let header = [("x-agentsvc-session", session)];
        daemon.send("POST", "/v1/chat/completions", &header, Some(body.to_string().as_bytes()))
    };
    let first = send("current", &ask("ada", "one"));
    first.expect(200);
    assert_eq!(first.header("x-agentsvc-session"), Some(own.as_str()));
    let history = json!({ "model": "ada", "messages": [
        { "role": "user", "content": "not this" }, { "role": "assistant", "content": "nor this" },
        { "role": "user", "content": "two" },
    ]});
    send(&own, &history).expect(200);
    let said: Vec<_> = daemon.transcript(&own).into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["one", "echo: one", "two", "echo: two"]);

    let by_user = json!({ "model": "ada", "user": "tom", "messages": [{ "role": "user", "content": "three" }] });
    for _ in 0..2 {
        complete(&daemon, &by_user);
    }
    let labelled = daemon.get(&format!("/api/agents/{agent}/sessions/by-label/user%3Atom")).expect(200);
    assert_eq!(labelled["message_count"], 4);
    assert_ne!(labelled["session_id"], json!(own));
    assert_eq!(daemon.transcript(&own).len(), 4);

    let other = daemon.agent_with("bob", "");
    let theirs = text(&daemon.detail(&other)["session_id"]);
    send(&theirs, &ask("ada", "x")).refused(403);
    send("nonsense", &ask("ada", "x")).refused_field(400, "x-agentsvc-session");
    let ends_wrong = json!({ "model": "ada", "messages": [
        { "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }] });
    send("current", &ends_wrong).refused_field(400, "messages");
    assert_eq!(daemon.transcript(&own).len(), 4);
}

#[test]
fn what_is_wrong_with_the_messages_is_named_by_its_path() {
    let daemon = Daemon::start();
    let user = json!({ "role": "user", "content": "x" });
    let call = json!({ "id": "c1", "function": { "name": "f", "arguments": "{}" } });
    let part = |part: Value| json!({ "role": "user", "content": [part] });
    let image = |url: &str| part(json!({ "type": "image_url", "image_url": { "url": url } }));
    for (messages, field) in [
        (json!([]), "messages"),
        (json!([{ "role": "system", "content": "only this" }]), "messages"),
        (json!([{ "role": "user", "content": "  " }]), "messages"),
        (json!([user, { "role": "robot", "content": "x" }]), "messages[1].role"),
        (json!([{ "content": "x" }]), "messages[0].role"),
        (json!([{ "role": "user" }]), "messages[0].content"),
        (json!([{ "role": "user", "content": 5 }]), "messages[0].content"),
        (json!([user, part(json!({ "type": "video" }))]), "messages[1].content[0].type"),
        (json!([part(json!({ "text": "x" }))]), "messages[0].content[0].type"),
        (json!([part(json!({ "type": "text" }))]), "messages[0].content[0].text"),
        (json!([part(json!({ "type": "image_url" }))]), "messages[0].content[0].image_url"),
        (json!([image("https://example.com/cat.png")]), "messages[0].content[0].image_url.url"),
        (json!([image("http://127.0.0.1/cat.png")]), "messages[0].content[0].image_url.url"),
        (json!([image("data:image/png;base64,!!!")]), "messages[0].content[0].image_url.url"),
        (json!([image("data:text/html;base64,AAAA")]), "messages[0].content[0].image_url.url"),
        (json!([user, { "role": "assistant" }]), "messages[1].content"),
        (json!([user, { "role": "tool", "content": "x", "tool_call_id": "c1" }]), "messages[1].tool_call_id"),
        (json!([user, { "role": "tool", "content": "x" }]), "messages[1].tool_call_id"),
        (json!([user, { "role": "assistant", "tool_calls": [call, call] }]), "messages[1].tool_calls[1].id"),
        (json!([user, { "role": "assistant", "tool_calls": [{ "id": "c" }] }]), "messages[1].tool_calls[0].function"),
        (json!([user, { "role": "assistant", "content": [{ "type": "image_url" }] }]), "messages[1].content[0].type"),
        (json!("hello"), "messages"),
        (json!(vec![&user; 2_049]), "messages"),
    ] {
        let reply = daemon.post("/v1/chat/completions", &json!({ "model": "x", "messages": messages }));
        reply.refused(400);
        let body = reply.expect(400);
        assert_eq!((&body["field"], &body["param"]), (&json!(field), &json!(field)), "{messages}: {body}");
    }
    daemon.post("/v1/chat/completions", &json!({ "messages": [user] })).refused_field(400, "model");
    daemon.post("/v1/chat/completions", &json!({ "model": "x" })).refused_field(400, "messages");
    no_hidden_session(&daemon);
}

#[test]
fn parameters_reach_the_model() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    daemon.agent_with("ada", "[model]\ntemperature = 0.5\nmax_tokens = 77\n");
    let with = |more: Value| {
        let mut body = ask("ada", "hello");
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = daemon.post("/v1/chat/completions", &body);
        reply.expect(200);
        (model.requests().pop().unwrap(), reply.header("warning").map(str::to_owned))
    };
    let (plain, _) = with(json!({}));
    assert_eq!(
        (&plain["temperature"], plain["max_completion_tokens"].as_u64().or(plain["max_tokens"].as_u64())),
        (&json!(0.5), Some(77))
    );
    let (asked, warning) = with(json!({ "temperature": 1.5, "max_tokens": 5, "top_p": 0.5, "stop": ["a", "b"], "n": 1,
        "presence_penalty": 0.25, "frequency_penalty": null, "seed": 7, "logit_bias": { "1": 2 },
        "response_format": { "type": "json_object" }, "parallel_tool_calls": false, "tool_choice": "auto" }));
    assert_eq!(
        (&asked["temperature"], asked["max_completion_tokens"].as_u64().or(asked["max_tokens"].as_u64())),
        (&json!(1.5), Some(5))
    );
    assert_eq!((&asked["top_p"], &asked["stop"], &asked["seed"]), (&json!(0.5), &json!(["a", "b"]), &json!(7)));
    assert_eq!((&asked["presence_penalty"], &asked["logit_bias"]), (&json!(0.25), &json!({ "1": 2 })));
    assert_eq!(asked["response_format"], json!({ "type": "json_object" }));
    for absent in ["n", "frequency_penalty", "user", "tool_choice", "parallel_tool_calls", "tools"] {
        assert!(asked.get(absent).is_none(), "{absent} without tools or value: {asked}");
    }
    assert_eq!(warning, None);
    assert!(with(json!({ "logprobs": true })).1.is_some_and(|warning| warning.contains("logprobs")));
    let (both, _) = with(json!({ "max_tokens": 5, "max_completion_tokens": 6 }));
    assert_eq!(both["max_completion_tokens"].as_u64().or(both["max_tokens"].as_u64()), Some(6));
    for (more, field) in [
        (json!({ "n": 2 }), "n"),
        (json!({ "temperature": 2.5 }), "temperature"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "max_tokens": 0 }), "max_tokens"),
        (json!({ "max_tokens": -1 }), "max_tokens"),
        (json!({ "stream": "yes" }), "stream"),
        (json!({ "tool_choice": "sometimes" }), "tool_choice"),
    ] {
        let mut body = ask("ada", "hello");
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        daemon.post("/v1/chat/completions", &body).refused_field(400, field);
    }
}

#[test]
fn errors_are_a_sentence_and_what_openais_clients_look_for() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("api_key = \"k\"\n{}", model.config()));
    let keyed = daemon.keyed("k");
    let bare = daemon.post("/v1/chat/completions", &ask("ada", "x"));
    bare.refused(401);
    let body = bare.expect(401);
    assert_eq!((&body["type"], &body["code"]), (&json!("authentication_error"), &json!("invalid_api_key")));
    assert_eq!((&body["message"], &body["param"]), (&body["error"], &Value::Null));
    daemon.get("/v1/models").refused(401);
    let lost = keyed.get("/v1/nothing");
    lost.refused(404);
    assert_eq!(lost.expect(404)["type"], "invalid_request_error");
    let wrong_method = keyed.send("DELETE", "/v1/chat/completions", &[], None);
    wrong_method.refused(405);

    let agent = keyed.agent_with("ada", "");
    model.fail(400);
    let failed = keyed.post("/v1/chat/completions", &ask("ada", "x"));
    failed.refused(500);
    let body = failed.expect(500);
    assert_eq!((&body["code"], &body["type"]), (&json!("provider_refused"), &json!("server_error")));
    assert_eq!(failed.header("x-should-retry"), Some("false"), "the model was asked often enough");
    keyed.post("/api/agents/bulk/stop", &json!({ "agent_ids": [agent] })).expect(200);
    let stopped = keyed.post("/v1/chat/completions", &ask("ada", "x"));
    stopped.refused(409);
    assert_eq!(stopped.expect(409)["code"], "agent_not_running");

    let too_large = format!("{{\"model\": \"ada\", \"x\": \"{}\"}}", "x".repeat(40 << 20));
    keyed.send("POST", "/v1/chat/completions", &[], Some(too_large.as_bytes())).refused(413);
    let plain = keyed.get("/api/nothing").expect(404);
    assert!(plain.get("type").is_none(), "the other paths keep their errors as they are");
}

#[test]
fn completions_count_as_messages_in_the_rate() {
    let daemon = Daemon::with("rate_limit_per_second = 1\n");
    let refused = until("the bucket runs dry", || {
        let reply = daemon.post("/v1/chat/completions", &ask("x", "hello"));
        (reply.status != 200).then_some(reply)
    });
    refused.refused(429);
    assert_eq!(refused.expect(429)["type"], "rate_limit_error");
    assert!(refused.header("retry-after").is_some());
}
