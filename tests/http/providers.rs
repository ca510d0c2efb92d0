//! Providers: what is shown of them, keys in the vault, tests of providers (spec 2, Providers).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// A key that stands nowhere else.
pub(crate) const KEY: &str = "sk-canary-7f3a9b2c1d8e4f60";
/// Providers whose model is the scripted one: `mine` needs a key, `spare` has one in the environment.
pub(crate) fn config(model: &Model) -> String {
    let base_url = model.server.base_url();
    format!(
        "[providers.mine]\nbase_url = \"{base_url}\"\napi_key_env = \"MINE_KEY\"\n\
         [providers.spare]\nbase_url = \"{base_url}\"\napi_key_env = \"TEST_MODEL_KEY\"\n"
    )
}

pub(crate) fn provider(client: &Client, name: &str) -> Value {
    client.get(&format!("/api/providers/{name}")).expect(200)
}

pub(crate) fn set_key(client: &Client, name: &str, key: &str) -> Value {
    client.post(&format!("/api/providers/{name}/key"), &json!({ "api_key": key })).expect(200)
}

fn remove_key(client: &Client, name: &str) -> crate::support::http::Reply {
    client.delete(&format!("/api/providers/{name}/key"))
}

fn test_of(client: &Client, name: &str, model: &str) -> crate::support::http::Reply {
    client.poke(&format!("/api/providers/{name}/test?model={model}"))
}

/// An agent on `mine`, with `spare` behind it or not.
pub(crate) fn agent(daemon: &Daemon, name: &str, fallback: bool) -> String {
    let more = if fallback { "[[fallback_models]]\nprovider = \"spare\"\nmodel = \"second\"\n" } else { "" };
    daemon.agent_with(name, &format!("[model]\nprovider = \"mine\"\nmodel = \"first\"\n{more}"))
}

pub(crate) fn send(daemon: &Daemon, agent: &str) -> crate::support::http::Reply {
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "x" }))
}

/// Every file below `dir`.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

pub(crate) fn holds(bytes: &[u8], what: &str) -> bool {
    bytes.windows(what.len()).any(|window| window == what.as_bytes())
}

/// The key of each request that the scripted server got.
fn keys_sent(model: &Model) -> Vec<String> {
    let keys = model.server.requests().into_iter();
    keys.map(|request| {
        let value = request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        value.unwrap_or_default().replace("Bearer ", "")
    })
    .collect()
}

#[test]
fn the_list_says_who_can_be_asked() {
    let daemon = Daemon::with_env("", &[("GROQ_API_KEY", "sk-in-the-environment")]);
    let reply = daemon.get("/api/providers");
    let list = reply.expect(200);
    let providers = list["providers"].as_array().unwrap();
    assert_eq!(list["total"], providers.len());
    assert!(providers.len() >= 49, "{}", providers.len());
    let find = |name: &str| providers.iter().find(|provider| provider["name"] == name).unwrap();
    let groq = find("groq");
    assert_eq!((&groq["auth_status"], &groq["key_source"]), (&json!("configured"), &json!("environment")));
    assert_eq!((&groq["env_var"], &groq["display_name"]), (&json!("GROQ_API_KEY"), &json!("Groq")));
    assert!(text(&groq["base_url"]).starts_with("https://") && groq["model_count"].as_u64().unwrap() > 1, "{groq}");
    let openai = find("openai");
    assert_eq!((&openai["auth_status"], &openai["key_source"]), (&json!("not_configured"), &Value::Null));
    let ollama = find("ollama");
    assert_eq!((&ollama["auth_status"], &ollama["local"]), (&json!("no_key_needed"), &json!(true)));
    assert!(ollama.get("env_var").is_none(), "absent for keyless providers");
    assert_eq!(find("github-copilot")["device_flow"], true);
    assert!(!reply.text().contains("in-the-environment"), "a value is shown");

    let detail = provider(&daemon, "groq");
    assert_eq!(
        (&detail["driver"], &detail["needs_key"], &detail["problem"]),
        (&json!("openai"), &json!(true), &Value::Null)
    );
    assert_eq!((&detail["name"], &detail["base_url_override"]), (&json!("groq"), &json!(false)));
    daemon.get("/api/providers/nobody").refused(404);
}

#[test]
fn a_key_counts_at_once_lasts_and_is_gone_when_it_is_removed() {
    let model = Model::start();
    let mut daemon = Daemon::with(&config(&model));
    let (alone, safe) = (agent(&daemon, "alone", false), agent(&daemon, "safe", true));
    let refused = send(&daemon, &alone).expect(500);
    assert_eq!(refused["code"], "provider_auth");
    assert!(text(&refused["error"]).contains("MINE_KEY"), "{refused}");

    assert_eq!(set_key(&daemon, "mine", KEY), json!({ "status": "configured", "provider": "mine" }));
    send(&daemon, &alone).expect(200);
    assert_eq!(keys_sent(&model).last().unwrap(), KEY);
    let shown = provider(&daemon, "mine");
    assert_eq!((&shown["auth_status"], &shown["key_source"]), (&json!("configured"), &json!("vault")));

    // The next one takes its place, and a kill loses neither.
    set_key(&daemon, "mine", "sk-second");
    daemon.restart();
    send(&daemon, &alone).expect(200);
    assert_eq!(keys_sent(&model).last().unwrap(), "sk-second");
    send(&daemon, &safe).expect(200);
    assert_eq!(model.requests().last().unwrap()["model"], "first");

    assert_eq!(remove_key(&daemon, "mine").expect(200), json!({ "status": "removed", "provider": "mine" }));
    assert_eq!(send(&daemon, &alone).expect(500)["code"], "provider_auth");
    send(&daemon, &safe).expect(200);
    assert_eq!(model.requests().last().unwrap()["model"], "second", "the fallback model answers");
    assert_eq!(keys_sent(&model).last().unwrap(), "key-of-the-test-model");
    remove_key(&daemon, "mine").refused(404);
    daemon.restart();
    assert_eq!(provider(&daemon, "mine")["auth_status"], "not_configured");
    assert_eq!(send(&daemon, &alone).expect(500)["code"], "provider_auth");
}

#[test]
fn wrong_keys_are_refused_without_being_said_back() {
    let daemon = Daemon::start();
    let long = "k".repeat(8_193);
    for wrong in ["", "   ", "sk canary", "sk\ncanary", "sk\u{7f}canary", "schl\u{fc}ssel-canary", &long] {
        let reply = daemon.post("/api/providers/openai/key", &json!({ "api_key": wrong }));
        reply.refused_field(400, "api_key");
        assert!(!reply.text().contains("canary"), "{}", reply.text());
    }
    for wrong in [
        json!({}),
        json!({ "api_key": ["sk-canary"] }),
        json!("sk-canary"),
        json!({ "api_key": 5 }),
        json!(["sk-canary"]),
    ] {
        let reply = daemon.post("/api/providers/openai/key", &wrong);
        assert_eq!(reply.status, 400, "{}", reply.text());
        assert!(!reply.text().contains("canary"), "{}", reply.text());
    }
    daemon.post("/api/providers/nobody/key", &json!({ "api_key": "k" })).refused(404);
    remove_key(&daemon, "nobody").refused(404);
    daemon.post("/api/providers/builtin/key", &json!({ "api_key": "k" })).refused(400);
    assert_eq!(provider(&daemon, "openai")["auth_status"], "not_configured");
    assert!(!daemon.home().join("vault").join("provider-openai.sealed").exists());
}

#[test]
fn the_default_model_follows_the_keys() {
    let mut daemon = Daemon::start();
    let default = |daemon: &Daemon| {
        let status = daemon.get("/api/status").expect(200);
        format!("{}/{}", text(&status["default_provider"]), text(&status["default_model"]))
    };
    assert_eq!(default(&daemon), "builtin/builtin");
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "x");
    set_key(&daemon, "groq", KEY);
    let chosen = default(&daemon);
    assert!(chosen.starts_with("groq/"), "{chosen}");
    assert_eq!(format!("groq/{}", text(&daemon.detail(&agent)["model"]["model"])), chosen, "the world knows it too");
    let shown = daemon.cli(&["config", "show"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("provider = \"groq\""), "without the daemon, too");
    daemon.restart();
    assert_eq!(default(&daemon), chosen, "the rule of the start knows the vault");
    // What is earlier in the order of the catalog goes first.
    set_key(&daemon, "openai", KEY);
    assert!(default(&daemon).starts_with("openai/"));
    remove_key(&daemon, "openai").expect(200);
    assert_eq!(default(&daemon), chosen);
    remove_key(&daemon, "groq").expect(200);
    assert_eq!(default(&daemon), "builtin/builtin");
    daemon.say(&agent, "y");
}

#[test]
fn a_key_is_found_nowhere_in_clear() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("log_level = \"trace\"\n{}", config(&model)));
    set_key(&daemon, "mine", KEY);
    let agent = agent(&daemon, "a", false);
    send(&daemon, &agent).expect(200);
    // A provider that says the key back in its errors.
    let said_back = Reply::error(401, &format!("Incorrect API key provided: {KEY}."));
    model.script([said_back.clone(), said_back.clone(), said_back]);
    let mut seen = vec![send(&daemon, &agent).text(), test_of(&daemon, "mine", "m").text()];
    assert_eq!(keys_sent(&model).iter().filter(|key| *key == KEY).count(), 3, "the key was in use");
    for path in [
        "/api/providers",
        "/api/providers/mine",
        "/api/status",
        "/api/health/detail",
        "/api/metrics",
        "/api/audit/recent",
        "/api/usage",
        "/api/usage/export?format=csv",
        "/api/models",
        "/api/openapi.json",
        "/api/sessions",
        "/api/traces",
        "/api/config",
        "/api/config/schema",
        "/api/config/export",
        "/api/config/export?format=toml",
        "/api/catalog/status",
        "/api/agents",
    ] {
        seen.push(daemon.get(path).text());
    }
    seen.push(daemon.get(&format!("/api/agents/{agent}")).text());
    seen.push(daemon.get(&format!("/api/agents/{agent}/logs")).text());
    let session = text(&daemon.detail(&agent)["session_id"]);
    seen.push(daemon.get(&format!("/api/agents/{agent}/sessions/{session}/trajectory")).text());
    seen.push(daemon.poke("/api/config/reload").text());
    for command in [&["config", "show"][..], &["providers", "list"], &["status"], &["logs"], &["doctor", "--offline"]] {
        let said = daemon.cli(command);
        seen.push(String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned());
    }
    seen.push(daemon.stderr());
    for text in &seen {
        assert!(!holds(text.as_bytes(), KEY), "{text}");
    }
    let audited = daemon.get("/api/audit/recent").text();
    assert!(audited.contains("provider_key_set") && audited.contains("mine"), "{audited}");
    for path in files(daemon.home()) {
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!holds(&bytes, KEY), "{} holds the key", path.display());
    }
}

#[test]
fn a_vault_that_cannot_be_used_changes_nothing_and_does_not_stop_the_start() {
    let model = Model::start();
    let mut daemon = Daemon::with(&config(&model));
    let agent = agent(&daemon, "a", false);
    set_key(&daemon, "mine", KEY);
    let vault_key = daemon.home().join("vault/vault.key");
    let kept = fs::read(&vault_key).unwrap();
    fs::remove_file(&vault_key).unwrap();
    daemon.restart();
    let shown = provider(&daemon, "mine");
    assert_eq!(shown["auth_status"], "not_configured");
    assert!(text(&shown["problem"]).contains("vault"), "{shown}");
    let refused = send(&daemon, &agent).expect(500);
    assert_eq!(refused["code"], "provider_auth");
    assert!(text(&refused["error"]).contains("vault"), "{refused}");
    let reply = daemon.post("/api/providers/mine/key", &json!({ "api_key": "another" }));
    assert_eq!(reply.expect(500)["code"], "vault_unavailable");
    assert!(!reply.text().contains(&*daemon.home().to_string_lossy()), "no paths: {}", reply.text());
    // With its key back, it is as it was.
    fs::write(&vault_key, kept).unwrap();
    fs::set_permissions(&vault_key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    daemon.restart();
    send(&daemon, &agent).expect(200);
    assert_eq!(keys_sent(&model).last().unwrap(), KEY);
}

#[test]
fn a_change_is_on_record_before_it_is_made_and_one_that_is_refused_is_not() {
    let model = Model::start();
    let mut daemon = Daemon::with(&config(&model));
    let noted = |daemon: &Daemon| {
        let trail = daemon.get("/api/audit/recent").expect(200);
        let kinds = trail["entries"].as_array().unwrap().iter().rev().map(|entry| text(&entry["event_type"]));
        kinds.filter(|kind| kind.starts_with("provider_")).collect::<Vec<_>>()
    };
    let set = |daemon: &Daemon, name: &str, key: &str| {
        daemon.post(&format!("/api/providers/{name}/key"), &json!({ "api_key": key }))
    };
    set(&daemon, "mine", KEY).expect(200);
    set(&daemon, "mine", "").refused_field(400, "api_key");
    set(&daemon, "nobody", KEY).refused(404);
    remove_key(&daemon, "spare").refused(404);
    daemon.put("/api/providers/mine/url", &json!({ "url": "ftp://x" })).refused_field(400, "url");
    assert_eq!(noted(&daemon), ["provider_key_set"]);
    // What fails at the disk left its entry before.
    fs::remove_file(daemon.home().join("vault/vault.key")).unwrap();
    fs::write(daemon.home().join("data/providers.json"), "unknown format").unwrap();
    daemon.restart();
    assert_eq!(set(&daemon, "mine", KEY).expect(500)["code"], "vault_unavailable");
    let reply = daemon.put("/api/providers/mine/url", &json!({ "url": null }));
    assert_eq!(reply.expect(500)["code"], "not_stored");
    remove_key(&daemon, "mine").expect(200);
    remove_key(&daemon, "mine").refused(404);
    let (is_set, is_removed) = ("provider_key_set", "provider_key_removed");
    assert_eq!(noted(&daemon), [is_set, is_set, "provider_url_set", is_removed]);
    let trail = daemon.get("/api/audit/recent").text();
    assert!(!holds(trail.as_bytes(), KEY), "{trail}");
}

#[test]
fn a_test_asks_once_measures_and_is_metered() {
    let model = Model::start();
    let priced = "[prices.\"mine/*\"]\ninput_per_m = 1.0\noutput_per_m = 1.0\n";
    let daemon = Daemon::with(&format!("{}{priced}", config(&model)));
    let refused = test_of(&daemon, "mine", "m");
    assert_eq!(refused.expect(409)["code"], "provider_auth", "no key is set");
    assert!(model.requests().is_empty());
    set_key(&daemon, "mine", KEY);
    daemon.poke("/api/providers/mine/test").refused_field(400, "model");
    let before = daemon.get("/api/usage").text();
    let tested = test_of(&daemon, "mine", "org/m").expect(200);
    assert_eq!(
        (&tested["status"], &tested["provider"], &tested["model_tested"]),
        (&json!("ok"), &json!("mine"), &json!("org/m"))
    );
    assert!(tested["latency_ms"].as_u64().unwrap() < 30_000, "{tested}");
    let asked = &model.requests()[0];
    assert_eq!((&asked["model"], &asked["max_tokens"]), (&json!("org/m"), &json!(1)), "{asked}");
    assert_ne!(daemon.get("/api/usage").text(), before);
    let events = daemon.get("/api/usage/export?format=csv").text();
    assert!(events.contains("\"mine\",\"org/m\",11,7,0.000018"), "{events}");

    // Each way to fail has a status and a word, and nothing is tried twice.
    let failed = |reply: Reply, status: u16, code: &str| {
        let count = model.requests().len();
        model.script([reply]);
        let reply = test_of(&daemon, "mine", "m");
        assert_eq!(reply.expect(status)["code"], code, "{}", reply.text());
        assert_eq!(model.requests().len(), count + 1, "asked once");
        text(&reply.expect(status)["error"])
    };
    assert!(failed(Reply::error(401, "no such key"), 502, "provider_auth").contains("no such key"));
    failed(Reply::error(429, "slow down"), 502, "provider_rate_limited");
    failed(Reply::error(503, "overloaded"), 502, "provider_error");
    failed(Reply::error(404, "the model does not exist"), 502, "provider_refused");
    failed(Reply::raw(200, &[("content-type", "application/json")], "<html>"), 502, "provider_protocol");
    failed(Reply::error(408, "too slow"), 504, "provider_timeout");
    daemon.poke("/api/providers/nobody/test").refused(404);
    assert_eq!(daemon.poke("/api/providers/builtin/test").expect(200)["model_tested"], "builtin");
    let nowhere = Daemon::with("[providers.far]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    assert_eq!(test_of(&nowhere, "far", "m").expect(502)["code"], "provider_unreachable");
}

#[test]
fn the_default_model_is_shown_and_tested_where_agents_ask_it() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let shown = provider(&daemon, "openai");
    let default = daemon.get("/api/status").expect(200);
    assert_eq!(default["default_provider"], "openai");
    assert_eq!((&shown["auth_status"], &shown["key_source"]), (&json!("configured"), &json!("environment")));
    assert!(text(&shown["base_url"]).starts_with("http://127.0.0.1:"), "{shown}");
    let tested = daemon.poke("/api/providers/openai/test").expect(200);
    assert_eq!((&tested["model_tested"], model.requests().len()), (&default["default_model"], 1));
    // What clients set comes first.
    let elsewhere = json!({ "url": "https://1.1.1.1/v1" });
    daemon.put("/api/providers/openai/url", &elsewhere).expect(200);
    assert_eq!(provider(&daemon, "openai")["base_url"], "https://1.1.1.1/v1");
}

#[test]
fn the_command_line_sets_tests_and_removes_a_key() {
    let model = Model::start();
    let daemon = Daemon::with(&config(&model));
    let typed = |arguments: &[&str], input: &str| {
        use std::io::Write;
        use std::process::Stdio;
        let mut command = crate::support::daemon::command(daemon.home());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = typed(&["providers", "set-key", "mine"], &format!("{KEY}\n"));
    assert!(code == 0 && !said.contains(KEY), "{said}");
    let (code, said) = typed(&["providers", "test", "mine", "--model", "m"], "");
    assert!(code == 0 && said.contains("mine answers: m in "), "{said}");
    assert_eq!(keys_sent(&model), [KEY]);
    let (_, said) = typed(&["providers", "list", "--usable"], "");
    assert!(said.contains("mine") && said.contains("vault") && !said.contains("groq"), "{said}");
    assert_eq!(typed(&["providers", "remove-key", "mine"], "").0, 0);
    assert_eq!(typed(&["providers", "remove-key", "mine"], "").0, 4);
    assert_eq!(typed(&["providers", "set-key", "mine"], "\n").0, 2);
    assert_eq!(typed(&["providers", "test", "mine", "--model", "m"], "").0, 6);
}

#[test]
fn a_bound_of_one_provider_holds_back_its_calls_alone() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}[queue.concurrency.providers]\nmine = 1\n", config(&model)));
    set_key(&daemon, "mine", KEY);
    let of_mine = [agent(&daemon, "one", false), agent(&daemon, "two", false)];
    let of_spare = daemon.agent_with("three", "[model]\nprovider = \"spare\"\nmodel = \"second\"\n");
    let asked = |name: &str| model.requests().iter().filter(|request| request["model"] == name).count();
    model.hold();
    std::thread::scope(|scope| {
        for agent in &of_mine {
            let client = daemon.client();
            scope.spawn(move || client.say(agent, "x"));
        }
        until("one call to the bounded provider is out", || (asked("first") > 0).then_some(()));
        let client = daemon.client();
        scope.spawn(move || client.say(&of_spare, "x"));
        until("a call to another one is out", || (asked("second") == 1).then_some(()));
        assert_eq!(asked("first"), 1, "its second call waits");
        model.release();
    });
    assert_eq!(asked("first"), 2);
}
