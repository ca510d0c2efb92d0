//! External agents: which hosts are reached, which header goes where, and what is bounded.

use serde_json::{Value, json};

use super::a2a_outbound::{External, begin, discover, send, status, task_v0};
use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{ModelServer, Reply};

#[test]
fn private_hosts_redirects_and_wrong_cards_are_refused() {
    let external = External::v0();
    let other = ModelServer::start();
    let config =
        format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\", \"{}\"]\n", external.server.address(), other.address());
    let daemon = Daemon::with(&config);
    let post = |url: &str| daemon.post("/api/a2a/discover", &json!({ "url": url }));
    for url in [
        "http://127.0.0.1:1",
        "http://169.254.169.254",
        "http://localhost",
        "ftp://h",
        "no url",
        "http://u:p@h",
        "https://h/?k=1",
        "",
    ] {
        post(url).refused_field(400, "url");
    }
    daemon.post("/api/a2a/discover", &json!({})).refused_field(400, "url");
    let inside =
        json!({ "name": "Sly", "url": format!("http://{}/admin", other.address()), "protocolVersion": "0.3.0" });
    for (card, why) in [
        (inside, "another host"),
        (json!({ "name": "Sly", "url": "http://169.254.169.254/latest", "protocolVersion": "0.3.0" }), "another host"),
        (json!({ "name": "Sly", "url": "file:///etc/passwd" }), "http or https"),
        (json!({ "url": external.url() }), "`name`"),
        (json!({ "name": "Sly", "url": external.url(), "preferredTransport": "GRPC" }), "JSON-RPC"),
        (json!("text"), "object"),
    ] {
        external.script.lock().unwrap().card = card;
        let refused = post(&external.url());
        assert!(refused.refused(502).contains(why), "{why}: {}", refused.text());
    }
    assert!(other.requests().is_empty(), "a card opens no host that the operator opened for others");
    external.on("/.well-known/agent.json", [Reply::raw(302, &[("location", "http://169.254.169.254/")], "")]);
    external.script.lock().unwrap().card = Value::Null;
    post(&external.url()).refused(502);
    external.on("/.well-known/agent.json", [Reply::raw(200, &[], &"{".repeat(2 << 20))]);
    assert!(post(&external.url()).refused(502).contains("longer than"));
    // Short enough as text, and hundreds of times as much in memory.
    let nested = format!("[{}]", vec!["{\"\":{}}"; 100_000].join(","));
    external.on("/.well-known/agent.json", [Reply::raw(200, &[], &nested)]);
    assert!(post(&external.url()).refused(502).contains("bytes of memory"));
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(daemon.get("/api/a2a/agents").expect(200)["total"], 0);
    let daemon = Daemon::with(&format!("[web.fetch]\nssrf_allowed_hosts = [\"{gone}\"]\n"));
    let refused = daemon.post("/api/a2a/discover", &json!({ "url": format!("http://{gone}") }));
    refused.refused(502);
    assert!(refused.text().contains("a2a_agent_unreachable"), "{}", refused.text());
}

#[test]
fn a_header_goes_to_its_origin_alone_and_is_never_shown() {
    const SECRET: &str = "Bearer top-secret-key";
    let external = External::v0();
    external.results("message/send", &[task_v0("completed", "ok")]);
    let mut daemon = external.daemon("log_level = \"trace\"\n");
    let body = json!({ "url": external.url(), "headers": { "Authorization": SECRET } });
    let agent = daemon.post("/api/a2a/discover", &body).expect(201);
    assert_eq!((&agent["header"], &agent["header_origin"]), (&json!("Authorization"), &json!(external.url())));
    daemon.restart();
    send(&daemon, &agent, "with a key");
    for key in ["/.well-known/agent.json", "message/send"] {
        assert_eq!(external.asked(key)[0].headers["authorization"], SECRET, "{key}");
    }
    let shown = [
        agent.to_string(),
        daemon.get("/api/a2a/agents").text(),
        daemon.get("/api/a2a/tasks").text(),
        daemon.get("/api/audit/recent?n=50").text(),
        daemon.stderr(),
    ];
    assert!(shown.iter().all(|text| !text.contains("top-secret-key")), "{shown:?}");
    let kept = daemon.post("/api/a2a/discover", &json!({ "url": external.url() })).expect(200);
    assert_eq!(kept["header"], "Authorization", "it is kept where nothing is said of it");
    assert_eq!(external.asked("/.well-known/agent.json")[1].headers["authorization"], SECRET);
    let without = daemon.post("/api/a2a/discover", &json!({ "url": external.url(), "headers": null })).expect(200);
    assert!(without["header"].is_null());
    send(&daemon, &agent, "without one");
    assert!(external.asked("message/send")[1].headers.get("authorization").is_none());
    for headers in [json!({ "Host": "h" }), json!({ "a": "1", "b": "2" }), json!({ "a b": "1" })] {
        let body = json!({ "url": external.url(), "headers": headers });
        daemon.post("/api/a2a/discover", &body).refused_field(400, "headers");
    }
}

#[test]
fn a_key_of_the_environment_goes_to_the_origin_of_the_configuration() {
    let (external, other) = (External::v0(), External::v0());
    for one in [&external, &other] {
        one.results("message/send", &[task_v0("completed", "ok")]);
    }
    let hosts = format!("[\"{}\", \"{}\"]", external.server.address(), other.server.address());
    let config = format!(
        "[web.fetch]\nssrf_allowed_hosts = {hosts}\n[a2a]\nexternal_keys = [\"{} X-Key: PARTNER_KEY\"]\n",
        external.url()
    );
    let daemon = Daemon::with_env(&config, &[("PARTNER_KEY", "k3y")]);
    let agent = discover(&daemon, &external);
    let body = json!({ "url": other.url(), "name": "Other" });
    let second = daemon.post("/api/a2a/discover", &body).expect(201);
    send(&daemon, &agent, "one");
    send(&daemon, &second, "two");
    assert_eq!(external.asked("message/send")[0].headers["x-key"], "k3y");
    assert!(other.server.requests().iter().all(|request| request.headers.get("x-key").is_none()));
    assert!(!daemon.get("/api/config").text().contains("k3y"));
}

#[test]
fn a_changed_card_is_seen_and_names_are_not_taken_over() {
    let (external, other) = (External::v0(), External::v0());
    let hosts = format!("[\"{}\", \"{}\"]", external.server.address(), other.server.address());
    let daemon = Daemon::with(&format!("[web.fetch]\nssrf_allowed_hosts = {hosts}\n"));
    let agent = discover(&daemon, &external);
    let refused = daemon.post("/api/a2a/discover", &json!({ "url": other.url() }));
    assert!(refused.refused(409).contains("Weather"), "{}", refused.text());
    {
        let mut script = external.script.lock().unwrap();
        script.card["name"] = json!("Root");
        script.card["description"] = json!("Does more now.");
    }
    let changed = daemon.post("/api/a2a/discover", &json!({ "url": external.url() })).expect(200);
    assert_eq!(
        (&changed["id"], &changed["name"], &changed["card_name"]),
        (&agent["id"], &json!("Weather"), &json!("Root"))
    );
    assert!(!changed["card_changed_at"].is_null() && changed["description"] == "Does more now.");
}

#[test]
fn messages_are_bounded_and_wrong_ones_name_their_field() {
    let external = External::v0();
    external.results("message/send", &[task_v0("completed", "ok")]);
    let daemon = external.daemon("[a2a]\nexternal_rate_per_minute = 2\n");
    let agent = discover(&daemon, &external);
    let id = &agent["id"];
    for (body, status, field) in [
        (json!({ "message": "x" }), 400, "agent_id"),
        (json!({ "agent_id": "nobody", "message": "x" }), 404, "agent_id"),
        (json!({ "url": "https://nobody.example", "message": "x" }), 404, "url"),
        (json!({ "agent_id": id }), 400, "message"),
        (json!({ "agent_id": id, "message": " " }), 400, "message"),
        (json!({ "agent_id": id, "message": "x".repeat(65 << 10) }), 400, "message"),
        (json!({ "agent_id": id, "message": "x", "context_id": "c".repeat(999) }), 400, "context_id"),
    ] {
        daemon.post("/api/a2a/send", &body).refused_field(status, field);
    }
    let unknown = json!({ "agent_id": id, "message": "x", "task_id": id });
    daemon.post("/api/a2a/send", &unknown).refused(404);
    daemon.get("/api/a2a/tasks/none").refused(400);
    daemon.get(&format!("/api/a2a/tasks/{}/status", text(id))).refused(404);
    assert!(external.asked("message/send").is_empty());
    for _ in 0..2 {
        daemon.post("/api/a2a/send", &json!({ "agent_id": id, "message": "x" })).expect(200);
    }
    let refused = daemon.post("/api/a2a/send", &json!({ "agent_id": id, "message": "x" }));
    refused.refused(429);
    assert!(refused.text().contains("a2a_sent_rate_limited") && refused.header("retry-after").is_some());
}

#[test]
fn removing_an_agent_ends_its_open_tasks() {
    let external = External::v0();
    external.on("message/send", [Reply::hang()]);
    let daemon = external.daemon("");
    let agent = discover(&daemon, &external);
    let task = begin(&daemon, &agent, "wait");
    daemon.delete("/api/a2a/agents/Weather");
    let task = status(&daemon, &task);
    assert_eq!((&task["status"], &task["agent_name"]), (&json!("cancelled"), &json!("Weather")));
    assert!(text(&task["error"]).contains("removed"));
}
