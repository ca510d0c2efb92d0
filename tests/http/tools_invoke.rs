//! Tools over HTTP: what there is, and direct calls with their fail-closed rules (spec 2, System and Direct tool
//! invocation).

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply;
use crate::support::model::Model;
use crate::support::until;
use crate::workflows::{make, runs};

const TOOLS: &str = "[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\nmemory_read = [\"*\"]\nmemory_write = [\"*\"]\n";

/// A daemon whose clients may call these tools.
fn open(allowlist: &[&str], rest: &str) -> Daemon {
    let allowlist = json!(allowlist);
    Daemon::with(&format!(
        "rate_limit_per_second = 1000000\n[tool_invoke]\nenabled = true\nallowlist = {allowlist}\n{rest}\n"
    ))
}

#[track_caller]
fn invoke(daemon: &Daemon, tool: &str, agent: Option<&str>, input: &Value) -> Reply {
    let query = agent.map(|agent| format!("agent_id={agent}")).unwrap_or_default();
    daemon.post(&format!("/api/tools/{tool}/invoke?{query}"), input)
}

#[track_caller]
fn coded(reply: &Reply, status: u16, code: &str) {
    reply.refused(status);
    assert_eq!(reply.expect(status)["code"], code, "{}", reply.text());
}

fn pending(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/approvals?status=pending").expect(200)["approvals"].as_array().expect("approvals").clone()
}

/// The details of the newest entries of a kind, newest first.
fn audited(daemon: &Daemon, event_type: &str) -> Vec<(Value, Value)> {
    let entries = daemon.get("/api/audit/recent?limit=500").expect(200)["entries"].clone();
    let of_kind =
        entries.as_array().expect("entries").iter().filter(|entry| entry["event_type"] == event_type).cloned();
    of_kind.map(|entry| (serde_json::from_str(&text(&entry["details"])).unwrap(), entry)).collect()
}

#[test]
fn tools_are_listed_and_described() {
    let daemon = Daemon::with("[approval]\nrequire_approval = [\"shell_*\"]\n");
    let list = daemon.get("/api/tools").expect(200);
    let names: Vec<String> = list["tools"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(list["total"], names.len());
    assert!(names.len() > 30 && names.contains(&"file_read".to_owned()), "{names:?}");
    assert_eq!(list["details"].as_array().unwrap().len(), names.len());
    for (at, name) in names.iter().enumerate() {
        let tool = daemon.get(&format!("/api/tools/{name}")).expect(200);
        for key in ["name", "description", "requires_approval"] {
            assert_eq!(list["details"][at][key], tool[key], "{name}");
        }
        assert_eq!((&tool["name"], &tool["input_schema"]["type"]), (&json!(name), &json!("object")));
        assert!(text(&tool["description"]).len() > 20);
        assert_eq!(tool["requires_approval"], name.starts_with("shell_"), "{name}");
        assert_eq!(tool["invoke"]["allowed"], false);
    }
    let shell = daemon.get("/api/tools/shell_exec").expect(200);
    assert_eq!(shell["grants"], json!(["capabilities.tools", "capabilities.shell"]));
    assert_eq!((&shell["repeat"], &shell["invoke"]["scope"]), (&json!("never"), &json!("agent")));
    let read = daemon.get("/api/tools/file_read").expect(200);
    assert_eq!(read["repeat"], "safe");
    assert_eq!(read["input_schema"]["required"], json!(["path"]));
    assert_eq!(daemon.get("/api/tools/system_time").expect(200)["invoke"]["scope"], "anywhere");
    assert_eq!(daemon.get("/api/tools/tool_load").expect(200)["invoke"]["scope"], "turn");
    coded(&daemon.get("/api/tools/no_such_tool"), 404, "tool_not_found");
}

#[test]
fn every_request_is_rejected_unless_the_configuration_opens_it() {
    // Rule 1, whatever else is right or wrong with the request.
    let closed = "[tool_invoke]\nallowlist = [\"system_time\"]\n";
    for daemon in [Daemon::start(), Daemon::with(closed)] {
        for tool in ["system_time", "no_such_tool", "tool_load"] {
            coded(&invoke(&daemon, tool, None, &json!({})), 403, "tool_invoke_disabled");
            coded(&invoke(&daemon, tool, Some("no-uuid"), &json!({ "x": 1 })), 403, "tool_invoke_disabled");
        }
    }
    let daemon = open(&["system_time", "no_such_tool", "tool_load", "file_read"], "");
    for tool in ["system_tim", "System_Time", "web_fetch", "another", "system_time%20"] {
        coded(&invoke(&daemon, tool, None, &json!({})), 403, "tool_not_allowed");
    }
    coded(&invoke(&daemon, "no_such_tool", None, &json!({})), 404, "tool_not_found");
    let warnings = daemon.get("/api/health/detail").expect(200)["config_warnings"].to_string();
    assert!(warnings.contains("no_such_tool"), "{warnings}");
    assert_eq!(daemon.get("/api/tools/system_time").expect(200)["invoke"]["allowed"], true);
    assert_eq!(daemon.get("/api/tools/web_fetch").expect(200)["invoke"]["allowed"], false);
    assert!(audited(&daemon, "tool_called").is_empty(), "nothing ran");
}

#[test]
fn a_tool_runs_and_is_on_the_audit_trail() {
    let daemon = open(&["system_time", "task_post", "task_list", "event_publish"], "");
    let ran = invoke(&daemon, "system_time", None, &json!({ "format": "weekday" })).expect(200);
    assert_eq!((&ran["tool"], &ran["is_error"], &ran["cut_bytes"]), (&json!("system_time"), &json!(false), &json!(0)));
    assert!(text(&ran["content"]).ends_with("day"), "{ran}");
    daemon.poke("/api/tools/system_time/invoke").expect(200);
    let posted = invoke(&daemon, "task_post", None, &json!({ "title": "sweep" })).expect(200);
    let told: Value = serde_json::from_str(&text(&posted["content"])).unwrap();
    let task = daemon.get(&format!("/api/tasks/{}", text(&told["task_id"]))).expect(200);
    assert_eq!((&task["title"], &task["posted_by"]), (&json!("sweep"), &Value::Null));
    assert!(text(&invoke(&daemon, "task_list", None, &json!({})).expect(200)["content"]).contains("sweep"));
    invoke(&daemon, "event_publish", None, &json!({ "event_type": "x.y" })).expect(200);
    let called = audited(&daemon, "tool_called");
    assert_eq!(called.len(), 5);
    let (details, entry) = &called[4];
    assert_eq!((&details["tool"], &details["direct"]), (&json!("system_time"), &json!(true)));
    assert_eq!((&entry["actor"], &entry["agent_id"]), (&json!("api"), &Value::Null));
    assert_eq!(text(&details["input_sha256"]).len(), 64);
}

#[test]
fn an_input_that_fails_the_schema_names_the_field() {
    let daemon = open(&["file_read", "task_claim", "tool_load", "goal_update"], "");
    let agent = daemon.agent_with("a", TOOLS);
    for (tool, input, field) in [
        ("file_read", json!({}), "path"),
        ("file_read", json!({ "path": 3 }), "path"),
        ("file_read", json!({ "path": "a", "offset": -1 }), "offset"),
        ("file_read", json!({ "path": "a", "offset": 1.5 }), "offset"),
        ("file_read", json!({ "path": "a", "ofset": 1 }), "ofset"),
        ("task_claim", json!({ "task_id": "x" }), "task_id"),
        ("tool_load", json!({ "names": ["a", 1] }), "names[1]"),
        ("goal_update", json!({ "status": "done" }), "status"),
    ] {
        let refused = invoke(&daemon, tool, Some(&agent), &input);
        coded(&refused, 400, "tool_input");
        assert_eq!(refused.expect(400)["field"], field, "{input}");
    }
    for body in ["[]", "3", "{", "{\"path\": \"a\"} x"] {
        let path = format!("/api/tools/file_read/invoke?agent_id={agent}");
        daemon.send("POST", &path, &[], Some(body.as_bytes())).refused(400);
    }
    let other = daemon.send("POST", "/api/tools/file_read/invoke", &[("content-type", "text/plain")], Some(b"{}"));
    other.refused(415);
    assert!(audited(&daemon, "tool_called").is_empty(), "nothing ran");
}

#[test]
fn an_agent_lends_its_workspace_and_its_grants_and_no_more() {
    let allowed = ["file_read", "file_write", "memory_store", "memory_recall", "notify_owner", "schedule_create"];
    let daemon = open(&allowed, "");
    let (one, two) = (daemon.agent_with("one", TOOLS), daemon.agent_with("two", TOOLS));
    let narrow = daemon.agent_with("narrow", "[capabilities]\ntools = [\"file_read\"]\nfile_system = false\n");
    let input = json!({ "path": "n.txt", "content": "hello" });
    invoke(&daemon, "file_write", Some(&one), &input).expect(200);
    assert_eq!(std::fs::read_to_string(daemon.home().join("workspaces/one/n.txt")).unwrap(), "hello");
    let read =
        |agent: &str, path: &str| invoke(&daemon, "file_read", Some(agent), &json!({ "path": path })).expect(200);
    assert_eq!(read(&one, "n.txt")["content"], "hello");
    let missing = read(&two, "n.txt");
    assert_eq!(missing["is_error"], true, "a tool that fails has run");
    let outside = read(&one, "../two/n.txt");
    assert!(outside["is_error"] == true && text(&outside["content"]).contains(".."), "{outside}");
    for tool in ["file_read", "memory_store"] {
        let input = if tool == "file_read" { json!({ "path": "a" }) } else { json!({ "key": "k", "value": 1 }) };
        coded(&invoke(&daemon, tool, Some(&narrow), &input), 403, "tool_not_granted");
    }
    invoke(&daemon, "memory_store", Some(&one), &json!({ "key": "k", "value": [1] })).expect(200);
    let recalled = |agent| invoke(&daemon, "memory_recall", Some(agent), &json!({ "key": "k" })).expect(200);
    let (own, other) = (text(&recalled(&one)["content"]), text(&recalled(&two)["content"]));
    assert!(own.contains("[1]") && other.contains("does not exist"), "{own} {other}");
    let schedule = json!({ "cron": "every 1h", "prompt": "look" });
    invoke(&daemon, "schedule_create", Some(&one), &schedule).expect(200);
    let schedules = daemon.get("/api/schedules").expect(200).to_string();
    assert!(schedules.contains(&one), "{schedules}");

    coded(&invoke(&daemon, "file_read", None, &json!({ "path": "a" })), 400, "tool_needs_agent");
    invoke(&daemon, "file_read", None, &json!({ "path": "a" })).refused_field(400, "agent_id");
    invoke(&daemon, "file_read", Some("nobody"), &json!({ "path": "a" })).refused_field(400, "agent_id");
    let unknown = "018f0000-0000-7000-8000-000000000001";
    invoke(&daemon, "file_read", Some(unknown), &json!({ "path": "a" })).refused(404);
    coded(&invoke(&daemon, "notify_owner", Some(&one), &json!({ "message": "x" })), 400, "tool_needs_turn");
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [one] })).expect(200);
    coded(&invoke(&daemon, "file_read", Some(&one), &json!({ "path": "n.txt" })), 409, "agent_not_running");
}

#[test]
fn the_web_stays_closed_to_private_addresses_and_commands_to_the_policy() {
    let daemon = open(&["web_fetch", "shell_exec"], "");
    let url = format!("http://{}/api/health", daemon.client().addr);
    let fetched = invoke(&daemon, "web_fetch", None, &json!({ "url": url })).expect(200);
    assert_eq!(fetched["is_error"], true, "{fetched}");
    assert!(!text(&fetched["content"]).contains("uptime"));
    let agent = daemon.agent_with("a", TOOLS);
    let ran = invoke(&daemon, "shell_exec", Some(&agent), &json!({ "argv": ["ls"] })).expect(200);
    assert_eq!(ran["is_error"], true, "the policy allows no command: {ran}");
}

/// Calls a gated tool, which will wait for a person.
fn gated(daemon: &Daemon, agent: &str) -> JoinHandle<Reply> {
    let (client, path) = (daemon.client(), format!("/api/tools/file_write/invoke?agent_id={agent}"));
    let body = json!({ "path": "g.txt", "content": "x\n", "mode": "append" }).to_string();
    thread::spawn(move || client.send("POST", &path, &[], Some(body.as_bytes())))
}

fn one_pending(daemon: &Daemon) -> Value {
    until("a call waits for a person", || pending(daemon).pop())
}

#[test]
fn a_gated_tool_needs_an_agent_and_waits_for_a_person() {
    let daemon =
        open(&["file_write", "system_time"], "[approval]\nrequire_approval = [\"file_write\", \"system_time\"]");
    let agent = daemon.agent_with("a", TOOLS);
    // Rule 2, also for a tool that could do without an agent otherwise.
    coded(&invoke(&daemon, "system_time", None, &json!({})), 400, "approval_needs_agent");
    let file = daemon.home().join("workspaces/a/g.txt");

    let call = gated(&daemon, &agent);
    let item = one_pending(&daemon);
    assert_eq!((&item["action"], &item["agent_id"]), (&json!("file_write"), &json!(agent)));
    assert_eq!(item["payload"]["path"], "g.txt");
    assert!(item["turn_id"].is_null() && item["call_hash"].is_string());
    assert!(!call.is_finished() && !file.exists());
    let path = |item: &Value, how: &str| format!("/api/approvals/{}/{how}", text(&item["id"]));
    daemon.post(&path(&item, "approve"), &json!({})).expect(200);
    assert_eq!(call.join().unwrap().expect(200)["is_error"], false);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
    daemon.post(&path(&item, "approve"), &json!({})).refused(409);

    let call = gated(&daemon, &agent);
    let item = one_pending(&daemon);
    daemon.post(&path(&item, "reject"), &json!({ "reason": "not today" })).expect(200);
    let rejected = call.join().unwrap();
    coded(&rejected, 403, "approval_rejected");
    assert!(rejected.refused(403).contains("not today"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n", "it ran once");
    assert_eq!(audited(&daemon, "tool_called").len(), 1);
    assert_eq!(audited(&daemon, "approval_requested").len(), 2);
}

#[test]
fn a_manifest_gates_too_and_time_runs_out() {
    let daemon = open(&["file_write"], "[approval]\ntimeout_secs = 1");
    let agent = daemon.agent_with("a", &format!("require_approval = [\"file_*\"]\n{TOOLS}"));
    coded(&gated(&daemon, &agent).join().unwrap(), 403, "approval_expired");
    assert!(!daemon.home().join("workspaces/a/g.txt").exists());
}

#[test]
fn an_approval_goes_with_the_client_that_waits_for_it_and_with_the_daemon() {
    let mut daemon = open(&["file_write"], "[approval]\nrequire_approval = [\"file_write\"]");
    let agent = daemon.agent_with("a", TOOLS);
    let input = json!({ "path": "g.txt", "content": "x" });
    let wire = begin(&daemon, "file_write", &agent, &input);
    let item = one_pending(&daemon);
    drop(wire);
    until("the approval is withdrawn", || pending(&daemon).is_empty().then_some(()));
    let path = format!("/api/approvals/{}", text(&item["id"]));
    assert_eq!(daemon.get(&path).expect(200)["status"], "expired");

    let wire = begin(&daemon, "file_write", &agent, &input);
    let item = one_pending(&daemon);
    // What is seen need not be on disk yet; what is answered behind it is, and so is it.
    drop(daemon.agent("b"));
    daemon.restart();
    let mut line = String::new();
    let answered = BufReader::new(&wire).read_line(&mut line).is_ok_and(|bytes| bytes > 0);
    assert!(!answered, "{line}");
    let gone = daemon.get(&format!("/api/approvals/{}", text(&item["id"]))).expect(200);
    assert_eq!(gone["status"], "expired");
    assert!(text(&gone["reason"]).contains("restarted"), "{gone}");
    assert!(!daemon.home().join("workspaces/a/g.txt").exists());
}

/// Sends a call whose answer nobody reads; it lasts as long as the connection.
fn begin(daemon: &Daemon, tool: &str, agent: &str, input: &Value) -> TcpStream {
    let (wire, body) = (daemon.client().connect().unwrap(), input.to_string());
    let path = format!("/api/tools/{tool}/invoke?agent_id={agent}");
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n", daemon.client().addr, body.len());
    (&wire).write_all(format!("{head}{body}").as_bytes()).unwrap();
    wire
}

#[test]
fn a_client_that_goes_away_ends_what_it_began() {
    let daemon = open(&["shell_exec"], "[exec_policy]\nmode = \"full\"\n");
    let agent = daemon.agent_with("a", TOOLS);
    // Its number in the namespace of the command says nothing outside; these seconds stand in its arguments.
    let seconds = format!("600.{:09}", std::process::id());
    let command = json!({ "command": format!("touch begun; exec sleep {seconds}"), "timeout_secs": 600 });
    let wire = begin(&daemon, "shell_exec", &agent, &command);
    let file = daemon.home().join("workspaces/a/begun");
    until("the command runs", || file.exists().then_some(()));
    let runs = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
            .any(|line| String::from_utf8_lossy(&line).contains(&seconds))
    };
    assert!(runs());
    drop(wire);
    until("the command is ended", || (!runs()).then_some(()));
}

#[test]
fn more_calls_than_may_run_at_once_are_turned_away() {
    const AT_ONCE: usize = 64;
    let model = Model::start();
    let daemon = open(&["workflow_run", "system_time"], &model.config());
    daemon.agent_with("a", "");
    let workflow = make(&daemon, "w", &json!([{ "agent_name": "a" }]));
    model.hold();
    let asked: Vec<JoinHandle<Reply>> = (0..AT_ONCE)
        .map(|_| {
            let client = daemon.client();
            let body = json!({ "workflow": "w", "input": "x" });
            thread::spawn(move || client.post("/api/tools/workflow_run/invoke", &body))
        })
        .collect();
    until("all of them run", || (runs(&daemon, &workflow).len() == AT_ONCE).then_some(()));
    let more = invoke(&daemon, "system_time", None, &json!({}));
    coded(&more, 503, "busy");
    assert!(more.header("retry-after").is_some());
    model.release();
    for call in asked {
        let ran = call.join().unwrap().expect(200);
        assert_eq!((&ran["content"], &ran["is_error"]), (&json!("echo: x"), &json!(false)));
    }
    invoke(&daemon, "system_time", None, &json!({})).expect(200);
}

#[test]
fn a_workspace_that_is_full_takes_no_more() {
    let full = "[exec_policy]\nmode = \"full\"\n[workspaces]\nmax_bytes = 10485760\n";
    let daemon = open(&["shell_exec", "file_delete"], full);
    let agent = daemon.agent_with("full", TOOLS);
    let put = |name: &str, mib: usize| {
        let path = format!("/api/agents/{agent}/files/{name}");
        daemon.send("PUT", &path, &[], Some(&vec![b'x'; mib << 20]))
    };
    put("a", 6).expect(201);
    coded(&put("b", 6), 507, "storage_full");
    put("a", 6).expect(200);
    let run = |command: &str| {
        let ran = invoke(&daemon, "shell_exec", Some(&agent), &json!({ "command": command })).expect(200);
        text(&ran["content"])
    };
    let said = run("head -c 50000000 /dev/zero > big; sleep 100000");
    assert!(said.contains("The workspace is full"), "{said}");
    let said = run("echo hello");
    assert!(said.contains("[workspaces] max_bytes"), "{said}");
    coded(&put("small", 1), 507, "storage_full");
    invoke(&daemon, "file_delete", Some(&agent), &json!({ "path": "big" })).expect(200);
    let said = run("echo hello");
    assert!(said.contains("stdout\nhello"), "{said}");
    put("small", 1).expect(201);
    // Another limit takes effect at once.
    let wider = json!({ "path": "workspaces.max_bytes", "value": 20_971_520 });
    daemon.post("/api/config/set", &wider).expect(200);
    put("b", 6).expect(201);
}

#[test]
fn all_workspaces_together_that_are_full_take_no_more() {
    let full = "[exec_policy]\nmode = \"full\"\n[workspaces]\nmax_total_bytes = 10485760\n";
    let daemon = open(&["shell_exec", "file_delete"], full);
    let (first, second) = (daemon.agent_with("first", TOOLS), daemon.agent_with("second", TOOLS));
    let put = |agent: &str, mib: usize| {
        let path = format!("/api/agents/{agent}/files/a");
        daemon.send("PUT", &path, &[], Some(&vec![b'x'; mib << 20]))
    };
    put(&first, 6).expect(201);
    let refused = put(&second, 6);
    assert!(refused.text().contains("[workspaces] max_total_bytes"), "{}", refused.text());
    coded(&refused, 507, "storage_full");
    let run = |agent: &str, command: &str| {
        let ran = invoke(&daemon, "shell_exec", Some(agent), &json!({ "command": command })).expect(200);
        text(&ran["content"])
    };
    let said = run(&second, "head -c 50000000 /dev/zero > big; sleep 100000");
    assert!(said.contains("The workspaces of all agents together are full"), "{said}");
    let said = run(&first, "echo hello");
    assert!(said.contains("[workspaces] max_total_bytes"), "{said}");
    coded(&put(&first, 7), 507, "storage_full");
    assert_eq!(daemon.send("GET", &format!("/api/agents/{first}/files/a"), &[], None).status, 200);
    invoke(&daemon, "file_delete", Some(&second), &json!({ "path": "big" })).expect(200);
    put(&first, 7).expect(200);
    assert!(run(&first, "echo hello").contains("stdout\nhello"));
}
