//! The daemon as an MCP server over streamable HTTP (spec 3, MCP HTTP transport): messages, versions, rights.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::model::Model;
use crate::support::until;

const KEY: &str = "api_key = \"k\"\n";

/// Posts a message without a key unless the client has one.
fn post(client: &Client, path: &str, headers: &[(&str, &str)], message: &Value) -> Reply {
    let headers = [&[("content-type", "application/json")], headers].concat();
    client.send("POST", path, &headers, Some(message.to_string().as_bytes()))
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// The answer to a request, without its envelope.
#[track_caller]
fn ask(client: &Client, path: &str, headers: &[(&str, &str)], method: &str, params: &Value) -> Value {
    let answer = post(client, path, headers, &request(method, params)).expect(200);
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer}");
    if answer["error"].is_null() { answer["result"].clone() } else { answer["error"].clone() }
}

/// The names of the tools; those that are agents are left out.
fn names(tools: &Value) -> Vec<String> {
    let mut names: Vec<String> = tools["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
    names.retain(|name| !name.starts_with("agentsvc_agent_"));
    names.sort();
    names
}

#[test]
fn a_client_initializes_lists_and_calls() {
    let daemon = Daemon::start();
    let client = daemon.client();
    for path in ["/mcp", "/api/mcp"] {
        for (asked, agreed) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let params =
                json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let hello = ask(&client, path, &[], "initialize", &params);
            assert_eq!(hello["protocolVersion"], agreed);
            assert_eq!(
                (&hello["serverInfo"]["name"], &hello["capabilities"]),
                (&json!("agentsvc"), &json!({ "tools": {} }))
            );
        }
        let ready = post(&client, path, &[], &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!((ready.status, ready.text()), (202, String::new()));
        let answer = post(&client, path, &[], &json!({ "jsonrpc": "2.0", "id": "a", "result": {} }));
        assert_eq!((answer.status, answer.text()), (202, String::new()));
        assert_eq!(ask(&client, path, &[], "ping", &json!({})), json!({}));
        let tools = ask(&client, path, &[], "tools/list", &json!({}));
        assert_eq!(names(&tools), ["system_time"]);
        let tool = &tools["tools"][0];
        assert_eq!(
            (&tool["inputSchema"]["type"], &tool["annotations"]["idempotentHint"]),
            (&json!("object"), &json!(true))
        );
        let told = ask(
            &client,
            path,
            &[],
            "tools/call",
            &json!({ "name": "system_time", "arguments": { "format": "weekday" } }),
        );
        assert_eq!((&told["isError"], &told["content"][0]["type"]), (&json!(false), &json!("text")));
        assert!(text(&told["content"][0]["text"]).ends_with("day"), "{told}");
        for method in ["GET", "DELETE", "PUT"] {
            let refused = client.send(method, path, &[("accept", "text/event-stream")], None);
            refused.refused(405);
            assert_eq!(refused.header("allow"), Some("POST, OPTIONS"));
        }
    }
}

#[test]
fn errors_of_a_message_have_the_codes_of_json_rpc() {
    let daemon = Daemon::start();
    let client = daemon.client();
    let code = |method: &str, params: Value| ask(&client, "/mcp", &[], method, &params)["code"].clone();
    assert_eq!(code("no/such", json!({})), -32601);
    assert_eq!(code("resources/list", json!({})), -32601);
    assert_eq!(client.post("/api/mcp", &request("no/such", &json!({}))).expect(200)["error"]["code"], -32601);
    assert_eq!(code("ping", json!([])), -32602);
    assert_eq!(code("initialize", json!({})), -32602);
    assert_eq!(code("tools/list", json!({ "cursor": "x" })), -32602);
    assert_eq!(code("tools/call", json!({})), -32602);
    assert_eq!(code("tools/call", json!({ "name": "no_such_tool" })), -32602);
    assert_eq!(code("tools/call", json!({ "name": "system_time", "arguments": [] })), -32602);
    // A model can mend its input, so that it must see what was wrong.
    let wrong = json!({ "name": "system_time", "arguments": { "format": 3 } });
    let told = ask(&client, "/mcp", &[], "tools/call", &wrong);
    assert_eq!(told["isError"], true);
    assert!(text(&told["content"][0]["text"]).contains("format"), "{told}");
}

#[test]
fn what_is_no_message_is_refused() {
    let daemon = Daemon::start();
    let client = daemon.client();
    let send = |headers: &[(&str, &str)], body: &str| client.send("POST", "/mcp", headers, Some(body.as_bytes()));
    let json = ("content-type", "application/json");
    for (body, code) in [
        ("", "mcp_parse"),
        ("{", "mcp_parse"),
        ("{} {}", "mcp_parse"),
        ("3", "mcp_message"),
        ("{}", "mcp_message"),
        ("{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"ping\"}", "mcp_message"),
        ("{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"ping\"}", "mcp_message"),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1}", "mcp_message"),
    ] {
        let reply = send(&[json], body);
        reply.refused(400);
        assert_eq!(reply.expect(400)["code"], code, "{body}");
    }
    let ping = request("ping", &json!({})).to_string();
    send(&[("content-type", "text/plain")], &ping).refused(415);
    assert_eq!(send(&[json, ("accept", "text/html")], &ping).expect(406)["code"], "mcp_accept");
    for accept in ["application/json, text/event-stream", "*/*", "application/*;q=0.5"] {
        let reply = send(&[json, ("accept", accept)], &ping);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{accept}");
    }
    let events = send(&[json, ("accept", "text/event-stream")], &ping);
    assert_eq!((events.status, events.header("content-type")), (200, Some("text/event-stream")));
    let (event, data) = (events.text(), json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    let lines: Vec<&str> = event.lines().collect();
    assert_eq!((lines[0], lines.len()), ("event: message", 3), "{event}");
    assert_eq!(serde_json::from_str::<Value>(lines[1].strip_prefix("data: ").unwrap()).unwrap(), data);
}

#[test]
fn versions_are_checked_and_only_old_ones_have_batches() {
    let daemon = Daemon::start();
    let client = daemon.client();
    let version = |version: &'static str| [("mcp-protocol-version", version)];
    let unknown = post(&client, "/mcp", &version("2031-01-01"), &request("ping", &json!({}))).expect(400);
    assert_eq!(unknown["code"], "mcp_version");
    assert!(unknown["supported"].as_array().unwrap().contains(&json!("2025-11-25")), "{unknown}");
    let batch = json!([
        request("ping", &json!({})),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": "b", "method": "no/such" },
        3,
    ]);
    for headers in [&[][..], &version("2025-03-26"), &version("2024-11-05")] {
        let answers = post(&client, "/mcp", headers, &batch).expect(200);
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 3, "{answers:?}");
        assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&json!(7), &json!({})));
        assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!("b"), &json!(-32601)));
        assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&Value::Null, &json!(-32600)));
    }
    let notices = json!([{ "jsonrpc": "2.0", "method": "notifications/cancelled" }]);
    assert_eq!(post(&client, "/mcp", &[], &notices).status, 202);
    let many = Value::Array(vec![request("ping", &json!({})); 65]);
    for (headers, body) in [(&[][..], &json!([])), (&[], &many), (&version("2025-06-18"), &batch)] {
        assert_eq!(post(&client, "/mcp", headers, body).expect(400)["code"], "mcp_message");
    }
}

#[test]
fn the_version_without_sessions_says_itself_in_each_request() {
    let daemon = Daemon::start();
    let client = daemon.client();
    let newest = [("mcp-protocol-version", "2026-07-28")];
    let named = |version: &str| json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version } });
    let found = ask(&client, "/mcp", &newest, "server/discover", &named("2026-07-28"));
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    let tools = ask(&client, "/mcp", &newest, "tools/list", &named("2026-07-28"));
    assert_eq!((names(&tools), &tools["ttlMs"]), (vec!["system_time".to_owned()], &json!(0)));
    let code = |headers: &[(&str, &str)], method: &str, params: &Value| {
        let headers = [&newest[..], headers].concat();
        ask(&client, "/mcp", &headers, method, params)["code"].clone()
    };
    assert_eq!(code(&[], "tools/list", &json!({})), -32602);
    assert_eq!(code(&[], "tools/list", &named("2025-11-25")), -32020);
    assert_eq!(code(&[("mcp-method", "ping")], "tools/list", &named("2026-07-28")), -32020);
    assert_eq!(code(&[("mcp-name", "web_fetch")], "tools/call", &named("2026-07-28")), -32020);
    assert_eq!(code(&[], "initialize", &named("2026-07-28")), -32601);
}

#[test]
fn the_key_decides_what_is_offered() {
    let allowed = "[tool_invoke]\nenabled = true\nallowlist = [\"task_list\", \"file_read\", \"tool_load\"]\n";
    let daemon =
        Daemon::with(&format!("{KEY}[mcp_server]\npublic_tools = [\"system_time\", \"file_write\"]\n{allowed}"));
    let (nobody, keyed) = (daemon.client(), daemon.keyed("k"));
    let list = |client: &Client, path: &str| names(&ask(client, path, &[], "tools/list", &json!({})));
    assert_eq!(list(&nobody, "/mcp"), ["system_time"]);
    assert_eq!(list(&keyed, "/mcp"), ["system_time", "task_list"]);
    assert_eq!(list(&keyed, "/api/mcp"), ["system_time", "task_list"]);
    let ping = request("ping", &json!({}));
    post(&nobody, "/api/mcp", &[], &ping).refused(401);
    for path in ["/mcp", "/api/mcp"] {
        post(&daemon.keyed("wrong"), path, &[], &ping).refused(401);
    }
    for tool in ["task_list", "file_read", "file_write"] {
        let called = ask(&nobody, "/mcp", &[], "tools/call", &json!({ "name": tool, "arguments": {} }));
        assert_eq!(called["code"], -32602, "{tool} {called}");
    }
    assert_eq!(ask(&keyed, "/mcp", &[], "tools/call", &json!({ "name": "task_list" }))["isError"], false);

    let agent = keyed.agent_with("ada", "[capabilities]\ntools = [\"file_read\", \"file_write\", \"shell_exec\"]\n");
    for header in ["x-agentsvc-agent-id", "x-librefang-agent-id"] {
        let headers = [(header, agent.as_str())];
        let tools = ask(&keyed, "/mcp", &headers, "tools/list", &json!({}));
        assert_eq!(names(&tools), ["file_read", "file_write"]);
        post(&nobody, "/mcp", &headers, &request("tools/list", &json!({}))).refused(401);
    }
    let headers = [("x-agentsvc-agent-id", agent.as_str())];
    let write = json!({ "name": "file_write", "arguments": { "path": "a.txt", "content": "hello" } });
    assert_eq!(ask(&keyed, "/api/mcp", &headers, "tools/call", &write)["isError"], false);
    assert_eq!(keyed.get(&format!("/api/agents/{agent}/files/a.txt")).text(), "hello");
    let wrong = request("tools/list", &json!({}));
    post(&keyed, "/mcp", &[("x-agentsvc-agent-id", "ada")], &wrong).refused_field(400, "x-agentsvc-agent-id");
    let none = [("x-agentsvc-agent-id", "019aa5c8-0f10-7c3a-9d2e-5b1c6f7a8e01")];
    post(&keyed, "/mcp", &none, &wrong).refused(404);
}

#[test]
fn agents_are_tools_of_those_with_the_key() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{KEY}{}", model.config()));
    let (nobody, keyed) = (daemon.client(), daemon.keyed("k"));
    let (ada, odd) = (keyed.agent_with("ada", ""), keyed.agent_with("night watch", ""));
    let list = |client: &Client, headers: &[(&str, &str)]| -> Vec<String> {
        let tools = ask(client, "/mcp", headers, "tools/list", &json!({}))["tools"].clone();
        let names = tools.as_array().unwrap().iter().map(|tool| text(&tool["name"]));
        names.filter(|name| name.starts_with("agentsvc_agent_")).collect()
    };
    let all = list(&keyed, &[]);
    for name in ["agentsvc_agent_ada".to_owned(), format!("agentsvc_agent_{odd}")] {
        assert!(all.contains(&name), "{name} {all:?}");
    }
    assert!(list(&nobody, &[]).is_empty() && list(&keyed, &[("x-agentsvc-agent-id", &ada)]).is_empty());
    let call = |client: &Client, name: &str, arguments: &Value| {
        ask(client, "/mcp", &[], "tools/call", &json!({ "name": name, "arguments": arguments }))
    };
    for name in ["agentsvc_agent_ada", "librefang_agent_ada", &format!("agentsvc_agent_{odd}")] {
        let told = call(&keyed, name, &json!({ "message": "hello" }));
        assert_eq!((&told["isError"], &told["content"][0]["text"]), (&json!(false), &json!("echo: hello")), "{told}");
    }
    let first = call(&keyed, "agentsvc_agent_ada", &json!({ "message": "one" }));
    let session = text(&first["_meta"]["agentsvc/session_id"]);
    assert_eq!(keyed.transcript(&session).last().unwrap().1, "echo: one");
    let new = "019aa5c8-0f10-7c3a-9d2e-5b1c6f7a8e01";
    call(&keyed, "agentsvc_agent_ada", &json!({ "message": "two", "session_id": new }));
    assert_eq!(keyed.transcript(new).len(), 2);
    for wrong in
        [json!({}), json!({ "message": 3 }), json!({ "message": " " }), json!({ "message": "x", "session_id": "y" })]
    {
        assert_eq!(call(&keyed, "agentsvc_agent_ada", &wrong)["isError"], true, "{wrong}");
    }
    for (client, name) in
        [(&nobody, "agentsvc_agent_ada"), (&keyed, "agentsvc_agent_nobody"), (&keyed, "agentsvc_agent_")]
    {
        assert_eq!(call(client, name, &json!({ "message": "hello" }))["code"], -32602, "{name}");
    }
    keyed.delete(&format!("/api/agents/{ada}")).expect(200);
    assert_eq!(call(&keyed, "agentsvc_agent_ada", &json!({ "message": "hello" }))["code"], -32602);
}

#[test]
fn many_agents_come_page_by_page() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    for at in 0..520 {
        daemon.agent(&format!("a{at}"));
    }
    let client = daemon.client();
    let first = ask(&client, "/mcp", &[], "tools/list", &json!({}));
    assert_eq!(first["tools"].as_array().unwrap().len(), 501, "a tool and 500 agents");
    let second = ask(&client, "/mcp", &[], "tools/list", &json!({ "cursor": first["nextCursor"] }));
    assert_eq!(second["tools"].as_array().unwrap().len(), 21, "the other agents, one of them the assistant");
    assert!(second["nextCursor"].is_null() && names(&second).is_empty());
}

#[test]
fn pages_of_other_origins_are_refused_with_and_without_a_key() {
    let ping = request("ping", &json!({}));
    for config in ["", KEY] {
        let daemon = Daemon::with(&format!("cors_origin = [\"https://app.example\"]\n{config}"));
        let own = format!("http://{}", daemon.addr);
        for path in ["/mcp", "/api/mcp"] {
            let status = |origin: &str| post(&daemon.keyed("k"), path, &[("origin", origin)], &ping).status;
            assert_eq!((status("https://app.example"), status(&own)), (200, 200));
            assert_eq!((status("http://evil.example"), status("null")), (403, 403));
        }
        let foreign = post(&daemon.client(), "/mcp", &[("origin", "http://evil.example")], &ping);
        foreign.refused(403);
        assert_eq!(foreign.expect(403)["code"], "origin");
    }
}

#[test]
fn messages_cost_what_they_do() {
    // Twice the rate may be used at once: 30 units.
    let daemon = Daemon::with("rate_limit_per_second = 15\n");
    let client = daemon.client();
    let call = request("tools/call", &json!({ "name": "system_time", "arguments": {} }));
    let answers = post(&client, "/mcp", &[], &Value::Array(vec![call; 6])).expect(200);
    let last = &answers.as_array().unwrap()[5]["error"];
    assert_eq!((&last["code"], &last["data"]["status"]), (&json!(-32000), &json!(429)), "{answers}");
    assert!(last["data"]["retry_after_secs"].is_u64());
}

#[test]
fn bodies_count_as_what_they_take_and_are_small_without_the_key() {
    let daemon = Daemon::with(KEY);
    let of = |bytes: usize| request("ping", &json!({ "x": "x".repeat(bytes) }));
    let keyed = daemon.keyed("k");
    assert_eq!(post(&keyed, "/mcp", &[], &of(1 << 20)).status, 200);
    assert_eq!(post(&daemon.client(), "/mcp", &[], &of(15 << 10)).status, 200);
    assert_eq!(post(&daemon.client(), "/mcp", &[], &of(16 << 10)).expect(413)["limit_bytes"], 16 << 10);
    // 2 MiB that would take 300.
    let unit = format!("{}0{}", r#"{"":"#.repeat(100), "}".repeat(100));
    let dense =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":[{}]}}}}"#, [&*unit; 4_000].join(","));
    for (client, path) in [(&keyed, "/mcp"), (&keyed, "/api/mcp"), (&keyed, "/api/goals")] {
        let reply = client.send("POST", path, &[("content-type", "application/json")], Some(dense.as_bytes()));
        let refused = reply.expect(413);
        assert!(refused["error"].as_str().unwrap().contains("too many objects"), "{path}: {refused}");
    }
}

#[test]
fn a_batch_of_large_answers_ends_early() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let agents: Vec<_> = (0..200).map(|n| json!({ "manifest_toml": format!("name = \"n{n}\"") })).collect();
    daemon.post("/api/agents/bulk", &json!({ "agents": agents }));
    let client = daemon.client();
    let page = post(&client, "/mcp", &[], &request("tools/list", &json!({}))).expect(200).to_string().len();
    let batch = Value::Array(vec![request("tools/list", &json!({})); 64]);
    let answers = post(&client, "/mcp", &[], &batch).expect(200);
    let answers = answers.as_array().unwrap();
    let listed = answers.iter().filter(|answer| answer["result"].is_object()).count();
    assert_eq!((answers.len(), listed), (64, (1 << 20) / page + 1));
    assert_eq!((&answers[63]["id"], &answers[63]["error"]["code"]), (&json!(7), &json!(-32000)));
}

#[test]
fn calls_without_a_key_share_an_entry_of_the_audit_log() {
    let daemon = Daemon::with(&format!("{KEY}[mcp_server]\npublic_tools = [\"system_time\"]\n"));
    let (nobody, keyed) = (daemon.client(), daemon.keyed("k"));
    let call = |client: &Client| ask(client, "/mcp", &[], "tools/call", &json!({ "name": "system_time" }));
    for _ in 0..20 {
        assert_eq!(call(&nobody)["isError"], false);
    }
    assert_eq!(call(&keyed)["isError"], false);
    let called = || {
        let entries = keyed.get("/api/audit/recent?limit=200").expect(200)["entries"].clone();
        let entries = entries.as_array().cloned().unwrap_or_default();
        entries.into_iter().filter(|entry| entry["event_type"] == "tool_called").collect::<Vec<_>>()
    };
    let found = until("both are on record", || Some(called()).filter(|found| found.len() >= 2));
    assert_eq!(found.len(), 2, "one of the first call without a key, one of the call with it: {found:?}");
}

#[test]
fn calls_without_a_key_that_share_an_entry_are_on_record_when_the_daemon_has_stopped() {
    let mut daemon = Daemon::with(&format!("{KEY}[mcp_server]\npublic_tools = [\"system_time\"]\n"));
    let nobody = daemon.client();
    for _ in 0..5 {
        let called = ask(&nobody, "/mcp", &[], "tools/call", &json!({ "name": "system_time" }));
        assert_eq!(called["isError"], false);
    }
    let calls = |client: &Client| {
        let entries = client.get("/api/audit/recent?limit=200").expect(200)["entries"].clone();
        let entries = entries.as_array().cloned().unwrap_or_default();
        let called = entries.iter().filter(|entry| entry["event_type"] == "tool_called");
        let details = called.map(|entry| serde_json::from_str::<Value>(&text(&entry["details"])).unwrap());
        let mut calls: Vec<_> = details.map(|details| details["calls"].as_u64().unwrap()).collect();
        calls.sort_unstable();
        calls
    };
    assert_eq!(calls(&daemon.keyed("k")), [1], "the first is stored before it runs");
    daemon.keyed("k").poke("/api/shutdown").expect(200);
    assert!(daemon.wait().success());
    daemon.restart();
    assert_eq!(calls(&daemon.keyed("k")), [1, 4]);
}
