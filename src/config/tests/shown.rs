//! What is shown, and what differs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::config::{Config, Document, toml_of};
use crate::kernel::config::{Applies, Kind, Table, tree};
use crate::kernel::home::Home;

fn read(text: &str) -> Config {
    Config::parse(text, Path::new("c")).unwrap().config
}

#[test]
fn every_key_is_shown_and_secrets_are_not() {
    let home = Home::new("/h");
    let text = "api_key = \"hunter2\"\n[providers.openai]\ncontext_tokens = 1000\n[prices.\"a/b\"]\n\
                cached_input_per_m = 1.0\n[queue.concurrency.providers]\nopenai = 3\n[mcp_servers.files]\ncommand = \"x\"\n\
                [sidecar_channels.ntfy]\ncommand = \"x\"\n[users.ann]\n[web_chats.shop]\nagent = \"a\"\n\
                 allowed_origins = [\"https://shop.example\"]\n[channel_role_mapping.\"a/b\"]\ncreator_role = \"admin\"\n\
                 [external_auth.providers.openai]\nissuer_url = \"https://login.example.com\"\nclient_id = \"x\"\n";
    let shown = read(text).shown(&home);
    for (path, key) in tree::leaves(Config::KEYS) {
        let path =
            path.replace("providers.<name>", "providers.openai").replace("mcp_servers.<name>", "mcp_servers.files");
        let path = path
            .replace("sidecar_channels.<name>", "sidecar_channels.ntfy")
            .replace("users.<name>", "users.ann")
            .replace("web_chats.<name>", "web_chats.shop");
        let path = path.replace("<name>", "a/b");
        let found = path.split('.').try_fold(&shown, |value, name| value.get(name));
        assert!(found.is_some(), "{path} is not shown");
        let is_shown = key.is_example() || matches!(key.kind, Kind::Variable | Kind::Url);
        assert!(is_shown || !found.unwrap().is_null(), "{path} is null");
    }
    assert_eq!((&shown["api_key"], &shown["data_dir"]), (&json!("***"), &json!("/h/data")));
    assert_eq!(read("").shown(&home)["api_key"], "not set");
    assert_eq!(read("").shown(&home)["exec_policy"]["mode"], "allowlist");
    let model = &read("[default_model]\nprovider = \"groq\"\n").shown(&home)["default_model"];
    assert_eq!((&model["api_key_env"], &model["provider"]), (&json!("GROQ_API_KEY"), &json!("groq")));
    assert!(model["base_url"].is_string() && model["model"].is_string());
    assert!(!shown.to_string().contains("hunter2"));
}

#[test]
fn differences_are_named_with_what_they_need() {
    let before = read("log_level = \"info\"\n[providers.mine]\nbase_url = \"http://h\"\n");
    let after = read("log_level = \"warn\"\napi_key = \"a\"\n[world]\ntick_hz = 1\n[prices.\"a/b.c\"]\n");
    let found = before.differences(&after);
    let paths: Vec<_> = found.iter().map(|found| (found.path.as_str(), found.needs_restart())).collect();
    let expected = [
        ("api_key", false),
        ("log_level", false),
        ("prices.\"a/b.c\".input_per_m", false),
        ("prices.\"a/b.c\".output_per_m", false),
        ("providers.mine.base_url", false),
        ("world.tick_hz", true),
    ];
    assert_eq!(paths, expected);
    assert!(before.differences(&before.clone()).is_empty());
    let other_key = read("api_key = \"b\"\n").differences(&read("api_key = \"a\"\n"));
    assert_eq!(other_key.len(), 1, "{other_key:?}");
}

/// A value that is not the default.
fn other(path: &str, kind: Kind) -> String {
    match (path, kind) {
        ("api_listen", _) => "\"127.0.0.1:1\"".to_owned(),
        ("memory.embedding_provider", _) => "\"hashed\"".to_owned(),
        ("memory.fts_only" | "memory.chunking.enabled", _) => "true".to_owned(),
        ("memory.embedding_api_key_env", _) => "\"OTHER_KEY\"".to_owned(),
        ("memory.embedding_dimensions" | "memory.chunking.overlap", _) => "77".to_owned(),
        ("memory.chunking.max_chunk_size", _) => "777".to_owned(),
        (
            "data_dir" | "memory.embedding_folder" | "audit.heads_file" | "audit.heads_syslog" | "cluster.credentials",
            _,
        ) => "\"/other\"".to_owned(),
        ("world.tick_hz" | "server.loading_wait_ms", _) => "7".to_owned(),
        ("network_enabled", _) => "true".to_owned(),
        ("network.listen_addresses" | "network.bootstrap_peers", _) => "[\"10.0.0.2:7400\"]".to_owned(),
        ("network.agents", _) => "[\"other\"]".to_owned(),
        (path, Kind::Integer { .. } | Kind::Secret) if path.starts_with("network.") => match kind {
            Kind::Secret => "\"other\"".to_owned(),
            _ => "77".to_owned(),
        },
        ("cluster.servers", _) => "[\"nats://10.0.0.1:4222\"]".to_owned(),
        ("cluster.url", _) => "\"http://10.0.0.1:4545\"".to_owned(),
        ("cluster.replicas", _) => "5".to_owned(),
        ("cluster.journal_mb", _) => "77".to_owned(),
        ("cluster.unsafe_single_server" | "cluster.allow_open_server", _) => "true".to_owned(),
        ("cluster.acks", _) => "\"journal+standby\"".to_owned(),
        ("inputs.enabled" | "cluster.check", _) => "false".to_owned(),
        ("inputs.keep_hours" | "inputs.max_mb", _) => "77".to_owned(),
        ("log.format", _) => "\"json\"".to_owned(),
        ("log.max_bytes", _) => "77777".to_owned(),
        ("security.prompt_injection", _) => "\"block\"".to_owned(),
        ("security.manifest_keys", _) => format!("[\"{}\"]", "ab".repeat(32)),
        ("security.require_signed_manifests", _) => "true".to_owned(),
        ("catalog.public_key" | "catalog.sha256", _) => format!("\"{}\"", "ab".repeat(32)),
        (_, Kind::Url) => "\"https://h/x\"".to_owned(),
        (_, Kind::Text) => "\"other\"".to_owned(),
        other => panic!("{other:?}: say here what another value is"),
    }
}

fn kind_of(path: &str) -> Kind {
    let path = path.replace("groq", "<name>");
    tree::leaves(Config::KEYS).into_iter().find(|(name, _)| *name == path).map(|(_, key)| key.kind).unwrap()
}

#[test]
fn what_needs_a_restart_waits_for_it_and_nothing_else_does() {
    let started = Config::default();
    let mut checked = 0;
    for (path, _) in tree::leaves(Config::KEYS).into_iter().filter(|(_, key)| key.applies == Applies::Restart) {
        let path = path.replace("<name>", "groq");
        // Some keys mean something beside others only.
        let beside: &[&str] = match &*path {
            "security.require_signed_manifests" => &["security.manifest_keys"],
            "cluster.servers" => &["cluster.node", "cluster.url"],
            path if path.starts_with("providers.groq.") => {
                &["providers.groq.device_auth_url", "providers.groq.token_url", "providers.groq.client_id"]
            }
            _ => &[],
        };
        let all: BTreeSet<&str> = beside.iter().copied().chain([&*path]).collect();
        let text: String = all.iter().map(|path| format!("{path} = {}\n", other(path, kind_of(path)))).collect();
        let changed = read(&text);
        assert_eq!(changed.differences(&started).len(), all.len(), "{path}");
        assert_eq!(changed.until_restart(&started), started, "{path} would be in force without a restart");
        checked += 1;
    }
    assert_eq!(checked, 51);
    let live = read("log_level = \"warn\"\nrate_limit_per_second = 5\n[budget]\ndaily_limit_usd = 1\n");
    assert_eq!(live.clone().until_restart(&started), live);
}

#[test]
fn the_same_in_toml() {
    let home = Home::new("/h");
    let shown = read("api_key = \"hunter2\"\n[prices.\"a/b\"]\ninput_per_m = 1.5\n").shown(&home);
    let text = toml_of(&shown).unwrap();
    let back: toml::Table = text.parse().unwrap();
    let back = serde_json::to_value(back).unwrap();
    assert_eq!(back["world"], shown["world"]);
    assert_eq!((&back["api_key"], &back["prices"]["a/b"]["input_per_m"]), (&json!("***"), &json!(1.5)));
    assert_eq!(back["web"]["search"].get("base_url"), None);
    assert_ne!(shown["web"]["search"].get("base_url"), Some(&Value::String(String::new())));
}
