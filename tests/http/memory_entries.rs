//! Entries of the memory that agents keep, over HTTP (spec 2, Memory): every route but relations and search.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::until;

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

fn add(client: &Client, body: &Value) -> Value {
    client.post("/api/memory", body).expect(201)
}

/// Adds an entry of `agent`, and gives its id.
fn entry(client: &Client, agent: &str, content: &str) -> String {
    text(&add(client, &json!({ "agent_id": agent, "content": content }))["id"])
}

fn contents(list: &Value) -> Vec<String> {
    list["memories"].as_array().unwrap().iter().map(|entry| text(&entry["content"])).collect()
}

fn count(client: &Client, agent: &str) -> Value {
    client.get(&format!("/api/memory/agents/{agent}/count")).expect(200)["count"].clone()
}

fn import(client: &Client, agent: &str, body: &Value) -> Reply {
    client.post(&format!("/api/memory/agents/{agent}/import"), body)
}

#[test]
fn an_entry_is_added_listed_updated_and_deleted_and_survives_a_kill() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let added = add(
        &daemon,
        &json!({ "agent_id": agent, "content": "likes tea", "user_id": "ana", "tags": ["drinks"], "category": "preference",
            "metadata": { "from": "chat" }, "confidence": 0.9 }),
    );
    assert_eq!((&added["action"], &added["memory"]["id"]), (&json!("added"), &added["id"]));
    let id = text(&added["id"]);
    daemon.kill();
    daemon.restart();
    let list = daemon.get("/api/memory").expect(200);
    assert_eq!((&list["total"], &list["offset"], &list["limit"]), (&json!(1), &json!(0), &json!(100)));
    let shown = &list["memories"][0];
    assert_eq!(shown, &added["memory"], "as it was answered");
    for (key, value) in [
        ("agent_id", json!(agent)),
        ("user_id", json!("ana")),
        ("level", json!("user")),
        ("category", json!("preference")),
        ("tags", json!(["drinks"])),
        ("metadata", json!({ "from": "chat" })),
        ("source", json!("api")),
        ("confidence", json!(0.9)),
        ("access_count", json!(0)),
        ("taint", json!([])),
        ("expires_at", json!(null)),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
    let updated = daemon.put(&format!("/api/memory/items/{id}"), &json!({ "content": "likes coffee" })).expect(200);
    assert_eq!((&updated["content"], &updated["tags"]), (&json!("likes coffee"), &json!(["drinks"])));
    assert_eq!(updated["created_at"], shown["created_at"]);
    daemon
        .put(&format!("/api/memory/items/{id}"), &json!({ "content": "likes mate", "tags": [], "user_id": "bo" }))
        .expect(200);
    let history = daemon.get(&format!("/api/memory/items/{id}/history")).expect(200);
    assert_eq!((&history["memory_id"], &history["version_count"]), (&json!(id), &json!(2)));
    assert_eq!(
        (&history["versions"][0]["content"], &history["versions"][1]["content"]),
        (&json!("likes tea"), &json!("likes coffee"))
    );
    let whole = daemon.get(&format!("/api/memory/items/{id}")).expect(200);
    assert_eq!((&whole["content"], &whole["versions"]), (&json!("likes mate"), &history["versions"]));
    assert_eq!((&whole["agent_id"], &whole["user_id"]), (&json!(agent), &json!("bo")));
    assert_eq!(contents(&daemon.get("/api/memory/user/ana").expect(200)), [""; 0], "it is about another user now");
    assert_eq!(contents(&daemon.get("/api/memory/user/bo").expect(200)), ["likes mate"]);
    assert_eq!(daemon.delete(&format!("/api/memory/items/{id}")).expect(200)["status"], "deleted");
    daemon.delete(&format!("/api/memory/items/{id}")).refused(404);
    daemon.put(&format!("/api/memory/items/{id}"), &json!({ "content": "x" })).refused(404);
    daemon.get(&format!("/api/memory/items/{id}/history")).refused(404);
    daemon.get(&format!("/api/memory/items/{id}")).refused(404);
    assert_eq!(daemon.get("/api/memory").expect(200)["total"], 0);
}

#[test]
fn what_is_not_valid_names_its_field_and_stores_nothing() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let id = entry(&daemon, &agent, "x");
    let with = |key: &str, value: Value| {
        let mut body = json!({ "agent_id": agent, "content": "x" });
        body[key] = value;
        body
    };
    for (body, field) in [
        (json!({ "content": "x" }), "agent_id"),
        (with("agent_id", json!("nonsense")), "agent_id"),
        (json!({ "agent_id": agent }), "content"),
        (with("content", json!(" ")), "content"),
        (with("content", json!("x".repeat(16 * 1024 + 1))), "content"),
        (with("level", json!("high")), "level"),
        (with("confidence", json!(2)), "confidence"),
        (with("confidence", json!("high")), "confidence"),
        (with("user_id", json!("")), "user_id"),
        (with("user_id", json!("a\nb")), "user_id"),
        (with("tags", json!("x")), "tags"),
        (with("metadata", json!([])), "metadata"),
        (with("messages", json!([])), "messages"),
    ] {
        daemon.post("/api/memory", &body).refused_field(400, field);
    }
    daemon.post("/api/memory", &with("agent_id", json!(NOBODY))).refused(404);
    daemon.post("/api/memory", &json!({ "agent_id": NOBODY, "messages": [] })).refused(404);
    daemon.put(&format!("/api/memory/items/{id}"), &json!({ "level": "high" })).refused_field(400, "level");
    daemon.put(&format!("/api/memory/items/{id}"), &json!({ "content": "" })).refused_field(400, "content");
    daemon.post("/api/memory/bulk-delete", &json!({})).refused_field(400, "ids");
    daemon.get("/api/memory?level=x").refused_field(400, "level");
    daemon.get("/api/memory?limit=0").refused_field(400, "limit");
    daemon.get("/api/memory?cursor=x").refused_field(400, "cursor");
    daemon.get("/api/memory?offset=100001").refused_field(400, "offset");
    daemon.get(&format!("/api/memory/agents/{agent}/count?level=x")).refused_field(400, "level");
    daemon.delete(&format!("/api/memory/agents/{agent}/level/high")).refused_field(400, "level");
    daemon.get(&format!("/api/memory/agents/{agent}/search")).refused_field(400, "q");
    daemon.get("/api/memory/search?q=x&limit=101").refused_field(400, "limit");
    let list = daemon.get("/api/memory").expect(200);
    assert_eq!(contents(&list), ["x"]);
}

#[test]
fn lists_are_filtered_and_paged() {
    let daemon = Daemon::start();
    let (a, b) = (daemon.agent("a"), daemon.agent("b"));
    for n in 0..5 {
        let level = if n % 2 == 0 { "user" } else { "agent_memory" };
        add(
            &daemon,
            &json!({ "agent_id": a, "content": format!("a{n}"), "level": level, "user_id": "ana", "category": "c" }),
        );
    }
    add(&daemon, &json!({ "agent_id": b, "content": "b0", "user_id": "ana" }));
    add(&daemon, &json!({ "agent_id": b, "content": "b1", "user_id": "ana2" }));
    let list = |query: &str| daemon.get(&format!("/api/memory{query}")).expect(200);
    assert_eq!(list("")["total"], 7);
    assert_eq!(contents(&list(&format!("?agent_id={a}&level=agent"))), ["a1", "a3"]);
    assert_eq!(contents(&list("?category=c&level=user")), ["a0", "a2", "a4"]);
    let of = |user: &str| daemon.get(&format!("/api/memory/user/{user}")).expect(200);
    let user = of("ana");
    assert_eq!((contents(&user).len(), &user["total"]), (6, &json!(6)), "over all agents, and of this user alone");
    assert_eq!(contents(&list("?user_id=ana2")), ["b1"]);
    assert_eq!(contents(&daemon.get(&format!("/api/memory/agents/{b}?user_id=ana")).expect(200)), ["b0"]);
    let page = daemon.get(&format!("/api/memory/agents/{a}?limit=2&offset=1")).expect(200);
    assert_eq!((contents(&page), &page["total"]), (vec!["a1".to_owned(), "a2".to_owned()], &json!(5)));
    let next = text(&page["next_cursor"]);
    let rest = daemon.get(&format!("/api/memory/agents/{a}?limit=9&cursor={next}")).expect(200);
    assert_eq!((contents(&rest), &rest["next_cursor"]), (vec!["a3".to_owned(), "a4".to_owned()], &json!(null)));
}

#[test]
fn counts_follow_levels_categories_and_agents() {
    let daemon = Daemon::start();
    let (a, b) = (daemon.agent("a"), daemon.agent("b"));
    for (level, category) in [("user", "preference"), ("user", ""), ("session", "preference"), ("agent", "expertise")] {
        add(&daemon, &json!({ "agent_id": a, "content": "x", "level": level, "category": category }));
    }
    entry(&daemon, &b, "y");
    let stats = daemon.get(&format!("/api/memory/agents/{a}/stats")).expect(200);
    let counts = ["total", "user_count", "session_count", "agent_count"].map(|key| stats[key].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 1, 1]);
    assert_eq!(stats["categories"], json!({ "preference": 2, "uncategorized": 1, "expertise": 1 }));
    assert_eq!((&stats["enabled"], &stats["llm_extraction"]), (&json!(true), &json!(false)));
    assert!(stats.get("by_agent").is_none());
    let all = daemon.get("/api/memory/stats").expect(200);
    assert_eq!((&all["total"], &all["by_agent"][&a], &all["by_agent"][&b]), (&json!(5), &json!(4), &json!(1)));
    let level = "user_memory";
    let counted = daemon.get(&format!("/api/memory/agents/{a}/count?level=user")).expect(200);
    assert_eq!(counted, json!({ "agent_id": a, "count": 2, "level": "user" }));
    assert_eq!(daemon.delete(&format!("/api/memory/agents/{a}/level/{level}")).expect(200)["deleted"], 2);
    assert_eq!(count(&daemon, &a), 2);
    assert_eq!(daemon.delete(&format!("/api/memory/agents/{a}")).expect(200)["deleted"], 2);
    assert_eq!((count(&daemon, &a), count(&daemon, &b)), (json!(0), json!(1)));
}

#[test]
fn many_are_deleted_at_once_and_unknown_ids_are_counted() {
    let daemon = Daemon::start();
    let (a, b) = (daemon.agent("a"), daemon.agent("b"));
    let ids = [entry(&daemon, &a, "1"), entry(&daemon, &a, "2"), entry(&daemon, &b, "3"), entry(&daemon, &b, "kept")];
    let asked = json!({ "ids": [ids[0], ids[1], ids[2], NOBODY, "nonsense"] });
    let done = daemon.post("/api/memory/bulk-delete", &asked).expect(200);
    assert_eq!(done, json!({ "deleted": 3, "failed": 2, "total": 5 }));
    assert_eq!(contents(&daemon.get("/api/memory").expect(200)), ["kept"]);
    let trail = daemon.get("/api/audit/recent?limit=50").expect(200).to_string();
    assert!(trail.contains("memory_entries_written") && trail.contains("memory_entries_deleted"), "{trail}");
}

#[test]
fn entries_go_with_their_agent_and_nothing_leads_to_them() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let id = text(&add(&daemon, &json!({ "agent_id": agent, "content": "x", "user_id": "ana" }))["id"]);
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    daemon.get(&format!("/api/memory/agents/{agent}")).refused(404);
    until("the rows are erased", || {
        Some(()).filter(|()| daemon.get(&format!("/api/memory/items/{id}/history")).status == 404)
    });
    until("nothing leads to them", || {
        Some(()).filter(|()| daemon.get("/api/memory/user/ana").expect(200)["total"] == 0)
    });
    assert_eq!(daemon.get("/api/memory/stats").expect(200)["total"], 0);
}

#[test]
fn the_least_confident_and_oldest_give_way() {
    let daemon = Daemon::with("[proactive_memory]\nmax_memories_per_agent = 3\n");
    let agent = daemon.agent("a");
    let with = |content: &str, confidence: f64| {
        add(&daemon, &json!({ "agent_id": agent, "content": content, "confidence": confidence }))
    };
    with("sure and old", 1.0);
    with("unsure", 0.2);
    with("sure", 1.0);
    with("newer", 0.5);
    let list = daemon.get(&format!("/api/memory/agents/{agent}")).expect(200);
    assert_eq!(contents(&list), ["sure and old", "sure", "newer"]);
    with("one more", 1.0);
    with("and more", 1.0);
    assert_eq!(
        contents(&daemon.get(&format!("/api/memory/agents/{agent}")).expect(200)),
        ["sure", "one more", "and more"]
    );
    assert_eq!(count(&daemon, &agent), 3);
}

#[test]
fn facts_are_extracted_from_what_users_say_by_rules() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let said = |texts: &[(&str, &str)]| {
        let messages: Vec<_> = texts.iter().map(|(role, text)| json!({ "role": role, "content": text })).collect();
        add(&daemon, &json!({ "agent_id": agent, "user_id": "ana", "messages": messages }))
    };
    let learned = said(&[
        ("user", "Hi, my name is Ana. I prefer short answers. What is the weather?"),
        ("assistant", "My name is Claude-Bot and I prefer long answers."),
        ("user", "Ich arbeite bei Siemens."),
    ]);
    let memories = learned["memories"].as_array().unwrap();
    let found: Vec<_> =
        memories.iter().map(|it| (text(&it["memory"]["content"]), text(&it["memory"]["category"]))).collect();
    assert_eq!(
        found,
        [
            ("User's name is Ana".to_owned(), "personal_detail".to_owned()),
            ("User prefers short answers".to_owned(), "preference".to_owned()),
            ("User works at Siemens".to_owned(), "personal_detail".to_owned()),
        ]
    );
    assert_eq!((&learned["added"], &memories[0]["memory"]["source"]), (&json!(3), &json!("rules")));
    let again = said(&[("user", "My name is Ana")]);
    assert_eq!((&again["added"], &again["memories"][0]["action"]), (&json!(0), &json!("noop")));
    let moved = said(&[("user", "I work at Bosch")]);
    assert_eq!(moved["memories"][0]["action"], "updated");
    let id = text(&moved["memories"][0]["id"]);
    let history = daemon.get(&format!("/api/memory/items/{id}/history")).expect(200);
    assert_eq!(
        (&history["content"], &history["versions"][0]["content"]),
        (&json!("User works at Bosch"), &json!("User works at Siemens"))
    );
    assert_eq!(count(&daemon, &agent), 3);
    let other = add(
        &daemon,
        &json!({ "agent_id": agent, "user_id": "bo",
        "messages": [{ "role": "user", "content": "My name is Ana" }] }),
    );
    assert_eq!(other["memories"][0]["action"], "added", "another user's entries are no reason");
    assert_eq!(said(&[("user", "Write a poem.")]), json!({ "added": 0, "memories": [] }));
}

#[test]
fn duplicates_are_found_and_replaced_by_the_newest() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    for content in
        ["User prefers dark mode in all editors", "The build uses make", "User prefers dark mode in all the editors"]
    {
        entry(&daemon, &agent, content);
    }
    add(&daemon, &json!({ "agent_id": agent, "content": "The build uses make", "user_id": "ana" }));
    let found = daemon.get(&format!("/api/memory/agents/{agent}/duplicates")).expect(200);
    assert_eq!(found["duplicate_groups"], 1, "what is about a user is no duplicate of what is about none: {found}");
    let group: Vec<_> = found["groups"][0].as_array().unwrap().iter().map(|entry| text(&entry["content"])).collect();
    assert_eq!(group, ["User prefers dark mode in all the editors", "User prefers dark mode in all editors"]);
    let done = daemon.post(&format!("/api/memory/agents/{agent}/consolidate"), &json!({})).expect(200);
    assert_eq!(done, json!({ "consolidated": 1, "merged_count": 1, "truncated": false }));
    let left = contents(&daemon.get(&format!("/api/memory/agents/{agent}")).expect(200));
    assert_eq!(left, ["The build uses make", "User prefers dark mode in all the editors", "The build uses make"]);
    assert_eq!(count(&daemon, &agent), 3);
    let older = text(&found["groups"][0][1]["id"]);
    daemon.put(&format!("/api/memory/items/{older}"), &json!({ "content": "x" })).refused(404);
    daemon.get(&format!("/api/memory/items/{older}/history")).expect(200);
    let again = daemon.post(&format!("/api/memory/agents/{agent}/consolidate"), &json!({})).expect(200);
    assert_eq!(again["merged_count"], 0);
}

#[test]
fn what_has_expired_is_not_shown_and_a_cleanup_deletes_it_and_what_is_stale() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let session = add(&daemon, &json!({ "agent_id": agent, "content": "for now", "level": "session" }));
    assert!(session["memory"]["expires_at"].is_string());
    let old = |content: &str, level: &str, confidence: f64| json!({ "content": content, "level": level, "confidence": confidence, "created_at": "2020-01-01T00:00:00Z" });
    let mut stale = old("stale", "user", 0.01);
    stale["expires_at"] = json!(null);
    import(&daemon, &agent, &json!([stale, old("sure", "user", 1.0)])).expect(200);
    let mut gone = old("gone", "session", 1.0);
    gone["expires_at"] = json!("2020-01-02T00:00:00Z");
    let done = import(&daemon, &agent, &json!([gone])).expect(200);
    assert_eq!((&done["skipped"], &done["imported"]), (&json!(1), &json!(0)), "it has expired already");
    let cleaned = daemon.post("/api/memory/cleanup", &json!({})).expect(200);
    assert_eq!(cleaned, json!({ "cleaned_up": 1, "deleted_count": 1 }));
    let mut left = contents(&daemon.get(&format!("/api/memory/agents/{agent}")).expect(200));
    left.sort_unstable();
    assert_eq!(left, ["for now", "sure"]);
    let decayed = daemon.post("/api/memory/decay", &json!({ "agent_id": agent })).expect(200);
    assert_eq!(decayed, json!({ "decayed": 1, "decay_rate": 0.01 }));
    let list = daemon.get(&format!("/api/memory/agents/{agent}")).expect(200);
    let sure = list["memories"].as_array().unwrap().iter().find(|entry| entry["content"] == "sure").unwrap();
    assert!(sure["confidence"].as_f64().unwrap() < 0.2, "years later: {sure}");
    let again = daemon.post("/api/memory/decay", &json!({})).expect(200);
    assert_eq!(again["decayed"], 0, "not twice for the same days");
    daemon.post("/api/memory/decay", &json!({ "agent_id": NOBODY })).refused(404);
}

#[test]
fn settings_are_read_anew_by_a_reload() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    (0..4).for_each(|n| drop(entry(&daemon, &agent, &format!("fact {n}"))));
    let config = daemon.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[proactive_memory]\nenabled = false\nmax_memories_per_agent = 2\n"))
        .unwrap();
    daemon.post("/api/config/reload", &json!({})).expect(200);
    let stats = daemon.get("/api/memory/stats").expect(200);
    assert_eq!((&stats["enabled"], &stats["auto_retrieve_enabled"]), (&json!(false), &json!(false)));
    entry(&daemon, &agent, "the newest");
    assert_eq!(contents(&daemon.get(&format!("/api/memory/agents/{agent}")).expect(200)), ["fact 3", "the newest"]);
}

#[test]
fn entries_beyond_a_lowered_limit_go_with_the_next_changes() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let many: Vec<_> = (0..2_000).map(|n| json!({ "content": format!("fact {n}") })).collect();
    let config = daemon.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let limit = |most: u32| {
        let text = format!("{text}\n[proactive_memory]\nmax_memories_per_agent = {most}\n");
        std::fs::write(&config, text).unwrap();
        daemon.post("/api/config/reload", &json!({})).expect(200);
    };
    limit(5_000);
    import(&daemon, &agent, &json!(many)).expect(200);
    limit(10);
    let left = [1, 2, 3].map(|n| {
        entry(&daemon, &agent, &format!("newer {n}"));
        count(&daemon, &agent)
    });
    assert_eq!(left, [1_002, 10, 10], "each change removes at most 999");
}
