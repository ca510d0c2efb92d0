//! The configuration over the API: shown, described, set and exported (spec 2, Configuration).

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::providers::{files, holds};
use crate::support::daemon::{Daemon, command, text};
use crate::support::http::{Client, Reply};
use crate::support::until;

fn set(daemon: &Daemon, path: &str, value: impl Into<Value>) -> Reply {
    daemon.post("/api/config/set", &json!({ "path": path, "value": value.into() }))
}

fn file(daemon: &Daemon) -> String {
    fs::read_to_string(daemon.home().join("config.toml")).unwrap()
}

#[test]
fn the_configuration_mirrors_the_file_and_hides_secrets() {
    let daemon = Daemon::with("api_key = \"hunter2-hunter2\"\n[exec_policy]\nmode = \"deny\"\n");
    daemon.get("/api/config").refused(401);
    let owner = daemon.keyed("hunter2-hunter2");
    let shown = owner.get("/api/config").expect(200);
    assert_eq!((&shown["api_listen"], &shown["api_key"]), (&json!("127.0.0.1:0"), &json!("***")));
    assert_eq!((&shown["log_level"], &shown["mode"]), (&json!("info"), &json!("default")));
    assert_eq!((&shown["exec_policy"]["mode"], &shown["exec_policy"]["timeout_secs"]), (&json!("deny"), &json!(60)));
    assert_eq!(shown["data_dir"], json!(daemon.home().join("data")));
    for key in ["provider", "model", "api_key_env", "base_url"] {
        assert!(shown["default_model"].get(key).is_some(), "default_model.{key}");
    }
    assert_eq!(Daemon::start().get("/api/config").expect(200)["api_key"], "not set");
    for path in ["/api/config", "/api/config/export", "/api/config/export?format=toml", "/api/config/schema"] {
        assert!(!owner.get(path).text().contains("hunter2"), "{path}");
    }
}

#[test]
fn the_schema_describes_every_key_and_what_set_takes_is_readable() {
    let daemon = Daemon::start();
    let schema = daemon.get("/api/config/schema").expect(200);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(
        (&schema["additionalProperties"], &schema["properties"]["log_level"]["default"]),
        (&json!(false), &json!("info"))
    );
    assert_eq!(daemon.get("/api/registry/schema").expect(200), schema);
    let shown = daemon.get("/api/config").expect(200);
    let mut seen = 0;
    let mut tables = vec![(Vec::<String>::new(), &schema)];
    while let Some((path, table)) = tables.pop() {
        for (name, rule) in table["properties"].as_object().into_iter().flatten() {
            let path = [path.clone(), vec![name.clone()]].concat();
            let value = path.iter().try_fold(&shown, |value, name| value.get(name));
            if rule["x-writable"] == true {
                assert!(value.is_some(), "{path:?} can be set and is not shown");
                seen += 1;
            }
            tables.push((path, rule));
        }
    }
    assert!(seen > 30, "{seen}");
    assert_eq!(shown.get("compaction"), None, "what is not there is not shown");
}

#[test]
fn a_key_is_set_in_the_file_and_in_force_at_once() {
    let mut daemon = Daemon::with(
        "# mine\nlog_level = 'info' # keep\n\n[default_model]\nmodel = \"builtin\" # why\nprovider = \"builtin\"\n",
    );
    let before = file(&daemon);
    let done = set(&daemon, "default_model.model", "other").expect(200);
    let expected = json!({
        "status": "applied", "path": "default_model.model", "value": "other", "restart_required": false,
        "also_changed": [],
    });
    assert_eq!(done, expected);
    assert_eq!(file(&daemon), before.replace("model = \"builtin\" # why", "model = \"other\" # why"));
    assert_eq!(daemon.get("/api/config").expect(200)["default_model"]["model"], "other");
    assert_eq!(daemon.get("/api/status").expect(200)["default_model"], "other");
    set(&daemon, "triggers.max_depth", 3).expect(200);
    assert!(file(&daemon).ends_with("\n[triggers]\nmax_depth = 3\n"), "{}", file(&daemon));
    // Null takes a key out: its default holds.
    let done = set(&daemon, "triggers.max_depth", Value::Null).expect(200);
    assert_eq!((&done["status"], &done["value"]), (&json!("applied"), &json!(8)));
    daemon.restart();
    assert_eq!(daemon.get("/api/status").expect(200)["default_model"], "other");
    let trail = daemon.get("/api/audit/recent?limit=20").expect(200);
    let entry = trail["entries"].as_array().unwrap().iter().rev().find(|entry| entry["event_type"] == "config_set");
    let entry = entry.unwrap_or_else(|| panic!("{trail}"));
    assert_eq!(entry["actor"], "api");
    assert!(entry["details"].to_string().contains("default_model.model"), "{entry}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| fs::metadata(daemon.home().join(name)).unwrap().permissions().mode() & 0o077;
        assert_eq!(mode("config.lock"), 0);
    }
}

#[test]
fn keys_below_free_names_are_set_and_read_with_three_segments() {
    let daemon = Daemon::start();
    for (path, value) in
        [("providers.openai.context_tokens", json!(9_000)), ("prices.\"openai/gpt-4.1\".input_per_m", json!(1.5))]
    {
        assert_eq!(set(&daemon, path, value.clone()).expect(200)["value"], value, "{path}");
    }
    let shown = daemon.get("/api/config").expect(200);
    assert_eq!(shown["providers"]["openai"]["context_tokens"], 9_000);
    assert_eq!(shown["prices"]["openai/gpt-4.1"]["input_per_m"], 1.5);
    assert_eq!(daemon.get("/api/providers/openai").expect(200)["context_tokens"], 9_000, "in force");
    for path in ["a.b.c.d", "prices.openai.x.input_per_m"] {
        assert_eq!(set(&daemon, path, 1).expect(403)["code"], "config_forbidden", "{path}");
    }
}

#[test]
fn what_needs_a_restart_is_saved_and_said_until_then() {
    let mut daemon = Daemon::start();
    let done = set(&daemon, "world.tick_hz", 50).expect(200);
    assert_eq!(
        (&done["status"], &done["restart_required"], &done["value"]),
        (&json!("saved"), &json!(true), &json!(50))
    );
    assert_eq!(daemon.get("/api/config").expect(200)["world"]["tick_hz"], 50, "the file");
    assert_eq!(daemon.get("/api/config/export").expect(200)["world"]["tick_hz"], 20, "what is in force");
    let warnings = daemon.get("/api/health/detail").expect(200)["config_warnings"].to_string();
    assert!(warnings.contains("world.tick_hz was changed; the change takes effect at the next start"), "{warnings}");
    daemon.restart();
    assert_eq!(daemon.get("/api/config/export").expect(200)["world"]["tick_hz"], 50);
    assert_eq!(daemon.get("/api/health/detail").expect(200)["config_warnings"], json!([]));
    let done = set(&daemon, "mode", "dev").expect(200);
    assert_eq!((&done["status"], &done["restart_required"]), (&json!("saved"), &json!(false)), "it has no effect");
}

#[test]
fn what_the_api_does_not_write_is_refused_with_a_reason() {
    let mut daemon = Daemon::with("api_key = \"k\"\n");
    daemon.use_key("k");
    let post = |path: &str, value: Value| daemon.post("/api/config/set", &json!({ "path": path, "value": value }));
    for path in [
        "default_model",
        "providers",
        "providers.openai",
        "queue.concurrency",
        "api_key",
        "network.shared_secret",
        "default_model.api_key_env",
        "providers.openai.api_key_env",
        "anything.at_all_env",
        "api_listen",
        "data_dir",
        "cors_origin",
        "default_model.base_url",
        "exec_policy.mode",
        "exec_policy.allowed_commands",
        "web.fetch.ssrf_allowed_hosts",
        "approval.require_approval",
        "approval.second_factor",
        "audit.retention_days",
        "queue.concurrency.providers.openai",
        "no_such_key",
        "world.no_such_key",
    ] {
        let refused = post(path, json!("x"));
        refused.refused(403);
        assert_eq!(refused.expect(403)["code"], "config_forbidden", "{path}");
    }
    for path in ["", ".", "a..b", "\"a"] {
        post(path, json!(1)).refused_field(400, "path");
    }
    daemon.post("/api/config/set", &json!({ "path": "log_level" })).refused_field(400, "value");
    daemon.post("/api/config/set", &json!({ "value": 1 })).refused_field(400, "path");
}

#[test]
fn a_wrong_value_names_the_key_and_what_it_must_be() {
    let daemon = Daemon::start();
    let before = file(&daemon);
    for (path, value, expected) in [
        ("world.tick_hz", json!(0), "world.tick_hz: must be 1 to 1000"),
        ("world.tick_hz", json!("x"), "world.tick_hz: must be an integer, not a string"),
        ("log_level", json!("loud"), "log_level: must be one of `off`"),
        ("log_level", json!({ "a": 1 }), "log_level: must be a string, a number"),
        ("default_model.provider", json!("opnai"), "did you mean `openai`?"),
        ("rate_limit_per_second", json!(1.5), "must be an integer, not a float"),
    ] {
        let refused = set(&daemon, path, value);
        refused.refused_field(400, "value");
        assert!(refused.refused(400).contains(expected), "{path}: {}", refused.text());
    }
    assert_eq!(file(&daemon), before);
}

#[test]
fn the_file_on_the_disk_is_what_is_edited() {
    let daemon = Daemon::start();
    let path = daemon.home().join("config.toml");
    fs::write(&path, "api_listen = \"127.0.0.1:0\"\n# by hand\n[usage]\nretention_days = 5\n").unwrap();
    set(&daemon, "log_level", "debug").expect(200);
    let expected = "api_listen = \"127.0.0.1:0\"\nlog_level = \"debug\"\n# by hand\n[usage]\nretention_days = 5\n";
    assert_eq!(file(&daemon), expected);
    assert_eq!(daemon.get("/api/config").expect(200)["usage"]["retention_days"], 5, "the edit by hand counts, too");
    fs::write(&path, "[usage]\nretention_days = 0\n").unwrap();
    let broken = set(&daemon, "log_level", "info");
    assert!(broken.refused(409).contains("config.toml:2:18: usage.retention_days"), "{}", broken.text());
    assert_eq!(file(&daemon), "[usage]\nretention_days = 0\n");
    fs::write(&path, b"log_level = \"\xff\"\n").unwrap();
    assert!(set(&daemon, "log_level", "info").refused(409).contains("not UTF-8"));
    // A missing file is made, with its comments.
    fs::remove_file(&path).unwrap();
    set(&daemon, "log_level", "info").expect(200);
    assert!(file(&daemon).contains("\nlog_level = \"info\"\n") && file(&daemon).contains("#tick_hz = 20"));
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let daemon = Daemon::with("rate_limit_per_second = 100000\n");
    let keys = ["triggers.max_depth", "usage.retention_days", "approval.timeout_secs", "web.fetch.max_chars"];
    std::thread::scope(|scope| {
        for (n, key) in keys.into_iter().enumerate() {
            let client = daemon.client();
            scope.spawn(move || {
                for value in 0..5 {
                    let value = if key.ends_with("chars") { 200 + value } else { 10 * (n + 1) + value };
                    client.post("/api/config/set", &json!({ "path": key, "value": value })).expect(200);
                }
            });
        }
    });
    let shown = daemon.get("/api/config").expect(200);
    assert_eq!((&shown["triggers"]["max_depth"], &shown["usage"]["retention_days"]), (&json!(14), &json!(24)));
    assert_eq!((&shown["approval"]["timeout_secs"], &shown["web"]["fetch"]["max_chars"]), (&json!(34), &json!(204)));
}

#[test]
fn an_export_is_the_configuration_in_force_as_json_or_toml() {
    let mut daemon = Daemon::with("api_key = \"k\"\n[prices.\"a/b\"]\ninput_per_m = 1.5\n");
    daemon.use_key("k");
    let json = daemon.get("/api/config/export").expect(200);
    assert_eq!((&json["api_key"], &json["prices"]["a/b"]["input_per_m"]), (&json!("***"), &json!(1.5)));
    let toml = daemon.get("/api/config/export?format=toml");
    assert_eq!(toml.header("content-type"), Some("application/toml; charset=utf-8"));
    let read: toml::Table = toml.text().parse().unwrap();
    assert_eq!(read["world"]["tick_hz"].as_integer(), Some(20));
    let accepted = daemon.send("GET", "/api/config/export", &[("accept", "application/toml")], None);
    assert_eq!(accepted.text(), toml.text());
    daemon.get("/api/config/export?format=yaml").refused_field(400, "format");
    // It is no way to an open door: what the mask of a hidden secret is not taken for one.
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("config.toml"), toml.text()).unwrap();
    let checked = command(home.path()).args(["config", "check"]).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(!checked.status.success() && said.contains("the mask of a hidden secret"), "{said}");
}

#[test]
fn the_command_line_sets_over_the_api_and_without_it() {
    let mut daemon = Daemon::start();
    let run = |daemon: &Daemon, arguments: &[&str]| {
        let output = daemon.cli(arguments);
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    assert_eq!(run(&daemon, &["config", "set", "triggers.max_depth", "3"]), (true, "applied\n".to_owned()));
    assert_eq!(run(&daemon, &["config", "get", "triggers.max_depth"]), (true, "3\n".to_owned()));
    let (_, said) = run(&daemon, &["config", "set", "world.tick_hz", "30"]);
    assert_eq!(said, "saved; takes effect at the next start\n");
    let (done, said) = run(&daemon, &["config", "set", "exec_policy.mode", "full"]);
    assert!(!done && said.contains("limits what clients and agents can do"), "{said}");
    let (done, said) = run(&daemon, &["config", "set", "world", "1"]);
    assert!(!done && said.contains("is a table"), "{said}");
    let path = daemon.home().join("config.toml");
    fs::write(&path, file(&daemon).replace("max_depth = 3", "max_depth = 4")).unwrap();
    let (done, said) = run(&daemon, &["config", "reload"]);
    assert!(done && said == "reloaded: triggers.max_depth\ntakes effect at the next start: world.tick_hz\n", "{said}");
    daemon.kill();
    // Who has the file may write every key of it.
    let (done, said) = run(&daemon, &["config", "set", "exec_policy.mode", "full"]);
    assert!(done && said.starts_with("saved in"), "{said}");
    let (done, said) = run(&daemon, &["config", "set", "exec_policy.mode", "everything"]);
    assert!(!done && said.contains("exec_policy.mode: must be one of"), "{said}");
    assert_eq!(run(&daemon, &["config", "get", "exec_policy.mode"]).1, "full\n");
    assert!(run(&daemon, &["config", "set", "exec_policy.mode", "--unset"]).0);
    assert_eq!(run(&daemon, &["config", "get", "exec_policy.mode"]).1, "allowlist\n");
    let (_, schema) = run(&daemon, &["config", "schema"]);
    assert!(serde_json::from_str::<Value>(&schema).unwrap()["properties"]["world"].is_object());
    assert!(
        run(&daemon, &["config", "keys"]).1.contains("| `world.tick_hz` | integer, 1 to 1000 | next start | yes |")
    );
}

#[test]
fn mistakes_are_printed_by_check_one_a_line() {
    let home = tempfile::tempdir().unwrap();
    let wrong =
        "api_lisen = 1\nlog_level = \"loud\"\n[world]\ntick_hz = 0\nbeats = 1\n[queue]\nclaim_timeout_secs = \"x\"\n";
    fs::write(home.path().join("config.toml"), wrong).unwrap();
    let output = command(home.path()).args(["config", "check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for expected in [
        "config.toml:1:1: api_lisen: unknown key; did you mean `api_listen`?",
        "config.toml:2:13: log_level: must be one of",
        "config.toml:4:11: world.tick_hz: must be 1 to 1000",
        "config.toml:5:1: world.beats: unknown key; expected one of `tick_hz`",
        "config.toml:7:22: queue.claim_timeout_secs: must be an integer, not a string",
    ] {
        assert!(said.contains(expected), "'{expected}' is missing: {said}");
    }
    let output = command(home.path()).args(["config", "check", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["valid"], report["problems"].as_array().map(Vec::len)), (&json!(false), Some(5)));
    assert_eq!(report["problems"][2]["place"], json!({ "line": 4, "column": 11 }));
}

#[test]
fn the_first_configuration_is_written_once() {
    let home = tempfile::tempdir().unwrap();
    // As a user's first start leaves it: everything is commented out.
    let (_child, address) = started(home.path(), &["--listen", "127.0.0.1:0"], None);
    let post = |body: Value| address.post("/api/init", &body);
    let done = address.poke("/api/init").expect(200);
    assert_eq!(
        (&done["status"], &done["changed"], &done["provider"]),
        (&json!("unchanged"), &json!([]), &json!("builtin"))
    );
    post(json!({ "provider": "nobody" })).refused_field(400, "provider");
    post(json!({ "api_key": "sk-1" })).refused_field(400, "provider");
    post(json!({ "provider": "openai", "api_key": "sk 1" })).refused_field(400, "api_key");
    let wanted = json!({ "provider": "groq", "model": "m-1", "api_key_env": "MY_GROQ_KEY" });
    let done = post(wanted.clone()).expect(200);
    assert_eq!(
        (&done["status"], &done["provider"], &done["model"]),
        (&json!("initialized"), &json!("groq"), &json!("m-1"))
    );
    assert_eq!((&done["key_present"], &done["api_key_env"]), (&json!(false), &json!("MY_GROQ_KEY")));
    let text_now = || fs::read_to_string(home.path().join("config.toml")).unwrap();
    assert!(
        text_now().contains("\n[default_model]\n") && text_now().contains("\nprovider = \"groq\"\n"),
        "{}",
        text_now()
    );
    assert!(text_now().contains("# Model of agents whose manifest"), "the comments stay");
    assert_eq!(address.get("/api/status").expect(200)["default_provider"], "groq", "in force at once");
    assert_eq!(post(wanted).expect(200)["status"], "unchanged", "once is enough");
    let taken = post(json!({ "provider": "builtin", "model": "builtin" }));
    assert_eq!(taken.expect(409)["code"], "config_exists");
    post(json!({ "api_key_env": "OTHER", "force": true })).refused(403);
    let done = post(json!({ "provider": "builtin", "model": "builtin", "force": true })).expect(200);
    assert_eq!(done["changed"], json!(["default_model.provider", "default_model.model"]));
    assert!(text_now().contains("api_key_env = \"MY_GROQ_KEY\""), "force changes what it is asked to change");
    assert_eq!(text(&address.get("/api/config").expect(200)["default_model"]["provider"]), "builtin");
}

#[test]
fn a_key_of_the_first_configuration_is_on_the_trail_and_a_vault_that_fails_is_no_fault_of_the_client() {
    let home = tempfile::tempdir().unwrap();
    let (_child, address) = started(home.path(), &["--listen", "127.0.0.1:0"], None);
    let wanted = json!({ "provider": "groq", "model": "m-1", "api_key": "sk-of-the-test" });
    let done = address.post("/api/init", &wanted).expect(200);
    assert_eq!((&done["status"], &done["key_present"]), (&json!("initialized"), &json!(true)));
    let entries = || {
        let recent = address.get("/api/audit/recent").expect(200);
        let entries = recent["entries"].as_array().unwrap().clone();
        entries.into_iter().filter(|entry| entry["event_type"] == "provider_key_set").collect::<Vec<_>>()
    };
    for path in files(home.path()) {
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!holds(&bytes, "sk-of-the-test"), "{} holds the key", path.display());
    }
    // What is wrong with a body is said without what is in it.
    for wrong in [
        json!("sk-canary"),
        json!(["sk-canary"]),
        json!({ "api_key": 70_707, "provider": "groq" }),
        json!({ "force": "sk-canary" }),
    ] {
        let said = address.post("/api/init", &wrong).refused(400);
        assert!(!said.contains("canary") && !said.contains("70707") && said.contains("api_key"), "{said}");
    }
    assert_eq!(entries().len(), 1);
    assert!(text(&entries()[0]["details"]).contains("groq") && !entries()[0].to_string().contains("sk-of"));
    // Where the key's file should be is something that no file can take the place of.
    fs::create_dir_all(home.path().join("vault/provider-openai.sealed/full")).unwrap();
    let wanted = json!({ "provider": "openai", "model": "m-2", "api_key": "sk-another", "force": true });
    let failed = address.post("/api/init", &wanted).expect(500);
    assert_eq!(failed["code"], "vault_unavailable", "{failed}");
    assert_eq!(failed["initialized"]["provider"], "openai", "what was written is told: {failed}");
    assert_eq!(entries().len(), 2, "the entry is there before the key is");
}

/// A process that ends with the test.
pub(crate) struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when the process is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the daemon on `home` as it is, and waits until its world is there.
#[track_caller]
pub(crate) fn started(home: &Path, arguments: &[&str], key: Option<&str>) -> (Child, Client) {
    let mut command = command(home);
    command.arg("start").args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Child(command.spawn().unwrap());
    let client = until("the daemon serves its world", || {
        assert!(child.0.try_wait().unwrap().is_none(), "the daemon ended");
        let known: Value = serde_json::from_str(&fs::read_to_string(home.join("daemon.json")).ok()?).ok()?;
        let client = Client { key: key.map(str::to_owned), ..Client::new(known["listen"].as_str()?.parse().ok()?) };
        (client.try_send("GET", "/api/status", &[], None).ok()?.status == 200).then_some(client)
    });
    (child, client)
}

#[test]
fn what_was_edited_by_hand_comes_with_a_key_that_is_set_and_is_named() {
    let daemon = Daemon::start();
    let edited = format!("{}\n[usage]\nretention_days = 33\n", file(&daemon));
    fs::write(daemon.home().join("config.toml"), edited).unwrap();
    let reply = set(&daemon, "triggers.max_depth", 6).expect(200);
    assert_eq!(reply["also_changed"], json!(["usage.retention_days"]));
    let entries = daemon.get("/api/audit/recent?n=20").expect(200);
    let entries = entries["entries"].as_array().unwrap().clone();
    let entry = entries.iter().find(|entry| entry["event_type"] == "config_set").expect("it is on the trail");
    assert!(entry.to_string().contains("usage.retention_days"), "{entry}");
    let again = set(&daemon, "triggers.max_depth", 7).expect(200);
    assert_eq!(again["also_changed"], json!([]));
}
