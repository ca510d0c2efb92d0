//! Hands: packages of agents (spec 2, Hands).

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// The id of the hand of most tests.
pub(crate) const HAND: &str = "herald";

/// A hand with all of its parts.
pub(crate) const HERALD: &str = r#"
id = "herald"
version = "1.2.0"
name = "Herald"
description = "Writes news"
category = "content"
icon = "lucide:radio"
tools = ["memory_store", "memory_recall", "shell_exec", "browser_open"]
future_key = { x = 1 }

[[requires]]
key = "sh"
label = "A shell"
requirement_type = "binary"
check_value = "sh"

[[requires]]
key = "printer"
requirement_type = "binary"
check_value = "agentsvc-no-such-printer"
optional = true
[requires.install]
pip = "pip install printer"

[[settings]]
key = "style"
label = "Style"
setting_type = "select"
default = "short"
[[settings.options]]
value = "short"
label = "Short"
[[settings.options]]
value = "long"
label = "Long"
provider_env = "HERALD_PROVIDER"

[[settings]]
key = "token"
label = "Token"
setting_type = "text"
env_var = "HERALD_TOKEN"

[agents.main]
coordinator = true
name = "writer"
description = "Writes"
module = "builtin:chat"
provider = "default"
model = "default"
temperature = 0.3
max_iterations = 5
system_prompt = "You write news."

[agents.helper]
invoke_hint = "Facts of all kinds"
name = "clerk"
system_prompt = "You look up facts."

[dashboard]
[[dashboard.metrics]]
label = "Stories"
memory_key = "herald_stories"
format = "number"
[[dashboard.metrics]]
label = "Mood"
memory_key = "herald_mood"
format = "text"

[metadata]
frequency = "scheduled"

[i18n.zh]
name = "先驱"
[i18n.zh.settings.style]
label = "风格"
"#;

pub(crate) fn install(daemon: &Daemon, toml: &str) -> Value {
    daemon.post("/api/hands/install", &json!({ "toml_content": toml })).expect(201)
}

pub(crate) fn activate(daemon: &Daemon, hand: &str, config: &Value) -> Value {
    daemon.post(&format!("/api/hands/{hand}/activate"), &json!({ "config": config })).expect(201)
}

fn agents(daemon: &Daemon) -> Vec<String> {
    let all = daemon.get("/api/agents").expect(200);
    let mut names: Vec<String> = items(&all).iter().map(|agent| text(&agent["name"])).collect();
    names.retain(|name| name.contains(':'));
    names.sort();
    names
}

/// The rows of a list that is bare or under `agents`.
fn items(list: &Value) -> Vec<Value> {
    list.as_array().or_else(|| list["agents"].as_array()).cloned().unwrap_or_default()
}

pub(crate) fn instances(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/hands/active").expect(200)["instances"].as_array().cloned().expect("instances")
}

/// The opening of the last request that the model got.
fn prompt(model: &Model) -> String {
    model.requests().pop().expect("the model was asked")["messages"][0]["content"].to_string()
}

#[test]
fn a_hand_is_installed_listed_shown_and_uninstalled() {
    let mut daemon = Daemon::start();
    assert_eq!(daemon.get("/api/hands").expect(200), json!({ "hands": [], "total": 0 }));
    let body = json!({ "toml_content": HERALD, "skill_content": "---\nname: x\n---\nNews are short." });
    let made = daemon.post("/api/hands/install", &body).expect(201);
    assert_eq!((&made["id"], &made["active"], &made["is_custom"]), (&json!("herald"), &json!(false), &json!(true)));
    daemon.post("/api/hands/install", &body).refused(409);
    for _ in 0..2 {
        let list = daemon.get("/api/hands").expect(200);
        let row = &list["hands"][0];
        assert_eq!(
            (&list["total"], &row["requirements_met"], &row["degraded"]),
            (&json!(1), &json!(true), &json!(false))
        );
        assert_eq!((&row["dashboard_metrics"], &row["settings_count"]), (&json!(2), &json!(2)));
        assert_eq!(
            (&row["missing_tools"], &row["metadata"]["frequency"]),
            (&json!(["browser_open"]), &json!("scheduled"))
        );
        let met: Vec<_> = row["requirements"].as_array().unwrap().iter().map(|it| it["satisfied"].clone()).collect();
        assert_eq!(met, [json!(true), json!(false)]);
        daemon.restart();
    }
    let detail = daemon.get(&format!("/api/hands/{HAND}")).expect(200);
    assert_eq!((&detail["coordinator_role"], &detail["agent"]["name"]), (&json!("main"), &json!("writer")));
    assert_eq!((&detail["agents"][0]["role"], &detail["agents"][0]["model"]), (&json!("helper"), &json!("default")));
    assert_eq!(
        detail["dashboard"][0],
        json!({ "label": "Stories", "memory_key": "herald_stories", "format": "number" })
    );
    assert_eq!(
        (&detail["settings"][0]["options"][1]["available"], &detail["has_skill"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(detail["requirements"][1]["install"]["pip"], "pip install printer");
    let chinese =
        daemon.send("GET", &format!("/api/hands/{HAND}"), &[("accept-language", "zh-TW, en;q=0.5")], None).expect(200);
    assert_eq!((&chinese["name"], &chinese["settings"][0]["label"]), (&json!("先驱"), &json!("风格")));
    assert_eq!(daemon.delete(&format!("/api/hands/{HAND}")).expect(200)["status"], "uninstalled");
    daemon.get(&format!("/api/hands/{HAND}")).refused(404);
    assert!(!daemon.home().join("hands/herald").exists());
}

#[test]
fn bad_hands_are_refused_and_name_the_field() {
    let daemon = Daemon::start();
    let with = |toml: &str| json!({ "toml_content": toml });
    let agent = "[agent]\nsystem_prompt = 'x'\n";
    for (body, field) in [
        (json!({}), "toml_content"),
        (json!({ "toml_content": HERALD, "source": "x" }), "source"),
        (json!({ "source": "../x" }), "source"),
        (with("id = "), "toml_content"),
        (with(agent), "id"),
        (with(&format!("id = 'active'\n{agent}")), "id"),
        (with("id = 'x'"), "agents"),
        (with(&format!("id = 'x'\n{agent}[[settings]]\nkey = 'a'\nsetting_type = 'x'")), "settings[0].setting_type"),
    ] {
        let refused = daemon.post("/api/hands/install", &body);
        refused.refused_field(400, field);
    }
    std::fs::create_dir_all(daemon.home().join("registry/hands")).expect("a registry of its own");
    daemon.post("/api/hands/install", &json!({ "source": "none" })).refused(404);
    assert_eq!(daemon.get("/api/hands").expect(200)["total"], 0);
    install(&daemon, HERALD);
    for (config, field) in [
        (json!({ "style": "loud" }), "config.style"),
        (json!({ "style": ["short"] }), "config.style"),
        (json!("all"), "config"),
    ] {
        let refused = daemon.post(&format!("/api/hands/{HAND}/activate"), &json!({ "config": config }));
        refused.refused_field(400, field);
    }
    let wrong_agent = HERALD.replace("herald\"", "wrong\"").replace("temperature = 0.3", "temperature = 30.0");
    install(&daemon, &wrong_agent);
    let refused = daemon.post("/api/hands/wrong/activate", &json!({}));
    refused.refused_field(400, "agents.main");
    assert!(refused.text().contains("model.temperature"), "{}", refused.text());
    daemon.post("/api/hands/none/activate", &json!({})).refused(404);
    assert!(instances(&daemon).is_empty() && agents(&daemon).is_empty());
}

#[test]
fn an_instance_works_as_a_team_and_its_dashboard_reads_its_memory() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let body = json!({ "toml_content": HERALD, "skill_content": "News are short." });
    daemon.post("/api/hands/install", &body).expect(201);
    let made = activate(&daemon, "herald", &json!({ "style": "long" }));
    assert_eq!((&made["status"], &made["agent_name"]), (&json!("running"), &json!("herald:writer")));
    assert_eq!((&made["coordinator_role"], &made["config"]), (&json!("main"), &json!({ "style": "long" })));
    assert_eq!(agents(&daemon), ["herald:clerk", "herald:writer"]);
    assert_eq!(daemon.get("/api/hands").expect(200)["hands"][0]["degraded"], true, "a tool does not exist");
    let (id, writer) = (text(&made["instance_id"]), text(&made["agent_id"]));
    let tags = daemon.detail(&writer)["tags"].clone();
    assert_eq!(tags, json!(["hand:herald", "hand_role:main", format!("hand_instance:{id}")]));
    let store = json!({ "key": "herald_stories", "value": 7 }).to_string();
    let ask = json!({ "agent": "herald:clerk", "message": "Who won?" }).to_string();
    model.script([
        Reply::calls(&[("1", "memory_store", &store), ("2", "agent_send", &ask)]),
        Reply::text("The clerk knows."),
        Reply::text("Done."),
    ]);
    daemon.say(&writer, "Write the news");
    let opening = model.requests()[0]["messages"][0]["content"].to_string();
    for part in [
        "You write news.",
        "Style (`style`): Long (long)",
        "## Reference Knowledge",
        "News are short.",
        "`herald:clerk` (helper): Facts",
    ] {
        assert!(opening.contains(part), "{part}: {opening}");
    }
    let clerk = model.requests()[1]["messages"][0]["content"].to_string();
    assert!(clerk.contains("You look up facts.") && clerk.contains("`herald:writer` (main)"), "{clerk}");
    daemon.kill();
    daemon.restart();
    let stats = daemon.get(&format!("/api/hands/instances/{id}/stats")).expect(200);
    assert_eq!((&stats["events_processed"], &stats["errors"]), (&json!(2), &json!(0)));
    assert_eq!(stats["metrics"]["Stories"], json!({ "value": 7, "format": "number" }));
    assert_eq!(stats["metrics"]["Mood"], json!({ "value": null, "format": "text" }));
    assert!(stats["uptime_secs"].is_u64());
    assert_eq!(daemon.get(&format!("/api/hands/instances/{id}/browser")).expect(200), json!({ "active": false }));
    daemon.delete(&format!("/api/hands/{HAND}")).refused(409);
    let second = daemon.post(&format!("/api/hands/{HAND}/activate"), &json!({})).expect(201);
    assert_eq!((&second["agent_name"], &second["number"]), (&json!("herald:writer#2"), &json!(2)));
    let gone = daemon.delete(&format!("/api/hands/instances/{id}")).expect(200);
    assert_eq!(gone, json!({ "status": "deactivated", "instance_id": id }));
    assert_eq!(agents(&daemon), ["herald:clerk#2", "herald:writer#2"]);
    daemon.get(&format!("/api/hands/instances/{id}/stats")).refused(404);
}

#[test]
fn settings_change_the_prompt_and_secrets_reach_commands_only() {
    let model = Model::start();
    let config = format!("{}[exec_policy]\nmode = \"full\"\n", model.config());
    let daemon = Daemon::with_env(&config, &[("TEST_MODEL_KEY", "k"), ("HERALD_PROVIDER", "of-the-daemon")]);
    install(&daemon, HERALD);
    let settings = daemon.get(&format!("/api/hands/{HAND}/settings")).expect(200);
    assert_eq!((&settings["instance_id"], &settings["effective_values"]["style"]), (&Value::Null, &json!("short")));
    daemon.put(&format!("/api/hands/{HAND}/settings"), &json!({ "style": "long" })).refused(404);
    let made = activate(&daemon, "herald", &json!({ "token": "tell-no-one-4711" }));
    let writer = text(&made["agent_id"]);
    let changed =
        daemon.put(&format!("/api/hands/{HAND}/settings"), &json!({ "style": "long", "other": 5 })).expect(200);
    assert_eq!(changed["config"], json!({ "style": "long", "other": "5", "token": "***" }));
    let settings = daemon.get(&format!("/api/hands/{HAND}/settings")).expect(200);
    assert_eq!(settings["current_values"], json!({ "style": "long", "token": "***" }));
    assert_eq!(settings["unknown_values"], json!({ "other": "5" }));
    let print = json!({ "command": "echo $HERALD_TOKEN $HERALD_PROVIDER" }).to_string();
    model.script([Reply::calls(&[("1", "shell_exec", &print)])]);
    daemon.say(&writer, "go");
    let request = model.requests().pop().unwrap().to_string();
    assert!(prompt(&model).contains("Style (`style`): Long (long)"), "{request}");
    assert!(request.contains("tell-no-one-4711 of-the-daemon"), "the command got both: {request}");
    assert!(!prompt(&model).contains("tell-no-one"), "the prompt has no secret");
    let refused = daemon.put(&format!("/api/hands/{HAND}/settings"), &json!({ "style": "loud" }));
    refused.refused_field(400, "config.style");
    daemon.put(&format!("/api/hands/{HAND}/settings?instance_id=x"), &json!({})).refused(400);
    daemon.put(&format!("/api/hands/{HAND}/settings?instance_id={}", Uuid::nil()), &json!({})).refused(404);
    let cleared =
        daemon.put(&format!("/api/hands/{HAND}/settings"), &json!({ "style": null, "token": null })).expect(200);
    assert_eq!(cleared["config"], json!({ "other": "5" }));
    assert!(!daemon.stderr().contains("tell-no-one"), "no log has it");
}

#[test]
fn a_schedule_of_a_hand_fires_until_it_is_paused() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let toml = "id = 'beat'\n[agent]\nsystem_prompt = 'x'\nschedule = { periodic = { cron = 'every 1s' } }";
    install(&daemon, toml);
    let id = text(&activate(&daemon, "beat", &json!({}))["instance_id"]);
    let stats = |daemon: &Daemon| daemon.get(&format!("/api/hands/instances/{id}/stats")).expect(200);
    until("the schedule fires", || (stats(&daemon)["events_processed"].as_u64()? > 0).then_some(()));
    let act = |daemon: &Daemon, what: &str| match what {
        "pause" => daemon.post(&format!("/api/hands/instances/{id}/pause"), &json!({})),
        _ => daemon.post(&format!("/api/hands/instances/{id}/resume"), &json!({})),
    };
    act(&daemon, "resume").refused(409);
    assert_eq!(act(&daemon, "pause").expect(200)["status"], "paused");
    act(&daemon, "pause").refused(409);
    daemon.restart();
    assert_eq!(instances(&daemon)[0]["status"], "paused");
    let stopped = |daemon: &Daemon| daemon.get("/api/schedules").expect(200)["schedules"][0]["outcomes"].clone();
    until("a slot passes without a turn", || {
        (stopped(&daemon)["agent_stopped"].as_u64().unwrap_or(0) > 0).then_some(())
    });
    let before = stats(&daemon)["events_processed"].as_u64().unwrap();
    assert_eq!(act(&daemon, "resume").expect(200)["status"], "running");
    until("it fires again", || (stats(&daemon)["events_processed"].as_u64()? > before).then_some(()));
    assert_eq!(daemon.get(&format!("/api/hands/instances/{id}")).expect(200)["instance_id"], json!(id));
    daemon.delete(&format!("/api/hands/instances/{id}")).expect(200);
    assert_eq!(daemon.get("/api/schedules").expect(200)["schedules"], json!([]));
}

#[test]
fn an_agent_that_is_deleted_leaves_its_instance_in_error() {
    let daemon = Daemon::start();
    install(&daemon, HERALD);
    let made = activate(&daemon, "herald", &json!({}));
    let clerk = text(&made["agent_ids"]["helper"]);
    assert!(daemon.delete(&format!("/api/agents/{clerk}")).status < 300);
    let one = &instances(&daemon)[0];
    assert_eq!((&one["status"], &one["error"]), (&json!("error"), &json!("deleted agents: herald:clerk")));
}

#[test]
fn a_name_that_is_taken_stops_the_whole_activation() {
    let daemon = Daemon::start();
    daemon.agent("herald:writer");
    install(&daemon, HERALD);
    daemon.post(&format!("/api/hands/{HAND}/activate"), &json!({})).refused(409);
    assert_eq!((agents(&daemon), instances(&daemon).len()), (vec!["herald:writer".to_owned()], 0));
}

#[test]
fn a_kill_in_the_middle_of_activations_leaves_whole_instances() {
    let mut daemon = Daemon::with("rate_limit_per_second = 100000\n");
    install(&daemon, HERALD);
    for round in 0..3 {
        let client = daemon.client();
        let busy = std::thread::spawn(move || {
            let mut acknowledged = Vec::new();
            while let Ok(reply) = client.try_send("POST", &format!("/api/hands/{HAND}/activate"), &[], Some(b"{}")) {
                if reply.status == 201 {
                    acknowledged.push(text(&reply.expect(201)["instance_id"]));
                }
            }
            acknowledged
        });
        until("some are activated", || (instances(&daemon).len() > round * 3 + 2).then_some(()));
        daemon.kill();
        let acknowledged = busy.join().unwrap();
        daemon.restart();
        let all = instances(&daemon);
        let mut expected = Vec::new();
        for one in &all {
            assert_eq!(one["status"], "running", "{one}");
            let suffix = if one["number"] == 1 { String::new() } else { format!("#{}", one["number"]) };
            expected.extend(["clerk", "writer"].map(|name| format!("herald:{name}{suffix}")));
        }
        expected.sort();
        assert_eq!(listed_all(&daemon), expected, "no agent without its instance, and none missing");
        assert!(acknowledged.iter().all(|id| all.iter().any(|one| one["instance_id"] == **id)), "nothing is lost");
    }
}

/// All agents of hands, over all pages.
fn listed_all(daemon: &Daemon) -> Vec<String> {
    let mut names = Vec::new();
    for one in instances(daemon) {
        for id in one["agent_ids"].as_object().expect("agents").values() {
            names.push(text(&daemon.detail(&text(id))["name"]));
        }
    }
    let status = daemon.get("/api/agents?limit=1").expect(200);
    if let Some(total) = status["total"].as_u64() {
        let others = agents_elsewhere(daemon);
        assert_eq!(total as usize, names.len() + others, "each agent belongs to an instance");
    }
    names.sort();
    names
}

/// How many agents belong to no hand.
fn agents_elsewhere(daemon: &Daemon) -> usize {
    items(&daemon.get("/api/agents?limit=100").expect(200)).iter().filter(|it| !text(&it["name"]).contains(':')).count()
}
