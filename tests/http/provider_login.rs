//! Signing in at providers by a device flow (RFC 8628), against a scripted server.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::providers::{files, holds};
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::{ModelServer, Reply};

/// What a sign-in's server answers from now on.
struct Script {
    device: Value,
    token: (u16, Value),
    exchange: (u16, Value),
}

/// A server of sign-ins.
struct Login {
    server: ModelServer,
    script: Arc<Mutex<Script>>,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn pending() -> (u16, Value) {
    (400, json!({ "error": "authorization_pending" }))
}

impl Login {
    fn start() -> Self {
        let device = json!({ "device_code": "device-canary", "user_code": "WDJB-MJHT", "interval": 0, "expires_in": 900,
                             "verification_uri": "https://login.example/device" });
        let exchange = (200, json!({ "token": "session-canary-1", "expires_at": now() + 1_800 }));
        let script = Arc::new(Mutex::new(Script { device, token: pending(), exchange }));
        let (server, shared) = (ModelServer::start(), Arc::clone(&script));
        server.respond(move |request| {
            let script = shared.lock().unwrap();
            let (status, body) = match request.path.as_str() {
                "/device" => (200, script.device.clone()),
                "/token" => script.token.clone(),
                "/exchange" => script.exchange.clone(),
                _ => (404, Value::Null),
            };
            Reply::raw(status, &[("content-type", "application/json")], &body.to_string())
        });
        Self { server, script }
    }

    fn set(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    /// The person has agreed.
    fn agree(&self, token: Value) {
        self.set(|script| script.token = (200, token));
    }

    /// Configuration lines of a provider whose model is `model`.
    fn config(&self, name: &str, model: &Model, exchanged: bool) -> String {
        let root = format!("http://{}", self.server.address());
        let exchange = if exchanged { format!("exchange_url = \"{root}/exchange\"\n") } else { String::new() };
        format!(
            "[providers.{name}]\nbase_url = \"{}\"\napi_key_env = \"NO_SUCH_KEY\"\ndevice_auth_url = \"{root}/device\"\n\
             token_url = \"{root}/token\"\nclient_id = \"client-1\"\n{exchange}",
            model.server.base_url()
        )
    }

    /// The requests to `path` so far, as forms or headers.
    fn asked(&self, path: &str) -> Vec<String> {
        let requests = self.server.requests().into_iter().filter(|request| request.path == path);
        requests
            .map(|request| {
                let key = request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
                key.unwrap_or_else(|| request.body.as_str().unwrap_or_default().to_owned())
            })
            .collect()
    }
}

/// Begins a sign-in: the answer, and the path that polls it.
fn start(client: &Client, name: &str) -> (Value, String) {
    let begun = client.poke(&format!("/api/providers/{name}/oauth/start")).expect(200);
    let poll = format!("/api/providers/{name}/oauth/poll/{}", text(&begun["poll_id"]));
    (begun, poll)
}

fn status(client: &Client, poll: &str) -> String {
    text(&client.get(poll).expect(200)["status"])
}

fn last_key(model: &Model) -> String {
    model.server.requests().last().unwrap().headers["authorization"].to_str().unwrap().to_owned()
}

#[test]
fn a_person_signs_in_and_calls_go_with_what_the_token_is_exchanged_for() {
    let (login, model) = (Login::start(), Model::start());
    let mut daemon = Daemon::with(&format!("log_level = \"trace\"\n{}", login.config("github-copilot", &model, true)));
    let agent = daemon.agent_with("a", "[model]\nprovider = \"github-copilot\"\nmodel = \"gpt-4.1\"\n");
    let send = |daemon: &Daemon| daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "x" }));
    assert_eq!(send(&daemon).expect(500)["code"], "provider_auth");

    let (begun, poll) = start(&daemon, "github-copilot");
    assert_eq!((&begun["device_code"], &begun["user_code"]), (&json!("device-canary"), &json!("WDJB-MJHT")));
    assert_eq!(
        (&begun["verification_uri"], &begun["expires_in"]),
        (&json!("https://login.example/device"), &json!(900))
    );
    assert_eq!(login.asked("/device"), ["client_id=client-1&scope=read%3Auser"]);
    assert_eq!(daemon.get(&poll).expect(200)["provider"], "github-copilot");
    assert_eq!(status(&daemon, &poll), "pending");
    let asked = login.asked("/token");
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code";
    assert_eq!(asked[0], format!("client_id=client-1&device_code=device-canary&{grant}"));

    login.agree(json!({ "access_token": "gho-canary", "token_type": "bearer" }));
    assert_eq!(status(&daemon, &poll), "authorized");
    let asked = login.asked("/token").len();
    assert_eq!(status(&daemon, &poll), "authorized");
    assert_eq!(login.asked("/token").len(), asked, "there is nothing more to ask");
    assert_eq!(login.asked("/exchange"), ["token gho-canary"]);
    let shown = daemon.get("/api/providers/github-copilot").expect(200);
    assert_eq!((&shown["auth_status"], &shown["key_source"]), (&json!("configured"), &json!("oauth")));
    send(&daemon).expect(200);
    assert_eq!(last_key(&model), "Bearer session-canary-1");
    assert!(model.server.requests()[0].headers.contains_key("editor-version"), "the provider wants to know its client");
    send(&daemon).expect(200);
    assert_eq!(login.asked("/exchange").len(), 1, "it holds for half an hour");

    // The grant outlives the daemon; one that is nearly over is exchanged again before the call.
    login.set(|script| script.exchange = (200, json!({ "token": "session-canary-2", "expires_at": now() + 30 })));
    daemon.restart();
    send(&daemon).expect(200);
    assert_eq!(last_key(&model), "Bearer session-canary-2");
    login.set(|script| script.exchange = (200, json!({ "token": "session-canary-3", "expires_at": now() + 1_800 })));
    send(&daemon).expect(200);
    assert_eq!(last_key(&model), "Bearer session-canary-3");

    // What is said and written holds nothing of it.
    let seen = [
        daemon.stderr(),
        daemon.get("/api/providers").text(),
        daemon.get("/api/providers/github-copilot").text(),
        daemon.get("/api/audit/recent").text(),
    ];
    assert!(seen[3].contains("provider_signed_in"), "{}", seen[3]);
    assert!(seen.iter().all(|text| !text.contains("canary")), "{seen:?}");
    assert!(daemon.home().join("vault/provider-github-copilot.sealed").is_file());
    for path in files(daemon.home()) {
        // What is being replaced may be gone again.
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!holds(&bytes, "canary"), "{}", path.display());
    }
    daemon.delete("/api/providers/github-copilot/key").expect(200);
    assert_eq!(send(&daemon).expect(500)["code"], "provider_auth");
    daemon.get(&poll).refused(404);
}

#[test]
fn a_sign_in_that_is_taken_back_says_so_and_another_mends_it() {
    let (login, model) = (Login::start(), Model::start());
    let mut daemon = Daemon::with(&login.config("github-copilot", &model, true));
    let agent = daemon.agent_with("a", "[model]\nprovider = \"github-copilot\"\nmodel = \"m\"\n");
    login.agree(json!({ "access_token": "gho-canary" }));
    let (_, poll) = start(&daemon, "github-copilot");
    assert_eq!(status(&daemon, &poll), "authorized");
    login.set(|script| script.exchange = (401, json!({ "message": "Bad credentials" })));
    daemon.restart();
    let refused = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "x" })).expect(500);
    assert_eq!(refused["code"], "provider_auth");
    assert!(text(&refused["error"]).contains("Bad credentials"), "{refused}");
    let shown = daemon.get("/api/providers/github-copilot").expect(200);
    assert!(text(&shown["problem"]).contains("Bad credentials"), "{shown}");
    assert_eq!(daemon.poke("/api/providers/github-copilot/test?model=m").expect(409)["code"], "provider_auth");
    login.set(|script| script.exchange = (200, json!({ "token": "session", "expires_at": now() + 1_800 })));
    login.agree(json!({ "access_token": "gho-other" }));
    let (_, poll) = start(&daemon, "github-copilot");
    assert_eq!(status(&daemon, &poll), "authorized");
    // The failure a moment ago holds nobody up who signed in anew.
    daemon.say(&agent, "x");
    assert_eq!(daemon.get("/api/providers/github-copilot").expect(200)["problem"], Value::Null);
}

#[test]
fn a_refresh_token_is_turned_in_once_and_the_next_one_is_kept() {
    let (login, model) = (Login::start(), Model::start());
    let mut daemon = Daemon::with(&login.config("coder", &model, false));
    let agent = daemon.agent_with("a", "[model]\nprovider = \"coder\"\nmodel = \"m\"\n");
    login.agree(json!({ "access_token": "first", "refresh_token": "r1", "expires_in": 30 }));
    let (_, poll) = start(&daemon, "coder");
    // Nearly over from the beginning: what comes next is got with the sign-in.
    login.agree(json!({ "access_token": "first", "refresh_token": "r1", "expires_in": 30 }));
    assert_eq!(status(&daemon, &poll), "authorized");
    login.agree(json!({ "access_token": "second", "refresh_token": "r2", "expires_in": 3_600 }));
    daemon.say(&agent, "x");
    assert_eq!(last_key(&model), "Bearer second");
    assert!(login.asked("/token").iter().any(|form| form.contains("grant_type=refresh_token&refresh_token=r1")));
    let asked = login.asked("/token").len();
    daemon.say(&agent, "y");
    daemon.restart();
    daemon.say(&agent, "z");
    assert_eq!(
        (last_key(&model).as_str(), login.asked("/token").len()),
        ("Bearer second", asked),
        "it holds for an hour"
    );
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn every_end_of_a_sign_in_is_said() {
    let (login, model) = (Login::start(), Model::start());
    let daemon = Daemon::with(&login.config("coder", &model, false));
    for (word, expected) in [("access_denied", "denied"), ("expired_token", "expired")] {
        let (_, poll) = start(&daemon, "coder");
        login.set(|script| script.token = (400, json!({ "error": word })));
        assert_eq!(status(&daemon, &poll), expected);
        login.set(|script| script.token = pending());
        assert_eq!(status(&daemon, &poll), expected, "it stays so");
    }
    // Codes that are over are over, whatever the provider would say.
    login.set(|script| script.device["expires_in"] = json!(0));
    let (_, poll) = start(&daemon, "coder");
    assert_eq!(status(&daemon, &poll), "expired");
    login.set(|script| script.device["expires_in"] = json!(900));

    // Nobody asks more often than the provider wants.
    login.set(|script| script.device["interval"] = json!(60));
    let (begun, poll) = start(&daemon, "coder");
    let asked = login.asked("/token").len();
    assert_eq!(begun["interval"], 60);
    for _ in 0..3 {
        let state = daemon.get(&poll).expect(200);
        assert!(state["status"] == "pending" && state["retry_after"].as_u64().unwrap() > 0, "{state}");
    }
    assert_eq!(login.asked("/token").len(), asked);
    login.set(|script| script.device["interval"] = json!(0));
    let (_, poll) = start(&daemon, "coder");
    login.set(|script| script.token = (400, json!({ "error": "slow_down" })));
    assert!(daemon.get(&poll).expect(200)["retry_after"].as_u64().unwrap() >= 4);

    // What fails can be asked again.
    let (_, poll) = start(&daemon, "coder");
    login.set(|script| script.token = (500, Value::Null));
    assert_eq!(daemon.get(&poll).expect(502)["code"], "oauth_failed");
    login.agree(json!({ "access_token": "t" }));
    assert_eq!(status(&daemon, &poll), "authorized");
}

#[test]
fn what_is_no_sign_in_is_refused() {
    let (login, model) = (Login::start(), Model::start());
    let daemon = Daemon::with(&login.config("coder", &model, false));
    assert_eq!(daemon.poke("/api/providers/openai/oauth/start").expect(400)["code"], "wrong_provider");
    daemon.poke("/api/providers/nobody/oauth/start").refused(404);
    let unknown = "01890000-0000-7000-8000-000000000000";
    for name in ["coder", "github-copilot", "openai", "nobody"] {
        let reply = daemon.get(&format!("/api/providers/{name}/oauth/poll/{unknown}"));
        assert!(matches!(reply.status, 400 | 404), "{name}: {}", reply.text());
    }
    daemon.get("/api/providers/coder/oauth/poll/x").refused_field(400, "poll_id");
    let (begun, _) = start(&daemon, "coder");
    let of_another = format!("/api/providers/github-copilot/oauth/poll/{}", text(&begun["poll_id"]));
    daemon.get(&of_another).refused(404);
    for wrong in [json!({}), json!({ "error": "invalid_client", "error_description": "no such client" }), json!("x")] {
        login.set(|script| script.device = wrong.clone());
        let refused = daemon.poke("/api/providers/coder/oauth/start").expect(502);
        assert_eq!(refused["code"], "oauth_failed", "{refused}");
    }
    let whole = json!({ "device_code": "d", "user_code": "u", "verification_uri": "javascript:alert(1)" });
    login.set(|script| script.device = whole);
    daemon.poke("/api/providers/coder/oauth/start").refused(502);
    drop(login);
    daemon.poke("/api/providers/coder/oauth/start").refused(502);
}

#[test]
fn so_many_sign_ins_are_remembered() {
    let (login, model) = (Login::start(), Model::start());
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", login.config("coder", &model, false)));
    let (_, first) = start(&daemon, "coder");
    // Many at once: the bound holds also for those that ask the provider at the same time.
    let begin = "/api/providers/coder/oauth/start";
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..80).map(|_| scope.spawn(|| daemon.poke(begin).status)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let of = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((of(200), of(429)), (63, 17), "{statuses:?}");
    let asked = login.asked("/device").len();
    let refused = daemon.poke(begin);
    refused.refused(429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(login.asked("/device").len(), asked, "the provider is not asked for codes that nobody can use");
    assert_eq!(status(&daemon, &first), "pending", "those before are as they were");
}
