//! Outbound webhooks over HTTP: their routes, and what a receiver gets (spec 3, Webhooks).

use std::collections::BTreeSet;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{ModelServer, Received, Reply};
use crate::support::until;

/// A daemon that may post to the receiver.
fn daemon(receiver: &ModelServer) -> Daemon {
    Daemon::with(&format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", receiver.address()))
}

/// A receiver that answers everything with this status.
fn receiver(status: u16) -> ModelServer {
    let receiver = ModelServer::start();
    receiver.respond(move |_| Reply::raw(status, &[], "thanks"));
    receiver
}

fn url(receiver: &ModelServer) -> String {
    format!("http://{}/hook?key=1", receiver.address())
}

fn make(daemon: &Daemon, body: &Value) -> Value {
    daemon.post("/api/webhooks", body).expect(201)
}

fn deliveries(daemon: &Daemon, webhook: &Value) -> Vec<Value> {
    let list = daemon.get(&format!("/api/webhooks/{}/deliveries", text(&webhook["id"]))).expect(200);
    list["deliveries"].as_array().unwrap().clone()
}

/// The deliveries of a webhook, once `is_so` holds of them.
fn deliveries_when(daemon: &Daemon, webhook: &Value, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    until("the deliveries are as expected", || Some(deliveries(daemon, webhook)).filter(|all| is_so(all)))
}

fn header<'a>(received: &'a Received, name: &str) -> &'a str {
    received.headers.get(name).map_or("", |value| value.to_str().unwrap())
}

fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

#[test]
fn webhooks_are_made_read_changed_and_deleted_and_survive_a_kill() {
    let receiver = receiver(200);
    let mut daemon = daemon(&receiver);
    let bare = make(&daemon, &json!({ "url": url(&receiver) }));
    assert_eq!((&bare["name"], &bare["events"]), (&json!(receiver.address().to_string()), &json!(["all"])));
    assert_eq!((&bare["enabled"], &bare["has_secret"]), (&json!(true), &json!(false)));
    let body = json!({ "name": " CI ", "url": url(&receiver), "events": ["agent.spawned", "agent_error"],
        "secret": "s3cret-of-mine", "enabled": false });
    let full = make(&daemon, &body);
    assert_eq!((&full["name"], &full["has_secret"]), (&json!("CI"), &json!(true)));
    assert_eq!((&full["events"], &full["enabled"]), (&body["events"], &json!(false)));
    let id = text(&full["id"]);
    let path = format!("/api/webhooks/{id}");
    daemon.restart();
    assert_eq!(daemon.get(&path).expect(200), full);
    let list = daemon.get("/api/webhooks").expect(200);
    assert_eq!((&list["total"], &list["webhooks"]), (&json!(2), &json!([bare, full])));
    let changed = daemon
        .put(&format!("/api/webhooks/{id}"), &json!({ "name": "CD", "secret": null, "enabled": true }))
        .expect(200);
    assert_eq!((&changed["name"], &changed["has_secret"]), (&json!("CD"), &json!(false)));
    assert_eq!((&changed["events"], &changed["url"]), (&full["events"], &full["url"]));
    assert_eq!(daemon.put(&path, &json!({})).expect(200), changed, "nothing sent, nothing changed");
    assert_eq!(daemon.delete(&path).status, 204);
    assert!(daemon.get(&path).refused(404).contains("webhook"));
    daemon.delete(&path).refused(404);
    let trail = daemon.get("/api/audit/recent?n=100").expect(200).to_string();
    for kind in ["webhook_created", "webhook_updated", "webhook_deleted"] {
        assert!(trail.contains(kind), "{kind}");
    }
    assert!(!trail.contains("key=1") && !trail.contains("s3cret"), "{trail}");
}

/// Everything in a directory, as text.
fn all_text(directory: &std::path::Path) -> String {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file())
        .map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned())
        .collect()
}

/// The path of many a receiver is its password.
#[test]
fn the_path_of_a_url_is_in_no_log_no_error_and_no_audit_entry() {
    const SECRET: &str = "T0-secret-path";
    let receiver = receiver(500);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let daemon = Daemon::with(&format!(
        "log_level = \"trace\"\n[web.fetch]\nssrf_allowed_hosts = [\"{}\", \"{gone}\"]\n",
        receiver.address()
    ));
    let mut shown = String::new();
    for (address, status) in [(receiver.address(), 200), (gone, 502)] {
        let webhook = make(&daemon, &json!({ "url": format!("http://{address}/services/{SECRET}?key={SECRET}") }));
        assert!(text(&webhook["url"]).contains(SECRET), "who manages it sees it");
        let path = format!("/api/webhooks/{}", text(&webhook["id"]));
        daemon.put(&path, &json!({ "url": format!("http://{address}/{SECRET}") })).expect(200);
        for bad in ["http://user:pass@example.com", "http://10.0.0.1", "http://no such host", "ftp://example.com"] {
            let refused = daemon.put(&path, &json!({ "url": format!("{bad}/{SECRET}") }));
            refused.refused_field(400, "url");
            shown += &refused.text();
        }
        let test = daemon.poke(&format!("{path}/test"));
        assert_eq!(test.status, status, "{}", test.text());
        shown += &test.text();
        daemon.agent(&format!("agent-{status}"));
        let tried =
            |all: &[Value]| all.iter().any(|one| one["attempts"].as_array().is_some_and(|tries| !tries.is_empty()));
        shown += &json!(deliveries_when(&daemon, &webhook, tried)).to_string();
        assert_eq!(daemon.delete(&path).status, 204);
    }
    shown += &daemon.get("/api/audit/recent?n=200").expect(200).to_string();
    assert!(shown.contains("webhook_deleted") && !shown.contains(SECRET), "{shown}");
    let logged = daemon.stderr() + &all_text(&daemon.home().join("logs"));
    assert!(logged.contains("TRACE") || logged.contains("trace"), "there is something to look at");
    let lines: Vec<&str> = logged.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn event_subscriptions_are_webhooks_under_their_own_routes() {
    let receiver = receiver(204);
    let daemon = daemon(&receiver);
    let body = json!({ "event_type": "agent_spawned", "url": url(&receiver), "secret": "x" });
    let made = daemon.post("/api/webhooks/events", &body).expect(201);
    assert_eq!((&made["event_type"], &made["events"]), (&json!("agent_spawned"), &json!(["agent_spawned"])));
    assert_eq!(made["has_secret"], true);
    let list = daemon.get("/api/webhooks/events").expect(200);
    assert_eq!((&list["webhooks"], &list["total"]), (&json!([made]), &json!(1)));
    assert_eq!(daemon.get("/api/webhooks").expect(200)["webhooks"], json!([]));
    daemon.agent("a");
    assert_eq!(deliveries_when(&daemon, &made, |all| all.iter().any(|one| one["state"] == "delivered")).len(), 1);
    let id = text(&made["id"]);
    let events = json!({ "events": ["workflow.completed", "workflow.failed"] });
    let changed = daemon.put(&format!("/api/webhooks/events/{id}"), &events).expect(200);
    daemon.get(&format!("/api/webhooks/{id}")).refused(404);
    daemon.put(&format!("/api/webhooks/{id}"), &json!({ "name": "x" })).refused(404);
    daemon.delete(&format!("/api/webhooks/{id}")).refused(404);
    assert_eq!(changed["events"], json!(["workflow.completed", "workflow.failed"]));
    assert_eq!(daemon.delete(&format!("/api/webhooks/events/{id}")).status, 204);
    assert_eq!(daemon.get("/api/webhooks/events").expect(200)["total"], 0);
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    let receiver = receiver(200);
    let daemon = daemon(&receiver);
    let good = url(&receiver);
    for (field, body) in [
        ("url", json!({})),
        ("url", json!({ "url": "ftp://example.com/" })),
        ("url", json!({ "url": "http://127.0.0.1:1/" })),
        ("url", json!({ "url": "http://169.254.169.254/latest" })),
        ("url", json!({ "url": "http://user:word@example.com/" })),
        ("name", json!({ "url": good, "name": "" })),
        ("name", json!({ "url": good, "name": "x".repeat(129) })),
        ("events", json!({ "url": good, "events": [] })),
        ("events", json!({ "url": good, "events": ["agent_exploded"] })),
        ("secret", json!({ "url": good, "secret": "" })),
        ("secret", json!({ "url": good, "secret": "x".repeat(257) })),
        ("enabled", json!({ "url": good, "enabled": "yes" })),
    ] {
        daemon.post("/api/webhooks", &body).refused_field(400, field);
    }
    assert_eq!(daemon.get("/api/webhooks").expect(200)["total"], 0);
    daemon.get("/api/webhooks/018f0000-0000-7000-8000-00000000dead/deliveries").refused(404);
    daemon.get("/api/webhooks/nonsense").refused_field(400, "id");
    let upper = good.replace("http", "HTTP");
    assert_eq!(make(&daemon, &json!({ "url": format!("{upper}#part") }))["url"], good, "one spelling");
    assert!(receiver.requests().is_empty());
}

#[test]
fn a_delivery_is_signed_and_names_its_agent() {
    let receiver = receiver(200);
    let daemon = daemon(&receiver);
    let secret = "a shared secret";
    let webhook = make(&daemon, &json!({ "url": url(&receiver), "events": ["agent_spawned"], "secret": secret }));
    let agent = daemon.agent("scout");
    let delivery =
        deliveries_when(&daemon, &webhook, |all| all.iter().any(|one| one["state"] == "delivered")).remove(0);
    let received = receiver.requests().remove(0);
    assert_eq!(received.path, "/hook");
    let body = &received.body;
    assert_eq!((&body["event_type"], &body["event"]), (&json!("agent_spawned"), &json!("agent.spawned")));
    assert_eq!((&body["id"], &body["webhook_id"]), (&delivery["id"], &webhook["id"]));
    assert_eq!((&body["data"]["agent_id"], &body["data"]["agent_name"]), (&json!(agent), &json!("scout")));
    assert_eq!(body["timestamp"], delivery["created_at"]);
    assert_eq!(header(&received, "x-webhook-signature"), signature(secret, &received.raw));
    assert_eq!(header(&received, "x-webhook-id"), text(&body["id"]));
    assert!(header(&received, "x-webhook-timestamp").parse::<i64>().unwrap() > 1_700_000_000);
    assert!(header(&received, "user-agent").starts_with("agentsvc/"));
    assert_eq!(header(&received, "content-type"), "application/json");
    let a_try = &delivery["attempts"][0];
    assert_eq!((&a_try["status"], &a_try["error"], &delivery["attempt_count"]), (&json!(200), &json!(null), &json!(1)));
    let files =
        std::process::Command::new("grep").args(["-r", "-l", "-a", secret]).arg(daemon.home()).output().unwrap();
    assert!(files.stdout.is_empty(), "the secret lies in {}", String::from_utf8_lossy(&files.stdout));
}

#[test]
fn a_receiver_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let busy = ModelServer::start();
    busy.push(Reply::raw(503, &[("retry-after", "0")], ""));
    busy.push(Reply::raw(429, &[("retry-after", "1")], ""));
    busy.respond(|_| Reply::raw(200, &[], ""));
    let gone = receiver(410);
    let moved = ModelServer::start();
    moved.respond(|_| Reply::raw(302, &[("location", "http://127.0.0.1:1/")], ""));
    let hosts = [&busy, &gone, &moved].map(|server| format!("\"{}\"", server.address())).join(", ");
    let daemon = Daemon::with(&format!("[web.fetch]\nssrf_allowed_hosts = [{hosts}]\n"));
    let of = |server| make(&daemon, &json!({ "url": url(server), "events": ["agent_spawned"] }));
    let (busy_hook, gone_hook, moved_hook) = (of(&busy), of(&gone), of(&moved));
    daemon.agent("a");
    let delivered = deliveries_when(&daemon, &busy_hook, |all| all.iter().any(|one| one["state"] == "delivered"));
    let statuses: Vec<_> = delivered[0]["attempts"].as_array().unwrap().iter().map(|a_try| &a_try["status"]).collect();
    assert_eq!(statuses, [503, 429, 200]);
    let ids: BTreeSet<_> = busy.requests().iter().map(|received| header(received, "x-webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 1, "all tries of a delivery have its id");
    for (hook, status, server) in [(&gone_hook, 410, &gone), (&moved_hook, 302, &moved)] {
        let failed = deliveries_when(&daemon, hook, |all| all.iter().any(|one| one["state"] == "failed")).remove(0);
        assert_eq!((&failed["attempt_count"], &failed["attempts"][0]["status"]), (&json!(1), &json!(status)));
        assert_eq!(server.requests().len(), 1);
        let hook = daemon.get(&format!("/api/webhooks/{}", text(&hook["id"]))).expect(200);
        assert!(hook["failing_since"].is_string() && hook["enabled"] == true, "{hook}");
    }
}

#[test]
fn a_delivery_that_a_kill_cut_off_is_sent_again_under_its_id() {
    let receiver = ModelServer::start();
    receiver.push(Reply::hang());
    receiver.respond(|_| Reply::raw(200, &[], ""));
    let mut daemon = daemon(&receiver);
    let webhook = make(&daemon, &json!({ "url": url(&receiver), "events": ["agent_spawned"] }));
    daemon.agent("a");
    receiver.wait_for_requests(1);
    daemon.kill();
    daemon.restart();
    let delivered = deliveries_when(&daemon, &webhook, |all| all.iter().any(|one| one["state"] == "delivered"));
    assert_eq!(delivered.len(), 1);
    let requests = receiver.requests();
    assert_eq!((requests.len(), &requests[0].raw), (2, &requests[1].raw), "the same bytes, with the same id");
}

#[test]
fn a_test_says_what_the_receiver_answered() {
    let receiver = receiver(418);
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let hosts = format!("\"{}\", \"{closed}\"", receiver.address());
    let daemon = Daemon::with(&format!("[web.fetch]\nssrf_allowed_hosts = [{hosts}]\n"));
    let webhook = make(&daemon, &json!({ "url": url(&receiver), "name": "mine", "secret": "s", "enabled": false }));
    let tested = daemon.poke(&format!("/api/webhooks/{}/test", text(&webhook["id"]))).expect(200);
    assert_eq!(tested, json!({ "status": "sent", "response_status": 418, "webhook_id": webhook["id"] }));
    let received = receiver.requests().remove(0);
    assert_eq!((&received.body["event"], &received.body["webhook_id"]), (&json!("test"), &webhook["id"]));
    assert_eq!(header(&received, "x-webhook-signature"), signature("s", &received.raw));
    let dead = make(&daemon, &json!({ "url": format!("http://{closed}/"), "enabled": false }));
    let reply = daemon.poke(&format!("/api/webhooks/{}/test", text(&dead["id"])));
    assert_eq!(reply.expect(502)["code"], "webhook_unreachable");
}

#[test]
fn a_trigger_that_fires_is_told_of() {
    let receiver = receiver(200);
    let daemon = daemon(&receiver);
    let agent = daemon.agent("a");
    let webhook = make(&daemon, &json!({ "url": url(&receiver), "events": ["trigger_fired"] }));
    let trigger =
        json!({ "agent_id": agent, "pattern": { "custom": { "event_type": "go" } }, "prompt_template": "go" });
    let reply = daemon.post("/api/triggers", &trigger);
    assert!(reply.status == 201 || reply.status == 200, "{}", reply.text());
    daemon.post("/api/events", &json!({ "event_type": "go", "payload": {} }));
    deliveries_when(&daemon, &webhook, |all| all.iter().any(|one| one["state"] == "delivered"));
    let body = receiver.requests().remove(0).body;
    assert_eq!((&body["event"], &body["data"]["agent_id"]), (&json!("trigger.fired"), &json!(agent)));
}

#[test]
fn every_event_arrives_over_kills_and_each_under_one_id() {
    let receiver = receiver(200);
    let mut daemon = daemon(&receiver);
    make(&daemon, &json!({ "url": url(&receiver), "events": ["custom"] }));
    let mut published = BTreeSet::new();
    for round in 0..5 {
        for n in 0..4 {
            let event_type = format!("round-{round}.{n}");
            daemon.post("/api/events", &json!({ "event_type": event_type, "payload": {} })).expect(200);
            published.insert(event_type);
        }
        daemon.kill();
        daemon.restart();
    }
    let mut arrived = until("every event has arrived", || {
        let arrived: BTreeSet<(String, String)> = (receiver.requests().iter())
            .map(|received| (text(&received.body["data"]["event_type"]), text(&received.body["id"])))
            .collect();
        (arrived.len() >= published.len()).then_some(arrived)
    });
    let ids = arrived.len();
    arrived.retain(|(event_type, _)| published.remove(event_type));
    assert!(published.is_empty() && arrived.len() == ids, "{published:?} did not arrive; {arrived:?}");
}
