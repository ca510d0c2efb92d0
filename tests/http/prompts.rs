//! Versions of system prompts and experiments over HTTP (spec 3, Remaining routes), with and without `/api`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::people::person;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;

const ENABLED: &str = "[prompt_intelligence]\nenabled = true\n";

fn harness() -> (Model, Daemon) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}{ENABLED}", model.config()));
    (model, daemon)
}

fn save(client: &Client, agent: &str, prompt: &str) -> String {
    let body = json!({ "system_prompt": prompt });
    text(&client.post(&format!("/api/agents/{agent}/prompts/versions"), &body).expect(201)["id"])
}

/// The system text of the newest request.
fn system(model: &Model) -> String {
    let request = model.requests().pop().expect("it was asked");
    let first = &request["messages"][0];
    if first["role"] == "system" { text(&first["content"]) } else { String::new() }
}

/// An agent with two versions and an experiment that runs.
fn running(daemon: &Daemon, criteria: &Value) -> (String, Value) {
    let agent = daemon.agent_with("tested", "system_prompt = \"Own.\"\n");
    let versions = [save(daemon, &agent, "Be kind."), save(daemon, &agent, "Be brief.")];
    let variants = versions.map(|id| json!({ "prompt_version_id": id }));
    let body = json!({ "name": "tone", "variants": variants, "success_criteria": criteria });
    let made = daemon.post(&format!("/api/agents/{agent}/prompts/experiments"), &body).expect(201);
    let started = daemon.poke(&format!("/api/prompts/experiments/{}/start", text(&made["id"]))).expect(200);
    (agent, started)
}

fn metrics(client: &Client, experiment: &Value) -> Value {
    client.get(&format!("/api/prompts/experiments/{}/metrics", text(&experiment["id"]))).expect(200)
}

/// The sum of a figure over all variants.
fn sum(metrics: &Value, figure: &str) -> u64 {
    metrics["metrics"].as_array().unwrap().iter().map(|of| of[figure].as_u64().expect("a count")).sum()
}

fn session(daemon: &Daemon, agent: &str) -> String {
    text(&daemon.post(&format!("/api/agents/{agent}/sessions"), &json!({})).expect(201)["session_id"])
}

#[test]
fn versions_are_saved_compared_activated_and_deleted_under_both_paths() {
    let (model, mut daemon) = harness();
    let agent = daemon.agent_with("a", "system_prompt = \"Own.\"\n");
    for prefix in ["", "/api"] {
        let of_agent = format!("{prefix}/agents/{agent}/prompts/versions");
        let one = daemon.post(&of_agent, &json!({})).expect(201);
        assert_eq!((&one["system_prompt"], &one["is_active"]), (&json!("Own."), &json!(false)));
        let hash = "c66e35fd40d2b48b06ae3db30e9f489ef029037640f90a88be61e55084d9d11a";
        assert_eq!(one["content_hash"], hash);
        let body = json!({ "system_prompt": "Own.\nBe kind.", "description": "kind", "tools": ["web_fetch"],
            "variables": ["name"] });
        let two = daemon.post(&of_agent, &body).expect(201);
        for (key, value) in [("description", "kind"), ("created_by", "api"), ("agent_id", &agent)] {
            assert_eq!(two[key], value, "{key}");
        }
        assert_eq!((&two["tools"], &two["variables"]), (&json!(["web_fetch"]), &json!(["name"])));
        assert_eq!(two["version"].as_u64(), one["version"].as_u64().map(|number| number + 1));
        let path = |of: &Value, rest: &str| format!("{prefix}/prompts/versions/{}{rest}", text(&of["id"]));
        let found = daemon.get(&path(&two, "/diff")).expect(200);
        assert_eq!((&found["added"], &found["from_id"]), (&json!(2), &one["id"]), "{found}");
        assert!(text(&found["diff"]).contains("\n+Be kind."), "{found}");
        let back = daemon.get(&path(&one, &format!("/diff?with={}", text(&two["id"])))).expect(200);
        assert_eq!((&back["removed"], &back["from_id"]), (&json!(2), &two["id"]));
        let active = daemon.post(&path(&two, "/activate"), &json!({ "agent_id": agent })).expect(200);
        assert_eq!(active["is_active"], true);
        daemon.say(&agent, "hello");
        assert_eq!(system(&model), "Own.\nBe kind.");
        daemon.kill();
        daemon.restart();
        assert_eq!(daemon.get(&path(&two, "")).expect(200), active, "it outlives a kill");
        let list = daemon.get(&of_agent).expect(200);
        assert!(list["versions"].as_array().unwrap().contains(&active), "{list}");
        daemon.delete(&path(&two, "")).refused(409);
        daemon.poke(&path(&one, "/activate")).expect(200);
        daemon.delete(&path(&two, "")).expect(204);
        daemon.get(&path(&two, "")).refused(404);
    }
    let trail = daemon.get("/api/audit/recent").text();
    assert!(trail.contains("prompt_version_activated") && trail.contains("prompt_version_deleted"));
}

/// The same, each route said whole.
#[test]
fn every_route_answers_under_api() {
    let (_model, daemon) = harness();
    let (agent, experiment) = running(&daemon, &json!({ "require_user_helpful": true }));
    let id = text(&experiment["id"]);
    let list = daemon.get(&format!("/api/agents/{agent}/prompts/versions?limit=1")).expect(200);
    assert_eq!((&list["total"], list["versions"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    let version = text(&list["versions"][0]["id"]);
    daemon.get(&format!("/api/prompts/versions/{version}")).expect(200);
    assert_eq!(daemon.get(&format!("/api/prompts/versions/{version}/diff")).expect(200)["from_id"], json!(null));
    daemon.poke(&format!("/api/prompts/versions/{version}/activate")).expect(200);
    let spare = save(&daemon, &agent, "Spare.");
    daemon.delete(&format!("/api/prompts/versions/{spare}")).expect(204);
    let all = daemon.get(&format!("/api/agents/{agent}/prompts/experiments")).expect(200);
    assert_eq!(all["experiments"], json!([experiment]));
    assert_eq!(daemon.get(&format!("/api/prompts/experiments/{id}")).expect(200), experiment);
    daemon.delete(&format!("/api/prompts/experiments/{id}")).refused(409);
    daemon.poke(&format!("/api/prompts/experiments/{id}/pause")).expect(200);
    daemon.poke(&format!("/api/prompts/experiments/{id}/start")).expect(200);
    let said = daemon.say(&agent, "hello");
    let body = json!({ "turn_id": said["turn_id"], "helpful": true });
    let rated = daemon.post(&format!("/api/prompts/experiments/{id}/feedback"), &body).expect(200);
    assert_eq!((&rated["won"], &rated["turn_id"]), (&json!(true), &said["turn_id"]));
    let figures = daemon.get(&format!("/api/prompts/experiments/{id}/metrics")).expect(200);
    assert_eq!((sum(&figures, "impressions"), sum(&figures, "wins")), (1, 1));
    daemon.post(&format!("/api/prompts/experiments/{id}/complete"), &json!({})).expect(200);
    daemon.delete(&format!("/api/prompts/experiments/{id}")).expect(204);
    daemon.get(&format!("/api/prompts/experiments/{id}")).refused(404);
}

#[test]
fn an_experiment_gives_each_session_one_prompt_and_counts_its_turns() {
    let (model, mut daemon) = harness();
    let (agent, experiment) = running(&daemon, &json!({}));
    assert_eq!((&experiment["traffic_split"], &experiment["status"]), (&json!([50, 50]), &json!("running")));
    let path = |rest: &str| format!("/prompts/experiments/{}{rest}", text(&experiment["id"]));
    let sessions: Vec<_> = (0..14).map(|_| session(&daemon, &agent)).collect();
    let prompts = |daemon: &Daemon| -> Vec<String> {
        let say = |session: &String| {
            daemon.say_in(&agent, session, "hello");
            system(&model)
        };
        sessions.iter().map(say).collect()
    };
    let first = prompts(&daemon);
    let seen: BTreeSet<_> = first.iter().map(String::as_str).collect();
    assert_eq!(seen, BTreeSet::from(["Be brief.", "Be kind."]));
    daemon.kill();
    daemon.restart();
    assert_eq!(prompts(&daemon), first);
    let figures = metrics(&daemon, &experiment);
    for (figure, count) in [
        ("impressions", 28),
        ("wins", 28),
        ("total_requests", 28),
        ("successful_requests", 28),
        ("failed_requests", 0),
        ("rated", 0),
    ] {
        assert_eq!(sum(&figures, figure), count, "{figure}");
    }
    let kind = &figures["metrics"][0];
    let of_kind = first.iter().filter(|prompt| *prompt == "Be kind.").count() as u64 * 2;
    assert_eq!((&kind["variant_name"], kind["impressions"].as_u64()), (&json!("A"), Some(of_kind)));
    assert_eq!((&kind["win_rate"], &kind["success_rate"]), (&json!(1.0), &json!(1.0)));
    assert!(kind["avg_latency_ms"].as_f64().is_some() && kind["avg_cost_usd"].as_f64().is_some(), "{kind}");
    let shown = &figures["significance"];
    let compared = &shown["comparisons"][0];
    assert_eq!((&compared["verdict"], &compared["p_value"]), (&json!("not_enough_data"), &json!(null)), "{shown}");
    assert!(text(&compared["reason"]).contains("needs 30") && text(&shown["test"]).contains("z-test"), "{shown}");
    // A turn that fails counts as such.
    model.fail(400);
    let body = json!({ "message": "hello", "session_id": sessions[0] });
    assert!(daemon.post(&format!("/api/agents/{agent}/message"), &body).status >= 500);
    assert_eq!(sum(&metrics(&daemon, &experiment), "failed_requests"), 1);
    daemon.poke(&path("/pause")).expect(200);
    daemon.poke(&path("/pause")).refused(409);
    let winner = experiment["variants"][1]["id"].clone();
    let body = json!({ "winner_variant_id": winner, "activate": true });
    let done = daemon.post(&path("/complete"), &body).expect(200);
    assert_eq!((&done["status"], &done["winner_variant_id"]), (&json!("completed"), &winner));
    assert_eq!(daemon.detail(&agent)["system_prompt"], "Be brief.");
    daemon.poke(&path("/start")).refused(409);
    assert_eq!(daemon.get(&path("")).expect(200), done);
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    daemon.get(&path("")).refused(404);
}

#[test]
fn feedback_makes_wins_and_its_last_word_counts() {
    let (_model, daemon) = harness();
    let (agent, experiment) = running(&daemon, &json!({ "require_user_helpful": true }));
    let of = session(&daemon, &agent);
    let said = daemon.say_in(&agent, &of, "hello");
    let give = |body: &Value| daemon.post(&format!("/prompts/experiments/{}/feedback", text(&experiment["id"])), body);
    let wins = || sum(&metrics(&daemon, &experiment), "wins");
    assert_eq!(wins(), 0);
    for (helpful, expected) in [(true, 1), (true, 1), (false, 0), (true, 1)] {
        give(&json!({ "session_id": of, "helpful": helpful })).expect(200);
        assert_eq!(wins(), expected);
    }
    assert_eq!(sum(&metrics(&daemon, &experiment), "rated"), 1);
    give(&json!({ "turn_id": said["turn_id"] })).refused_field(400, "helpful");
    give(&json!({ "helpful": true })).refused_field(400, "turn_id");
    give(&json!({ "turn_id": said["turn_id"], "helpful": true, "score": 2 })).refused_field(400, "score");
    give(&json!({ "turn_id": Uuid::nil(), "helpful": true })).refused(404);
}

#[test]
fn bad_bodies_name_their_field() {
    let (_model, daemon) = harness();
    let agent = daemon.agent("a");
    let (one, two) = (save(&daemon, &agent, "One."), save(&daemon, &agent, "Two."));
    let versions = format!("/agents/{agent}/prompts/versions");
    daemon.post(&versions, &json!({ "system_prompt": " " })).refused_field(400, "system_prompt");
    daemon.post(&versions, &json!({ "system_prompt": 1 })).refused_field(400, "system_prompt");
    daemon.post(&versions, &json!({ "system_prompt": "x".repeat(70_000) })).refused_field(400, "system_prompt");
    daemon.post(&versions, &json!({ "system_prompt": "x", "tools": [""] })).refused_field(400, "tools");
    let experiments = format!("/agents/{agent}/prompts/experiments");
    let both = json!([{ "prompt_version_id": one }, { "prompt_version_id": two }]);
    for (body, field) in [
        (json!({ "variants": both }), "name"),
        (json!({ "name": "x" }), "variants"),
        (json!({ "name": "x", "variants": [{}, {}] }), "prompt_version_id"),
        (json!({ "name": "x", "variants": both, "traffic_split": [1, 2] }), "traffic_split"),
        (json!({ "name": "x", "variants": both, "success_criteria": { "custom_min_score": 3 } }), "custom_min_score"),
    ] {
        daemon.post(&experiments, &body).refused_field(400, field);
    }
    let other = daemon.agent("b");
    let activate = format!("/prompts/versions/{one}/activate");
    daemon.post(&activate, &json!({ "agent_id": other })).refused_field(400, "agent_id");
    let foreign = save(&daemon, &other, "Foreign.");
    daemon.get(&format!("/prompts/versions/{one}/diff?with={foreign}")).refused_field(400, "with");
    assert_eq!(daemon.get(&versions).expect(200)["total"], 2);
    assert_eq!(daemon.get(&experiments).expect(200)["experiments"], json!([]));
}

#[test]
fn it_works_only_when_it_is_enabled() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "system_prompt = \"Own.\"\n");
    for path in [format!("/agents/{agent}/prompts/versions"), format!("/api/agents/{agent}/prompts/experiments")] {
        let refused = daemon.get(&path).expect(404);
        assert_eq!(refused["code"], "prompt_intelligence_disabled", "{refused}");
        assert!(text(&refused["error"]).contains("enabled = true"), "{refused}");
    }
    // It can be switched on and off while the daemon runs; off, a running experiment rests.
    let set = |enabled: &str| {
        fs::write(daemon.home().join("config.toml"), model.config() + enabled).expect("it is writable");
        daemon.poke("/api/config/reload").expect(200);
    };
    set(ENABLED);
    let (one, two) = (save(&daemon, &agent, "One."), save(&daemon, &agent, "Two."));
    let variants = json!([{ "prompt_version_id": one }, { "prompt_version_id": two }]);
    let body = json!({ "name": "x", "variants": variants });
    let made = daemon.post(&format!("/agents/{agent}/prompts/experiments"), &body).expect(201);
    daemon.poke(&format!("/prompts/experiments/{}/start", text(&made["id"]))).expect(200);
    daemon.say(&agent, "hello");
    assert!(["One.", "Two."].contains(&&*system(&model)));
    set("");
    daemon.say(&agent, "hello");
    assert_eq!(system(&model), "Own.");
}

#[test]
fn a_user_reaches_the_prompts_of_their_own_agents_alone() {
    let daemon = {
        let mut daemon = Daemon::with(&format!("api_key = \"the-key-of-the-configuration\"\n{ENABLED}"));
        daemon.use_key("the-key-of-the-configuration");
        daemon
    };
    let (_, ann) = person(&daemon, "ann", "user");
    let (_, bob) = person(&daemon, "bob", "user");
    let agent =
        text(&ann.post("/api/agents", &json!({ "manifest_toml": "name = \"anns\"\n" })).expect(201)["agent_id"]);
    let (one, two) = (save(&ann, &agent, "One."), save(&ann, &agent, "Two."));
    let variants = json!([{ "prompt_version_id": one }, { "prompt_version_id": two }]);
    let experiments = format!("/agents/{agent}/prompts/experiments");
    let made = ann.post(&experiments, &json!({ "name": "x", "variants": variants })).expect(201);
    let of = text(&made["id"]);
    ann.poke(&format!("/prompts/experiments/{of}/start")).expect(200);
    bob.get(&experiments).refused(404);
    bob.get(&format!("/agents/{agent}/prompts/versions")).refused(404);
    bob.get(&format!("/prompts/versions/{one}")).refused(404);
    bob.get(&format!("/prompts/versions/{one}/diff")).refused(404);
    bob.poke(&format!("/prompts/versions/{one}/activate")).refused(404);
    bob.delete(&format!("/prompts/versions/{one}")).refused(404);
    bob.get(&format!("/prompts/experiments/{of}/metrics")).refused(404);
    bob.poke(&format!("/prompts/experiments/{of}/pause")).refused(404);
    bob.delete(&format!("/prompts/experiments/{of}")).refused(404);
    assert_eq!(daemon.get(&format!("/prompts/experiments/{of}")).expect(200)["status"], "running");
}

#[test]
fn the_command_line_saves_and_compares() {
    let (_model, daemon) = harness();
    daemon.agent_with("scout", "system_prompt = \"Own.\"\n");
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said} {}", String::from_utf8_lossy(&output.stderr));
        said
    };
    let id = |arguments: &[&str]| {
        let made: Value = serde_json::from_str(&run(&[arguments, &["--json"]].concat())).expect("JSON");
        text(&made["id"])
    };
    let one = id(&["prompt", "versions-create", "scout"]);
    let two = id(&["prompt", "versions-create", "scout", "--system-prompt", "Be brief."]);
    assert!(run(&["prompt", "versions", "scout", "--json"]).contains(&two));
    assert!(run(&["prompt", "versions-diff", &two, "--json"]).contains("Be brief."));
    run(&["prompt", "versions-activate", &two]);
    let variants = json!([{ "prompt_version_id": one }, { "prompt_version_id": two }]).to_string();
    let of = id(&["prompt", "experiments-create", "scout", "--name", "tone", "--variants", &variants]);
    run(&["prompt", "experiments-start", &of]);
    assert!(run(&["prompt", "experiments-metrics", &of, "--json"]).contains("not_enough_data"));
    run(&["prompt", "experiments-complete", &of]);
    run(&["prompt", "experiments-delete", &of]);
    run(&["prompt", "versions-delete", &one]);
}
