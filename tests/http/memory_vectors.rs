//! Searching entries with the vectors of a provider (spec 2, Memory): its failures, its cost, and a kill.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::model_server::{ModelServer, Received, Reply};
use crate::support::until;

/// Vectors that tell animals from vehicles.
fn vector(text: &str) -> Value {
    let has = |words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
    json!([has(&["dog", "puppy"]), has(&["car", "truck"]), 0.01])
}

fn answered(body: &Value) -> Reply {
    Reply::raw(200, &[("content-type", "application/json")], &body.to_string())
}

/// The answer of a provider in the form of the request. The last vector comes first.
fn embedded(request: &Received) -> Reply {
    if let Some(texts) = request.body["input"].as_array() {
        let texts = texts.iter().enumerate().rev();
        let data: Vec<Value> =
            texts.map(|(n, text)| json!({ "index": n, "embedding": vector(text.as_str().unwrap_or("")) })).collect();
        return answered(&json!({ "data": data, "usage": { "prompt_tokens": 1_000 } }));
    }
    if let Some(texts) = request.body["texts"].as_array() {
        let vectors: Vec<Value> = texts.iter().map(|text| vector(text.as_str().unwrap_or(""))).collect();
        return answered(&json!({ "embeddings": { "float": vectors }, "meta": {} }));
    }
    let text = request.body["inputText"].as_str().unwrap_or("");
    answered(&json!({ "embedding": vector(text), "inputTextTokenCount": 3 }))
}

fn server() -> ModelServer {
    let server = ModelServer::start();
    server.respond(embedded);
    server
}

/// OpenAI at this server, and more lines of `[memory]`.
fn config(server: &ModelServer, more: &str) -> String {
    format!(
        "[memory]\nembedding_provider = \"openai\"\nembedding_api_key_env = \"TEST_MODEL_KEY\"\n{more}\n\
         [providers.openai]\nbase_url = \"{}\"\n",
        server.base_url()
    )
}

fn add(client: &Client, agent: &str, contents: &[&str]) {
    let entries: Vec<Value> = contents.iter().map(|content| json!({ "content": content })).collect();
    client.post(&format!("/api/memory/agents/{agent}/import"), &json!(entries)).expect(200);
}

fn state(client: &Client) -> Value {
    client.get("/api/memory/stats").expect(200)["embeddings"].clone()
}

/// Waits until so many entries are embedded.
fn ready(client: &Client, entries: usize) -> Value {
    until("the vectors", || {
        let state = state(client);
        (state["state"] == "ready" && state["embedded"] == entries).then_some(state)
    })
}

/// The mode of a search, and the first entry that it finds.
fn search(client: &Client, query: &str) -> (String, String) {
    let found = client.get(&format!("/api/memory/search?q={query}")).expect(200);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (word(&found["mode"]), word(&found["memories"][0]["content"]))
}

fn is(mode: &str, content: &str) -> (String, String) {
    (mode.to_owned(), content.to_owned())
}

/// Waits for a mode: the vector of a query comes within a second, or not.
fn becomes(client: &Client, query: &str, expected: &(String, String)) {
    until("the mode", || (search(client, query) == *expected).then_some(()));
}

#[test]
fn searches_are_hybrid_while_the_provider_answers_and_lexical_when_it_does_not() {
    let server = server();
    let daemon = Daemon::with(&config(&server, ""));
    let agent = daemon.agent("a");
    assert_eq!(search(&daemon, "dog"), is("lexical", ""));
    add(&daemon, &agent, &["the dog sleeps", "a red car"]);
    let state_now = ready(&daemon, 2);
    assert_eq!((&state_now["model"], &state_now["dimensions"]), (&json!("openai/text-embedding-3-small"), &json!(3)));
    becomes(&daemon, "puppy", &is("hybrid", "the dog sleeps"));
    becomes(&daemon, "truck", &is("hybrid", "a red car"));
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.path == "/v1/embeddings"));
    assert!(requests.iter().all(|request| request.header("authorization") == "Bearer key-of-the-test-model"));
    let asked = requests.len();
    assert_eq!(search(&daemon, "truck"), is("hybrid", "a red car"));
    assert_eq!(server.requests().len(), asked, "the vector of the query is kept");
    drop(server);
    becomes(&daemon, "dogs", &is("lexical", "the dog sleeps"));
    assert_eq!(search(&daemon, "truck"), is("hybrid", "a red car"), "what is known needs no provider");
    let state_now = until("the state", || Some(state(&daemon)).filter(|state| state["state"] == "waiting"));
    let error = state_now["error"].as_str().unwrap();
    assert!(error.contains("unreachable") && !error.contains("key-of-the-test-model"), "{error}");
    add(&daemon, &agent, &["a truck"]);
    assert_eq!(search(&daemon, "sleeps"), is("lexical", "the dog sleeps"));
    assert_eq!(daemon.get("/api/memory/stats").expect(200)["total"], 3);
}

#[test]
fn a_provider_that_fails_for_a_while_is_asked_again() {
    let server = server();
    server.push(Reply::raw(429, &[("retry-after", "1")], "slow down"));
    server.push(Reply::error(500, "broken"));
    let daemon = Daemon::with(&config(&server, ""));
    let agent = daemon.agent("a");
    add(&daemon, &agent, &["the dog sleeps"]);
    ready(&daemon, 1);
    assert_eq!(server.requests().len(), 3);
    becomes(&daemon, "puppy", &is("hybrid", "the dog sleeps"));
}

#[test]
fn an_answer_that_is_not_valid_is_an_error_in_the_state() {
    let of_two = |one: &str, two: &str| format!("{{\"data\":[{one},{two}]}}");
    for (body, error) in [
        (of_two(r#"{"index":0,"embedding":[1,2]}"#, r#"{"index":1,"embedding":[1]}"#), "1 dimensions instead of 2"),
        (of_two(r#"{"index":0,"embedding":[1]}"#, r#"{"index":0,"embedding":[1]}"#), "repeated"),
        (of_two(r#"{"index":0,"embedding":[1]}"#, r#"{"index":1,"embedding":[NaN]}"#), "cannot be read"),
        (format!("{{\"data\":[{{\"embedding\":[{}1]}}]}}", "1,".repeat(4 << 20)), "too long"),
        (r#"{"data":[]}"#.to_owned(), "0 vectors for 2 texts"),
    ] {
        let server = server();
        server.push(Reply::raw(200, &[], &body));
        let daemon = Daemon::with(&config(&server, ""));
        let agent = daemon.agent("a");
        add(&daemon, &agent, &["the dog sleeps", "a red car"]);
        let found = until("the state", || Some(state(&daemon)).filter(|state| state["state"] == "waiting"));
        assert!(found["error"].as_str().unwrap().contains(error), "{found}");
        assert_eq!(search(&daemon, "dog"), is("lexical", "the dog sleeps"));
    }
}

#[test]
fn each_provider_is_asked_in_its_form() {
    for (provider, base, more, path, authorization) in [
        ("cohere", "/compatibility/v1", "", "/v2/embed", "Bearer key-of-the-test-model"),
        ("bedrock", "", "", "/model/amazon.titan-embed-text-v2%3A0/invoke", "Bearer key-of-the-test-model"),
        ("ollama", "", "", "/v1/embeddings", "Bearer key-of-the-test-model"),
        ("mistral", "/v1", "", "/v1/embeddings", "Bearer key-of-the-test-model"),
        ("vllm", "/v1", "embedding_model = \"m\"", "/v1/embeddings", "Bearer key-of-the-test-model"),
    ] {
        let server = server();
        let base = format!("http://{}{base}", server.address());
        let daemon = Daemon::with(&format!(
            "[memory]\nembedding_provider = \"{provider}\"\nembedding_api_key_env = \"TEST_MODEL_KEY\"\n{more}\n\
             [memory.chunking]\nenabled = true\n[providers.{provider}]\nbase_url = \"{base}\"\n"
        ));
        let agent = daemon.agent("a");
        add(&daemon, &agent, &["the dog sleeps", "a red car"]);
        ready(&daemon, 2);
        becomes(&daemon, "puppy", &is("hybrid", "the dog sleeps"));
        let requests = server.requests();
        assert!(requests.iter().all(|request| request.path == path), "{provider}: {}", requests[0].path);
        assert!(requests.iter().all(|request| request.header("authorization") == authorization), "{provider}");
        let kinds: Vec<&Value> = requests.iter().map(|request| &request.body["input_type"]).collect();
        assert_eq!(kinds.contains(&&json!("search_query")), provider == "cohere");
    }
}

#[test]
fn embedding_is_on_the_usage_and_a_budget_stops_it() {
    let server = server();
    let prices = "[prices.\"openai/text-embedding-3-small\"]\ninput_per_m = 1000.0\noutput_per_m = 0.0\n";
    let context = "context_tokens = 1000\n";
    // A call reserves a dollar, and costs one.
    let daemon = Daemon::with(&format!("{}{context}{prices}[budget]\ndaily_limit_usd = 1.5\n", config(&server, "")));
    let agent = daemon.agent("a");
    add(&daemon, &agent, &["the dog sleeps"]);
    ready(&daemon, 1);
    let spent = until("the cost", || {
        let budget = daemon.get("/api/budget").expect(200);
        (budget["reserved_usd"] == 0.0).then(|| budget["today_spent_usd"].clone())
    });
    assert_eq!(spent, 1.0);
    let events = daemon.get("/api/usage/export?format=csv").text();
    assert!(events.contains(r#""openai","text-embedding-3-small",1000,0,1.000000,"#), "{events}");
    assert!(events.contains(r#","memory","#), "{events}");
    add(&daemon, &agent, &["a red car"]);
    let found = until("the state", || Some(state(&daemon)).filter(|state| state["state"] == "waiting"));
    assert!(found["error"].as_str().unwrap().contains("budget"), "{found}");
    assert_eq!(search(&daemon, "car"), is("lexical", "a red car"));
    assert_eq!(server.requests().len(), 1, "nothing goes out that nothing was reserved for");
}

#[test]
fn a_model_without_a_price_is_not_asked_while_a_budget_is_in_force() {
    let server = server();
    let daemon = Daemon::with(&format!("{}[budget]\ndaily_limit_usd = 1.5\n", config(&server, "")));
    let agent = daemon.agent("a");
    add(&daemon, &agent, &["the dog sleeps"]);
    let found = until("the state", || Some(state(&daemon)).filter(|state| state["state"] == "waiting"));
    assert!(found["error"].as_str().unwrap().contains("price"), "{found}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_killed_daemon_goes_on_embedding_where_it_was() {
    let server = ModelServer::start();
    let (count, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(3)));
    let (counted, bound) = (Arc::clone(&count), Arc::clone(&most));
    server.respond(move |request| {
        // The kill comes while the last of them is out.
        if counted.fetch_add(1, Ordering::AcqRel) < bound.load(Ordering::Acquire) {
            embedded(request)
        } else {
            Reply::hang()
        }
    });
    let mut daemon = Daemon::with(&config(&server, ""));
    let agent = daemon.agent("a");
    let contents: Vec<String> = (0..400).map(|n| format!("dog number {n}")).collect();
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    add(&daemon, &agent, &contents);
    server.wait_for_requests(4);
    let before = state(&daemon)["embedded"].as_u64().unwrap();
    assert!(before > 0 && before < 400, "{before}");
    daemon.kill();
    let texts = |requests: &[Received]| -> usize {
        requests.iter().map(|request| request.body["input"].as_array().map_or(0, Vec::len)).sum()
    };
    let asked = server.requests().len();
    most.store(usize::MAX, Ordering::Release);
    daemon.restart();
    ready(&daemon, 400);
    assert!(texts(&server.requests()[asked..]) <= 400 - before as usize, "what was stored is not asked for again");
    until("the mode", || {
        let (mode, first) = search(&daemon, "puppy");
        (mode == "hybrid" && first.starts_with("dog number")).then_some(())
    });
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    until("the vectors are gone", || (state(&daemon)["embedded"] == 0).then_some(()));
}

#[test]
fn no_provider_is_asked_unless_it_is_named() {
    let server = server();
    for line in ["", "embedding_provider = \"auto\"", "embedding_provider = \"openai\"\nfts_only = true"] {
        let daemon = Daemon::with(&format!(
            "[memory]\n{line}\nembedding_model = \"text-embedding-3-small\"\nembedding_api_key_env = \"TEST_MODEL_KEY\"\n\
             [providers.openai]\nbase_url = \"{0}\"\n[providers.ollama]\nbase_url = \"{0}\"\n",
            server.base_url()
        ));
        let agent = daemon.agent("a");
        add(&daemon, &agent, &["the dog sleeps"]);
        assert_eq!(search(&daemon, "dog"), is("lexical", "the dog sleeps"));
        assert_eq!(state(&daemon), Value::Null);
    }
    assert!(server.requests().is_empty());
}
