//! Lists: filters, pages, and whole lists of any length (issue: for scale).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;

fn crowd(daemon: &Daemon, count: usize) {
    let items: Vec<_> = (0..count).map(|n| json!({ "manifest_toml": format!("name = \"crowd-{n:05}\"") })).collect();
    for items in items.chunks(5_000) {
        let reply = daemon.post("/api/agents/bulk", &json!({ "agents": items }));
        assert!(reply.status < 300, "{}", reply.text());
    }
}

/// Every item over all pages of `limit`, and the number of pages.
fn walk(client: &Client, path: &str, key: Option<&str>, limit: usize) -> (Vec<Value>, usize) {
    let (mut items, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let reply = client.send("GET", &format!("{path}?limit={limit}{cursor}"), &[], None);
        let body = reply.expect(200);
        let page = key.map_or(&body, |key| &body[key]).as_array().unwrap().clone();
        assert!(page.len() <= limit, "a page of {} items", page.len());
        items.extend(page);
        pages += 1;
        match reply.header("x-next-cursor") {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (items, pages),
        }
    }
}

#[test]
fn pages_walk_over_every_agent_once() {
    let daemon = Daemon::start();
    crowd(&daemon, 25);
    let total = daemon.get("/api/agents").expect(200).as_array().unwrap().len();
    let (items, pages) = walk(&daemon, "/api/agents", None, 10);
    assert_eq!((items.len(), pages), (total, total.div_ceil(10)));
    let mut ids: Vec<_> = items.iter().map(|a| text(&a["id"])).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), total, "no agent twice");
    let (sessions, _) = walk(&daemon, "/api/sessions", Some("sessions"), 7);
    assert_eq!(sessions.len(), total, "one session each");
}

#[test]
fn agents_filter_by_name() {
    let daemon = Daemon::start();
    crowd(&daemon, 12);
    let hits = daemon.get("/api/agents?name=crowd-00007").expect(200);
    assert_eq!(hits.as_array().unwrap().len(), 1);
    assert_eq!(hits[0]["name"], "crowd-00007");
    assert_eq!(daemon.get("/api/agents?name=nobody-like-this").expect(200), json!([]));
}

#[test]
fn sessions_of_one_agent_page_too() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    for _ in 0..14 {
        daemon.poke(&format!("/api/agents/{agent}/sessions")).expect(201);
    }
    let (items, pages) = walk(&daemon, &format!("/api/agents/{agent}/sessions"), Some("sessions"), 4);
    assert_eq!((items.len(), pages), (15, 4));
}

#[test]
fn bad_paging_is_refused() {
    let daemon = Daemon::start();
    for path in ["/api/agents", "/api/sessions", "/api/sessions/search"] {
        for bad in ["0", "-1", "many", "99999999999999999999"] {
            daemon.send("GET", &format!("{path}?limit={bad}"), &[], None).refused_field(400, "limit");
        }
        daemon.send("GET", &format!("{path}?cursor=%21nonsense"), &[], None).refused_field(400, "cursor");
    }
}

#[test]
fn a_whole_list_of_many_pages_is_one_valid_array() {
    let daemon = Daemon::start();
    crowd(&daemon, 12_000);
    let list = daemon.get("/api/agents").expect(200);
    let mut names: Vec<_> = list.as_array().unwrap().iter().map(|a| text(&a["name"])).collect();
    names.retain(|name| name.starts_with("crowd-"));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 12_000);
    let status = daemon.get("/api/status").expect(200);
    let count = list.as_array().unwrap().len();
    assert_eq!(status["agent_count"], count);
    assert_eq!(status["agents"].as_array().unwrap().len(), count);
    let sessions = daemon.get("/api/sessions").expect(200);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), count);
}
