//! System routes: health, status, versions, OpenAPI, metrics, logs, shutdown (spec 2, System).

use std::process::Command;

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::routes;
use crate::support::stream::Events;

#[test]
fn health_is_small_and_public() {
    let mut daemon = Daemon::with("api_key = \"secret\"\n");
    let health = daemon.get("/api/health").expect(200);
    assert_eq!(health["status"], "ok");
    for key in ["uptime_seconds", "panic_count", "restart_count"] {
        assert!(health[key].is_u64(), "{key}: {health}");
    }
    assert!(health.get("agent_count").is_none() && health.get("database").is_none(), "{health}");
    assert_eq!(daemon.get("/api/ready").expect(200), serde_json::json!({ "status": "ready" }));
    daemon.get("/api/health/detail").refused(401);
    daemon.use_key("secret");
    let detail = daemon.get("/api/health/detail").expect(200);
    assert_eq!((&detail["status"], &detail["database"]), (&json!("ok"), &json!("connected")));
    assert!(detail["agent_count"].is_u64() && detail["config_warnings"].is_array(), "{detail}");
}

#[test]
fn localhost_is_the_daemon_whichever_address_it_means() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return eprintln!("skipped: no IPv6");
    }
    let daemon = Daemon::start();
    let other = std::net::SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), daemon.addr.port());
    assert_eq!(Client::new(other).get("/api/health").expect(200)["status"], "ok");
    assert!(std::net::TcpListener::bind(other).is_err(), "nothing else can listen there");
}

#[test]
fn health_counts_restarts() {
    let mut daemon = Daemon::start();
    let before = daemon.get("/api/health").expect(200)["restart_count"].as_u64().unwrap();
    daemon.restart();
    assert_eq!(daemon.get("/api/health").expect(200)["restart_count"], before + 1);
}

#[test]
fn status_counts_and_names() {
    let daemon = Daemon::start();
    daemon.agent("counted");
    let status = daemon.get("/api/status").expect(200);
    assert_eq!(status["status"], "running");
    let agents = status["agents"].as_array().unwrap();
    assert_eq!(status["agent_count"], agents.len());
    assert!(agents.iter().any(|a| a["name"] == "counted" && a["model_provider"] == "builtin"), "{status}");
    for key in ["data_dir", "default_provider", "default_model"] {
        assert!(status[key].as_str().is_some_and(|s| !s.is_empty()), "{key}: {status}");
    }
    assert!(status["uptime_seconds"].is_u64());
    let one = daemon.get("/api/status?limit=1").expect(200);
    assert_eq!((one["agents"].as_array().unwrap().len(), &one["agent_count"]), (1, &status["agent_count"]));
    daemon.get("/api/status?limit=0").refused_field(400, "limit");
}

#[test]
fn version_says_what_was_built() {
    let daemon = Daemon::start();
    let version = daemon.get("/api/version").expect(200);
    for key in ["name", "version", "build_date", "git_sha", "rust_version", "platform", "arch"] {
        assert!(version[key].as_str().is_some_and(|s| !s.is_empty()), "{key}: {version}");
    }
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert!(daemon.get("/api/versions").expect(200).is_object());
}

#[test]
fn openapi_describes_every_route() {
    let daemon = Daemon::start();
    let document = daemon.get("/api/openapi.json").expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3."), "{}", document["openapi"]);
    for route in routes::declared() {
        let path = route.path.replace("{*", "{");
        let item = &document["paths"][&path];
        let operation = &item[route.verb.to_lowercase()];
        assert!(operation["responses"].is_object(), "{route:?} is not described");
        let both = [&operation["parameters"], &item["parameters"]].map(|p| p.as_array().cloned().unwrap_or_default());
        for name in path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}')) {
            let found = both.iter().flatten().any(|p| p["name"] == name && p["in"] == "path");
            assert!(found, "{route:?} does not describe {name}");
        }
    }
    assert_refs_resolve(&document, &document);
}

/// Every `$ref` of the document points at something in it.
fn assert_refs_resolve(document: &Value, part: &Value) {
    match part {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                let found = target.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
                assert!(found.is_some(), "dangling {target}");
            }
            map.values().for_each(|value| assert_refs_resolve(document, value));
        }
        Value::Array(items) => items.iter().for_each(|value| assert_refs_resolve(document, value)),
        _ => {}
    }
}

#[test]
fn metrics_are_prometheus_text() {
    let daemon = Daemon::start();
    let agent = daemon.agent("measured");
    daemon.say(&agent, "hello");
    let reply = daemon.get("/api/metrics");
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain"));
    let body = reply.text();
    for line in body.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("not a sample: {line}"));
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let bare = name.split('{').next().unwrap_or_default();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|s| bare.strip_suffix(s)).unwrap_or(bare);
        let typed = |name: &str| body.contains(&format!("# TYPE {name} "));
        assert!(typed(bare) || typed(family), "no TYPE for {bare}");
    }
    for word in ["agents", "world_step", "waiting", "store_commit", "http", "turn", "token"] {
        let found = body.lines().any(|line| line.starts_with("# TYPE") && line.contains(word));
        assert!(found, "no family about '{word}':\n{body}");
    }
}

#[test]
fn logs_stream_carries_structured_lines() {
    let daemon = Daemon::start();
    let mut stream = Events::open(&daemon, "GET", "/api/logs/stream", None);
    daemon.agent("noisy");
    daemon.poke("/api/shutdown").expect(200);
    let event = stream.next().expect("a log line before the end");
    assert!(event.data.is_object(), "{event:?}");
    for key in ["level", "target", "timestamp"] {
        assert!(event.data[key].is_string(), "{key}: {event:?}");
    }
}

#[test]
fn shutdown_is_graceful_and_keeps_everything() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("keeper");
    daemon.say(&agent, "hello");
    let detail = daemon.detail(&agent);
    let attached = Events::attach(&daemon, &agent);
    assert_eq!(daemon.poke("/api/shutdown").expect(200)["status"], "shutting_down");
    assert!(daemon.wait().success());
    attached.all();
    daemon.restart();
    assert_eq!(daemon.detail(&agent), detail);
}

#[test]
fn sigterm_and_sigint_are_graceful_too() {
    for signal in ["-TERM", "-INT"] {
        let mut daemon = Daemon::start();
        let agent = daemon.agent("keeper");
        let attached = Events::attach(&daemon, &agent);
        Command::new("kill").args([signal, &daemon.pid().to_string()]).status().unwrap();
        assert!(daemon.wait().success(), "{signal}");
        attached.all();
        daemon.restart();
        daemon.detail(&agent);
    }
}
