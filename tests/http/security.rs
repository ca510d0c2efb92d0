//! What protects the daemon: its status (spec 3, GET /api/security), signed manifests, and a log without secrets.

use std::fs;

use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::people;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::stream::Events;
use crate::support::until;

const NAMES: [&str; 16] = [
    "merkle_audit_trail",
    "taint_tracking",
    "wasm_dual_metering",
    "security_headers",
    "health_redaction",
    "subprocess_sandbox",
    "manifest_signing",
    "gcra_rate_limiter",
    "secret_zeroization",
    "path_traversal_prevention",
    "ssrf_protection",
    "capability_inheritance_validation",
    "ofp_hmac_auth",
    "prompt_injection_scanning",
    "loop_guard",
    "session_repair",
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn signer(seed: u8) -> (Ed25519KeyPair, String) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a seed");
    let key = hex(pair.public_key().as_ref());
    (pair, key)
}

#[test]
fn every_system_is_named_with_what_it_is() {
    let daemon = Daemon::with("api_key = \"key-of-the-harness\"\n");
    daemon.get("/api/security").refused(401);
    let body = daemon.keyed("key-of-the-harness").get("/api/security").expect(200);
    let systems = body["security_systems"].as_object().unwrap();
    assert_eq!((systems.len(), &body["total_systems"]), (16, &json!(16)));
    assert!(NAMES.iter().all(|name| systems.contains_key(*name) && body["details"][name].is_string()), "{body}");
    for name in NAMES.iter().filter(|name| **name != "subprocess_sandbox") {
        assert_eq!(systems[*name], "active", "{name}: {body}");
    }
    let sandbox = daemon.keyed("key-of-the-harness").get("/api/health/detail").expect(200)["sandbox"].clone();
    let is_caged = sandbox["landlock_abi"].is_number() || sandbox["commands"] == "deny";
    assert_eq!(systems["subprocess_sandbox"], if is_caged { "active" } else { "inactive" });
    assert_eq!(body["all_active"], is_caged);
}

#[test]
fn what_is_off_is_said_to_be_off() {
    let (_, key) = signer(1);
    let daemon = Daemon::with(&format!(
        "[security]\ntaint = \"off\"\nprompt_injection = \"off\"\nmanifest_keys = [\"{key}\"]\n\
         [web.fetch]\nssrf_allowed_hosts = [\"0.0.0.0/0\", \"::/0\", \"localhost\"]\n"
    ));
    let body = daemon.get("/api/security").expect(200);
    for name in ["taint_tracking", "prompt_injection_scanning", "ssrf_protection"] {
        assert_eq!(body["security_systems"][name], "inactive", "{name}: {body}");
    }
    assert_eq!(body["security_systems"]["manifest_signing"], "active");
}

#[test]
fn the_status_follows_what_is_in_force_and_not_what_is_written() {
    let mut daemon = Daemon::start();
    let status = |daemon: &Daemon| {
        let systems = daemon.get("/api/security").expect(200)["security_systems"].clone();
        ["taint_tracking", "prompt_injection_scanning"].map(|name| text(&systems[name]))
    };
    assert_eq!(status(&daemon), ["active", "active"]);
    let file = daemon.home().join("config.toml");
    let written = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{written}\n[security]\ntaint = \"off\"\nprompt_injection = \"off\"\n")).unwrap();
    assert_eq!(status(&daemon), ["active", "active"], "nobody has read it");
    let reloaded = daemon.poke("/api/config/reload").expect(200);
    assert_eq!(reloaded["restart_required"], json!(["security.prompt_injection"]));
    assert_eq!(status(&daemon), ["inactive", "active"]);
    daemon.restart();
    assert_eq!(status(&daemon), ["inactive", "inactive"]);
}

#[test]
fn only_signed_manifests_come_in_where_that_is_asked() {
    let ((pair, key), (stranger, _)) = (signer(1), signer(2));
    let daemon = Daemon::with(&format!("[security]\nmanifest_keys = [\"{key}\"]\nrequire_signed_manifests = true\n"));
    let manifest = "name = \"signed\"\n[model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n";
    let signature = hex(pair.sign(manifest.as_bytes()).as_ref());
    let foreign = hex(stranger.sign(manifest.as_bytes()).as_ref());
    for (body, status, code) in [
        (json!({ "manifest_toml": manifest }), 403, "manifest_unsigned"),
        (json!({ "manifest_toml": manifest, "manifest_signature": foreign }), 403, "manifest_signature_invalid"),
        (
            json!({ "manifest_toml": format!("{manifest}\n"), "manifest_signature": signature }),
            403,
            "manifest_signature_invalid",
        ),
        (json!({ "manifest_toml": manifest, "manifest_signature": "no" }), 400, ""),
    ] {
        let refused = daemon.post("/api/agents", &body).expect(status);
        assert_eq!(refused["field"], "manifest_signature", "{refused}");
        assert_eq!(refused["code"].as_str().unwrap_or_default(), code, "{refused}");
    }
    let items = json!({ "agents": [
        { "manifest_toml": manifest },
        { "manifest_toml": manifest, "manifest_signature": signature },
    ]});
    let results = daemon.post("/api/agents/bulk", &items).expect(200)["results"].clone();
    assert!(results[0]["error"].is_string() && results[1]["status"] == "created", "{results}");
    let agent = text(&results[1]["agent_id"]);
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    daemon.post("/api/agents", &json!({ "manifest_toml": manifest, "manifest_signature": signature })).expect(201);
    let trail = daemon.get("/api/audit/recent?limit=100").expect(200)["entries"].to_string();
    assert!(trail.contains("manifest_refused") && trail.contains("manifest_signature_invalid"), "{trail}");
}

#[test]
fn a_signature_that_is_there_must_hold_even_where_none_is_asked() {
    let ((pair, key), manifest) = (signer(1), "name = \"a\"\n");
    let daemon = Daemon::with(&format!("[security]\nmanifest_keys = [\"{key}\"]\n"));
    daemon.post("/api/agents", &json!({ "manifest_toml": manifest })).expect(201);
    let other = hex(pair.sign(b"name = \"c\"\n").as_ref());
    let body = json!({ "manifest_toml": "name = \"b\"\n", "manifest_signature": other });
    daemon.post("/api/agents", &body).refused_field(403, "manifest_signature");
    let open = Daemon::start();
    let refused = open.post("/api/agents", &body).expect(403);
    assert_eq!(refused["code"], "manifest_keys_missing");
}

/// Everything that the daemon wrote to its log files and to stderr.
fn written(daemon: &Daemon) -> String {
    let files = fs::read_dir(daemon.home().join("logs")).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let lines: String = files.filter_map(|path| fs::read_to_string(path).ok()).collect();
    lines + &daemon.stderr()
}

#[test]
fn no_log_line_holds_a_secret_whichever_way_it_came() {
    let api_key = "Xy7-harness-key-9000";
    let model = Model::start();
    let daemon = Daemon::with_env(
        &format!("api_key = \"{api_key}\"\nlog_level = \"debug\"\n{}", model.config()),
        &[
            ("AGENTSVC_VAULT_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
            ("BRAVE_API_KEY", "brave-key-value-1"),
        ],
    );
    let client = daemon.keyed(api_key);
    let mut stream = Events::open(&client, "GET", "/api/logs/stream", None);
    // In a field: the name of an agent.
    let shaped = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for name in [api_key, shaped, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "brave-key-value-1"] {
        client.post("/api/agents", &json!({ "manifest_toml": format!("name = {name:?}\n") })).expect(201);
    }
    // In the chain of an error: what a provider says of the key it was sent.
    let agent = client.agent_with("a", "");
    model.script([Reply::error(
        401,
        "Incorrect API key provided: key-of-the-test-model. See sk-proj-abcdefghijklmnopqrstuvwx",
    )]);
    client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hi" }));
    client.agent_with("the-last", "");
    let mut seen = String::new();
    while !seen.contains("the-last") {
        seen.push_str(&stream.next().expect("a line").data.to_string());
    }
    until("the files have it, too", || written(&daemon).contains("the-last").then_some(()));
    for (place, lines) in [("stream", seen), ("files", written(&daemon))] {
        assert!(lines.contains("***") && lines.contains("[redacted:"), "{place}: {lines}");
        for secret in
            [api_key, shaped, "AAECAwQFBgcICQoL", "brave-key-value-1", "key-of-the-test-model", "sk-proj-abcdef"]
        {
            assert!(!lines.contains(secret), "{place} holds {secret}: {lines}");
        }
    }
    // What was redacted is still JSON, line by line.
    let files = fs::read_dir(daemon.home().join("logs")).unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    for line in files
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|text| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>())
    {
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn a_key_may_stand_alone_in_its_header() {
    let daemon = people::daemon();
    let (_, eve) = people::person(&daemon, "eve", "viewer");
    let key = eve.key.expect("a key");
    let plain = Client { key: None, ..daemon.client() };
    let who = |headers: &[(&str, &str)]| plain.send("GET", "/api/whoami", headers, None);
    assert_eq!(who(&[("X-API-Key", &key)]).expect(200)["name"], json!("eve"));
    assert_eq!(who(&[("x-api-key", "the-key-of-the-configuration")]).expect(200)["kind"], json!("owner"));
    assert_eq!(who(&[("x-api-key", "wrong")]).status, 401);
    // The role is the same, whichever header says who it is.
    let body = json!({ "manifest_toml": "name = \"a\"\n" }).to_string();
    plain.send("POST", "/api/agents", &[("x-api-key", &key)], Some(body.as_bytes())).refused(403);
}
