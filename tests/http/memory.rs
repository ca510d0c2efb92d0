//! Memory of agents: export and import (spec 1), entry by entry (spec 2, Memory), and the tools of agents.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;

const GRANTS: &str =
    "[capabilities]\ntools = [\"memory_*\"]\nmemory_read = [\"*\"]\nmemory_write = [\"self.notes.*\"]\n";

fn export(client: &Client, agent: &str) -> Value {
    client.get(&format!("/api/agents/{agent}/memory/export")).expect(200)
}

fn import(client: &Client, agent: &str, body: &Value) -> crate::support::http::Reply {
    client.post(&format!("/api/agents/{agent}/memory/import"), body)
}

fn put(client: &Client, agent: &str, key: &str, value: &Value) {
    let stored = client.put(&format!("/api/memory/agents/{agent}/kv/{key}"), &json!({ "value": value })).expect(200);
    assert_eq!(stored["status"], "stored");
}

fn kv(client: &Client, agent: &str, key: &str) -> crate::support::http::Reply {
    client.get(&format!("/api/memory/agents/{agent}/kv/{key}"))
}

#[test]
fn entries_are_stored_read_listed_and_deleted() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    assert_eq!(daemon.get(&format!("/api/memory/agents/{agent}/kv")).expect(200)["kv_pairs"], json!([]));
    let values = [json!("text"), json!(1.5), json!(null), json!({"a": [1, "ü"]})];
    for (n, value) in values.iter().enumerate() {
        put(&daemon, &agent, &format!("k{n}"), value);
    }
    put(&daemon, &agent, "k0", &json!("newer"));
    put(&daemon, &agent, "with%20a%2Fslash", &json!(true));
    daemon.restart();
    assert_eq!(kv(&daemon, &agent, "k0").expect(200)["value"], "newer");
    assert_eq!(kv(&daemon, &agent, "k3").expect(200)["value"], values[3]);
    assert_eq!(kv(&daemon, &agent, "with%20a%2fslash").expect(200)["key"], "with a/slash");
    let list = daemon.get(&format!("/api/memory/agents/{agent}/kv?prefix=k&limit=3")).expect(200);
    let keys: Vec<_> = list["kv_pairs"].as_array().unwrap().iter().map(|pair| text(&pair["key"])).collect();
    assert_eq!((keys, &list["total"]), (vec!["k0".into(), "k1".into(), "k2".into()], &json!(5)));
    let next = text(&list["next_cursor"]);
    let rest = daemon.get(&format!("/api/memory/agents/{agent}/kv?prefix=k&limit=3&cursor={next}")).expect(200);
    assert_eq!(rest["kv_pairs"].as_array().unwrap().len(), 1);
    let delete = |key: &str| daemon.delete(&format!("/api/memory/agents/{agent}/kv/{key}"));
    let gone = delete("k1").expect(200);
    assert_eq!((&gone["status"], &gone["key"]), (&json!("deleted"), &json!("k1")));
    kv(&daemon, &agent, "k1").refused(404);
    delete("k1").refused(404);
}

#[test]
fn an_export_goes_into_another_agent_as_it_is() {
    let daemon = Daemon::start();
    let (from, to) = (daemon.agent("from"), daemon.agent("to"));
    assert_eq!(export(&daemon, &from)["entries"], json!([]));
    let many: Vec<_> = (0..600).map(|n| json!({ "key": format!("k{n:03}"), "value": { "n": n } })).collect();
    let done = import(&daemon, &from, &json!({ "entries": many })).expect(200);
    assert_eq!((&done["imported"], &done["created"]), (&json!(600), &json!(600)));
    let exported = export(&daemon, &from);
    assert_eq!((&exported["total"], &exported["agent_name"]), (&json!(600), &json!("from")));
    assert_eq!(exported["entries"].as_array().unwrap().len(), 600);
    assert_eq!(exported["entries"][7]["value"], json!({ "n": 7 }));
    put(&daemon, &to, "k000", &json!("old"));
    let reply = import(&daemon, &to, &exported);
    assert!(reply.header("warning").is_none(), "every key of an export is known");
    let done = reply.expect(200);
    assert_eq!((&done["created"], &done["updated"]), (&json!(599), &json!(1)));
    assert_eq!(export(&daemon, &to)["entries"], exported["entries"], "times and all");
    // Again, but what is there stays.
    let keep =
        json!({ "entries": [{ "key": "k000", "value": 1 }, { "key": "new", "value": 2 }], "on_conflict": "skip" });
    let done = import(&daemon, &to, &keep).expect(200);
    assert_eq!((&done["created"], &done["skipped"]), (&json!(1), &json!(1)));
    assert_eq!(kv(&daemon, &to, "k000").expect(200)["value"], json!({ "n": 0 }));
    let fail =
        json!({ "entries": [{ "key": "k001", "value": 1 }, { "key": "newer", "value": 2 }], "on_conflict": "fail" });
    import(&daemon, &to, &fail).refused(409);
    kv(&daemon, &to, "newer").refused(404);
}

/// What an export says of the agent's memory: without the ids, which others may have.
fn said(export: &Value) -> Value {
    let mut said = export.clone();
    for key in ["agent_id", "agent_name", "exported_at"] {
        said[key] = Value::Null;
    }
    for entry in said["memories"].as_array_mut().unwrap() {
        (entry["id"], entry["agent_id"]) = (Value::Null, Value::Null);
    }
    said["memories"].as_array_mut().unwrap().sort_by_key(|entry| text(&entry["content"]));
    said
}

#[test]
fn an_export_carries_entries_and_the_graph_and_importing_it_twice_changes_nothing() {
    let daemon = Daemon::with("[proactive_memory]\nmax_memories_per_agent = 5000\n");
    let (from, to) = (daemon.agent("from"), daemon.agent("to"));
    put(&daemon, &from, "k", &json!({ "n": 1 }));
    let many: Vec<_> = (0..1_200).map(|n| json!({ "content": format!("fact {n}"), "taint": ["web"] })).collect();
    daemon.post(&format!("/api/memory/agents/{from}/import"), &json!({ "memories": many })).expect(200);
    let tea = json!({ "agent_id": from, "content": "likes tea", "user_id": "ana", "category": "preference" });
    let id = text(&daemon.post("/api/memory", &tea).expect(201)["id"]);
    daemon.put(&format!("/api/memory/items/{id}"), &json!({ "content": "likes green tea" })).expect(200);
    let triples: Vec<_> = (0..900)
        .map(|n| {
            json!({ "subject": format!("p{n}"), "subject_type": "person", "relation": "knows",
            "object": format!("p{}", n + 1), "object_type": "person", "confidence": 0.5, "taint": ["web"] })
        })
        .collect();
    daemon.post(&format!("/api/memory/agents/{from}/relations"), &json!({ "relations": triples })).expect(200);
    let exported = export(&daemon, &from);
    let lengths = ["entries", "memories", "entities", "matches"].map(|key| exported[key].as_array().unwrap().len());
    assert_eq!(lengths, [1, 1_201, 901, 900]);
    let first = import(&daemon, &to, &exported);
    assert!(first.header("warning").is_none(), "every key of an export is known");
    let first = first.expect(200);
    let counts = ["created", "memories_imported", "entities_imported", "relations_imported"];
    assert_eq!(counts.map(|key| first[key].as_u64().unwrap()), [1, 1_201, 901, 900]);
    assert_eq!(said(&export(&daemon, &to)), said(&exported), "times, histories and taint too");
    for agent in [&to, &from] {
        let before = export(&daemon, agent);
        let again = import(&daemon, agent, &exported).expect(200);
        assert_eq!(counts.map(|key| again[key].as_u64().unwrap()), [0; 4]);
        let mut after = export(&daemon, agent);
        after["exported_at"] = before["exported_at"].clone();
        assert_eq!(after, before);
    }
    // A file of before has keys only.
    let old =
        json!({ "entries": exported["entries"], "agent_id": from, "agent_name": "from", "version": 1, "total": 1 });
    let done = import(&daemon, &daemon.agent("third"), &old).expect(200);
    assert_eq!((&done["imported"], &done["memories_imported"]), (&json!(1), &json!(0)));
}

#[test]
fn a_bad_import_names_the_entry_and_changes_nothing() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let good = json!({ "key": "good", "value": 1 });
    for (bad, field) in [
        (json!({ "key": "", "value": 1 }), "entries[1].key"),
        (json!({ "key": "k".repeat(257), "value": 1 }), "entries[1].key"),
        (json!({ "key": "good", "value": 2 }), "entries[1].key"),
        (json!({ "key": "k", "value": "v".repeat(70_000) }), "entries[1].value"),
        (json!({ "key": "k", "value": 1, "created_at": "yesterday" }), "entries[1].created_at"),
        (json!({ "key": "k" }), "value"),
        (json!({ "value": 1 }), "key"),
    ] {
        import(&daemon, &agent, &json!({ "entries": [good, bad] })).refused_field(400, field);
    }
    for (key, bad, field) in [
        ("memories", json!({ "content": " " }), "memories[0].content"),
        ("entities", json!({ "name": "", "entity_type": "person" }), "entities[0].name"),
        (
            "matches",
            json!({ "source": { "name": "a", "entity_type": "x" }, "relation": { "type": "" },
            "target": { "name": "b", "entity_type": "x" } }),
            "matches[0].relation.type",
        ),
    ] {
        let mut body = json!({ "entries": [good] });
        body[key] = json!([bad]);
        import(&daemon, &agent, &body).refused_field(400, field);
    }
    import(&daemon, &agent, &json!({})).refused_field(400, "entries");
    import(&daemon, &agent, &json!({ "entries": [], "on_conflict": "merge" })).refused_field(400, "on_conflict");
    import(&daemon, &agent, &json!({ "entries": [], "version": 9 })).refused_field(400, "version");
    let many: Vec<_> = (0..10_001).map(|n| json!({ "key": n.to_string(), "value": 1 })).collect();
    import(&daemon, &agent, &json!({ "entries": many })).refused_field(400, "entries");
    assert_eq!(export(&daemon, &agent)["entries"], json!([]));
}

#[test]
fn what_is_not_there_and_what_is_wrong() {
    let daemon = Daemon::start();
    let nobody = "018f0000-0000-7000-8000-00000000dead";
    let agent = daemon.agent("a");
    for path in [format!("/api/agents/{nobody}/memory/export"), format!("/api/memory/agents/{nobody}/kv")] {
        daemon.get(&path).refused(404);
    }
    import(&daemon, nobody, &json!({ "entries": [] })).refused(404);
    kv(&daemon, nobody, "k").refused(404);
    daemon.get("/api/agents/nonsense/memory/export").refused_field(400, "id");
    daemon.get(&format!("/api/memory/agents/{agent}/kv?limit=0")).refused_field(400, "limit");
    daemon.get(&format!("/api/memory/agents/{agent}/kv?cursor=x")).refused_field(400, "cursor");
    daemon.put(&format!("/api/memory/agents/{agent}/kv/k"), &json!({})).refused_field(400, "value");
    let long = "k".repeat(300);
    daemon.put(&format!("/api/memory/agents/{agent}/kv/{long}"), &json!({ "value": 1 })).refused_field(400, "key");
}

#[test]
fn parallel_changes_of_the_same_keys_are_counted_once() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (client, agent) = (daemon.client(), &agent);
            scope.spawn(move || {
                for n in 0..5 {
                    put(&client, agent, &format!("k{n}"), &json!(writer));
                }
            });
        }
    });
    let exported = export(&daemon, &agent);
    assert_eq!((exported["entries"].as_array().unwrap().len(), &exported["total"]), (5, &json!(5)));
}

#[test]
fn agents_use_the_memory_that_is_granted() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", GRANTS);
    let ask = |tool: &str, input: Value| model.calls(&daemon, &agent, tool, &input);
    assert!(ask("memory_store", json!({ "key": "notes.tea", "value": "Green tea" })).starts_with("Stored"));
    assert!(ask("memory_store", json!({ "key": "self.notes.tea", "value": ["Black tea"] })).starts_with("Replaced"));
    assert!(ask("memory_store", json!({ "key": "other", "value": 1 })).contains("not allowed to write"));
    assert!(ask("memory_store", json!({ "key": "notes.x" })).contains("value"));
    assert_eq!(kv(&daemon, &agent, "notes.tea").expect(200)["value"], json!(["Black tea"]));
    put(&daemon, &agent, "free", &json!("by the owner"));
    assert!(ask("memory_recall", json!({ "key": "free" })).contains("by the owner"));
    assert!(ask("memory_recall", json!({ "key": "nothing" })).contains("does not exist"));
    let found = ask("memory_recall", json!({ "query": "BLACK tea" }));
    assert!(found.contains("notes.tea") && !found.contains("free"), "{found}");
    let listed = ask("memory_list", json!({}));
    assert!(listed.contains("notes.tea") && listed.contains("free"), "{listed}");
    let listed = ask("memory_list", json!({ "prefix": "notes." }));
    assert!(listed.contains("notes.tea") && !listed.contains("free"), "{listed}");
}

#[test]
fn an_agent_searches_its_own_sessions_only() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"session_search\"]\n");
    let other = daemon.agent("b");
    daemon.say(&agent, "the password of the cave is sesame");
    daemon.say(&other, "sesame oil is for salads");
    let found = model.calls(&daemon, &agent, "session_search", &json!({ "query": "SESAME" }));
    assert!(found.contains("of the cave is sesame") && !found.contains("salads"), "{found}");
    assert!(model.calls(&daemon, &agent, "session_search", &json!({ "query": " " })).contains("empty"));
}

#[test]
fn one_of_several_users_finds_nothing_that_others_said() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"session_search\"]\n");
    daemon.say(&agent, "the owner says wombat");
    let say = |user: &str, text: &str| {
        let body = json!({ "model": "a", "user": user, "messages": [{ "role": "user", "content": text }] });
        daemon.post("/v1/chat/completions", &body).expect(200)
    };
    say("ana", "the word of ana is quokka");
    for (query, word) in [("quokka", "ana is"), ("wombat", "owner says"), ("numbat", "bob said")] {
        say("bob", "bob said numbat");
        let search = Reply::calls(&[("1", "session_search", &json!({ "query": query }).to_string())]);
        model.script([search, Reply::text("done")]);
        say("bob", "look for it");
        let requests = model.requests();
        let found = requests.last().unwrap()["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert_eq!(found.contains(word), query == "numbat", "{query}: {found}");
    }
}

#[test]
fn a_killed_agent_s_memory_is_gone() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    put(&daemon, &agent, "k", &json!(1));
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    kv(&daemon, &agent, "k").refused(404);
}
