//! Agents reached over A2A: the card, tasks in all dialects, streams, and what bounds them (spec 3, A2A).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply as Answer};
use crate::support::model::Model;
use crate::support::model_server::{ModelServer, Received, Reply};
use crate::support::until;

const ON: &str = "api_key = \"0123456789abcdef0123456789abcdef\"\n[a2a]\nenabled = true\n";

/// A daemon that offers agents, and whose model is scripted.
pub(crate) fn offering(model: &Model, more: &str) -> Daemon {
    let agents = if more.contains("agents = ") { "" } else { "agents = [\"scout\"]\n" };
    let mut daemon = Daemon::with(&format!("{ON}{agents}{more}{}", model.config()));
    daemon.use_key("0123456789abcdef0123456789abcdef");
    daemon
}

/// The agent that is offered; gives its id.
fn scout(daemon: &Daemon) -> String {
    daemon.agent_with("scout", "")
}

/// A client without a key.
pub(crate) fn guest(daemon: &Daemon) -> Client {
    Client { key: None, ..daemon.client() }
}

fn rpc(client: &Client, headers: &[(&str, &str)], method: &str, params: &Value) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
    let headers = [&[("content-type", "application/json")], headers].concat();
    client.send("POST", "/a2a", &headers, Some(body.as_bytes()))
}

/// The result of a JSON-RPC request, or its error.
#[track_caller]
pub(crate) fn ask(client: &Client, method: &str, params: &Value) -> Value {
    let answer = rpc(client, &[], method, params).expect(200);
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer}");
    if answer["error"].is_null() { answer["result"].clone() } else { answer["error"].clone() }
}

/// The body of an answer of any status.
fn told(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

pub(crate) fn said(text: &str) -> Value {
    json!({ "kind": "message", "messageId": format!("message-{text}"), "role": "user",
        "parts": [{ "kind": "text", "text": text }] })
}

/// The events of a stream that has ended, without their envelopes.
fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].clone()).collect()
}

#[test]
fn it_is_off_unless_the_file_says_so() {
    let daemon = Daemon::start();
    for path in ["/.well-known/agent.json", "/.well-known/agent-card.json", "/a2a/agents", "/a2a/tasks/x"] {
        let refused = daemon.get(path);
        assert!(refused.refused(404).contains("[a2a]"), "{path}");
        assert_eq!(told(&refused)["code"], "a2a_disabled");
    }
    for path in ["/a2a", "/a2a/tasks/send", "/a2a/tasks/x/cancel"] {
        daemon.post(path, &json!({})).refused(404);
    }
}

#[test]
fn the_card_says_how_agents_are_reached_and_stands_at_all_paths() {
    let model = Model::start();
    let daemon = offering(&model, "agents = [\"public-*\"]\nname = \"House\"\ndescription = \"Ours.\"\n");
    let agent = daemon.agent("public-one");
    daemon.agent("secret");
    let guest = guest(&daemon);
    let card = guest.get("/.well-known/agent.json").expect(200);
    for path in ["/.well-known/agent-card.json", "/a2a/.well-known/agent.json", "/a2a/.well-known/agent-card.json"] {
        assert_eq!(guest.get(path).expect(200), card, "{path}");
    }
    assert_eq!((&card["name"], &card["description"]), (&json!("House"), &json!("Ours.")));
    assert_eq!(card["url"], format!("http://{}/a2a", daemon.addr));
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    assert_eq!((&card["protocolVersion"], &card["preferredTransport"]), (&json!("0.3.0"), &json!("JSONRPC")));
    let versions: Vec<_> = card["supportedInterfaces"].as_array().unwrap().iter().collect();
    assert!(versions.iter().all(|interface| interface["url"] == card["url"]));
    assert_eq!(versions.iter().map(|one| text(&one["protocolVersion"])).collect::<Vec<_>>(), ["1.0", "0.3"]);
    assert_eq!(card["skills"].as_array().unwrap().len(), 1);
    assert_eq!((&card["skills"][0]["id"], &card["skills"][0]["name"]), (&json!(agent), &json!("public-one")));
    let list = guest.get("/a2a/agents").expect(200);
    assert_eq!((&list["total"], &list["agents"][0]["id"]), (&json!(1), &json!(agent)));
    let another_model = Model::start();
    let proxied = offering(&another_model, "public_url = \"https://agents.example.org/\"\n");
    assert_eq!(proxied.get("/.well-known/agent.json").expect(200)["url"], "https://agents.example.org/a2a");
}

#[test]
fn a_task_is_answered_in_the_shape_that_was_asked() {
    let model = Model::start();
    let daemon = offering(&model, "");
    let agent = scout(&daemon);
    let guest = guest(&daemon);
    let spec = json!({ "agent_id": agent, "message": { "role": "user", "parts": [{ "text": "hello" }] } });
    let task = guest.post("/a2a/tasks/send", &spec).expect(200);
    assert_eq!(task["status"], "completed");
    assert_eq!(
        (&task["result"]["role"], &task["result"]["parts"][0]["text"]),
        (&json!("agent"), &json!("echo: hello"))
    );
    let id = text(&task["task_id"]);
    let read = guest.get(&format!("/a2a/tasks/{id}")).expect(200);
    assert_eq!((&read["task_id"], &read["id"], &read["result"]), (&json!(id), &json!(id), &task["result"]));
    let peer = json!({ "params": { "agentId": "scout", "sessionId": "a-session-of-mine", "message": {
        "role": "user", "parts": [{ "type": "text", "text": "and you?" }] } } });
    let bare = guest.post("/a2a/tasks/send", &peer).expect(200);
    assert_eq!((&bare["status"], &bare["sessionId"]), (&json!("completed"), &json!("a-session-of-mine")));
    assert_eq!(bare["messages"][1]["parts"][0], json!({ "kind": "text", "type": "text", "text": "echo: and you?" }));
    assert_eq!(
        (&bare["artifacts"][0]["parts"][0]["text"], &bare["agentId"]),
        (&json!("echo: and you?"), &json!(agent))
    );
    let refused = guest.post(&format!("/a2a/tasks/{id}/cancel"), &json!({}));
    assert!(refused.refused(409).contains("completed"));
    assert_eq!(told(&refused)["code"], "a2a_task_ended");
}

#[test]
fn json_rpc_speaks_the_older_and_the_present_versions() {
    let model = Model::start();
    let daemon = offering(&model, "agents = [\"*\"]\ndefault_agent = \"scout\"\n");
    scout(&daemon);
    let guest = guest(&daemon);
    let old = ask(&guest, "tasks/send", &json!({ "id": "task-of-client-0001", "message": said("one") }));
    assert_eq!((&old["id"], &old["status"]["state"]), (&json!("task-of-client-0001"), &json!("completed")));
    assert_eq!(ask(&guest, "tasks/get", &json!({ "id": "task-of-client-0001" }))["artifacts"], old["artifacts"]);
    let v0 = ask(&guest, "message/send", &json!({ "message": said("two") }));
    assert_eq!((&v0["kind"], &v0["status"]["state"]), (&json!("task"), &json!("completed")));
    assert_eq!(v0["artifacts"][0]["parts"][0]["text"], "echo: two");
    assert_eq!((&v0["history"][0]["messageId"], &v0["history"][0]["role"]), (&json!("message-two"), &json!("user")));
    let v1 = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "three" }] } });
    let v1 = ask(&guest, "SendMessage", &v1)["task"].clone();
    assert_eq!(v1["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(v1["artifacts"][0]["parts"], json!([{ "text": "echo: three" }]));
    assert_eq!((&v1["history"][0]["role"], &v1["kind"]), (&json!("ROLE_USER"), &Value::Null));
    assert_eq!(ask(&guest, "GetTask", &json!({ "id": v1["id"] }))["id"], v1["id"]);
    let bare = ask(&guest, "GetTask", &json!({ "id": v1["id"], "historyLength": 0 }));
    assert!(bare["history"].is_null());
    assert_eq!(ask(&guest, "CancelTask", &json!({ "id": v1["id"] }))["code"], -32_002);
    assert_eq!(ask(&guest, "tasks/get", &json!({ "id": "nothing" }))["code"], -32_001);
    assert_eq!(ask(&guest, "ListTasks", &json!({}))["code"], -32_004);
    assert_eq!(ask(&guest, "tasks/unknown", &json!({}))["code"], -32_601);
    assert_eq!(ask(&guest, "message/send", &json!({}))["code"], -32_602);
    let file = json!({ "message": { "parts": [{ "kind": "file", "file": { "uri": "http://x/" } }] } });
    assert_eq!(ask(&guest, "message/send", &file)["code"], -32_005);
    let follow = json!({ "message": { "taskId": v1["id"], "parts": [{ "text": "more" }] } });
    assert_eq!(ask(&guest, "message/send", &follow)["code"], -32_004);
    for (version, is_known) in [("1.0", true), ("0.3", true), ("0.3.0", true), ("2.0", false)] {
        let answer = rpc(&guest, &[("a2a-version", version)], "GetTask", &json!({ "id": v1["id"] })).expect(200);
        assert_eq!(answer["error"].is_null(), is_known, "{version}: {answer}");
        assert!(is_known || answer["error"]["code"] == -32_009);
    }
    let broken = guest.send("POST", "/a2a", &[("content-type", "application/json")], Some(b"{"));
    assert_eq!(broken.expect(200)["error"]["code"], -32_700);
    let root = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "id": v1["id"] } });
    assert_eq!(guest.post("/", &root).expect(200)["result"]["id"], v1["id"], "older clients post to the URL they know");
}

/// The texts that the model was told last.
pub(crate) fn last_told(model: &Model) -> Vec<String> {
    let last = model.requests().pop().unwrap();
    last["messages"].as_array().unwrap().iter().map(|message| message["content"].to_string()).collect()
}

#[test]
fn a_conversation_goes_on_and_no_client_reads_another_or_the_owner() {
    let model = Model::start();
    let daemon = offering(&model, "");
    let agent = scout(&daemon);
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "the owner's secret" })).expect(200);
    let current = text(&daemon.detail(&agent)["session_id"]);
    let guest = guest(&daemon);
    let first = ask(&guest, "message/send", &json!({ "message": said("first") }));
    let context = text(&first["contextId"]);
    let mut second = said("second");
    second["contextId"] = json!(context);
    assert_eq!(ask(&guest, "message/send", &json!({ "message": second }))["contextId"], json!(context));
    let told = last_told(&model);
    assert!(
        told.iter().any(|text| text.contains("first")) && !told.iter().any(|text| text.contains("secret")),
        "{told:?}"
    );
    let mut stranger = said("third");
    stranger["contextId"] = json!(current);
    ask(&guest, "message/send", &json!({ "message": stranger }));
    let told = last_told(&model);
    assert!(!told.iter().any(|text| text.contains("secret") || text.contains("first")), "{told:?}");
}

#[test]
fn what_is_sent_twice_is_one_task() {
    let model = Model::start();
    let daemon = offering(&model, "");
    scout(&daemon);
    let guest = guest(&daemon);
    let one = ask(&guest, "message/send", &json!({ "message": said("once") }));
    assert_eq!(ask(&guest, "message/send", &json!({ "message": said("once") }))["id"], one["id"]);
    let body = json!({ "task_id": "my-own-task-id-1", "message": { "parts": [{ "text": "twice" }] } });
    let task = guest.post("/a2a/tasks/send", &body).expect(200);
    assert_eq!(task["task_id"], "my-own-task-id-1");
    assert_eq!(guest.post("/a2a/tasks/send", &body).expect(200), task);
    let other = json!({ "task_id": "my-own-task-id-1", "message": { "parts": [{ "text": "else" }] } });
    let refused = guest.post("/a2a/tasks/send", &other);
    refused.refused(409);
    assert_eq!(told(&refused)["code"], "a2a_task_exists");
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn a_stream_begins_with_the_task_and_ends_with_its_state() {
    let model = Model::start();
    let daemon = offering(&model, "");
    scout(&daemon);
    let guest = guest(&daemon);
    let streamed = rpc(&guest, &[], "message/stream", &json!({ "message": said("hello there") }));
    let all = events(&streamed);
    assert_eq!((&all[0]["kind"], &all[0]["status"]["state"]), (&json!("task"), &json!("submitted")), "{all:?}");
    let pieces: String = all
        .iter()
        .filter(|event| event["kind"] == "artifact-update" && event["lastChunk"] == false)
        .map(|event| text(&event["artifact"]["parts"][0]["text"]))
        .collect();
    assert_eq!(pieces, "echo: hello there");
    let last = &all[all.len() - 2..];
    assert_eq!(
        (&last[0]["artifact"]["parts"][0]["text"], &last[0]["append"]),
        (&json!("echo: hello there"), &json!(false))
    );
    assert_eq!((&last[1]["kind"], &last[1]["final"]), (&json!("status-update"), &json!(true)));
    assert_eq!(last[1]["status"]["state"], "completed");
    let message = json!({ "messageId": "m2", "role": "ROLE_USER", "parts": [{ "text": "and now" }] });
    let all = events(&rpc(&guest, &[], "SendStreamingMessage", &json!({ "message": message })));
    let id = &all[0]["task"]["id"];
    assert_eq!(all.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(all.iter().any(|event| event["artifactUpdate"]["lastChunk"] == true));
    assert_eq!(ask(&guest, "SubscribeToTask", &json!({ "id": id }))["code"], -32_004);
    let again = events(&rpc(&guest, &[], "tasks/resubscribe", &json!({ "id": id })));
    assert_eq!(again.last().unwrap()["final"], true);
}

#[test]
fn a_task_can_be_left_cancelled_and_watched_again() {
    let model = Model::start();
    model.hold();
    let daemon = offering(&model, "");
    scout(&daemon);
    let guest = guest(&daemon);
    let open = json!({ "message": said("wait"), "configuration": { "blocking": false } });
    let task = ask(&guest, "message/send", &open);
    let id = text(&task["id"]);
    assert!(["submitted", "working"].contains(&&*text(&task["status"]["state"])), "{task}");
    let watching = guest.clone();
    let watched = id.clone();
    let watch =
        std::thread::spawn(move || events(&rpc(&watching, &[], "tasks/resubscribe", &json!({ "id": watched }))));
    until("the task works", || {
        (guest.get(&format!("/a2a/tasks/{id}")).expect(200)["status"] == "working").then_some(())
    });
    let cancelled = guest.post(&format!("/a2a/tasks/{id}/cancel"), &json!({})).expect(200);
    assert_eq!((&cancelled["task_id"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    let seen = watch.join().unwrap();
    assert_eq!(seen.last().unwrap()["status"]["state"], "canceled", "{seen:?}");
    assert_eq!(ask(&guest, "tasks/cancel", &json!({ "id": id }))["status"]["state"], "canceled");
    model.release();
}

#[test]
fn a_kill_in_the_middle_ends_the_task_after_the_next_start() {
    let model = Model::start();
    model.hold();
    let mut daemon = offering(&model, "");
    scout(&daemon);
    let open = json!({ "message": said("remember"), "configuration": { "blocking": false } });
    let id = text(&ask(&guest(&daemon), "message/send", &open)["id"]);
    until("the model was asked", || (model.waiting() > 0).then_some(()));
    daemon.kill();
    model.release();
    daemon.restart();
    let guest = guest(&daemon);
    let task = until("the task has ended", || {
        Some(ask(&guest, "tasks/get", &json!({ "id": id }))).filter(|task| task["status"]["state"] == "completed")
    });
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "echo: remember");
    assert_eq!(ask(&guest, "message/send", &open)["id"], json!(id), "sent again, it is the same task");
}

#[test]
fn rates_bodies_and_parts_are_bounded() {
    let model = Model::start();
    let daemon = offering(&model, "rate_per_minute = 2\n");
    scout(&daemon);
    let guest = guest(&daemon);
    for text in ["a", "b"] {
        ask(&guest, "message/send", &json!({ "message": said(text) }));
    }
    let refused = ask(&guest, "message/send", &json!({ "message": said("c") }));
    assert_eq!((&refused["code"], &refused["data"]["code"]), (&json!(-32_000), &json!("a2a_rate_limited")));
    let refused = guest.post("/a2a/tasks/send", &json!({ "message": { "parts": [{ "text": "d" }] } }));
    refused.refused(429);
    assert!(refused.header("retry-after").is_some());
    let huge = "x".repeat(20 << 10);
    guest.post("/a2a/tasks/send", &json!({ "message": { "parts": [{ "text": huge }] } })).refused(413);
}

#[test]
fn wrong_requests_name_their_field() {
    let model = Model::start();
    let daemon = offering(&model, "agents = [\"scout\"]\n");
    scout(&daemon);
    let hidden = daemon.agent("hidden");
    let guest = guest(&daemon);
    let parts = json!([{ "text": "a" }]);
    for (body, status, field) in [
        (json!({}), 400, "message"),
        (json!({ "message": { "parts": [] } }), 400, "message.parts"),
        (json!({ "message": { "parts": [{}] } }), 400, "message.parts[0]"),
        (json!({ "agent_id": 7, "message": { "parts": parts } }), 400, "agent_id"),
        (json!({ "agent_id": hidden, "message": { "parts": parts } }), 404, "agent_id"),
        (json!({ "agent_id": "nobody", "message": { "parts": parts } }), 404, "agent_id"),
        (json!({ "params": 7 }), 400, "params"),
    ] {
        let refused = guest.post("/a2a/tasks/send", &body);
        refused.refused(status);
        assert_eq!(told(&refused)["field"], field, "{body}");
    }
    guest.send("POST", "/a2a/tasks/send", &[("content-type", "text/plain")], Some(b"{}")).refused(415);
    let foreign = [("origin", "https://evil.example")];
    rpc(&guest, &foreign, "tasks/get", &json!({ "id": "x" })).refused(403);
    let another_model = Model::start();
    let several = offering(&another_model, "agents = [\"one\", \"two\"]\n");
    several.agent("one");
    several.agent("two");
    let refused = several.post("/a2a/tasks/send", &json!({ "message": { "parts": parts } }));
    assert!(refused.refused(400).contains("several agents"));
}

#[test]
fn a_failed_turn_tells_the_client_no_detail() {
    let model = Model::start();
    model.script([Reply::raw(400, &[], "the secret reason of the provider")]);
    let daemon = offering(&model, "");
    scout(&daemon);
    let task =
        guest(&daemon).post("/a2a/tasks/send", &json!({ "message": { "parts": [{ "text": "a" }] } })).expect(200);
    assert_eq!(task["status"], "failed");
    let why = text(&task["result"]["parts"][0]["text"]);
    assert!(why.starts_with("the agent could not answer") && !why.contains("secret"), "{why}");
}

#[test]
fn the_end_of_a_task_is_posted_to_its_targets() {
    let receiver = ModelServer::start();
    receiver.respond(|_| Reply::raw(200, &[], "thanks"));
    let model = Model::start();
    let hosts = format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", receiver.address());
    let daemon = offering(&model, &hosts);
    scout(&daemon);
    let guest = guest(&daemon);
    let url = format!("http://{}/notify", receiver.address());
    let config =
        json!({ "url": url, "token": "a-token", "authentication": { "schemes": ["Bearer"], "credentials": "k3y" } });
    let params = json!({ "message": said("tell me"), "configuration": { "pushNotificationConfig": config } });
    let task = ask(&guest, "message/send", &params);
    let received: Received = until("the notification came", || receiver.requests().first().cloned());
    assert_eq!((&received.body["id"], &received.body["status"]["state"]), (&task["id"], &json!("completed")));
    assert_eq!(received.headers["x-a2a-notification-token"], "a-token");
    assert_eq!(received.headers["authorization"], "Bearer k3y");
    let listed = ask(&guest, "tasks/pushNotificationConfig/list", &json!({ "id": task["id"] }));
    assert_eq!(listed[0]["pushNotificationConfig"]["url"], json!(url));
    assert!(!listed.to_string().contains("a-token") && !listed.to_string().contains("k3y"), "{listed}");
    let v1 = json!({ "taskId": task["id"], "id": "mine", "url": url, "token": "t" });
    assert_eq!(ask(&guest, "CreateTaskPushNotificationConfig", &v1)["id"], "mine");
    let received = until("it is told at once", || receiver.requests().get(1).cloned());
    assert_eq!(received.body["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let named = json!({ "taskId": task["id"], "id": "mine" });
    assert_eq!(ask(&guest, "GetTaskPushNotificationConfig", &named)["url"], json!(url));
    assert_eq!(ask(&guest, "DeleteTaskPushNotificationConfig", &named), json!({}));
    assert_eq!(ask(&guest, "GetTaskPushNotificationConfig", &named)["code"], -32_602);
    let private = json!({ "taskId": task["id"], "url": "http://169.254.169.254/" });
    let refused = ask(&guest, "CreateTaskPushNotificationConfig", &private);
    assert_eq!((&refused["code"], &refused["data"]["field"]), (&json!(-32_602), &json!("url")));
    let authentication = json!({ "schemes": ["x".repeat(200)], "credentials": "k" });
    let long = json!({ "taskId": task["id"], "url": url, "authentication": authentication });
    let refused = ask(&guest, "CreateTaskPushNotificationConfig", &long);
    assert_eq!(refused["data"]["field"], "schemes", "{refused}");
}
