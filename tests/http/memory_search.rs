//! Searching entries of the memory of agents (spec 2, Memory).

use std::path::Path;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::until;

/// Entries of one import request.
const BATCH: usize = 500;

fn add(client: &Client, agent: &str, content: &str, more: Value) -> String {
    let mut body = json!({ "agent_id": agent, "content": content });
    let more = more.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(more);
    text(&client.post("/api/memory", &body).expect(201)["id"])
}

fn search(client: &Client, route: &str) -> Value {
    client.get(route).expect(200)
}

/// The contents of what a search finds.
fn found(client: &Client, route: &str) -> Vec<String> {
    let memories = search(client, route)["memories"].as_array().expect("a list").clone();
    memories.iter().map(|entry| text(&entry["content"])).collect()
}

/// Waits until the index has so many entries, however slow the machine is.
fn built(daemon: &Daemon, entries: usize) {
    let line = format!("agentsvc_memory_index_entries {entries}\n");
    until("the index", || daemon.get("/api/metrics").text().contains(&line).then_some(()));
}

#[test]
fn entries_are_found_in_their_scopes_until_they_are_gone_and_after_a_kill() {
    let mut daemon = Daemon::start();
    let (one, other) = (daemon.agent("one"), daemon.agent("other"));
    let peanuts = "Meine Tochter hat eine Erdnussallergie.";
    let id = add(&daemon, &one, peanuts, json!({ "user_id": "ana" }));
    add(&daemon, &one, "The deploy window is on Tuesday.", json!({ "level": "agent" }));
    add(&daemon, &other, "Allergien: keine.", json!({ "user_id": "bo" }));
    let of_one = format!("/api/memory/agents/{one}/search?q=Allergie");
    let answer = search(&daemon, &of_one);
    assert_eq!(
        (&answer["mode"], &answer["total"], &answer["query"]),
        (&json!("lexical"), &json!(1), &json!("Allergie"))
    );
    assert_eq!(answer["memories"][0]["id"], json!(id));
    assert!(answer["memories"][0]["score"].as_f64().unwrap() > 0.0);
    assert_eq!(found(&daemon, "/api/memory/search?q=allergie").len(), 2);
    assert_eq!(found(&daemon, "/api/memory/search?q=allergie&user_id=ana"), [peanuts]);
    assert!(found(&daemon, "/api/memory/search?q=allergie&level=agent").is_empty());
    assert_eq!(found(&daemon, "/api/memory/search?q=deploys&level=agent").len(), 1);
    assert_eq!(found(&daemon, &format!("/api/memory/search?q=allergie&limit=1&agent_id={one}")), [peanuts]);

    daemon.kill();
    daemon.restart();
    assert_eq!(found(&daemon, &of_one), [peanuts]);
    daemon.put(&format!("/api/memory/items/{id}"), &json!({ "content": "She eats everything now." })).expect(200);
    assert!(found(&daemon, &of_one).is_empty());
    assert_eq!(found(&daemon, &format!("/api/memory/agents/{one}/search?q=eats")), ["She eats everything now."]);
    daemon.delete(&format!("/api/agents/{other}")).expect(200);
    assert!(found(&daemon, "/api/memory/search?q=allergie").is_empty());
    assert!(found(&daemon, "/api/memory/search?q=allergie&user_id=bo").is_empty());
}

#[test]
fn many_entries_are_found_by_an_index_that_is_built_again_when_it_is_deleted() {
    let mut daemon = Daemon::start();
    for n in 0..3 {
        let agent = daemon.agent(&format!("a{n}"));
        for batch in 0..2 {
            let entries: Vec<_> =
                (0..BATCH).map(|i| json!({ "content": format!("filler {n} of batch {batch}, number {i}x") })).collect();
            daemon.post(&format!("/api/memory/agents/{agent}/import"), &json!(entries)).expect(200);
        }
    }
    let agent = daemon.agent("last");
    let giraffe = "/api/memory/search?q=giraffe";
    let index = daemon.home().join("data/memory-index");
    assert!(!index.exists(), "nothing was searched");
    assert!(found(&daemon, giraffe).is_empty());
    until("the folder of the index", || index.exists().then_some(()));
    built(&daemon, 3_000);
    for n in 0..20 {
        let id = add(&daemon, &agent, &format!("giraffe number {n}"), json!({}));
        // At once, but a machine that is too slow has searches answer from what is there.
        until("the entry", || (found(&daemon, giraffe) == [format!("giraffe number {n}")]).then_some(()));
        daemon.delete(&format!("/api/memory/items/{id}")).expect(200);
    }
    add(&daemon, &agent, "a giraffe at last", json!({ "user_id": "ana" }));
    daemon.kill();
    std::fs::remove_dir_all(&index).unwrap();
    daemon.restart();
    found(&daemon, giraffe);
    built(&daemon, 3_001);
    assert_eq!(found(&daemon, giraffe), ["a giraffe at last"]);
    assert_eq!(found(&daemon, &format!("{giraffe}&user_id=ana")), ["a giraffe at last"]);
    assert!(found(&daemon, &format!("{giraffe}&user_id=bo")).is_empty());
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    assert!(found(&daemon, giraffe).is_empty());
}

/// A model with one vector for each of these words.
fn write_model(folder: &Path) {
    let words = [("[UNK]", [0.0_f32, 0.0]), ("dog", [1.0, 0.0]), ("puppy", [0.9, 0.1]), ("car", [0.0, 1.0])];
    let vocabulary: serde_json::Map<_, _> =
        words.iter().enumerate().map(|(id, (word, _))| ((*word).to_owned(), json!(id))).collect();
    let tokenizer = json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": true },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary },
    });
    let data: Vec<u8> = words.iter().flat_map(|(_, vector)| *vector).flat_map(f32::to_le_bytes).collect();
    let header =
        json!({ "embeddings": { "dtype": "F32", "shape": [4, 2], "data_offsets": [0, data.len()] } }).to_string();
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).expect("a file");
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
    std::fs::write(folder.join("model.safetensors"), file).expect("a file");
}

#[test]
fn a_static_model_finds_other_words() {
    let model = tempfile::tempdir().unwrap();
    write_model(model.path());
    let daemon = Daemon::with(&format!("[memory]\nembedding_folder = {:?}\n", model.path()));
    let agent = daemon.agent("a");
    add(&daemon, &agent, "The dog sleeps.", json!({}));
    add(&daemon, &agent, "The car is blue.", json!({}));
    let route = format!("/api/memory/agents/{agent}/search?q=puppy");
    let answer = search(&daemon, &route);
    assert_eq!((&answer["mode"], &answer["total"]), (&json!("hybrid"), &json!(1)));
    assert_eq!(found(&daemon, &route), ["The dog sleeps."]);
    assert_eq!(search(&daemon, "/api/memory/search?q=blue")["mode"], json!("lexical"), "a word that it does not know");
}

#[test]
fn a_model_that_cannot_be_read_leaves_the_search_by_words() {
    let daemon = Daemon::with("[memory]\nembedding_folder = \"/nonexistent\"\n");
    let agent = daemon.agent("a");
    add(&daemon, &agent, "The dog sleeps.", json!({}));
    let answer = search(&daemon, "/api/memory/search?q=dogs");
    assert_eq!((&answer["mode"], &answer["total"]), (&json!("lexical"), &json!(1)));
    assert!(daemon.stderr().contains("the embedding model cannot be used"));
}
