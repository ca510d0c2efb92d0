//! Texts that are deep instead of long: JSON, TOML and our own languages, 100,000 levels of them. A parser that follows
//! them with its stack would end the process.

use serde_json::json;

use super::harness::{Memory, harness};
use crate::support::routes::declared;
use crate::support::socket::Socket;

const DEEP: usize = 100_000;

#[test]
fn no_route_is_brought_down_by_nested_json() {
    let mut daemon = harness("");
    let agent = daemon.agent("a");
    let memory = Memory::of(&daemon);
    let arrays = "[".repeat(DEEP) + &"]".repeat(DEEP);
    let objects = "{\"a\":".repeat(DEEP) + "1" + &"}".repeat(DEEP);
    let mut told = 0;
    for route in declared() {
        if route.verb == "GET" || route.path == "/api/shutdown" {
            continue;
        }
        let path = route.filled(&agent);
        let within = [
            arrays.clone(),
            objects.clone(),
            // Where any JSON may stand.
            format!(
                "{{\"event_type\":\"deep\",\"value\":{arrays},\"payload\":{objects},\"input\":{arrays},\"a\":{arrays}}}"
            ),
            "[".repeat(DEEP),
        ];
        for body in &within {
            let reply = daemon.send(&route.verb, &path, &[], Some(body.as_bytes()));
            assert!(
                reply.status != 500 && reply.status != 502,
                "{} {path}: {} {}",
                route.verb,
                reply.status,
                reply.text()
            );
            told += usize::from(reply.status == 400);
            assert!(daemon.alive(), "{} {path} brought the daemon down", route.verb);
        }
    }
    assert!(told > 100, "{told} were refused as what they are");
    memory.is_flat(&daemon, "nested JSON");
    daemon.get("/api/health").expect(200);
    daemon.get("/api/agents").expect(200);
}

#[test]
fn manifests_queries_conditions_and_patterns_may_not_be_deep() {
    let mut daemon = harness("");
    let agent = daemon.agent("a");
    let deep = 60_000;
    for text in [
        format!("name = \"x\"\nx = {}{}", "[".repeat(deep), "]".repeat(deep)),
        format!("name = \"x\"\nx = {}1{}", "{a=".repeat(deep / 2), "}".repeat(deep / 2)),
        format!("name = \"x\"\n[{}a]\n", "a.".repeat(deep)),
        format!("name = \"x\"\n{}a = 1\n", "a.".repeat(deep)),
    ] {
        for path in ["/api/agents", "/api/agents/check"] {
            let reply = daemon.post(path, &json!({ "manifest_toml": text }));
            assert!(matches!(reply.status, 200 | 201 | 400 | 409), "{} {}", reply.status, &text[..40]);
            assert!(daemon.alive(), "{}", &text[..40]);
        }
    }
    let round = |count: usize, inner: &str| "(".repeat(count) + inner + &")".repeat(count);
    for query in [round(3_900, "name = \"a\""), "not ".repeat(1_900) + "name = \"a\"", "(".repeat(7_000)] {
        let query = format!("agents where {query} select name").replace(' ', "%20").replace('"', "%22");
        let reply = daemon.get(&format!("/api/world/query?q={query}"));
        assert!(reply.status == 400 || reply.status == 414, "{} {}", reply.status, reply.text());
    }
    for condition in [round(2_000, "output contains \"x\""), "not ".repeat(1_000) + "x", "(".repeat(4_000)] {
        let step = json!({ "agent_id": agent, "prompt": "p", "mode": "conditional", "condition": condition });
        let reply = daemon.post("/api/workflows", &json!({ "name": "w", "steps": [step] }));
        assert!(matches!(reply.status, 201 | 400), "{} {}", reply.status, reply.text());
        assert!(daemon.alive(), "{condition:.20}");
    }
    for pattern in ["*".repeat(256), "?*".repeat(128), "[".repeat(256), "{a,".repeat(85)] {
        let pattern = json!({ "agent_spawned": { "name_pattern": pattern } });
        let body = json!({ "agent_id": agent, "pattern": pattern, "prompt_template": "{{event}}" });
        let reply = daemon.post("/api/triggers", &body);
        assert!(matches!(reply.status, 201 | 400), "{} {}", reply.status, reply.text());
    }
    // A pattern of many stars is matched against names that nearly fit.
    daemon.agent(&"a".repeat(120));
    let mut socket = Socket::open(&daemon, &agent);
    socket.send("[".repeat(DEEP));
    socket.until("response");
    socket.send("{\"type\":\"message\",\"content\":".to_owned() + &"[".repeat(DEEP) + &"]".repeat(DEEP) + "}");
    socket.until("response");
    daemon.get("/api/health").expect(200);
}
