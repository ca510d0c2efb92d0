//! What MCP servers ask of the daemon while agents call their tools: input of a person through approvals (elicitation), and
//! answers of the agent's model (sampling). A scripted server asks for what the test says.

use std::fs;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply as Answer;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{routes, until};

const GRANTS: &str = "mcp_servers = [\"s\"]\n[capabilities]\ntools = [\"*\"]\n";

/// A daemon with the server `s`, and an agent that may call it.
struct Harness {
    model: Model,
    daemon: Daemon,
    agent: String,
}

/// The server, with these lines of its configuration.
fn harness(server: &str, mode: &str, rest: &str) -> Harness {
    let model = Model::start();
    let script = fs::read_to_string(routes::root().join("tests/http/mcp_asking_server.py")).unwrap();
    let args = json!(["-c", script, mode]);
    let config = format!(
        "rate_limit_per_second = 1000000\n{}[mcp_servers.s]\ncommand = \"/usr/bin/python3\"\nargs = {args}\n{server}\n{rest}\n",
        model.config()
    );
    let daemon = Daemon::with(&config);
    let agent = daemon.agent_with("ann", GRANTS);
    connected(&daemon);
    Harness { model, daemon, agent }
}

#[track_caller]
fn connected(daemon: &Daemon) {
    until("the server is connected", || {
        let reply = daemon.get("/api/mcp/servers/s");
        (reply.status == 200 && reply.expect(200)["connected"] == true).then_some(())
    });
}

impl Harness {
    /// Lets an agent call a tool. The model is asked for its next answer when the call is over.
    fn begin(&self, agent: &str, tool: &str, arguments: &Value) -> JoinHandle<Option<Answer>> {
        self.begin_with(agent, tool, arguments, None)
    }

    /// The same; the model's next answer after the one with the call is this one.
    fn begin_with(
        &self,
        agent: &str,
        tool: &str,
        arguments: &Value,
        next: Option<Reply>,
    ) -> JoinHandle<Option<Answer>> {
        let name = format!("mcp_s_{tool}");
        let call = Reply::calls(&[("c1", &name, &arguments.to_string())]);
        self.model.script(std::iter::once(call).chain(next));
        let (client, path) = (self.daemon.client(), format!("/api/agents/{agent}/message"));
        let body = json!({ "message": "go" }).to_string();
        thread::spawn(move || client.try_send("POST", &path, &[], Some(body.as_bytes())).ok())
    }

    /// The result that the model read.
    fn ended(&self, call: JoinHandle<Option<Answer>>) -> String {
        call.join().expect("no panic").expect("an answer").expect(200);
        let requests = self.model.requests();
        let messages = requests.last().expect("requests")["messages"].as_array().cloned().unwrap_or_default();
        let result = messages.iter().rev().find(|message| message["role"] == "tool");
        text(&result.expect("a result")["content"])
    }

    /// What the server got, when nothing waits for a person.
    fn ask(&self, requests: &Value) -> Vec<Value> {
        answers(&self.ended(self.begin(&self.agent, "ask", &json!({ "requests": requests }))))
    }

    fn list(&self, query: &str) -> Vec<Value> {
        let list = self.daemon.get(&format!("/api/approvals?{query}")).expect(200);
        list["approvals"].as_array().expect("approvals").clone()
    }

    /// The approvals that wait, once there are `count`.
    fn pending(&self, count: usize) -> Vec<Value> {
        until("approvals are pending", || Some(self.list("status=pending")).filter(|found| found.len() == count))
    }

    fn decide(&self, approval: &Value, how: &str, body: &Value) -> Answer {
        self.daemon.post(&format!("/api/approvals/{}/{how}", text(&approval["id"])), body)
    }

    /// What the server got so far, in the order in which it came.
    fn got(&self) -> Vec<Value> {
        let path = self.daemon.home().join("mcp_servers/s/answers");
        let lines = fs::read_to_string(path).unwrap_or_default();
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

fn answers(result: &str) -> Vec<Value> {
    // Untrusted content stands between notices.
    let line = result.lines().find(|line| line.starts_with('[')).unwrap_or_else(|| panic!("no answers in {result:?}"));
    serde_json::from_str(line).unwrap()
}

fn form() -> Value {
    let name = json!({ "type": "string", "title": "Name", "minLength": 1 });
    let schema =
        json!({ "type": "object", "properties": { "name": name, "age": { "type": "integer" } }, "required": ["name"] });
    json!({ "method": "elicitation/create", "params": { "message": "Who are you?", "requestedSchema": schema } })
}

fn sample(max_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "say it" } });
    json!({ "method": "sampling/createMessage",
        "params": { "messages": [message], "systemPrompt": "Be brief.", "maxTokens": max_tokens } })
}

fn codes(answers: &[Value]) -> Vec<Option<i64>> {
    answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect()
}

/// The channels of the usage events, oldest first.
fn channels(daemon: &Daemon) -> Vec<String> {
    let table = daemon.get("/api/usage/export").text();
    table
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').nth(12).map(|channel| channel.trim_matches('"').to_owned()))
        .collect()
}

#[test]
fn a_person_fills_in_the_form_of_a_server() {
    let harness = harness("", "", "");
    let call = harness.begin(&harness.agent, "ask", &json!({ "requests": [form()], "stray": true }));
    let [approval] = &harness.pending(1)[..] else { panic!("one approval") };
    assert_eq!((&approval["action"], &approval["agent_id"]), (&json!("mcp_elicitation"), &json!(harness.agent)));
    let payload = &approval["payload"];
    let said = (&payload["server"], &payload["tool"], &payload["message"], &payload["mode"]);
    assert_eq!(said, (&json!("s"), &json!("mcp_s_ask"), &json!("Who are you?"), &json!("form")));
    assert!(text(&approval["description"]).contains("not trusted"), "{approval}");
    assert_eq!(approval["answer_schema"]["properties"]["name"]["title"], "Name");
    harness.decide(approval, "approve", &json!({})).refused_field(400, "answer.name");
    let wrong = json!({ "answer": { "name": "Ann", "age": "old" } });
    harness.decide(approval, "approve", &wrong).refused_field(400, "answer.age");
    harness
        .daemon
        .post("/api/approvals/batch", &json!({ "ids": [approval["id"]], "decision": "approve" }))
        .refused(400);
    let right = json!({ "answer": { "name": "Ann", "age": 7 } });
    assert_eq!(harness.decide(approval, "approve", &right).expect(200)["status"], "approved");
    let got = answers(&harness.ended(call));
    assert_eq!(got, [json!({ "result": { "action": "accept", "content": { "name": "Ann", "age": 7 } } })]);
    assert!(!harness.list("status=approved")[0].to_string().contains("Ann"), "the answer is not kept");
}

#[test]
fn a_person_declines_or_does_not_decide() {
    let patient = harness("", "", "");
    let call = patient.begin(&patient.agent, "ask", &json!({ "requests": [form()] }));
    patient.decide(&patient.pending(1)[0], "reject", &json!({})).expect(200);
    assert_eq!(answers(&patient.ended(call)), [json!({ "result": { "action": "decline" } })]);
    let harness = harness("", "", "[approval]\ntimeout_secs = 2\n");
    assert_eq!(harness.ask(&json!([form()])), [json!({ "result": { "action": "cancel" } })]);
    assert_eq!(harness.list("status=expired").len(), 1);
}

#[test]
fn the_command_line_answers() {
    let harness = harness("", "", "");
    let call = harness.begin(&harness.agent, "ask", &json!({ "requests": [form()] }));
    let id = text(&harness.pending(1)[0]["id"]);
    let run = |arguments: &[&str]| {
        let output = harness.daemon.cli(arguments);
        let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), of(&output.stdout) + &of(&output.stderr))
    };
    let (_, listed) = run(&["approvals", "list"]);
    assert!(
        listed.contains(&id) && listed.contains("Who are you?") && listed.contains("\"title\":\"Name\""),
        "{listed}"
    );
    let (is_done, wrong) = run(&["approvals", "approve", &id, "--answer", "{\"name\": 7}"]);
    assert!(!is_done && wrong.contains("answer.name"), "{wrong}");
    let (is_done, said) = run(&["approvals", "approve", &id, "--answer", "{\"name\": \"Ann\"}"]);
    assert!(is_done && said.contains("approved"), "{said}");
    assert_eq!(answers(&harness.ended(call))[0]["result"]["content"]["name"], "Ann");
}

#[test]
fn a_url_is_shown_and_never_opened() {
    let harness = harness("", "", "");
    let url = |url: &str| {
        json!({ "method": "elicitation/create",
            "params": { "mode": "url", "message": "Sign in", "url": url, "elicitationId": "1" } })
    };
    let wrong = harness.ask(&json!([url("javascript:alert(1)"), url("file:///etc/passwd")]));
    assert_eq!(codes(&wrong), [Some(-32_602), Some(-32_602)]);
    let call = harness.begin(&harness.agent, "ask", &json!({ "requests": [url("https://sign.in/a?b=c")] }));
    let approval = &harness.pending(1)[0];
    assert_eq!(
        (&approval["payload"]["url"], &approval["answer_schema"]),
        (&json!("https://sign.in/a?b=c"), &json!(null))
    );
    harness.decide(approval, "approve", &json!({ "answer": {} })).refused_field(400, "answer");
    harness.decide(approval, "approve", &json!({})).expect(200);
    assert_eq!(answers(&harness.ended(call)), [json!({ "result": { "action": "accept" } })]);
}

#[test]
fn the_approval_dies_with_its_call_its_request_its_server_and_its_turn() {
    let harness = harness("", "", "");
    let expired = |count: usize| {
        until("the approvals expire", || {
            (harness.list("status=pending").is_empty() && harness.list("status=expired").len() == count).then_some(())
        });
    };
    let (arguments, other) = (json!({ "requests": [form()] }), harness.daemon.agent_with("bob", GRANTS));
    for (count, tool) in [(1, "leave"), (2, "take_back")] {
        let call = harness.begin(&harness.agent, tool, &arguments);
        harness.pending(1);
        let go = harness.begin(&other, "go", &json!({}));
        go.join().expect("no panic").expect("an answer").expect(200);
        call.join().expect("no panic").expect("an answer").expect(200);
        expired(count);
        assert_eq!(harness.list("status=expired")[0]["reason"], "what asked for it has ended");
    }
    let cancelled = || harness.got().iter().filter(|answer| answer["result"]["action"] == "cancel").count();
    let call = harness.begin(&harness.agent, "ask", &arguments);
    harness.pending(1);
    harness.daemon.poke(&format!("/api/agents/{}/stop", harness.agent)).expect(200);
    drop(call);
    expired(3);
    // What was taken back has no answer.
    until("the server is told", || (cancelled() == 2).then_some(()));
    harness.daemon.post("/api/agents/bulk/start", &json!({ "agent_ids": [harness.agent] })).expect(200);
    let call = harness.begin(&harness.agent, "die", &arguments);
    harness.pending(1);
    let go = harness.begin(&other, "go", &json!({}));
    for ended in [call, go] {
        ended.join().expect("no panic").expect("an answer").expect(200);
    }
    expired(4);
}

#[test]
fn a_kill_ends_the_call_and_expires_the_approval() {
    let mut harness = harness("", "", "");
    let call = harness.begin(&harness.agent, "ask", &json!({ "requests": [form()] }));
    harness.pending(1);
    // What is read may not be on disk yet; what is written after it is.
    harness.daemon.settle();
    harness.daemon.kill();
    drop(call);
    harness.daemon.restart();
    let told = until("the turn goes on", || {
        let requests = harness.model.requests();
        let last = requests.last()?["messages"].as_array()?.last()?.clone();
        (last["role"] == "tool").then(|| last["content"].to_string())
    });
    assert!(told.contains("Unknown: the daemon was restarted"), "{told}");
    let [approval] = &harness.list("status=expired")[..] else { panic!("one approval") };
    assert!(text(&approval["reason"]).contains("restarted"), "{approval}");
    harness.decide(approval, "approve", &json!({ "answer": { "name": "x" } })).refused(409);
}

#[test]
fn forms_that_are_not_flat_and_floods_are_refused() {
    let harness = harness("", "", "");
    let nested = json!({ "type": "object", "properties": { "a": { "type": "object", "properties": {} } } });
    let lies = [nested, json!({ "type": "object", "properties": {}, "required": ["x"] }), json!({}), json!([])];
    for schema in lies {
        let request =
            json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
        assert_eq!(codes(&harness.ask(&json!([request]))), [Some(-32_602)], "{schema}");
    }
    let long =
        json!({ "method": "elicitation/create", "params": { "message": "x".repeat(5_000), "requestedSchema": {} } });
    assert_eq!(codes(&harness.ask(&json!([long]))), [Some(-32_602)]);
    // Two of one id, and more at once than may be.
    let mut same = form();
    same["id"] = json!("q");
    let mut flood = vec![same.clone(), same];
    flood.extend(vec![form(); 20]);
    let call = harness.begin(&harness.agent, "flood", &json!({ "requests": flood }));
    harness.ended(call);
    until("nothing waits", || harness.list("status=pending").is_empty().then_some(()));
    assert!(harness.list("").len() <= 8, "at most eight were asked");
    until("all are answered", || {
        let got = harness.got();
        let count = |code: i64| got.iter().filter(|it| it["error"]["code"] == code).count();
        // Thirteen of the flood; five were wrong before it, and one of it has the id of another.
        (count(-32_000) == 13 && count(-32_602) == 6).then_some(())
    });
}

#[test]
fn a_call_asks_a_person_eight_times_at_most() {
    let harness = harness("", "", "");
    let call = harness.begin(&harness.agent, "ask", &json!({ "requests": vec![form(); 8] }));
    for approval in harness.pending(8) {
        harness.decide(&approval, "reject", &json!({})).expect(200);
    }
    assert_eq!(answers(&harness.ended(call)).len(), 8);
    let off = self::harness("elicitation = false", "", "");
    assert_eq!(codes(&off.ask(&json!([form()]))), [Some(-32_601)]);
    let old = self::harness("", "2025-03-26", "");
    assert_eq!(codes(&old.ask(&json!([form()]))), [Some(-32_601)], "this version has no elicitation");
}

#[test]
fn what_belongs_to_no_call_or_to_several_agents_is_refused() {
    let harness = harness("", "early", "");
    let early = answers(&harness.ended(harness.begin(&harness.agent, "early", &json!({}))));
    assert_eq!(codes(&early), [Some(-32_000)]);
    let first = harness.begin(&harness.agent, "ask", &json!({ "requests": [form()] }));
    let approval = harness.pending(1).remove(0);
    let other = harness.daemon.agent_with("bob", GRANTS);
    let second = harness.begin(&other, "ask", &json!({ "requests": [form()] }));
    assert_eq!(codes(&answers(&harness.ended(second))), [Some(-32_000)]);
    harness.decide(&approval, "reject", &json!({})).expect(200);
    assert_eq!(answers(&harness.ended(first)), [json!({ "result": { "action": "decline" } })]);
}

#[test]
fn what_is_declared_is_what_is_granted() {
    for (server, has_elicitation, has_sampling) in [
        ("", true, false),
        ("elicitation = false", false, false),
        ("sampling = \"on\"", true, true),
        ("sampling = \"approve\"\nelicitation = false", false, true),
    ] {
        for mode in ["", "stateless"] {
            let harness = harness(server, mode, "");
            let told = harness.ended(harness.begin(&harness.agent, "told", &json!({})));
            let has = |name: &str| told.contains(&format!("\"{name}\": {{"));
            assert_eq!(
                (has("elicitation"), has("sampling")),
                (has_elicitation, has_sampling),
                "{server} {mode}: {told}"
            );
        }
    }
}

#[test]
fn a_server_without_the_grant_gets_no_answer_of_a_model() {
    let harness = harness("", "", "");
    assert_eq!(codes(&harness.ask(&json!([sample(10)]))), [Some(-32_601)]);
    assert_eq!(harness.model.requests().len(), 2, "the turn's own calls");
}

#[test]
fn a_server_asks_the_model_of_the_agent_on_its_account() {
    let harness = harness("sampling = \"on\"\nsampling_max_tokens = 10", "", "");
    let call = harness.begin(&harness.agent, "ask", &json!({ "requests": [sample(8)] }));
    let got = answers(&harness.ended(call));
    let result = json!({ "role": "assistant", "content": { "type": "text", "text": "echo: say it" },
        "model": "echo-1", "stopReason": "endTurn" });
    assert_eq!(got, [json!({ "result": result })]);
    let asked = &harness.model.requests()[1];
    let system = text(&asked["messages"][0]["content"]);
    assert!(system.contains("not trusted") && system.ends_with("Be brief."), "{system}");
    assert_eq!((&asked["max_tokens"], &asked["tools"]), (&json!(8), &json!(null)));
    assert_eq!(channels(&harness.daemon), ["api", "mcp_sampling", "api"]);
    // Ten tokens a call, however they are asked for.
    let got = harness.ask(&json!([sample(8), sample(8), sample(8)]));
    assert_eq!(codes(&got).iter().flatten().collect::<Vec<_>>(), [&-32_000]);
    let mut tools = sample(1);
    tools["params"]["tools"] = json!([{ "name": "x", "inputSchema": {} }]);
    assert_eq!(codes(&harness.ask(&json!([tools]))), [Some(-32_602)]);
    let arguments = json!({ "requests": [sample(1)] });
    let failed = harness.begin_with(&harness.agent, "ask", &arguments, Some(Reply::error(400, "no")));
    let failed = harness.ended(failed);
    assert!(failed.contains("the model gave no answer"), "{failed}");
}

#[test]
fn a_server_that_was_added_over_the_api_asks_models_once_that_is_granted() {
    let harness = harness("", "", "[exec_policy]\nmode = \"full\"\n");
    let script = fs::read_to_string(routes::root().join("tests/http/mcp_asking_server.py")).unwrap();
    let mut body =
        json!({ "name": "t", "transport": "stdio", "command": "/usr/bin/python3", "args": ["-c", script, ""] });
    body["sampling"] = json!("always");
    let refused = harness.daemon.post("/api/mcp/servers", &body).expect(400);
    assert_eq!(refused["field"], "sampling", "{refused}");
    body["sampling"] = json!(null);
    let added = harness.daemon.post("/api/mcp/servers", &body).expect(201);
    assert_eq!(added["sampling"], "off", "{added}");
    let changed = harness.daemon.put("/api/mcp/servers/t", &json!({ "sampling": "approve" })).expect(200);
    assert_eq!(changed["sampling"], "approve", "{changed}");
    let log = harness.daemon.get("/api/audit/recent?limit=20").expect(200).to_string();
    assert!(log.contains("mcp_server_updated") && log.contains(r#"\"sampling\":\"approve\""#), "{log}");
}

#[test]
fn the_budget_of_the_agent_bounds_it() {
    let harness = harness("sampling = \"on\"", "", "");
    let agent = harness.daemon.agent_with("poor", &format!("{GRANTS}[limits]\nhourly_token_limit = 1\n"));
    let call = harness.begin(&agent, "ask", &json!({ "requests": [sample(8)] }));
    call.join().expect("no panic").expect("an answer").expect(429);
    let got = harness.got();
    assert_eq!(codes(&got), [Some(-32_000)], "{got:?}");
    assert!(text(&got[0]["error"]["message"]).contains("budget"), "{got:?}");
    assert_eq!(channels(&harness.daemon), ["api"]);
}

#[test]
fn a_person_agrees_to_each_request_where_that_is_configured() {
    let harness = harness("sampling = \"approve\"", "", "");
    for (how, code) in [("reject", Some(-1)), ("approve", None)] {
        let call = harness.begin(&harness.agent, "ask", &json!({ "requests": [sample(8)] }));
        let approval = harness.pending(1).remove(0);
        assert_eq!(approval["action"], "mcp_sampling");
        assert_eq!(approval["payload"]["messages"], json!([{ "role": "user", "text": "say it" }]));
        harness.decide(&approval, how, &json!({})).expect(200);
        assert_eq!(codes(&answers(&harness.ended(call))), [code]);
    }
}

#[test]
fn the_version_without_requests_of_servers_asks_in_results() {
    let harness = harness("sampling = \"on\"", "stateless", "");
    let call =
        harness.begin(&harness.agent, "ask", &json!({ "requests": [form(), sample(8), { "method": "roots/list" }] }));
    harness.decide(&harness.pending(1)[0], "approve", &json!({ "answer": { "name": "Ann" } })).expect(200);
    let result = harness.ended(call);
    assert!(result.contains("\"content\": {\"name\": \"Ann\"}") && result.contains("echo: say it"), "{result}");
    assert!(result.contains("\"state\": \"s1\"") && result.contains("\"roots\": ["), "{result}");
    let again = harness.ended(harness.begin(&harness.agent, "ask", &json!({ "requests": [], "again": true })));
    assert!(again.contains("it asks for input again and again"), "{again}");
    let wrong = json!({ "requests": [{ "method": "files/read" }] });
    let refused = harness.ended(harness.begin(&harness.agent, "ask", &wrong));
    assert!(refused.contains("it asks for input that is refused: method not found"), "{refused}");
}
