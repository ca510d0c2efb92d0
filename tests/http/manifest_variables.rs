//! Which environment variables of the daemon a manifest may name as keys (`api_key_env`), and where they go.

use std::fs;

use serde_json::json;

use crate::providers::send;
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::{ModelServer, Reply};

/// Secrets in the daemon's environment.
const SECRETS: [(&str, &str); 3] = [
    ("AGENTSVC_VAULT_KEY", "10fd5d4b1c092eb132e14812c561ce2e5b987e22f199019a164fc0f0ebe81beb"),
    ("DB_PASSWORD", "hunter2-from-env"),
    ("OPENAI_API_KEY", "sk-of-the-operator"),
];

/// A server of the client's own.
fn stranger() -> ModelServer {
    let server = ModelServer::start();
    server.respond(|_| Reply::text("hi"));
    server
}

fn model(provider: &str, base_url: &str, variable: &str) -> String {
    let provider = if provider.is_empty() { String::new() } else { format!("provider = \"{provider}\"\n") };
    format!("[model]\n{provider}model = \"m\"\nbase_url = \"{base_url}\"\napi_key_env = \"{variable}\"\n")
}

/// What came with each request.
fn keys(server: &ModelServer) -> Vec<String> {
    let requests = server.requests().into_iter();
    requests
        .map(|request| request.headers.get("authorization").map_or("", |key| key.to_str().unwrap()).into())
        .collect()
}

#[test]
fn a_manifest_reads_no_variable_of_the_daemon_that_nobody_gave_it() {
    let server = stranger();
    let daemon = Daemon::with_env("", &SECRETS);
    for provider in ["", "corp", "openai"] {
        for (variable, _) in SECRETS {
            let own = format!("name = \"a\"\n{}", model(provider, &server.base_url(), variable));
            let behind = own.replace("[model]", "[[fallback_models]]");
            for (manifest, key) in [(own, "model.api_key_env"), (behind, "fallback_models[0].api_key_env")] {
                for path in ["/api/agents", "/api/agents/check"] {
                    let reply = daemon.post(path, &json!({ "manifest_toml": manifest }));
                    let sentence = reply.refused(400);
                    assert!(sentence.contains(key) && sentence.contains(variable), "{sentence}");
                    let body = reply.expect(400);
                    assert_eq!((&body["field"], &body["key"]), (&json!("manifest_toml"), &json!(key)));
                    let helps = sentence.contains("[security] manifest_key_envs");
                    assert_eq!(helps, variable != "AGENTSVC_VAULT_KEY", "{sentence}");
                }
                let many = daemon.post("/api/agents/bulk", &json!({ "agents": [{ "manifest_toml": manifest }] }));
                assert!(many.text().contains(variable) && !many.text().contains("created"), "{}", many.text());
            }
        }
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_listed_variable_goes_where_the_manifest_says_and_no_longer_once_it_is_not_listed() {
    let server = stranger();
    let mut daemon = Daemon::with_env("[security]\nmanifest_key_envs = [\"DB_PASSWORD\"]\n", &SECRETS);
    let agent = daemon.agent_with("a", &model("corp", &server.base_url(), "DB_PASSWORD"));
    send(&daemon, &agent).expect(200);
    assert_eq!(keys(&server), ["Bearer hunter2-from-env"]);
    daemon.post("/api/config/set", &json!({ "path": "security.manifest_key_envs", "value": [] })).refused(403);
    fs::write(daemon.home().join("config.toml"), "api_listen = \"127.0.0.1:0\"\n").unwrap();
    daemon.restart();
    assert_eq!(text(&daemon.detail(&agent)["name"]), "a", "what is stored loads");
    let refused = send(&daemon, &agent).text();
    assert!(refused.contains("DB_PASSWORD") && refused.contains("[security] manifest_key_envs"), "{refused}");
    assert_eq!(server.requests().len(), 1, "nothing was sent");
}

#[test]
fn a_providers_own_variable_goes_to_its_own_place_alone() {
    let (model_server, server) = (Model::start(), stranger());
    let place = model_server.server.base_url();
    let config = format!("[providers.mine]\nbase_url = \"{place}\"\napi_key_env = \"MINE_KEY\"\n");
    let config = format!("{}{config}", model_server.config());
    let daemon = Daemon::with_env(&config, &[("MINE_KEY", "sk-mine")]);
    let key_of_the_last = |agent: &str| {
        send(&daemon, agent).expect(200);
        keys(&model_server.server).pop().unwrap()
    };
    let named = daemon.agent_with("a", "[model]\nprovider = \"mine\"\nmodel = \"m\"\napi_key_env = \"MINE_KEY\"\n");
    assert_eq!(key_of_the_last(&named), "Bearer sk-mine");
    let placed = daemon.agent_with("b", &model("mine", &place, "MINE_KEY"));
    assert_eq!(key_of_the_last(&placed), "Bearer sk-mine");
    let of_the_default = daemon.agent_with("c", "[model]\napi_key_env = \"TEST_MODEL_KEY\"\n");
    assert_eq!(key_of_the_last(&of_the_default), "Bearer key-of-the-test-model");
    for variable in ["MINE_KEY", "TEST_MODEL_KEY"] {
        let manifest = format!("name = \"d\"\n{}", model("mine", &server.base_url(), variable));
        daemon.post("/api/agents", &json!({ "manifest_toml": manifest })).refused_field(400, "model.api_key_env");
    }
    // An endpoint without a name of a provider or a variable: the key of the default model stays at its own place.
    let local = daemon.agent_with("e", &format!("[model]\nmodel = \"m\"\nbase_url = \"{}\"\n", server.base_url()));
    send(&daemon, &local).expect(200);
    assert_eq!(keys(&server), [""]);
}
