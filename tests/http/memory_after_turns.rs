//! Turns make memory entries: by rules, by a model, once whatever is killed, and not where they must not (spec 2, Memory).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::{Received, Reply};
use crate::support::until;

/// The model extracts entries, too.
const BY_MODEL: &str = "[proactive_memory]\nextraction_model = \"openai/extract-1\"\n";

/// Does the daemon ask for facts?
fn is_extraction(request: &Received) -> bool {
    request.body["model"] == "extract-1"
}

/// A model that answers turns, and says this where it is asked for facts.
fn model(facts: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Model {
    let model = Model::start();
    model.server.respond(move |request| if is_extraction(request) { facts(request) } else { Reply::text("fine") });
    model
}

fn says(content: &str) -> Reply {
    let fact = json!({ "content": content, "category": "preference", "level": "user" });
    Reply::text(json!({ "memories": [fact], "relations": [], "has_content": true }).to_string())
}

fn extractions(model: &Model) -> Vec<Received> {
    model.server.requests().into_iter().filter(is_extraction).collect()
}

/// An agent whose model is the daemon's.
fn agent(daemon: &Daemon, name: &str) -> String {
    daemon.agent_with(name, "")
}

fn entries(client: &Client, agent: &str) -> Vec<Value> {
    let list = client.get(&format!("/api/memory/agents/{agent}")).expect(200);
    list["memories"].as_array().expect("a list").clone()
}

fn contents(client: &Client, agent: &str) -> Vec<String> {
    let mut found: Vec<String> = entries(client, agent).iter().map(|entry| text(&entry["content"])).collect();
    found.sort();
    found
}

/// The value of a metric, labels included in its name.
fn metric(client: &Client, name: &str) -> u64 {
    let metrics = client.get("/api/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    line.trim().parse().expect("a number")
}

/// Kinds of jobs that memorise turns: by rules, and by a model.
const KINDS: [&str; 2] = ["memorize", "memorize_by_model"];

/// Turns that came to their end here: memorised, or given up.
fn ended(client: &Client, end: &str) -> u64 {
    KINDS.iter().map(|kind| metric(client, &format!("agentsvc_jobs_total{{kind=\"{kind}\",end=\"{end}\"}}"))).sum()
}

fn wait_for(client: &Client, end: &str, count: u64) {
    until(&format!("{count} turns {end}"), || (ended(client, end) == count).then_some(()));
}

fn open(client: &Client) -> u64 {
    let of = |kind: &str, state: &str| metric(client, &format!("agentsvc_jobs{{kind=\"{kind}\",state=\"{state}\"}}"));
    KINDS.iter().map(|kind| of(kind, "waiting") + of(kind, "out")).sum()
}

#[test]
fn what_a_user_states_becomes_entries_without_a_model_and_the_rest_leaves_nothing() {
    let model = model(|_| panic!("no model is asked for facts"));
    let mut daemon = Daemon::with(&model.config());
    let agent = agent(&daemon, "a");
    let turn = daemon.say(&agent, "Hello! My name is Ana Lima. I prefer tea.");
    wait_for(&daemon, "done", 1);
    assert_eq!(contents(&daemon, &agent), ["User prefers tea", "User's name is Ana Lima"]);
    for entry in entries(&daemon, &agent) {
        assert_eq!(
            (&entry["source"], &entry["confidence"], &entry["taint"]),
            (&json!("rules"), &json!(1.0), &json!([]))
        );
        assert_eq!(entry["metadata"]["session_id"], turn["session_id"]);
        assert!(entry["metadata"]["turn_id"].is_string() && entry["user_id"].is_null(), "{entry}");
    }
    daemon.say(&agent, "What is the capital of France?");
    daemon.say(&agent, "My name is Ana Lima.");
    wait_for(&daemon, "done", 2);
    daemon.say(&agent, "I prefer tea with milk.");
    wait_for(&daemon, "done", 3);
    let fact = |action: &str| metric(&daemon, &format!("agentsvc_memory_facts_total{{action=\"{action}\"}}"));
    assert_eq!((fact("added"), fact("updated"), fact("noop"), fact("deleted")), (2, 1, 1, 0));
    let trail = daemon.get("/api/audit/recent?limit=50").expect(200).to_string();
    assert!(trail.contains("memory_entries_written"), "{trail}");
    let shown = daemon.get("/api/memory/stats").expect(200);
    let key = |key: &str| shown[key].clone();
    assert_eq!((key("auto_memorize_enabled"), key("llm_extraction")), (json!(true), json!(false)));
    daemon.kill();
    daemon.restart();
    assert_eq!(contents(&daemon, &agent), ["User prefers tea with milk", "User's name is Ana Lima"]);
}

#[test]
fn manifests_override_it_and_turns_that_no_user_began_are_left_out() {
    let model = model(|_| says("User likes tea"));
    let daemon = Daemon::with(&model.config());
    let refused = daemon.post(
        "/api/agents",
        &json!({ "manifest_toml": "name = \"x\"\n[proactive_memory]\nextraction_model = \"gpt\"\n" }),
    );
    let body = refused.expect(400).to_string();
    assert!(body.contains("proactive_memory.extraction_model"), "{body}");
    let off = daemon.agent_with("off", "[proactive_memory]\nauto_memorize = false\n");
    let asks = daemon.agent_with("asks", "[proactive_memory]\nextraction_model = \"openai/extract-1\"\n");
    let detail = daemon.detail(&asks);
    assert_eq!(
        detail["proactive_memory"],
        json!({ "enabled": true, "auto_memorize": true, "auto_retrieve": true,
        "extraction_model": "openai/extract-1" })
    );
    let stats = |agent: &str| daemon.get(&format!("/api/memory/agents/{agent}/stats")).expect(200);
    assert_eq!((&stats(&off)["auto_memorize_enabled"], &stats(&off)["llm_extraction"]), (&json!(false), &json!(false)));
    assert_eq!((&stats(&asks)["auto_memorize_enabled"], &stats(&asks)["llm_extraction"]), (&json!(true), &json!(true)));
    daemon.say(&off, "My name is Bo.");
    daemon.say(&asks, "What do you think of tea?");
    wait_for(&daemon, "done", 1);
    assert_eq!((contents(&daemon, &off).len(), contents(&daemon, &asks)), (0, vec!["User likes tea".to_owned()]));
    // A conversation that comes with its request leaves no history, and no entries.
    let plain = agent(&daemon, "plain");
    let asked = json!({ "model": "agentsvc:plain", "messages": [{ "role": "user", "content": "My name is Cy." }] });
    daemon.post("/v1/chat/completions", &asked).expect(200);
    daemon.settle();
    assert_eq!((open(&daemon), contents(&daemon, &plain).len()), (0, 0));
}

#[test]
fn a_model_finds_facts_and_relations_and_deletes_only_what_it_was_shown() {
    let model = model(|request| {
        let shown: Value = serde_json::from_str(request.last_user()).expect("JSON");
        let known = shown["known"].as_array().expect("a list").clone();
        let entry = known.iter().find(|known| known["content"] == "User drinks coffee at work").map(|it| &it["entry"]);
        let answer = json!({
            "memories": [{ "content": "User drinks tea now", "category": "preference", "level": "user_memory" }],
            "relations": [{ "subject": "Ana", "subject_type": "person", "relation": "works_at", "object": "Acme",
                "object_type": "organization" }],
            "actions": [{ "action": "delete", "entry": entry.expect("it is shown") }, { "action": "delete", "entry": 77 },
                { "action": "erase", "entry": 1 }],
            "has_content": true,
        });
        Reply::text(format!("```json\n{answer}\n```"))
    });
    let prices = "[prices.\"openai/*\"]\ninput_per_m = 1.0\noutput_per_m = 2.0\n";
    let daemon = Daemon::with(&format!("{}{BY_MODEL}{prices}", model.config()));
    let (agent, other) = (agent(&daemon, "a"), agent(&daemon, "b"));
    for (agent_id, content, user) in [
        (&agent, "User drinks coffee at work", None),
        (&agent, "The build uses Bazel", None),
        (&agent, "User drinks coffee at home", Some("bo")),
        (&other, "User drinks coffee at work", None),
    ] {
        daemon.post("/api/memory", &json!({ "agent_id": agent_id, "content": content, "user_id": user })).expect(201);
    }
    daemon.say(&agent, "I drink tea now, no coffee at work for me. I am at Acme.");
    wait_for(&daemon, "done", 1);
    assert_eq!(
        contents(&daemon, &agent),
        ["The build uses Bazel", "User drinks coffee at home", "User drinks tea now"],
        "another user's is not shown, and not deleted"
    );
    assert_eq!(contents(&daemon, &other), ["User drinks coffee at work"]);
    let made = entries(&daemon, &agent).into_iter().find(|it| it["content"] == "User drinks tea now").expect("made");
    assert_eq!((&made["source"], &made["level"]), (&json!("model"), &json!("user")));
    let graph = daemon.get(&format!("/api/memory/agents/{agent}/relations?source=Ana")).expect(200);
    assert_eq!((&graph["count"], &graph["matches"][0]["target"]["name"]), (&json!(1), &json!("Acme")));
    let asked = extractions(&model);
    assert_eq!(asked.len(), 1);
    let shown = asked[0].last_user();
    assert!(shown.contains("no coffee at work") && shown.contains("\"assistant\":\"fine\""), "{shown}");
    assert!(!shown.contains("at home") && !shown.contains("Bazel"), "{shown}");
    let rows = daemon.get("/api/usage/export").text();
    let of_memory: Vec<&str> = rows.lines().filter(|row| row.contains(",\"memory\",")).collect();
    assert!(of_memory.len() == 1 && of_memory[0].contains("extract-1") && of_memory[0].contains(&agent), "{rows}");
}

#[test]
fn an_answer_that_is_wrong_or_hostile_stores_nothing_and_goes_on_record() {
    let hostile = [
        "I will not answer with JSON.".to_owned(),
        r#"{"memories": {"content": "x"}}"#.to_owned(),
        format!(r#"{{"memories": [{}"#, "{},".repeat(1_000_000)),
        "[".repeat(60_000),
        r#"{"memories": [], "actions": [{"action": "delete", "entry": "all"}]}"#.to_owned(),
    ];
    let odd = json!({ "memories": [
        { "content": "Ignore\u{0} all", "category": "preference" },
        { "content": "wrong category", "category": "system" },
        { "content": "wrong level", "category": "preference", "level": "root" },
        { "content": "x".repeat(5_000), "category": "preference" },
    ] });
    let mut answers = hostile.to_vec();
    answers.push(odd.to_string());
    let model = model(move |request| {
        let number = request.last_user().split("number ").nth(1).and_then(|rest| rest[..1].parse::<usize>().ok());
        Reply::text(answers[number.expect("a number")].clone())
    });
    let daemon = Daemon::with(&format!("{}{BY_MODEL}", model.config()));
    let agent = agent(&daemon, "a");
    daemon.post("/api/memory", &json!({ "agent_id": agent, "content": "kept number" })).expect(201);
    for number in 0..=hostile.len() {
        daemon.say(&agent, &format!("This is number {number}"));
    }
    wait_for(&daemon, "failed", hostile.len() as u64);
    wait_for(&daemon, "done", 1);
    assert_eq!(contents(&daemon, &agent), ["kept number"]);
    assert_eq!(extractions(&model).len(), hostile.len() + 1, "an answer that cannot be used is not paid for twice");
    let trail = daemon.get("/api/audit/recent?limit=50").expect(200).to_string();
    assert_eq!(trail.matches("\"memory_turn_not_memorized\"").count(), hostile.len(), "{trail}");
    assert!(!trail.contains("I will not answer"), "{trail}");
}

#[test]
fn a_kill_between_the_answer_and_the_entries_loses_and_doubles_nothing() {
    let model = model(|_| Reply::hang());
    let mut daemon = Daemon::with(&format!("{}{BY_MODEL}", model.config()));
    let (agent, gone) = (agent(&daemon, "a"), agent(&daemon, "gone"));
    daemon.say(&agent, "I have moved to green tea.");
    daemon.say(&gone, "I have moved to black tea.");
    until("the model is asked for both", || (extractions(&model).len() == 2).then_some(()));
    daemon.kill();
    model.server.respond(|request| if is_extraction(request) { says("User drinks green tea") } else { Reply::hang() });
    daemon.restart();
    wait_for(&daemon, "done", 2);
    assert_eq!(contents(&daemon, &agent), ["User drinks green tea"]);
    daemon.kill();
    daemon.restart();
    assert_eq!((open(&daemon), contents(&daemon, &agent).len()), (0, 1), "once, and nothing is left to do");
    let rows = daemon.get("/api/usage/export").text();
    assert_eq!(
        rows.lines().filter(|row| row.contains(",\"memory\",")).count(),
        4,
        "the lost calls are on the bill: {rows}"
    );

    model.server.respond(|request| if is_extraction(request) { Reply::hang() } else { Reply::text("fine") });
    daemon.say(&gone, "I have moved to white tea.");
    until("the model is asked again", || (extractions(&model).len() == 5).then_some(()));
    daemon.delete(&format!("/api/agents/{gone}")).expect(200);
    until("the job goes with its agent", || (open(&daemon) == 0).then_some(()));
    daemon.say(&agent, "And what is white tea?");
}

#[test]
fn an_agent_without_budget_or_a_model_without_price_is_never_asked() {
    let model = model(|_| says("User likes tea"));
    let free = "[prices.\"openai/echo-1\"]\ninput_per_m = 0.0\noutput_per_m = 0.0\n";
    let dear = "[prices.\"openai/extract-1\"]\ninput_per_m = 1.0\noutput_per_m = 2.0\n";
    let daemon = Daemon::with(&format!("{}{BY_MODEL}{free}{dear}", model.config()));
    let poor = daemon.agent_with("poor", "[limits]\ndaily_limit_usd = 0.000001\n");
    daemon.say(&poor, "I like tea.");
    until("the budget refuses the call", || {
        (metric(&daemon, "agentsvc_jobs_retried_total{kind=\"memorize_by_model\"}") == 1).then_some(())
    });
    let unpriced = "[limits]\ndaily_limit_usd = 1.0\n[proactive_memory]\nextraction_model = \"openai/nameless\"\n";
    let unpriced = daemon.agent_with("unpriced", unpriced);
    daemon.say(&unpriced, "I like tea.");
    wait_for(&daemon, "failed", 1);
    let trail = daemon.get("/api/audit/recent?limit=50").expect(200).to_string();
    assert!(trail.contains("memory_turn_not_memorized") && trail.contains("price"), "{trail}");
    assert_eq!((contents(&daemon, &poor).len(), contents(&daemon, &unpriced).len()), (0, 0));
    let models: Vec<String> = model.server.requests().iter().map(|request| text(&request.body["model"])).collect();
    assert_eq!(models, ["echo-1", "echo-1"]);
}
