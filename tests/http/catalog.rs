//! The model catalog: models, aliases, models of clients, and what they change for calls (spec 2, Model catalog).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::form::PNG;
use crate::support::http::Reply as HttpReply;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::socket::Socket;

/// The scripted server as the endpoint of `openai` and of a provider of the operator's own.
fn config(model: &Model) -> String {
    let base_url = model.server.base_url();
    format!(
        "{}[providers.mine]\nbase_url = \"{base_url}\"\n[providers.openai]\nbase_url = \"{base_url}\"\n",
        model.config()
    )
}

fn harness() -> (Model, Daemon) {
    let model = Model::start();
    let daemon = Daemon::with_env(&config(&model), &[("OPENAI_API_KEY", "sk-test")]);
    (model, daemon)
}

/// The model that the server was asked for last.
fn asked(model: &Model) -> String {
    text(&model.requests().pop().unwrap()["model"])
}

fn close(value: &Value, usd: f64) -> bool {
    value.as_f64().is_some_and(|found| (found - usd).abs() < 1e-9)
}

/// One model, by whatever may stand for its id.
#[track_caller]
fn show(daemon: &Daemon, id: &str) -> HttpReply {
    daemon.get(&format!("/api/models/{id}"))
}

#[track_caller]
fn forget(daemon: &Daemon, alias: &str) -> HttpReply {
    daemon.delete(&format!("/api/models/aliases/{alias}"))
}

#[track_caller]
fn remove(daemon: &Daemon, id: &str) -> HttpReply {
    daemon.delete(&format!("/api/models/custom/{id}"))
}

fn custom(id: &str) -> Value {
    json!({ "id": id, "provider": "mine", "display_name": "My model", "context_window": 32_000 })
}

#[test]
fn the_models_are_listed_with_what_is_known_of_them() {
    let daemon = Daemon::start();
    let list = daemon.get("/api/models").expect(200);
    let models = list["models"].as_array().unwrap();
    assert!(models.len() >= 130 && list["total"] == models.len(), "{}", list["total"]);
    let providers: std::collections::BTreeSet<_> = models.iter().map(|model| text(&model["provider"])).collect();
    assert_eq!(providers.len(), 49);
    let mini = show(&daemon, "gpt-4o-mini").expect(200);
    let expected = json!({
        "id": "gpt-4o-mini", "provider": "openai", "display_name": "GPT-4o mini", "tier": "fast",
        "context_window": 128_000, "max_output_tokens": 16_384,
        "input_cost_per_m": 0.15, "output_cost_per_m": 0.6, "price_known": true, "cached_input_cost_per_m": 0.075,
        "cache_write_cost_per_m": null, "supports_tools": true, "supports_vision": true, "vision_support": "supported",
        "supports_streaming": true, "supports_reasoning": false, "aliases": [], "source": "builtin",
    });
    assert_eq!(mini, expected);
    let slashes = show(&daemon, "openrouter/openai/gpt-4o-mini").expect(200);
    assert_eq!((&slashes["id"], &slashes["provider"]), (&json!("openai/gpt-4o-mini"), &json!("openrouter")));
    let encoded = show(&daemon, "meta-llama%2FLlama-3.3-70B-Instruct-Turbo").expect(200);
    assert_eq!(encoded["provider"], "together");
    let unpriced = show(&daemon, "meta/llama-3.3-70b-instruct").expect(200);
    let price = (&unpriced["provider"], &unpriced["input_cost_per_m"], &unpriced["price_known"]);
    assert_eq!(price, (&json!("nvidia"), &json!(0.0), &json!(false)));
    let unknown = show(&daemon, "sonar").expect(200);
    assert_eq!((&unknown["vision_support"], &unknown["supports_vision"]), (&json!("unknown"), &json!(false)));
    assert_eq!(show(&daemon, "gpt-3.5-turbo").expect(200)["vision_support"], "unsupported");
    let groq = daemon.get("/api/models?provider=groq&tier=fast").expect(200);
    let all = groq["models"].as_array().unwrap();
    assert!(!all.is_empty() && all.iter().all(|model| model["provider"] == "groq" && model["tier"] == "fast"));
    let sentence = show(&daemon, "no/such-model").refused(404);
    assert!(sentence.contains("no/such-model"), "{sentence}");
}

#[test]
fn an_alias_stands_for_a_model_until_it_is_deleted() {
    let (model, mut daemon) = harness();
    let before = daemon.get("/api/models/aliases").expect(200);
    assert_eq!(before["aliases"]["sonnet"], "claude-sonnet-4-6");
    assert_eq!(before["total"], before["aliases"].as_object().unwrap().len());
    let made = daemon.post("/api/models/aliases", &json!({ "alias": "quick", "model_id": "gpt-4o-mini" })).expect(201);
    assert_eq!(
        (&made["alias"], &made["model_id"], &made["provider"]),
        (&json!("quick"), &json!("gpt-4o-mini"), &json!("openai"))
    );
    assert_eq!(show(&daemon, "gpt-4o-mini").expect(200)["aliases"], json!(["quick"]));
    // Without a provider, with its own, and named by a patch of an agent of another provider.
    let bare = daemon.agent_with("bare", "[model]\nmodel = \"quick\"\n");
    let own = daemon.agent_with("own", "[model]\nprovider = \"openai\"\nmodel = \"quick\"\n");
    let other = daemon.agent("other");
    daemon.put(&format!("/api/agents/{other}/model"), &json!({ "model": "quick" })).expect(200);
    for agent in [&bare, &own, &other] {
        daemon.say(agent, "hello");
        assert_eq!(asked(&model), "gpt-4o-mini");
        let detail = daemon.detail(agent);
        assert_eq!(
            (&detail["model"]["provider"], &detail["model"]["model"]),
            (&json!("openai"), &json!("gpt-4o-mini"))
        );
    }
    daemon.kill();
    daemon.restart();
    assert_eq!(daemon.get("/api/models/aliases").expect(200)["aliases"]["quick"], "gpt-4o-mini");
    daemon.say(&bare, "again");
    assert_eq!(asked(&model), "gpt-4o-mini");
    // Stable writes the model down; what the alias means later is nothing to it.
    daemon.put(&format!("/api/agents/{own}/mode"), &json!({ "mode": "Stable" })).expect(200);
    assert_eq!(forget(&daemon, "quick").expect(200)["status"], "removed");
    daemon.post("/api/models/aliases", &json!({ "alias": "quick", "model_id": "gpt-4.1" })).expect(201);
    daemon.say(&own, "pinned");
    assert_eq!(asked(&model), "gpt-4o-mini");
    daemon.say(&bare, "moved");
    assert_eq!(asked(&model), "gpt-4.1");
    forget(&daemon, "quick").expect(200);
    forget(&daemon, "quick").refused(404);
    // Those of the catalog can be taken away too, and given to another model.
    forget(&daemon, "sonnet").expect(200);
    daemon.post("/api/models/aliases", &json!({ "alias": "sonnet", "model_id": "gpt-4o" })).expect(201);
    assert_eq!(daemon.get("/api/models/aliases").expect(200)["aliases"]["sonnet"], "gpt-4o");
}

#[test]
fn an_alias_that_cannot_be_is_refused_and_changes_nothing() {
    let daemon = Daemon::start();
    let total = daemon.get("/api/models/aliases").expect(200)["total"].clone();
    let post =
        |alias: &str, model: &str| daemon.post("/api/models/aliases", &json!({ "alias": alias, "model_id": model }));
    assert!(post("mine", "no-such-model").refused(404).contains("no-such-model"));
    post("mine", "sonnet").refused(404);
    post("sonnet", "gpt-4o").refused(409);
    post("gpt-4o", "gpt-4o-mini").refused(409);
    post("azure/gpt-4o", "gpt-4o-mini").refused(409);
    for alias in ["", "  ", "two words", "a\nb", &"x".repeat(257)] {
        post(alias, "gpt-4o").refused_field(400, "alias");
    }
    post("mine", " ").refused_field(400, "model_id");
    daemon.post("/api/models/aliases", &json!({ "alias": "mine" })).refused_field(400, "model_id");
    daemon.post("/api/models/aliases", &json!({ "alias": 3, "model_id": "gpt-4o" })).refused_field(400, "alias");
    forget(&daemon, "mine").refused(404);
    assert_eq!(daemon.get("/api/models/aliases").expect(200)["total"], total);
    assert!(!daemon.home().join("data/model_aliases.json").exists());
}

#[test]
fn a_model_of_a_client_is_asked_priced_and_survives_a_kill() {
    let (model, mut daemon) = harness();
    let mut body = custom("lab/model-1");
    body["input_cost_per_m"] = json!(1.0);
    body["output_cost_per_m"] = json!(2.0);
    let made = daemon.post("/api/models/custom", &body).expect(201);
    assert_eq!((&made["id"], &made["source"], &made["tier"]), (&json!("lab/model-1"), &json!("custom"), &Value::Null));
    assert_eq!(show(&daemon, "lab/model-1").expect(200), made);
    daemon.post("/api/models/custom", &body).refused(409);
    daemon.post("/api/models/aliases", &json!({ "alias": "lab", "model_id": "lab/model-1" })).expect(201);
    let agent = daemon.agent_with("a", "[model]\nmodel = \"lab\"\n");
    for restarted in [false, true] {
        // 11 tokens in at a dollar and 7 out at two, for a million.
        assert!(close(&daemon.say(&agent, "x")["cost_usd"], 0.000_025));
        assert_eq!(asked(&model), "lab/model-1");
        if !restarted {
            daemon.kill();
            daemon.restart();
        }
    }
    let removed = remove(&daemon, "lab/model-1").expect(200);
    assert_eq!(removed["aliases"], json!(["lab"]));
    show(&daemon, "lab/model-1").refused(404);
    remove(&daemon, "lab/model-1").refused(404);
    remove(&daemon, "gpt-4o").refused(409);
    assert!(daemon.get("/api/models/aliases").expect(200)["aliases"]["lab"].is_null());
    daemon.kill();
    daemon.restart();
    show(&daemon, "lab/model-1").refused(404);
    let entries = daemon.get("/api/audit/recent?limit=100").expect(200)["entries"].clone();
    let kinds: Vec<_> = entries.as_array().unwrap().iter().map(|entry| text(&entry["event_type"])).collect();
    for kind in ["model_added", "model_removed", "model_alias_added"] {
        assert_eq!(kinds.iter().filter(|found| *found == kind).count(), 1, "{kind}: {kinds:?}");
    }
}

#[test]
fn a_model_that_cannot_be_is_refused_and_names_its_field() {
    let (_model, daemon) = harness();
    let with = |field: &str, value: Value| {
        let mut body = custom("m");
        body[field] = value;
        daemon.post("/api/models/custom", &body)
    };
    for (field, value) in [
        ("id", json!("")),
        ("id", json!("a b")),
        ("id", json!("x".repeat(300))),
        ("id", json!(7)),
        ("provider", json!("nowhere")),
        ("provider", json!("")),
        ("context_window", json!(0)),
        ("context_window", json!(-1)),
        ("context_window", json!(1_000_000_000)),
        ("context_window", json!("many")),
        ("tier", json!("best")),
        ("max_output_tokens", json!(64_000)),
        ("input_cost_per_m", json!(-1.0)),
        ("output_cost_per_m", json!(1_001)),
        ("supports_vision", json!("yes")),
    ] {
        with(field, value).refused_field(400, field);
    }
    with("id", json!("sonnet")).refused(409);
    let mut twice = custom("gpt-4o");
    twice["provider"] = json!("openai");
    daemon.post("/api/models/custom", &twice).refused(409);
    daemon.post("/api/models/custom", &json!({ "id": "m", "provider": "mine" })).refused_field(400, "context_window");
    daemon.post("/api/models/custom", &json!({ "provider": "mine", "context_window": 9_000 })).refused_field(400, "id");
    assert!(!daemon.home().join("data/custom_models.json").exists());
}

#[test]
fn the_prices_of_the_catalog_feed_metering_and_the_configuration_overrides_them() {
    let model = Model::start();
    let manifest = "[model]\nprovider = \"openai\"\nmodel = \"gpt-4o-mini\"\n";
    // 11 in at 0.15 and 7 out at 0.6 dollars for a million: 5.85 micro-dollars, rounded up.
    for (more, usd) in [("", 0.000_006), ("[prices.\"openai/*\"]\ninput_per_m = 1.0\noutput_per_m = 2.0\n", 0.000_025)]
    {
        let daemon = Daemon::with_env(&format!("{}{more}", config(&model)), &[("OPENAI_API_KEY", "sk-test")]);
        let agent = daemon.agent_with("a", manifest);
        let cost = daemon.say(&agent, "x")["cost_usd"].clone();
        assert!(close(&cost, usd), "{cost} {more}");
    }
}

#[test]
fn pictures_are_left_out_for_models_that_were_declared_to_take_none() {
    let (model, daemon) = harness();
    let mut blind = custom("blind");
    blind["supports_vision"] = json!(false);
    daemon.post("/api/models/custom", &blind).expect(201);
    daemon.post("/api/models/custom", &custom("who-knows")).expect(201);
    daemon.post("/api/models/custom", &custom("lab-vl-7b")).expect(201);
    let said = |id: &str| {
        let entry = show(&daemon, id).expect(200);
        (entry["supports_vision"].clone(), text(&entry["vision_support"]))
    };
    assert_eq!(said("blind"), (json!(false), "unsupported".to_owned()));
    assert_eq!(said("who-knows"), (json!(false), "unknown".to_owned()));
    assert_eq!(said("lab-vl-7b"), (json!(true), "unknown".to_owned()), "a guess from the name");
    for (provider, name, is_sent) in [
        ("openai", "gpt-4o", true),
        ("openai", "gpt-3.5-turbo", false),
        ("mine", "blind", false),
        ("mine", "who-knows", true),
        ("mine", "unheard-of", true),
    ] {
        let agent = daemon.agent_with(name, &format!("[model]\nprovider = \"{provider}\"\nmodel = \"{name}\"\n"));
        let image = daemon.upload(&agent, "dot.png", PNG);
        daemon.say_with(&agent, "look", &[&image]);
        let request = model.requests().pop().unwrap();
        let heard = request["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert_eq!(heard.contains("data:image/png;base64,"), is_sent, "{name}: {heard}");
        assert_eq!(heard.contains("does not support images"), !is_sent, "{name}: {heard}");
    }
}

#[test]
fn fallback_models_and_the_default_model_may_be_aliases() {
    let model = Model::start();
    let base_url = model.server.base_url();
    let daemon = Daemon::with_env(
        &format!("[default_model]\nprovider = \"openai\"\nmodel = \"gpt-mini\"\nbase_url = \"{base_url}\"\n"),
        &[("OPENAI_API_KEY", "sk-test")],
    );
    let agent = daemon.agent_with("a", "[[fallback_models]]\nmodel = \"gpt-nano\"\n");
    daemon.say(&agent, "x");
    assert_eq!(asked(&model), "gpt-5-mini");
    model.script([Reply::error(400, "no")]);
    daemon.say(&agent, "y");
    assert_eq!(asked(&model), "gpt-5-nano");
}

#[test]
fn a_damaged_file_does_not_stop_the_start() {
    let (_model, mut daemon) = harness();
    daemon.post("/api/models/custom", &custom("m")).expect(201);
    daemon.kill();
    let path = daemon.home().join("data/custom_models.json");
    std::fs::write(&path, "{ broken").unwrap();
    daemon.restart();
    show(&daemon, "m").refused(404);
    assert!(daemon.stderr().contains("renamed"), "{}", daemon.stderr());
    daemon.post("/api/models/custom", &custom("m")).expect(201);
    let aside = daemon.home().join("data/custom_models.json.damaged");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{ broken");
}

#[test]
fn the_chat_lists_models_of_a_provider_with_their_aliases() {
    let daemon = Daemon::start();
    let mut socket = Socket::open(&daemon, &daemon.agent("a"));
    let said = socket.answer("/models anthropic");
    assert!(
        said.contains("anthropic claude-haiku-4-5-20251001") && said.contains("sonnet = claude-sonnet-4-6"),
        "{said}"
    );
    assert!(!said.contains("gpt-4o"), "{said}");
    assert!(socket.error("/models nowhere").contains("/providers"));
    let said = socket.answer("/model sonnet");
    assert!(said.contains("claude-sonnet-4-6 of provider anthropic"), "{said}");
}

#[test]
fn the_command_line_lists_the_models_of_a_provider() {
    let daemon = Daemon::start();
    let output = daemon.cli(&["models", "--provider", "groq"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("llama-3.1-8b-instant") && !said.contains("gpt-4o"), "{said}");
}
