//! Users and API keys: they are made, narrowed, revoked, and reach what is their own.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::socket::Socket;
use crate::support::stream::Events;
use crate::support::until;

pub(crate) const CONFIG: &str = "api_key = \"the-key-of-the-configuration\"\nrate_limit_per_second = 1000000\n";

/// A daemon whose client has the key of the configuration.
pub(crate) fn daemon() -> Daemon {
    let mut daemon = Daemon::with(CONFIG);
    daemon.use_key("the-key-of-the-configuration");
    daemon
}

/// A new user, and a client with a key of theirs.
pub(crate) fn person(daemon: &Daemon, name: &str, role: &str) -> (String, Client) {
    let user = text(&daemon.post("/api/users", &json!({ "name": name, "role": role })).expect(201)["id"]);
    let made = daemon.post("/api/keys", &json!({ "name": name, "user_id": user })).expect(201);
    let client = daemon.keyed(&text(&made["key"]));
    (user, client)
}

fn manifest(name: &str) -> Value {
    json!({ "manifest_toml": format!("name = \"{name}\"\n[model]\nsystem_prompt = \"x\"\n") })
}

fn names(client: &Client) -> Vec<String> {
    let list = client.get("/api/agents").expect(200);
    list.as_array().expect("a list").iter().map(|agent| text(&agent["name"])).collect()
}

#[test]
fn a_key_is_shown_once_works_over_a_kill_and_is_refused_once_revoked() {
    let mut daemon = daemon();
    let made = daemon.post("/api/keys", &json!({ "name": "ci", "scopes": ["read"] })).expect(201);
    let (key, id) = (text(&made["key"]), text(&made["id"]));
    for list in ["/api/keys".to_owned(), format!("/api/keys/{id}"), "/api/audit/recent".to_owned()] {
        assert!(!daemon.get(&list).text().contains(&key), "{list}");
    }
    let who = daemon.keyed(&key).get("/api/whoami").expect(200);
    assert_eq!((&who["role"], &who["scopes"], &who["name"]), (&json!("admin"), &json!(["read"]), &json!("ci")));
    until("its use is noted", || {
        let used = daemon.get(&format!("/api/keys/{id}")).expect(200)["last_used_at"].clone();
        (!used.is_null()).then_some(())
    });
    daemon.keyed(&key).post("/api/agents", &manifest("a")).refused(403);
    daemon.kill();
    daemon.restart();
    daemon.keyed(&key).get("/api/agents").expect(200);
    daemon.delete(&format!("/api/keys/{id}")).expect(204);
    daemon.keyed(&key).get("/api/agents").refused(401);
    daemon.get("/api/agents").expect(200);
    let kinds = daemon.get("/api/audit/recent").text();
    assert!(kinds.contains("key_created") && kinds.contains("key_revoked"));
}

#[test]
fn what_a_key_opened_ends_with_the_key_and_with_its_time() {
    let daemon = daemon();
    for (body, ends) in
        [(json!({ "name": "revoked" }), true), (json!({ "name": "expired", "expires_in_secs": 2 }), false)]
    {
        let made = daemon.post("/api/keys", &body).expect(201);
        let client = daemon.keyed(&text(&made["key"]));
        let reader = std::thread::spawn(move || client.get("/api/world/stream").status);
        if ends {
            // The other one is opened and ends with its time.
            until("the stream is open", || {
                let metrics = daemon.get("/api/keys").text();
                let used = daemon.get(&format!("/api/keys/{}", text(&made["id"]))).expect(200);
                (!metrics.is_empty() && !used["last_used_at"].is_null()).then_some(())
            });
            daemon.delete(&format!("/api/keys/{}", text(&made["id"]))).expect(204);
        }
        let status = reader.join().expect("it read to the end");
        // The key may have been revoked before the stream was there.
        assert!(status == 200 || status == 401, "{status}");
        daemon.keyed(&text(&made["key"])).get("/api/version").refused(401);
    }
}

#[test]
fn a_user_sees_and_changes_their_own_agents_alone() {
    let daemon = daemon();
    let (ann_id, ann) = person(&daemon, "ann", "user");
    let (_, bob) = person(&daemon, "bob", "user");
    let (_, eve) = person(&daemon, "eve", "viewer");
    let of_all = daemon.agent("shared");
    let of_ann = text(&ann.post("/api/agents", &manifest("anns")).expect(201)["agent_id"]);
    assert_eq!((names(&ann), names(&bob)), (vec!["anns".to_owned()], Vec::new()));
    let all = names(&daemon.keyed("the-key-of-the-configuration"));
    assert!(["shared", "anns"].iter().all(|name| all.iter().any(|it| it == name)), "{all:?}");
    let by_name = bob.get("/api/agents?name=anns").expect(200);
    assert_eq!(by_name, json!([]));
    for other in [&of_all, &of_ann] {
        for path in ["", "/sessions", "/tools", "/files", "/memory/export"] {
            bob.get(&format!("/api/agents/{other}{path}")).refused(404);
        }
        bob.get(&format!("/api/memory/agents/{other}")).refused(404);
        bob.post(&format!("/api/agents/{other}/message"), &json!({ "message": "hi" })).refused(404);
        bob.post(&format!("/api/agents/{other}/clone"), &json!({})).refused(404);
        bob.delete(&format!("/api/agents/{other}")).refused(404);
    }
    // What does not exist looks the same.
    let nothing = Uuid::nil().to_string();
    let missing = bob.get(&format!("/api/agents/{nothing}")).refused(404).replace(&nothing, "");
    assert_eq!(bob.get(&format!("/api/agents/{of_ann}")).refused(404).replace(&of_ann, ""), missing);
    let copy = text(&ann.post(&format!("/api/agents/{of_ann}/clone"), &json!({})).expect(201)["agent_id"]);
    ann.get(&format!("/api/agents/{copy}")).expect(200);
    // Other ways to the agent of another.
    let cron = json!({ "name": "n", "cron": "* * * * *", "agent_id": of_ann, "message": "hi" });
    bob.post("/api/comms/send", &cron).refused(403);
    bob.post("/v1/chat/completions", &json!({ "model": "anns", "messages": [] })).refused(403);
    // A viewer reads what is theirs, and does nothing.
    eve.get(&format!("/api/agents/{of_ann}")).refused(404);
    let eves = text(&daemon.get("/api/whoami").expect(200)["role"]);
    assert_eq!(eves, "owner");
    let eve_id = text(&eve.get("/api/whoami").expect(200)["user_id"]);
    daemon.put(&format!("/api/agents/{of_ann}/owner"), &json!({ "user_id": eve_id })).expect(200);
    eve.get(&format!("/api/agents/{of_ann}")).expect(200);
    eve.post(&format!("/api/agents/{of_ann}/message"), &json!({ "message": "hi" })).refused(403);
    eve.delete(&format!("/api/agents/{of_ann}")).refused(403);
    ann.get(&format!("/api/agents/{of_ann}")).refused(404);
    // The audit trail says who it was.
    assert!(daemon.get("/api/audit/recent").text().contains(&format!("user:{ann_id}/key:")));
}

/// A stream and a socket that were opened for one's own agent end when it is given to somebody else.
#[test]
fn what_is_open_ends_when_the_agent_goes_to_another() {
    let daemon = daemon();
    let (_, ann) = person(&daemon, "ann", "user");
    let (bob_id, bob) = person(&daemon, "bob", "user");
    let agent = text(&ann.post("/api/agents", &manifest("given")).expect(201)["agent_id"]);
    let kept = text(&bob.post("/api/agents", &manifest("kept")).expect(201)["agent_id"]);
    let mut socket = Socket::open(&ann, &agent);
    let mut of_bob = Socket::open(&bob, &kept);
    socket.say("mine");
    socket.until("response");
    let stream = Events::attach(&ann, &agent);
    daemon.put(&format!("/api/agents/{agent}/owner"), &json!({ "user_id": bob_id })).expect(200);
    assert_eq!(socket.closed(), 1008);
    bob.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "secret" })).expect(200);
    assert_eq!(stream.all(), []);
    // Bob's own went on, and Ann's key is still hers.
    of_bob.say("still here");
    of_bob.until("response");
    assert_eq!(names(&ann), Vec::<String>::new());
}

/// The daemon reaches hosts that a user does not.
#[test]
fn endpoints_of_models_are_for_admins() {
    let daemon = daemon();
    let (_, bob) = person(&daemon, "bob", "user");
    let named = |name: &str, named: &str| {
        let model = "[model]\nprovider = \"ollama\"\nmodel = \"m\"\n";
        json!({ "manifest_toml": format!("name = \"{name}\"\n{model}{named}\n") })
    };
    let private = "base_url = \"http://127.0.0.1:9/admin\"";
    let fallback = format!("[[fallback_models]]\nprovider = \"vllm\"\nmodel = \"m\"\n{private}");
    bob.post("/api/agents", &named("a", private)).refused_field(403, "model");
    bob.post("/api/agents", &named("a", &fallback)).refused_field(403, "fallback_models");
    assert_eq!(names(&bob), Vec::<String>::new());
    bob.post("/api/agents", &named("a", "")).expect(201);
    daemon.post("/api/agents", &named("b", private)).expect(201);
}

#[test]
fn no_key_gives_itself_or_others_more_than_it_has() {
    let daemon = daemon();
    let owner = text(&daemon.post("/api/keys", &json!({ "name": "o", "role": "owner" })).expect(201)["id"]);
    let made = daemon.post("/api/keys", &json!({ "name": "a" })).expect(201);
    let admin = daemon.keyed(&text(&made["key"]));
    admin.post("/api/keys", &json!({ "name": "x", "role": "owner" })).refused(403);
    admin.delete(&format!("/api/keys/{owner}")).refused(403);
    admin.post("/api/users", &json!({ "name": "x", "role": "owner" })).refused(403);
    let (user, _) = person(&daemon, "root", "owner");
    admin.put(&format!("/api/users/{user}"), &json!({ "role": "viewer" })).refused(403);
    admin.delete(&format!("/api/users/{user}")).refused(403);
    admin.post("/api/keys", &json!({ "name": "x", "user_id": user })).refused(403);
    let made = admin.post("/api/keys", &json!({ "name": "n", "scopes": ["admin", "read"] })).expect(201);
    let narrow = daemon.keyed(&text(&made["key"]));
    narrow.post("/api/keys", &json!({ "name": "x" })).refused(403);
    narrow.post("/api/agents", &manifest("x")).refused(403);
    narrow.post("/api/keys", &json!({ "name": "x", "scopes": ["read"] })).expect(201);
    // A change of the role of a user holds for the keys that there are.
    let (ann, client) = person(&daemon, "ann", "admin");
    client.get("/api/keys").expect(200);
    daemon.put(&format!("/api/users/{ann}"), &json!({ "role": "viewer" })).expect(200);
    client.get("/api/keys").refused(403);
    daemon.delete(&format!("/api/users/{ann}")).expect(204);
    client.get("/api/version").refused(401);
}

#[test]
fn no_key_makes_one_that_lasts_longer() {
    let daemon = Daemon::with(&format!("{CONFIG}[pairing]\nenabled = true\n"));
    let owner = daemon.keyed("the-key-of-the-configuration");
    let made = owner.post("/api/keys", &json!({ "name": "short", "expires_in_secs": 3_600 })).expect(201);
    let (ends, short) = (made["expires_at"].clone(), daemon.keyed(&text(&made["key"])));
    short.post("/api/keys", &json!({ "name": "x", "expires_in_secs": 7_200 })).refused_field(400, "expires_in_secs");
    let earlier = short.post("/api/keys", &json!({ "name": "earlier", "expires_in_secs": 60 })).expect(201);
    assert!(text(&earlier["expires_at"]) < text(&ends), "{earlier} {ends}");
    let made = short.post("/api/keys", &json!({ "name": "same" })).expect(201);
    assert_eq!(made["expires_at"], ends);
    let again = daemon.keyed(&text(&made["key"])).post("/api/keys", &json!({ "name": "again" })).expect(201);
    assert_eq!(again["expires_at"], ends);
    // Whoever sends the code.
    let code = short.post("/api/pairing/request", &json!({})).expect(200);
    let body = json!({ "pairing_code": code["pairing_code"], "display_name": "phone" });
    owner.post("/api/pairing/complete", &body).expect(200);
    let keys = owner.get("/api/keys").expect(200);
    let phone = keys["keys"].as_array().unwrap().iter().find(|key| key["name"] == "phone").unwrap();
    assert_eq!(phone["expires_at"], ends);
}

/// By name and bindings people sign in and are known in chats: who sets them can act as the user.
#[test]
fn a_narrow_key_says_of_nobody_who_they_are() {
    let daemon = daemon();
    let (amy, _) = person(&daemon, "amy", "admin");
    let path = format!("/api/users/{amy}");
    let before = daemon.get(&path).expect(200);
    let client = |body: &Value| daemon.keyed(&text(&daemon.post("/api/keys", body).expect(201)["key"]));
    let narrow = client(&json!({ "name": "narrow", "scopes": ["admin", "read"] }));
    let mail = json!({ "channel_bindings": { "email": "eve@example.com" } });
    let renamed = json!({ "name": "eve@example.com" });
    let with_role = json!({ "name": "eve@example.com", "role": "viewer" });
    for body in [&mail, &renamed, &with_role, &json!({ "channel_bindings": {} })] {
        narrow.put(&path, body).refused(403);
    }
    assert_eq!(daemon.get(&path).expect(200), before);
    let whole = client(&json!({ "name": "whole" }));
    assert_eq!(whole.put(&path, &mail).expect(200)["channel_bindings"], mail["channel_bindings"]);
    assert_eq!(whole.put(&path, &renamed).expect(200)["name"], renamed["name"]);
}

#[test]
fn bad_fields_are_named() {
    let daemon = daemon();
    for (path, body, field) in [
        ("/api/keys", json!({ "name": "" }), "name"),
        ("/api/keys", json!({ "name": "a", "role": "viewer" }), "role"),
        ("/api/keys", json!({ "name": "a", "role": "emperor" }), "role"),
        ("/api/keys", json!({ "name": "a", "scopes": ["all"] }), "scopes"),
        ("/api/keys", json!({ "name": "a", "user_id": Uuid::nil() }), "user_id"),
        ("/api/keys", json!({ "name": "a", "expires_in_secs": 0 }), "expires_in_secs"),
        ("/api/users", json!({}), "name"),
        ("/api/users", json!({ "name": "a", "channel_bindings": { "telegram": "" } }), "channel_bindings"),
    ] {
        daemon.post(path, &body).refused_field(400, field);
    }
    let agent = daemon.agent("a");
    daemon.put(&format!("/api/agents/{agent}/owner"), &json!({ "user_id": Uuid::nil() })).refused_field(400, "user_id");
    daemon.post("/api/users", &json!({ "name": "a" })).expect(201);
    daemon.post("/api/users", &json!({ "name": "a" })).refused(409);
    assert_eq!(daemon.get("/api/keys").expect(200)["keys"], json!([]));
}

#[test]
fn wrong_named_keys_slow_their_address_down_and_right_ones_pass() {
    let daemon = daemon();
    let made = daemon.post("/api/keys", &json!({ "name": "ci" })).expect(201);
    let wrong = daemon.keyed("asvc_0000000000000000000000000000000000000000000000000000000000000000");
    let slowed = until("wrong keys are slowed down", || {
        let reply = wrong.get("/api/version");
        (reply.status == 429).then_some(reply)
    });
    assert!(slowed.header("retry-after").is_some());
    daemon.keyed(&text(&made["key"])).get("/api/version").expect(200);
}

#[test]
fn without_a_key_of_the_configuration_the_api_stays_open_and_a_named_key_is_who_it_is() {
    let daemon = Daemon::start();
    assert_eq!(daemon.get("/api/whoami").expect(200)["kind"], json!("owner"));
    let (_, eve) = person(&daemon, "eve", "viewer");
    eve.post("/api/agents", &manifest("a")).refused(403);
    daemon.post("/api/agents", &manifest("a")).expect(201);
}

/// What a user may not do, no agent of theirs does for them.
#[test]
fn an_agent_of_a_user_uses_nothing_that_is_shared() {
    let daemon = daemon();
    let (_, bob) = person(&daemon, "bob", "user");
    let granted = |more: &str| json!({ "manifest_toml": format!("name = \"bobs{}\"\n{more}[capabilities]\ntools = [\"*\"]\n", more.len()) });
    let agent = text(&bob.post("/api/agents", &granted("")).expect(201)["agent_id"]);
    let owners = daemon.agent("owners");
    let task = json!({ "title": "Secret plan", "description": "of the owner" });
    let task = text(&daemon.post("/api/tasks", &task).expect(201)["id"]);
    let steps = json!([{ "name": "one", "agent_id": owners, "prompt": "{{input}}" }]);
    daemon.post("/api/workflows", &json!({ "name": "flow", "steps": steps })).expect(201);
    let call = |tool: &str, input: Value| {
        let message = json!({ "message": format!("/tool {tool} {input}") });
        text(&bob.post(&format!("/api/agents/{agent}/message"), &message).expect(200)["response"])
    };
    for (tool, input) in [
        ("task_list", json!({})),
        ("task_status", json!({ "task_id": task })),
        ("task_claim", json!({})),
        ("task_post", json!({ "title": "x", "assignee": "owners" })),
        ("event_publish", json!({ "event_type": "deploy", "payload": {} })),
        ("workflow_run", json!({ "workflow": "flow", "input": "hi" })),
        ("agent_send", json!({ "agent": "owners", "message": "hi" })),
        ("agent_send", json!({ "agent": "other@node", "message": "hi" })),
    ] {
        let said = call(tool, input);
        assert!(!said.contains("Secret") && !said.contains("echo: hi"), "{tool}: {said}");
        assert!(!said.contains("network"), "it tried another node: {tool}: {said}");
        let refused = ["cannot use", "No task is available", "not found", "no agent", "\"tasks\": []"];
        assert!(refused.iter().any(|words| said.contains(words)), "{tool}: {said}");
    }
    assert_eq!(daemon.get(&format!("/api/tasks/{task}")).expect(200)["status"], "pending");
    // Its triggers see what its own agents do, and wake no other.
    let wakes =
        format!("[[triggers]]\npattern = {{ all = {{}} }}\nprompt_template = \"x\"\ntarget_agent_id = \"{owners}\"\n");
    let spy = text(&daemon.post("/api/agents", &granted(&wakes)).expect(201)["agent_id"]);
    let bob_id = text(&bob.get("/api/whoami").expect(200)["user_id"]);
    daemon.put(&format!("/api/agents/{spy}/owner"), &json!({ "user_id": bob_id })).refused(409);
    let made = text(&bob.post("/api/agents", &granted(&format!("{wakes}\n"))).expect(201)["agent_id"]);
    let triggers = bob.get("/api/triggers").expect(200);
    assert_eq!((&triggers[0]["agent_id"], &triggers[0]["enabled"]), (&json!(made), &json!(false)));
    assert_eq!(triggers[0]["target_agent_id"], Value::Null);
}

/// A thing of each kind that belongs to `agent`: the path of its list, its own path, and a change of it.
pub(crate) fn things(client: &Client, agent: &str) -> Vec<(&'static str, String)> {
    let made = |path: &str, body: &Value, key: &str| text(&client.post(path, body).expect(201)[key]);
    let schedule = json!({ "cron": "@daily", "agent_id": agent, "prompt": "hi" });
    let job = json!({ "name": "n", "schedule": "@daily", "agent_id": agent, "prompt": "hi" });
    let trigger = json!({ "agent_id": agent, "pattern": { "all": {} }, "prompt_template": "{{event}}" });
    let workflow = json!({ "name": "w", "steps": [{ "agent_id": agent }] });
    let goal = json!({ "title": "g", "agent_id": agent });
    let task = json!({ "title": "t", "assignee": agent });
    let session = text(&client.get(&format!("/api/agents/{agent}")).expect(200)["session_id"]);
    vec![
        ("/api/schedules", format!("/api/schedules/{}", made("/api/schedules", &schedule, "id"))),
        ("/api/cron/jobs", format!("/api/cron/jobs/{}", made("/api/cron/jobs", &job, "id"))),
        ("/api/triggers", format!("/api/triggers/{}", made("/api/triggers", &trigger, "trigger_id"))),
        ("/api/workflows", format!("/api/workflows/{}", made("/api/workflows", &workflow, "workflow_id"))),
        ("/api/goals", format!("/api/goals/{}", made("/api/goals", &goal, "id"))),
        ("/api/tasks", format!("/api/tasks/{}", made("/api/tasks", &task, "id"))),
        ("/api/sessions", format!("/api/sessions/{session}")),
    ]
}

#[test]
fn what_belongs_to_agents_is_for_their_user_alone() {
    let daemon = daemon();
    let (_, ann) = person(&daemon, "ann", "user");
    let (_, bob) = person(&daemon, "bob", "user");
    let (_, eve) = person(&daemon, "eve", "viewer");
    let agent = text(&ann.post("/api/agents", &manifest("anns")).expect(201)["agent_id"]);
    let shared = daemon.agent("shared");
    let own = things(&ann, &agent);
    let of_all = things(&daemon.keyed("the-key-of-the-configuration"), &shared);
    for (list, path) in &own {
        ann.get(path).expect(200);
        assert!(ann.get(list).text().contains(path.rsplit('/').next().expect("an id")), "{list}");
        for (client, refusal) in [(&bob, 404), (&eve, 404)] {
            client.get(path).refused(refusal);
            assert!(!client.get(list).text().contains(&agent), "{list}");
        }
        bob.delete(path).refused(404);
        eve.delete(path).refused(403);
        daemon.get(path).expect(200);
    }
    for (list, path) in &of_all {
        ann.get(path).refused(404);
        ann.delete(path).refused(404);
        assert!(!ann.get(list).text().contains(&shared), "{list}");
    }
    for (path, body) in [
        ("/api/schedules", json!({ "cron": "@daily", "agent_id": shared, "prompt": "hi" })),
        ("/api/triggers", json!({ "agent_id": shared, "pattern": { "all": {} }, "prompt_template": "x" })),
        ("/api/workflows", json!({ "name": "w", "steps": [{ "agent_name": "shared" }] })),
        ("/api/goals", json!({ "title": "g", "agent_id": shared })),
        ("/api/tasks", json!({ "title": "t", "assignee": "shared" })),
    ] {
        ann.post(path, &body).refused(404);
    }
    // A list that is sent in several pieces is that of the same client to its end.
    for _ in 0..300 {
        daemon.post("/api/goals", &json!({ "title": "g", "agent_id": shared })).expect(201);
    }
    assert!(!ann.get("/api/goals").text().contains(&shared));
    // For those who see all, nothing is hidden.
    let search = daemon.get("/api/sessions/search").expect(200);
    assert!(search["sessions"].as_array().expect("a list").len() >= 2);
    assert_eq!(ann.get("/api/sessions/search").expect(200)["sessions"].as_array().expect("a list").len(), 1);
}

/// Writes another configuration.
fn write_config(daemon: &Daemon, text: &str) {
    let text = format!("api_listen = \"127.0.0.1:0\"\n{text}");
    std::fs::write(daemon.home().join("config.toml"), text).expect("config.toml can be written");
}

#[test]
fn users_of_the_configuration_have_their_key_and_are_changed_there_alone() {
    use sha2::{Digest, Sha256};
    let key = "a-long-random-key-of-ann-0123456789";
    let hex = |key: &str| Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let users = |role: &str, key: &str| {
        format!(
            "{CONFIG}[[users]]\nname = \"ann\"\nrole = \"{role}\"\nchannel_bindings = {{ telegram = \"7\" }}\n\
             api_key_hash = \"$sha256${}\"\n",
            hex(key)
        )
    };
    let mut daemon = Daemon::with(&users("user", key));
    daemon.use_key("the-key-of-the-configuration");
    let who = daemon.keyed(key).get("/api/whoami").expect(200);
    assert_eq!((&who["name"], &who["role"]), (&json!("ann"), &json!("user")));
    let list = daemon.get("/api/users").expect(200);
    let ann = &list["users"][0];
    assert_eq!((&ann["configured"], &ann["keys"]), (&json!(true), &json!(1)));
    assert_eq!(ann["channel_bindings"], json!({ "telegram": "7" }));
    let path = format!("/api/users/{}", text(&ann["id"]));
    assert!(daemon.put(&path, &json!({ "role": "owner" })).refused(409).contains("config.toml"));
    assert!(daemon.delete(&path).refused(409).contains("config.toml"));
    assert!(!daemon.get("/api/config").text().contains(&hex(key)));
    let agent = text(&daemon.keyed(key).post("/api/agents", &manifest("anns")).expect(201)["agent_id"]);
    // Another role and another key hold with the next reload; the user is the same.
    let other = "another-long-random-key-of-ann-0123";
    write_config(&daemon, &users("viewer", other));
    daemon.post("/api/config/reload", &json!({})).expect(200);
    until("the other key is taken", || (daemon.keyed(other).get("/api/version").status == 200).then_some(()));
    daemon.keyed(key).get("/api/version").refused(401);
    daemon.keyed(other).get(&format!("/api/agents/{agent}")).expect(200);
    daemon.keyed(other).post("/api/agents", &manifest("b")).refused(403);
    // They survive a kill, and go with the configuration.
    daemon.kill();
    daemon.restart();
    daemon.keyed(other).get(&format!("/api/agents/{agent}")).expect(200);
    write_config(&daemon, CONFIG);
    daemon.post("/api/config/reload", &json!({})).expect(200);
    until("the key is refused", || (daemon.keyed(other).get("/api/version").status == 401).then_some(()));
    assert_eq!(daemon.get("/api/users").expect(200)["users"], json!([]));
    daemon.get(&format!("/api/agents/{agent}")).expect(200);
}
