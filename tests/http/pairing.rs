//! Devices are paired with a code, may do what was said then, are notified, and go with their keys (spec 3, Pairing).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::people::person;
use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::model_server::{ModelServer, Reply as Answer};
use crate::support::until;

/// Long enough that it is looked for on routes that ask for none, too.
const KEY: &str = "the-long-key-of-the-configuration-itself";

fn daemon_with(pairing: &str, more: &str, environment: &[(&str, &str)]) -> Daemon {
    let config =
        format!("api_key = \"{KEY}\"\nrate_limit_per_second = 1000000\n[pairing]\nenabled = true\n{pairing}\n{more}");
    let mut daemon = Daemon::with_env(&config, environment);
    daemon.use_key(KEY);
    daemon
}

fn daemon() -> Daemon {
    daemon_with("", "", &[])
}

/// A client without a key.
fn stranger(daemon: &Daemon) -> Client {
    Client { key: None, ..daemon.client() }
}

fn request(daemon: &Daemon, body: &Value) -> Value {
    daemon.post("/api/pairing/request", body).expect(200)
}

fn complete(client: &Client, body: &Value) -> Reply {
    client.post("/api/pairing/complete", body)
}

/// A paired device, and a client with its key.
fn device(daemon: &Daemon, name: &str, body: &Value) -> (Value, Client) {
    let made = request(daemon, body);
    let body = json!({ "pairing_code": made["pairing_code"], "display_name": name, "platform": "ios" });
    let paired = complete(&stranger(daemon), &body).expect(200);
    let client = daemon.keyed(&text(&paired["api_key"]));
    (paired, client)
}

fn kinds(daemon: &Daemon) -> String {
    daemon.get("/api/audit/recent").text()
}

#[test]
fn pairing_is_off_unless_the_configuration_wants_it() {
    let daemon = Daemon::start();
    let body = json!({ "pairing_code": "AAAA-AAAA", "message": "x" });
    for path in ["/api/pairing/request", "/api/pairing/complete", "/api/pairing/notify"] {
        let reply = daemon.post(path, &body);
        reply.refused(404);
        assert!(reply.text().contains("pairing_off"), "{}", reply.text());
    }
    daemon.get("/api/pairing/devices").refused(404);
    daemon.delete(&format!("/api/pairing/devices/{}", Uuid::nil())).refused(404);
}

#[test]
fn a_device_is_paired_with_its_code_and_may_do_what_was_said() {
    let mut daemon = daemon();
    let made = request(&daemon, &json!({}));
    let (code, token) = (text(&made["pairing_code"]), text(&made["token"]));
    assert_eq!((token.len(), &made["scopes"]), (64, &json!(["read", "chat"])));
    let payload = text(&made["qr_uri"]).strip_prefix("librefang://pair?payload=").map(|it| URL_SAFE_NO_PAD.decode(it));
    let payload: Value = serde_json::from_slice(&payload.unwrap().unwrap()).unwrap();
    assert_eq!(
        (&payload["v"], &payload["token"], &payload["expires_at"]),
        (&json!(1), &made["token"], &made["expires_at"])
    );
    assert!(text(&payload["base_url"]).starts_with("http://127.0.0.1:"), "{payload}");
    let written =
        json!({ "code": code.to_lowercase().replace('-', " "), "display_name": "Ann's phone", "platform": "ios" });
    let paired = complete(&stranger(&daemon), &written).expect(200);
    let key = text(&paired["api_key"]);
    let phone = daemon.keyed(&key);
    assert_eq!(phone.get("/api/whoami").expect(200)["scopes"], json!(["read", "chat"]));
    phone.get("/api/agents").expect(200);
    phone.post("/api/agents", &json!({ "manifest_toml": "name = \"x\"" })).refused(403);
    phone.post("/api/pairing/request", &json!({})).refused(403);
    // A code is good once, and the other form of the same code with it.
    for used in [json!({ "code": code }), json!({ "token": token })] {
        complete(&stranger(&daemon), &used).refused(401);
        let reply = complete(&daemon.client(), &used);
        reply.refused(410);
        assert!(reply.text().contains("pairing_code_gone"));
    }
    let list = daemon.get("/api/pairing/devices").expect(200);
    assert_eq!((&list["total"], &list["devices"][0]["display_name"]), (&json!(1), &json!("Ann's phone")));
    for page in ["/api/pairing/devices", "/api/keys", "/api/audit/recent"] {
        let page = daemon.get(page);
        assert!(!page.text().contains(&key) && !page.text().contains(&token) && !page.text().contains(&code));
    }
    let all = kinds(&daemon);
    assert!(["pairing_requested", "device_paired", "key_created"].iter().all(|kind| all.contains(kind)), "{all}");
    daemon.kill();
    daemon.restart();
    let phone = daemon.keyed(&key);
    phone.get("/api/agents").expect(200);
    let id = text(&list["devices"][0]["id"]);
    daemon.delete(&format!("/api/pairing/devices/{id}")).expect(204);
    phone.get("/api/agents").refused(401);
    daemon.delete(&format!("/api/pairing/devices/{id}")).refused(404);
    assert_eq!(daemon.get("/api/keys").expect(200)["total"], 0);
    assert!(kinds(&daemon).contains("device_removed"));
}

#[test]
fn a_device_goes_with_its_key_and_with_its_user() {
    let daemon = daemon();
    let (paired, phone) = device(&daemon, "one", &json!({ "scopes": ["read"] }));
    daemon.delete(&format!("/api/keys/{}", text(&paired["key_id"]))).expect(204);
    phone.get("/api/agents").refused(401);
    let (user, _) = person(&daemon, "ann", "user");
    let (paired, phone) = device(&daemon, "two", &json!({ "user_id": user, "scopes": [] }));
    assert_eq!((&paired["role"], &paired["user_id"]), (&json!("user"), &json!(user)));
    assert_eq!(phone.get("/api/whoami").expect(200)["scopes"], json!(["read", "chat", "write"]));
    daemon.delete(&format!("/api/users/{user}")).expect(204);
    phone.get("/api/whoami").refused(401);
    assert_eq!(daemon.get("/api/pairing/devices").expect(200)["devices"], json!([]));
}

#[test]
fn no_device_may_do_more_than_who_asked_for_its_code() {
    let daemon = daemon();
    let (user, admin) = person(&daemon, "ann", "admin");
    admin.post("/api/pairing/request", &json!({ "role": "owner" })).refused(403);
    let key = daemon.post("/api/keys", &json!({ "name": "narrow", "scopes": ["admin", "read"] })).expect(201);
    let narrow = daemon.keyed(&text(&key["key"]));
    narrow.post("/api/pairing/request", &json!({ "scopes": ["write"] })).refused(403);
    narrow.post("/api/pairing/request", &json!({ "scopes": [] })).refused(403);
    for role in ["user", "viewer"] {
        let (_, person) = person(&daemon, role, role);
        person.post("/api/pairing/request", &json!({})).refused(403);
        person.get("/api/pairing/devices").refused(403);
        person.post("/api/pairing/notify", &json!({ "message": "x" })).refused(403);
    }
    // The code of someone who may no longer make keys pairs nothing, whoever sends it.
    let made = admin.post("/api/pairing/request", &json!({ "role": "admin" })).expect(200);
    daemon.put(&format!("/api/users/{user}"), &json!({ "role": "user" })).expect(200);
    complete(&stranger(&daemon), &json!({ "code": made["pairing_code"] })).refused(403);
    complete(&daemon.client(), &json!({ "code": made["pairing_code"] })).refused(403);
    assert_eq!(daemon.get("/api/pairing/devices").expect(200)["total"], 0);
    // Who asked is on record, not who sent the code.
    daemon.put(&format!("/api/users/{user}"), &json!({ "role": "admin" })).expect(200);
    complete(&daemon.client(), &json!({ "code": made["pairing_code"] })).expect(200);
    let trail = daemon.get("/api/audit/recent").expect(200);
    let entry =
        trail["entries"].as_array().unwrap().iter().find(|it| it.to_string().contains("device_paired")).unwrap();
    assert!(entry.to_string().contains(&format!("user:{user}/key:")), "{entry}");
}

#[test]
fn five_wrong_codes_end_the_open_ones_but_not_their_tokens() {
    let daemon = daemon();
    let made = request(&daemon, &json!({}));
    let wrong = json!({ "pairing_code": "AAAA-AAAA" });
    for _ in 0..5 {
        let reply = complete(&stranger(&daemon), &wrong);
        reply.refused(401);
        assert!(reply.header("www-authenticate").is_some() && reply.text().contains("pairing_code_invalid"));
    }
    complete(&stranger(&daemon), &json!({ "code": made["pairing_code"] })).refused(401);
    complete(&daemon.client(), &json!({ "code": made["pairing_code"] })).refused(410);
    complete(&daemon.client(), &json!({ "token": made["token"] })).expect(200);
    complete(&daemon.client(), &json!({ "token": made["token"] })).refused(410);
    assert_eq!(kinds(&daemon).matches("\"pairing_refused\"").count(), 5, "the sixth had nothing to find");
}

#[test]
fn wrong_codes_slow_their_client_down_whatever_it_sends_next() {
    let daemon = daemon();
    let made = request(&daemon, &json!({}));
    let (client, wrong) = (stranger(&daemon), json!({ "pairing_code": "AAAA-AAAA" }));
    // Each wrong code doubles the wait, so that the next one comes too early soon, however slow this machine is.
    let tries: Vec<_> = (0..20).map(|_| complete(&client, &wrong)).take_while(|reply| reply.status != 429).collect();
    assert!((10..20).contains(&tries.len()), "{}", tries.len());
    tries.iter().for_each(|reply| drop(reply.refused(401)));
    // The right one is not looked at meanwhile, from whoever is there; the wait is so long that it comes in time.
    until("the wait is long", || {
        let wait = complete(&client, &wrong).header("retry-after")?.parse::<u32>().ok();
        wait.filter(|secs| *secs >= 3)
    });
    let right = json!({ "token": made["token"] });
    let slowed = complete(&daemon.client(), &right);
    slowed.refused(429);
    assert!(slowed.text().contains("auth_slowed") && slowed.header("retry-after").is_some(), "{}", slowed.text());
    assert_eq!(daemon.get("/api/pairing/devices").expect(200)["total"], 0);
    let paired = until("the wait is over", || Some(complete(&client, &right)).filter(|reply| reply.status != 429));
    paired.expect(200);
}

#[test]
fn codes_and_devices_are_bounded_and_bad_input_uses_no_code() {
    let daemon = daemon_with("max_devices = 1", "", &[]);
    let client = stranger(&daemon);
    let made = request(&daemon, &json!({}));
    let code = &made["pairing_code"];
    for (body, field) in [
        (json!({}), "pairing_code"),
        (json!({ "code": " " }), "pairing_code"),
        (json!({ "code": "x".repeat(300) }), "pairing_code"),
        (json!({ "code": code, "display_name": "a\nb" }), "display_name"),
        (json!({ "code": code, "display_name": "n".repeat(200) }), "display_name"),
        (json!({ "code": code, "platform": "p".repeat(200) }), "platform"),
    ] {
        complete(&client, &body).refused_field(400, field);
    }
    for (body, field) in [
        (json!({ "user_id": Uuid::nil() }), "user_id"),
        (json!({ "user_id": Uuid::nil(), "role": "admin" }), "role"),
        (json!({ "role": "viewer" }), "role"),
    ] {
        daemon.post("/api/pairing/request", &body).refused_field(400, field);
    }
    daemon.post("/api/pairing/request", &json!({ "scopes": ["fly"] })).refused(400);
    for _ in 0..4 {
        request(&daemon, &json!({}));
    }
    let reply = daemon.post("/api/pairing/request", &json!({}));
    reply.refused(429);
    assert!(reply.text().contains("pairing_codes_open") && reply.header("retry-after").is_some());
    let paired = complete(&client, &json!({ "code": code })).expect(200);
    assert_eq!(paired["display_name"], "Device");
    let refused = daemon.post("/api/pairing/request", &json!({}));
    refused.refused(429);
    assert!(refused.text().contains("devices_full"), "{}", refused.text());
    daemon.post("/api/pairing/notify", &json!({ "title": "t" })).refused_field(400, "message");
    daemon.post("/api/pairing/notify", &json!({ "title": "a\nb", "message": "m" })).refused_field(400, "title");
    let sent = daemon.post("/api/pairing/notify", &json!({ "title": "t", "message": "m" })).expect(200);
    let nothing = json!({ "ok": true, "notified": 0, "push_provider": "none", "notification_id": null });
    assert_eq!(sent, nothing, "there is no push service");
}

#[test]
fn notifications_go_to_ntfy_and_are_tried_again_over_a_kill() {
    let server = ModelServer::start();
    server.respond(|_| Answer::raw(503, &[], "later"));
    let pairing = format!(
        "push_provider = \"ntfy\"\nntfy_url = \"http://{}\"\nntfy_topic = \"agents\"\nntfy_token_env = \"PUSH_TOKEN\"",
        server.address()
    );
    let allow = format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", server.address());
    let mut daemon = daemon_with(&pairing, &allow, &[("PUSH_TOKEN", "the-token-of-ntfy")]);
    let body = json!({ "title": "Größe", "message": "a\nb" });
    assert_eq!(daemon.post("/api/pairing/notify", &body).expect(200)["notified"], 0, "no device is paired");
    device(&daemon, "one", &json!({}));
    device(&daemon, "two", &json!({}));
    let sent = daemon.post("/api/pairing/notify", &body).expect(200);
    assert_eq!((&sent["notified"], &sent["push_provider"]), (&json!(2), &json!("ntfy")));
    server.wait_for_requests(1);
    daemon.kill();
    server.respond(|_| Answer::raw(200, &[], "{}"));
    daemon.restart();
    until("it is delivered", || (daemon_done(&daemon) && server.requests().len() > 1).then_some(()));
    let requests = server.requests();
    let last = requests.last().unwrap();
    assert_eq!((last.path.as_str(), last.header("authorization")), ("/agents", "Bearer the-token-of-ntfy"));
    assert_eq!(&last.raw[..], b"a\nb");
    assert!(!daemon.stderr().contains("the-token-of-ntfy"));
}

/// No job of a notification is left.
fn daemon_done(daemon: &Daemon) -> bool {
    let metrics = daemon.get("/api/metrics").text();
    let is_it = |line: &&str| {
        line.starts_with("agentsvc_jobs_total{") && line.contains("notification") && line.contains("done")
    };
    metrics.lines().find(is_it).is_some_and(|line| !line.ends_with(" 0"))
}

#[test]
fn notifications_go_to_gotify_and_a_refusal_is_on_record() {
    let server = ModelServer::start();
    server.respond(|_| Answer::raw(401, &[], "no"));
    let allow = format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", server.address());
    let url = format!("http://{}/", server.address());
    let environment = [("GOTIFY_SERVER_URL", url.as_str()), ("GOTIFY_APP_TOKEN", "the-token-of-gotify")];
    let daemon = daemon_with("push_provider = \"gotify\"", &allow, &environment);
    device(&daemon, "one", &json!({}));
    daemon.post("/api/pairing/notify", &json!({ "title": "t", "message": "m" })).expect(200);
    until("the refusal is on record", || kinds(&daemon).contains("notification_failed").then_some(()));
    let requests = server.requests();
    assert_eq!((requests[0].path.as_str(), requests[0].header("x-gotify-key")), ("/message", "the-token-of-gotify"));
    assert_eq!(requests[0].body, json!({ "title": "t", "message": "m", "priority": 5 }));
}

#[test]
fn the_command_line_pairs_lists_and_removes() {
    let daemon = daemon();
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let pair = run(&["device", "pair", "--scope", "read"]);
    assert!(pair.contains('█'), "{pair}");
    let code = pair.lines().last().unwrap();
    complete(&stranger(&daemon), &json!({ "code": code, "display_name": "phone" })).expect(200);
    let list = run(&["device", "list"]);
    assert!(list.contains("phone") && list.contains("admin"), "{list}");
    let made: Value = serde_json::from_str(&run(&["--json", "device", "pair"])).unwrap();
    assert!(made["token"].is_string());
    run(&["device", "remove", "phone"]);
    assert_eq!(daemon.get("/api/pairing/devices").expect(200)["total"], 0);
}
