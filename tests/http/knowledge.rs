//! Knowledge of agents: relations stored, queried and deleted (spec 2, Memory), and the tools of agents.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply as Answer};
use crate::support::model::Model;

const GRANTS: &str = "[capabilities]\ntools = [\"knowledge_*\"]\nmemory_read = [\"self.*\"]\nmemory_write = [\"*\"]\n";

fn triple(subject: &str, relation: &str, object: &str) -> Value {
    json!({ "subject": subject, "subject_type": "person", "relation": relation, "object": object, "object_type": "project" })
}

fn post(client: &Client, agent: &str, body: &Value) -> Answer {
    client.post(&format!("/api/memory/agents/{agent}/relations"), body)
}

fn get(client: &Client, agent: &str, query: &str) -> Value {
    client.get(&format!("/api/memory/agents/{agent}/relations?{query}")).expect(200)
}

/// Matches as `source relation target`.
fn shown(found: &Value) -> Vec<String> {
    let matches = found["matches"].as_array().unwrap().iter();
    let line = |found: &Value| {
        let (source, target) = (text(&found["source"]["name"]), text(&found["target"]["name"]));
        format!("{source} {} {target}", text(&found["relation"]["type"]))
    };
    matches.map(line).collect()
}

#[test]
fn relations_are_stored_found_and_outlive_a_restart() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let body = json!([
        triple("Ada Lovelace", "works_at", "Engine"),
        { "subject": "Engine", "subject_type": "Project", "relation": "Is Powered-by", "object": "Steam",
          "object_type": "natural force", "confidence": 0.5, "properties": { "since": 1837 } },
    ]);
    let done = post(&daemon, &agent, &body).expect(200);
    assert_eq!((&done["agent_id"], &done["triples_processed"]), (&json!(agent), &json!(2)));
    assert_eq!((&done["entities_created"], &done["relations_created"]), (&json!(3), &json!(2)));
    // The same again, in another spelling and in an object: nothing is doubled.
    let again = json!({ "relations": [triple("ada   LOVELACE", "Works At", "engine")] });
    let done = post(&daemon, &agent, &again).expect(200);
    assert_eq!((&done["triples_processed"], &done["entities_created"]), (&json!(1), &json!(0)));
    assert_eq!((&done["relations_created"], &done["relations_updated"]), (&json!(0), &json!(0)));
    daemon.restart();
    let all = get(&daemon, &agent, "");
    assert_eq!(shown(&all), ["Ada Lovelace works_at Engine", "Engine is_powered_by Steam"]);
    assert_eq!((&all["count"], &all["truncated"]), (&json!(2), &json!(false)));
    let found = &get(&daemon, &agent, "relation=is%20powered-by")["matches"];
    assert_eq!(found.as_array().unwrap().len(), 1, "a type of one's own is a filter like any other");
    assert_eq!(found[0]["source"], json!({ "id": "project:engine", "name": "Engine", "entity_type": "project" }));
    assert_eq!(
        (&found[0]["relation"]["type"], &found[0]["relation"]["confidence"]),
        (&json!("is_powered_by"), &json!(0.5))
    );
    assert_eq!(found[0]["relation"]["properties"], json!({ "since": 1837 }));
    assert_eq!(found[0]["target"]["id"], "natural_force:steam");
    for (query, count) in [
        ("source=Ada%20Lovelace", 1),
        ("source=ada+lovelace&max_depth=2", 2),
        ("source=person:ada%20lovelace&relation=works_at&max_depth=10", 1),
        ("target=natural%20force:Steam", 1),
        ("target=Steam&max_depth=2", 2),
        ("source=Ada%20Lovelace&target=Steam", 0),
        ("source=Ada%20Lovelace&target=Steam&max_depth=2", 2),
        ("source=unheard-of", 0),
        ("relation=works_at", 1),
        ("relation=work", 0),
    ] {
        assert_eq!(get(&daemon, &agent, query)["count"], json!(count), "{query}");
    }
}

#[test]
fn pages_entities_and_an_answer_that_is_sent_back() {
    let daemon = Daemon::start();
    let (from, to) = (daemon.agent("from"), daemon.agent("to"));
    let relations: Vec<Value> = (0..7).map(|n| triple(&format!("P{n}"), "knows", "Hub")).collect();
    let entities = json!([{ "name": "Alone", "entity_type": "concept", "properties": { "a": 1 }, "taint": ["web"],
        "created_at": "2026-01-02T03:04:05Z" }]);
    post(&daemon, &from, &json!({ "relations": relations, "entities": entities })).expect(200);
    let (mut cursor, mut all) = (String::new(), Vec::new());
    loop {
        let page = get(&daemon, &from, &format!("limit=3{cursor}"));
        all.extend(shown(&page));
        // An answer goes into another agent as it is.
        let reply = post(&daemon, &to, &page);
        assert!(reply.header("warning").is_none(), "every key of an answer is known");
        reply.expect(200);
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(all.len(), 7);
    assert_eq!(get(&daemon, &to, "limit=100")["matches"], get(&daemon, &from, "limit=100")["matches"], "times and all");
    let list =
        |agent: &str, query: &str| daemon.get(&format!("/api/memory/agents/{agent}/entities?{query}")).expect(200);
    let whole = list(&from, "");
    assert_eq!((whole["entities"].as_array().unwrap().len(), &whole["total"]), (9, &json!(9)));
    let alone = &whole["entities"][0];
    assert_eq!(
        (&alone["id"], &alone["properties"], &alone["taint"]),
        (&json!("concept:alone"), &json!({ "a": 1 }), &json!(["web"]))
    );
    assert_eq!(alone["created_at"], "2026-01-02T03:04:05.000Z");
    let people = list(&from, "entity_type=Person&limit=4");
    assert_eq!(people["entities"].as_array().unwrap().len(), 4);
    let rest = list(&from, &format!("entity_type=person&limit=4&cursor={}", text(&people["next_cursor"])));
    assert_eq!(rest["entities"].as_array().unwrap().len(), 3);
    let found = list(&from, "q=%20LON&limit=5");
    assert_eq!((found["entities"].as_array().unwrap().len(), &found["entities"][0]["name"]), (1, &json!("Alone")));
    assert_eq!(list(&from, "q=lon&entity_type=person")["entities"], json!([]));
    post(&daemon, &to, &json!({ "entities": whole["entities"] })).expect(200);
    assert_eq!(list(&to, "")["entities"], whole["entities"]);
    let found = get(&daemon, &to, "source=alone");
    assert_eq!((&found["count"], &found["entities"][0]["name"]), (&json!(0), &json!("Alone")));
}

#[test]
fn relations_and_entities_are_deleted() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let relations: Vec<Value> =
        (0..5).map(|n| triple(&format!("P{n}"), if n < 2 { "knows" } else { "leads" }, "Hub")).collect();
    post(&daemon, &agent, &json!({ "relations": relations })).expect(200);
    let path = format!("/api/memory/agents/{agent}");
    daemon.delete(&format!("/api/memory/agents/{agent}/relations")).refused_field(400, "source");
    let deleted = |path: String| daemon.delete(&path).expect(200)["deleted"].clone();
    assert_eq!(deleted(format!("{path}/relations?relation=knows")), json!(2));
    assert_eq!(deleted(format!("{path}/relations?source=P0")), json!(0));
    assert_eq!(get(&daemon, &agent, "")["count"], json!(3));
    assert_eq!(deleted(format!("{path}/entities/project:HUB")), json!(3));
    assert_eq!(get(&daemon, &agent, "")["count"], json!(0));
    assert_eq!(daemon.get(&format!("{path}/entities")).expect(200)["total"], json!(5));
    for gone in ["project:hub", "hub", "person:nobody"] {
        daemon.delete(&format!("/api/memory/agents/{agent}/entities/{gone}")).refused(404);
    }
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    daemon.get(&format!("{path}/relations")).refused(404);
}

#[test]
fn what_is_wrong_names_its_place_and_changes_nothing() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let good = triple("Ada", "knows", "Bob");
    let with = |key: &str, value: Value| {
        let mut wrong = good.clone();
        wrong[key] = value;
        wrong
    };
    for (key, value) in [
        ("subject", json!("")),
        ("subject", json!("n".repeat(257))),
        ("object", json!("a\u{0}b")),
        ("relation", json!("a:b")),
        ("relation", json!(7)),
        ("subject_type", json!(" ")),
        ("object_type", json!("t".repeat(65))),
        ("confidence", json!(1.01)),
        ("confidence", json!("high")),
        ("properties", json!({ "p": "p".repeat(5_000) })),
        ("properties", json!([])),
        ("created_at", json!("yesterday")),
        ("taint", json!(["gossip"])),
    ] {
        post(&daemon, &agent, &json!([good, with(key, value.clone())])).refused_field(400, &format!("[1].{key}"));
        let relations = json!({ "relations": [good, with(key, value)] });
        post(&daemon, &agent, &relations).refused_field(400, &format!("relations[1].{key}"));
    }
    post(&daemon, &agent, &json!([good, { "subject": "x" }])).refused_field(400, "[1].relation");
    post(&daemon, &agent, &json!({})).refused_field(400, "relations");
    post(&daemon, &agent, &json!({ "relations": 1 })).refused_field(400, "relations");
    let many = vec![good.clone(); 1_001];
    post(&daemon, &agent, &json!(many)).refused_field(400, "relations");
    let entities = json!({ "entities": [{ "name": "x", "entity_type": "a:b" }] });
    post(&daemon, &agent, &entities).refused_field(400, "entities[0].entity_type");
    let end = json!({ "name": "x", "entity_type": "y" });
    let matches = json!({ "matches": [{ "source": end, "relation": { "type": "" }, "target": end }] });
    post(&daemon, &agent, &matches).refused_field(400, "matches[0].relation.type");
    let path = format!("/api/memory/agents/{agent}");
    for (query, field) in [
        ("max_depth=0", "max_depth"),
        ("max_depth=11", "max_depth"),
        ("max_depth=x", "max_depth"),
        ("limit=0", "limit"),
        ("cursor=zz", "cursor"),
        ("cursor=00", "cursor"),
        ("source=a&cursor=00", "cursor"),
        ("source=%20", "source"),
        ("target=a%01", "target"),
        ("relation=a:b", "relation"),
    ] {
        daemon.get(&format!("{path}/relations?{query}")).refused_field(400, field);
    }
    daemon.get(&format!("{path}/entities?cursor=61")).refused_field(400, "cursor");
    daemon.get(&format!("{path}/entities?entity_type=a:b")).refused_field(400, "entity_type");
    assert_eq!(daemon.get(&format!("{path}/entities")).expect(200)["total"], json!(0));
    let unknown = "018f0000-0000-7000-8000-00000000dead";
    post(&daemon, unknown, &json!([])).refused(404);
    daemon.get(&format!("/api/memory/agents/{unknown}/relations")).refused(404);
}

#[test]
fn parallel_writers_lose_and_double_nothing() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let (client, agent) = (daemon.client(), &agent);
            scope.spawn(move || {
                for n in 0..4 {
                    let own = triple(&format!("W{writer}"), "wrote", &format!("N{n}"));
                    post(&client, agent, &json!([own])).expect(200);
                }
            });
        }
    });
    assert_eq!(get(&daemon, &agent, "")["count"], json!(24));
    let entities = daemon.get(&format!("/api/memory/agents/{agent}/entities")).expect(200);
    assert_eq!((&entities["total"], entities["entities"].as_array().unwrap().len()), (&json!(10), 10));
}

#[test]
fn agents_use_their_own_knowledge_alone() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let (agent, other) = (daemon.agent_with("a", GRANTS), daemon.agent_with("b", GRANTS));
    let ask = |tool: &str, input: Value| model.calls(&daemon, &agent, tool, &input);
    let engineer = json!({ "name": "Ada", "entity_type": "Person", "properties": { "role": "engineer" } });
    assert_eq!(ask("knowledge_add_entity", engineer), "\"person:ada\" was added.");
    let older = json!({ "name": "ADA", "entity_type": "person", "properties": { "age": 36 } });
    assert_eq!(ask("knowledge_add_entity", older), "\"person:ada\" was updated.");
    let added = ask(
        "knowledge_add_relation",
        json!({ "source": "ada", "relation": "works at", "target": "Engine", "confidence": 0.8 }),
    );
    assert_eq!(added, "The relation was added. One entity was added with the type unknown.");
    let typed = ask("knowledge_add_entity", json!({ "name": "Engine", "entity_type": "project" }));
    assert!(typed.starts_with("\"project:engine\""), "{typed}");
    let found = ask("knowledge_query", json!({ "source": "Ada", "relation": "works_at", "max_depth": 3 }));
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        found["matches"],
        json!([{ "source": "person:ada", "relation": "works_at", "target": "project:engine", "confidence": 0.8 }])
    );
    assert_eq!(
        found["entities"]["person:ada"],
        json!({ "name": "Ada", "properties": { "age": 36, "role": "engineer" } })
    );
    let wrong = [
        ("knowledge_add_entity", json!({ "name": "x" }), "entity_type"),
        ("knowledge_add_relation", json!({ "source": "", "relation": "r", "target": "t" }), "source must not be empty"),
        (
            "knowledge_add_relation",
            json!({ "source": "s", "relation": "r", "target": "t", "confidence": 2 }),
            "confidence",
        ),
        ("knowledge_query", json!({ "max_depth": 11 }), "1 to 10"),
    ];
    for (tool, input, held) in wrong {
        let said = ask(tool, input);
        assert!(said.contains(held), "{said}");
    }
    let others = model.calls(&daemon, &other, "knowledge_query", &json!({}));
    assert_eq!(serde_json::from_str::<Value>(&others).unwrap(), json!({ "matches": [], "entities": {} }));
    let few = GRANTS.replace("memory_write = [\"*\"]", "memory_write = [\"self.notes.*\"]");
    let few = daemon.agent_with("c", &few);
    let refused = model.calls(&daemon, &few, "knowledge_add_entity", &json!({ "name": "x", "entity_type": "y" }));
    assert!(refused.contains("not allowed to write"), "{refused}");
}

#[test]
fn a_full_answer_says_that_there_is_more() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", GRANTS);
    let relations: Vec<Value> = (0..150).map(|n| triple(&format!("P{n}"), "knows", "Hub")).collect();
    post(&daemon, &agent, &json!(relations)).expect(200);
    let found = model.calls(&daemon, &agent, "knowledge_query", &json!({ "target": "hub" }));
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["matches"].as_array().unwrap().len(), 100);
    assert!(found["more"].is_string());
    let page = get(&daemon, &agent, "target=hub&limit=20");
    assert_eq!((&page["count"], &page["truncated"]), (&json!(20), &json!(true)));
}

#[test]
fn changes_of_clients_are_audited() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    post(&daemon, &agent, &json!([triple("Ada", "knows", "Engine")])).expect(200);
    daemon.delete(&format!("/api/memory/agents/{agent}/entities/person:ada")).expect(200);
    let recent = daemon.get("/api/audit/recent?limit=100").expect(200);
    let details = |kind: &str| {
        let entry = recent["entries"].as_array().unwrap().iter().find(|entry| entry["event_type"] == kind).cloned();
        let details = text(&entry.unwrap_or_else(|| panic!("{kind} is not in {recent}"))["details"]);
        serde_json::from_str::<Value>(&details).unwrap()
    };
    let written = json!({ "entities": 2, "names": ["person:ada", "project:engine"], "relations": 1 });
    assert_eq!(details("knowledge_written"), written);
    assert_eq!(details("knowledge_deleted"), json!({ "entities": 1, "names": ["person:ada"], "relations": 1 }));
}

#[test]
fn the_command_line_queries_the_graph() {
    let daemon = Daemon::start();
    let agent = daemon.agent("scout");
    let body =
        json!([triple("Ada", "works_at", "Engine"), triple("Bo", "knows", "Engine"), triple("Ada", "owns", "Loom")]);
    post(&daemon, &agent, &body).expect(200);
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), said(&output.stdout), said(&output.stderr))
    };
    let (is_done, found, _) = run(&["knowledge", "query", "scout", "--source", "Ada", "--depth", "2"]);
    assert!(is_done && found.contains("person:ada") && found.contains("works_at") && found.contains("owns"), "{found}");
    assert!(!found.contains("person:bo"), "{found}");
    let (is_done, found, said) = run(&["knowledge", "query", "scout", "--limit", "1"]);
    assert!(is_done && found.lines().count() == 2 && said.contains("There may be more"), "{found}{said}");
    let (is_done, found, _) =
        run(&["--json", "knowledge", "query", "scout", "--target", "project:engine", "--relation", "knows"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    assert!(is_done);
    assert_eq!(shown(&found), ["Bo knows Engine"]);
    let (is_done, found, _) = run(&["knowledge", "entities", "scout", "--type", "person"]);
    assert!(is_done && found.contains("Ada") && found.contains("Bo") && !found.contains("Loom"), "{found}");
    let (is_done, _, said) = run(&["knowledge", "query", "scout", "--depth", "11"]);
    assert!(!is_done && said.contains("max_depth"), "{said}");
    assert!(!run(&["knowledge", "entities", "missing"]).0);
}
