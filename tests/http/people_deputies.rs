//! Confused deputies: what a user or viewer may not do, their agents, triggers, schedules, workflows and chats do not do for
//! them; and what a user had a hand in before stops when it is another's.

use std::time::Duration;

use serde_json::{Value, json};

use crate::inbox::{drop_file, gone};
use crate::peer_wire::{self, network};
use crate::people::{daemon, person};
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::{clear_of_the_hour, until};

/// An agent of `client` that has all tools.
fn agent(client: &Client, name: &str) -> String {
    let manifest =
        format!("name = \"{name}\"\n[capabilities]\ntools = [\"*\"]\nnetwork = [\"*\"]\nagent_spawn = true\n");
    text(&client.post("/api/agents", &json!({ "manifest_toml": manifest })).expect(201)["agent_id"])
}

/// What an agent says to a message.
fn ask(client: &Client, agent: &str, message: &str) -> String {
    let reply = client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": message }));
    text(&reply.expect(200)["response"])
}

fn tool(client: &Client, agent: &str, tool: &str, input: &Value) -> String {
    ask(client, agent, &format!("/tool {tool} {input}"))
}

/// Gives an agent to a user; null gives it to the installation.
fn give(daemon: &Daemon, agent: &str, user: &Value) {
    daemon.put(&format!("/api/agents/{agent}/owner"), &json!({ "user_id": user })).expect(200);
}

fn messages(client: &Client, agent: &str) -> u64 {
    let session = text(&client.get(&format!("/api/agents/{agent}")).expect(200)["session_id"]);
    client.get(&format!("/api/sessions/{session}")).expect(200)["message_count"].as_u64().expect("a count")
}

#[test]
fn an_agent_of_a_user_has_no_tool_for_what_the_user_may_not_do() {
    let daemon = daemon();
    let (bob_id, bob) = person(&daemon, "bob", "user");
    let own = agent(&bob, "bobs");
    let child = tool(
        &bob,
        &own,
        "agent_spawn",
        &json!({ "manifest_toml": "name = \"child\"\n[capabilities]\ntools = [\"*\"]\nnetwork = [\"*\"]\n" }),
    );
    assert!(child.contains("child"), "{child}");
    let children = bob.get("/api/agents?name=child").expect(200);
    let of_all = daemon.agent("shared");
    let skill = json!({ "name": "s", "description": "d", "prompt_context": "p" });
    let calls = [
        ("a2a_list", json!({})),
        ("a2a_send", json!({ "agent_url": "x", "message": "m" })),
        ("skill_evolve_create", skill),
    ];
    let text_of = |client: &Client, agent: &str| {
        calls.iter().map(|(name, input)| tool(client, agent, name, input)).collect::<Vec<_>>()
    };
    for agent in [own.clone(), text(&children[0]["id"])] {
        for (said, (name, _)) in text_of(&bob, &agent).iter().zip(&calls) {
            assert!(said.contains(&format!("cannot use {name}")), "{said}");
        }
    }
    let audit = daemon.get("/api/audit/recent").text();
    assert!(audit.contains(r#"\"reason\":\"owner\""#) && audit.contains("tool_refused"), "{audit}");
    let spawned = tool(&bob, &own, "agent_send", &json!({ "agent": of_all, "message": "hi" }));
    assert!(spawned.contains("not found"), "{spawned}");
    // An admin may do it, and so may agents of theirs, from the change of the role on.
    daemon.put(&format!("/api/users/{bob_id}"), &json!({ "role": "admin" })).expect(200);
    for said in text_of(&bob, &own) {
        assert!(!said.contains("cannot use"), "{said}");
    }
}

#[test]
fn an_agent_that_went_to_another_user_does_nothing_more_for_the_first() {
    let daemon = daemon();
    let (_, ann) = person(&daemon, "ann", "user");
    let (bob_id, bob) = person(&daemon, "bob", "user");
    let (first, second) = (agent(&ann, "first"), agent(&ann, "second"));
    let trigger = json!({ "agent_id": first, "target_agent_id": second, "pattern": { "all": {} }, "cooldown_secs": 0,
        "prompt_template": "SPY" });
    let trigger = text(&ann.post("/api/triggers", &trigger).expect(201)["trigger_id"]);
    let steps = json!([{ "agent_id": second, "prompt": "{{input}}" }]);
    let flow = text(&ann.post("/api/workflows", &json!({ "name": "w", "steps": steps })).expect(201)["workflow_id"]);
    let schedule = json!({ "cron": "@daily", "agent_id": second, "prompt": "hi" });
    let schedule = text(&ann.post("/api/schedules", &schedule).expect(201)["id"]);
    let change = |client: &Client, words: &str| {
        client.patch(&format!("/api/agents/{first}"), &json!({ "description": words })).expect(200);
    };
    change(&ann, "wake it");
    until("the trigger has woken the other agent", || (messages(&ann, &second) > 0).then_some(()));
    give(&daemon, &second, &json!(bob_id));
    let refusals = || {
        let fires = ann.get(&format!("/api/triggers/{trigger}/fires")).expect(200);
        fires["outcomes"]["refused"].as_u64().unwrap_or_default()
    };
    let before = refusals();
    change(&ann, "wake it again");
    until("the trigger is refused", || (refusals() > before).then_some(()));
    let said = ann.post(&format!("/api/workflows/{flow}/run"), &json!({ "input": "x" })).refused(404);
    assert!(said.contains("not found"), "{said}");
    ann.get(&format!("/api/workflows/{flow}")).refused(404);
    ann.post(&format!("/api/schedules/{schedule}/run"), &json!({})).refused(404);
    ann.get(&format!("/api/memory/agents/{second}/kv")).refused(404);
    // It is the other user's now, with what belongs to it.
    bob.get(&format!("/api/schedules/{schedule}")).expect(200);
    bob.get(&format!("/api/triggers/{trigger}")).refused(404);
    bob.get(&format!("/api/memory/agents/{second}/kv")).expect(200);
}

#[test]
fn a_workflow_of_a_user_runs_agents_of_the_user_alone_whatever_bears_the_name() {
    let daemon = daemon();
    let (_, ann) = person(&daemon, "ann", "user");
    let own = agent(&ann, "helper");
    let flow = json!({ "name": "w", "steps": [{ "agent_name": "helper", "prompt": "{{input}}" }] });
    let flow = text(&ann.post("/api/workflows", &flow).expect(201)["workflow_id"]);
    ann.post(&format!("/api/workflows/{flow}/run"), &json!({ "input": "mine" })).expect(200);
    ann.delete(&format!("/api/agents/{own}")).expect(200);
    let other = daemon.agent("helper");
    ann.post(&format!("/api/workflows/{flow}/run"), &json!({ "input": "theirs" })).refused(404);
    assert_eq!(messages(&daemon.keyed("the-key-of-the-configuration"), &other), 0);
    // One that an admin made for agents of others is none that an agent of the user runs.
    let steps = json!([{ "agent_name": "helper", "prompt": "{{input}}" }]);
    daemon.post("/api/workflows", &json!({ "name": "of all", "steps": steps })).expect(201);
    let deputy = agent(&ann, "deputy");
    let said = tool(&ann, &deputy, "workflow_run", &json!({ "workflow": "of all", "input": "theirs" }));
    assert!(said.contains("not found") || said.contains("no workflow"), "{said}");
    assert_eq!(messages(&daemon.keyed("the-key-of-the-configuration"), &other), 0);
}

#[test]
fn a_viewer_starts_nothing_by_any_way() {
    let daemon = daemon();
    let (eve_id, eve) = person(&daemon, "eve", "viewer");
    let own = daemon.agent("eves");
    give(&daemon, &own, &json!(eve_id));
    let schedule = json!({ "cron": "@daily", "agent_id": own, "prompt": "hi" });
    let schedule = text(&daemon.post("/api/schedules", &schedule).expect(201)["id"]);
    let steps = json!([{ "agent_id": own, "prompt": "{{input}}" }]);
    let flow = text(&daemon.post("/api/workflows", &json!({ "name": "w", "steps": steps })).expect(201)["workflow_id"]);
    let trigger = json!({ "agent_id": own, "pattern": { "all": {} }, "prompt_template": "x" });
    let session = text(&eve.get(&format!("/api/agents/{own}")).expect(200)["session_id"]);
    for (path, body) in [
        (format!("/api/agents/{own}/message"), json!({ "message": "hi" })),
        (format!("/api/agents/{own}/message/stream"), json!({ "message": "hi" })),
        (format!("/api/agents/{own}/session/reset"), json!({})),
        (format!("/api/agents/{own}/clone"), json!({})),
        (format!("/api/schedules/{schedule}/run"), json!({})),
        (format!("/api/workflows/{flow}/run"), json!({ "input": "x" })),
        ("/api/triggers".to_owned(), trigger),
        ("/api/tasks".to_owned(), json!({ "title": "t", "assignee": own })),
        ("/api/goals".to_owned(), json!({ "title": "g", "agent_id": own })),
    ] {
        eve.post(&path, &body).refused(403);
    }
    for path in
        [format!("/api/sessions/{session}"), format!("/api/schedules/{schedule}"), format!("/api/workflows/{flow}")]
    {
        eve.get(&path).expect(200);
        eve.delete(&path).refused(403);
    }
    assert_eq!(messages(&eve, &own), 0);
    assert_eq!(eve.get("/api/agents").expect(200).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_user_reads_their_own_budget_and_an_admin_sets_it() {
    clear_of_the_hour(Duration::from_secs(60));
    let daemon = daemon();
    let (ann_id, ann) = person(&daemon, "ann", "user");
    let (bob_id, bob) = person(&daemon, "bob", "user");
    let path = format!("/api/budget/users/{ann_id}");
    let limits = json!({ "daily_limit_usd": 5.0, "hourly_token_limit": 1 });
    ann.put(&path, &limits).refused(403);
    bob.get(&path).refused(404);
    let set = daemon.put(&format!("/api/budget/users/{ann_id}"), &limits).expect(200);
    assert_eq!((&set["user_id"], &set["daily_limit_usd"], &set["status"]), (&json!(ann_id), &json!(5.0), &json!("ok")));
    daemon.put(&path, &json!({ "daily_limit_usd": -1 })).refused_field(400, "daily_limit_usd");
    let agents = [agent(&ann, "one"), agent(&ann, "two")];
    ask(&ann, &agents[0], "hello");
    assert!(ann.get(&path).expect(200)["hourly_tokens_used"].as_u64() > Some(0));
    let refused = ann.post(&format!("/api/agents/{}/message", agents[1]), &json!({ "message": "hello" }));
    assert!(refused.refused(429).contains(&format!("of user {ann_id}")));
    ask(&bob, &agent(&bob, "bobs"), "hello");
    assert_eq!(bob.get(&format!("/api/budget/users/{bob_id}")).expect(200)["hourly_token_limit"], 0);
    daemon.delete(&format!("/api/users/{ann_id}")).expect(204);
    daemon.get(&path).refused(404);
}

#[test]
fn what_an_admin_changes_is_on_the_trail_under_their_key() {
    let daemon = daemon();
    let made = daemon.post("/api/keys", &json!({ "name": "ops", "role": "admin" })).expect(201);
    let (ops, key) = (daemon.keyed(&text(&made["key"])), text(&made["id"]));
    ops.post("/api/models/aliases", &json!({ "alias": "quick", "model_id": "gpt-4o-mini" })).expect(201);
    ops.post("/api/providers/openai/key", &json!({ "api_key": "sk-a-key-of-the-test" })).expect(200);
    ops.delete("/api/providers/openai/key").expect(200);
    let binding = json!({ "event": "message", "key": "x", "command": "new" });
    let _refused_or_not = ops.post("/api/bindings", &binding).status;
    let server = json!({ "name": "s", "command": "true" });
    let _made_or_not = ops.post("/api/mcp/servers", &server).status;
    ops.post("/api/channels/reload", &json!({})).expect(200);
    let trail = daemon.get("/api/audit/recent?limit=100").expect(200);
    let entries = trail["entries"].as_array().expect("entries").clone();
    let by_ops: Vec<_> = entries.iter().filter(|entry| text(&entry["actor"]).contains(&key)).collect();
    for kind in ["alias", "provider_key"] {
        let of_kind = |entry: &&Value| text(&entry["event_type"]).contains(kind);
        assert!(by_ops.iter().any(of_kind), "{kind}: {trail}");
    }
    let made_at = entries.iter().position(|entry| entry["event_type"] == "key_created").expect("the key");
    for (at, entry) in entries.iter().enumerate().filter(|(at, _)| *at < made_at) {
        assert_ne!(entry["actor"], "api", "{at}: {entry}");
    }
}

/// What comes from outside names agents of the installation alone, whatever is offered.
#[test]
fn no_hook_peer_or_file_reaches_an_agent_of_a_user() {
    let (key, token) = ("the-key-of-the-configuration-0123456789", "a-token-of-hooks-with-32-bytes-or-more");
    let config = format!(
        "api_key = \"{key}\"\n{}[a2a]\nenabled = true\nagents = [\"*\", \"bobs\"]\n[webhook_triggers]\nenabled = true\n\
         token_env = \"HOOK_TOKEN\"\n[inbox]\nenabled = true\npoll_interval_secs = 1\n",
        network("agents = [\"*\", \"bobs\"]")
    );
    let mut daemon = Daemon::with_env(&config, &[("HOOK_TOKEN", token)]);
    daemon.use_key(key);
    let (_, bob) = person(&daemon, "bob", "user");
    let (own, shared) = (agent(&bob, "bobs"), daemon.agent("shared"));
    let hook = |name: &str| daemon.keyed(token).post("/api/hooks/agent", &json!({ "message": "hi", "agent": name }));
    hook("bobs").refused_field(404, "agent");
    hook("shared").expect(200);

    let guest = Client { key: None, ..daemon.client() };
    for path in ["/.well-known/agent-card.json", "/a2a/agents"] {
        let card = guest.get(path).expect(200).to_string();
        assert!(card.contains("shared") && !card.contains("bobs") && !card.contains(&own), "{path}: {card}");
    }
    let task = |agent: &str| {
        let said = json!({ "role": "user", "parts": [{ "text": "hi" }] });
        guest.post("/a2a/tasks/send", &json!({ "agent_id": agent, "message": said }))
    };
    for name in ["bobs", &*own] {
        task(name).refused_field(404, "agent_id");
    }
    task("shared").expect(200);

    for name in ["bobs", &*own] {
        let (told, answer) = peer_wire::told(&daemon, name);
        assert!(told.iter().any(|name| name == "shared") && told.iter().all(|name| name != "bobs"), "{told:?}");
        assert!(answer["message"].as_str().is_some_and(|why| why.contains("there is no agent")), "{answer}");
    }
    let (_, answer) = peer_wire::told(&daemon, "shared");
    assert!(answer["text"].is_string(), "{answer}");

    gone(&drop_file(&daemon, "one.txt", b"agent:bobs\nhi"));
    let reason = daemon.home().join("inbox/failed");
    let reason = until("why it was not told is there", || {
        let mut files = std::fs::read_dir(&reason).ok()?.flatten().map(|file| file.path());
        let path = files.find(|path| path.extension().is_some_and(|it| it == "reason"))?;
        std::fs::read_to_string(path).ok().filter(|reason| !reason.is_empty())
    });
    assert!(reason.contains("no agent \"bobs\""), "{reason}");
    let before = messages(&daemon, &shared);
    gone(&drop_file(&daemon, "two.txt", b"agent:shared\nhi"));
    until("the agent of all is told", || (messages(&daemon, &shared) > before).then_some(()));
    assert_eq!(messages(&daemon, &own), 0);
}

/// Webhooks send what happens to all agents out, and hands, plugins and skills run for all.
#[test]
fn no_user_or_viewer_changes_what_runs_for_all() {
    let daemon = daemon();
    let people = [person(&daemon, "bob", "user").1, person(&daemon, "eve", "viewer").1];
    let hook = json!({ "name": "h", "url": "https://93.184.215.14/h", "events": ["all"], "enabled": false });
    let named = json!({ "name": "x", "slug": "x", "description": "d", "prompt_context": "p", "version": "1" });
    for (path, body) in [
        ("/api/webhooks", &hook),
        ("/api/webhooks/events", &hook),
        ("/api/hands/install", &named),
        ("/api/hands/reload", &named),
        ("/api/hands/x/activate", &named),
        ("/api/hands/x/install-deps", &named),
        ("/api/plugins/install", &named),
        ("/api/plugins/uninstall", &named),
        ("/api/plugins/scaffold", &named),
        ("/api/plugins/x/enable", &named),
        ("/api/plugins/x/test-hook", &named),
        ("/api/skills/install", &named),
        ("/api/skills/uninstall", &named),
        ("/api/skills/create", &named),
        ("/api/skills/reload", &named),
        ("/api/skills/x/evolve/update", &named),
        ("/api/clawhub/install", &named),
        ("/api/extensions/install", &named),
    ] {
        for client in &people {
            client.post(path, body).refused(403);
        }
    }
    for list in ["/api/webhooks", "/api/hands", "/api/plugins", "/api/skills"] {
        let all = daemon.get(list).text();
        assert!(!all.contains("\"name\":\"x\"") && !all.contains("93.184.215.14"), "{list}: {all}");
        people.iter().for_each(|client| drop(client.get(list).refused(403)));
    }
    // It is the role that was refused.
    daemon.post("/api/webhooks/events", &hook).expect(201);
}
