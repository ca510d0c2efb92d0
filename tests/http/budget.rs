//! Budgets: limits by configuration, manifest and API, refusals, warnings (spec 3, Budget).

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::socket::Socket;
use crate::support::{clear_of_the_hour, until};

/// A context of 1,000 tokens at a dollar for a million, answers of 100 at a dollar: 1,100 micro-dollars a call at most.
const CONFIG: &str = "[providers.openai]\ncontext_tokens = 1000\n[prices.\"openai/echo-1\"]\ninput_per_m = 1.0\n\
                      output_per_m = 1.0\n";
/// The same in dollars.
const WORST_USD: f64 = 0.0011;

/// What a test of a sum takes at most.
const ROOM: Duration = Duration::from_secs(60);

fn daemon(model: &Model, budget: &str) -> Daemon {
    clear_of_the_hour(ROOM);
    Daemon::with(&format!("{}{CONFIG}[budget]\nanswer_tokens_max = 100\n{budget}", model.config()))
}

fn budget(client: &Client) -> Value {
    client.get("/api/budget").expect(200)
}

fn send(client: &Client, agent: &str) -> crate::support::http::Reply {
    client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "x" }))
}

#[test]
fn without_limits_everything_is_ok_and_counted() {
    let model = Model::start();
    let daemon = daemon(&model, "");
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "x");
    let found = budget(&daemon);
    assert_eq!(
        (&found["daily_limit_usd"], &found["monthly_limit_usd"], &found["status"]),
        (&json!(0.0), &json!(0.0), &json!("ok"))
    );
    assert_eq!((&found["today_spent_usd"], &found["month_spent_usd"]), (&json!(0.000_018), &json!(0.000_018)));
    assert_eq!(found["reserved_usd"], 0.0);
    assert!(model.requests()[0].get("max_tokens").is_none(), "no budget, no bound of the answer");
}

/// What is reserved is a full context, so no call may take more.
#[test]
fn tools_and_schemas_that_no_context_holds_are_not_sent() {
    let model = Model::start();
    let daemon = daemon(&model, &format!("daily_limit_usd = {}\n", 9.0 * WORST_USD));
    daemon.agent_with("a", "");
    let long = "1 ".repeat(2_000);
    let schema = json!({ "type": "object", "description": long });
    let tool = json!({ "type": "function", "function": { "name": "t", "parameters": schema } });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "s", "schema": schema } });
    for (key, value) in [("tools", json!([tool])), ("response_format", format)] {
        let mut body = json!({ "model": "a", "messages": [{ "role": "user", "content": "x" }] });
        body[key] = value;
        let refused = daemon.post("/v1/chat/completions", &body).expect(500);
        assert_eq!(refused["code"], "prompt_too_large", "{refused}");
        assert!(text(&refused["error"]).contains("Grant fewer tools"), "{refused}");
    }
    assert_eq!(model.requests().len(), 0);
    assert_eq!(budget(&daemon)["reserved_usd"], 0.0);
}

#[test]
fn a_budget_that_is_used_up_answers_429_before_the_model_is_asked() {
    let model = Model::start();
    let mut daemon = daemon(&model, &format!("daily_limit_usd = {}\n", 2.0 * WORST_USD));
    let agent = daemon.agent_with("a", "");
    model.script([Reply::text("dear").usage(Some((1_000, 100))), Reply::text("dear").usage(Some((699, 1)))]);
    daemon.say(&agent, "x");
    assert_eq!(model.requests()[0]["max_tokens"], 100, "the bound that the reservation rests on");
    assert_eq!(budget(&daemon)["status"], "ok");
    daemon.say(&agent, "x");
    assert_eq!(budget(&daemon)["status"], "warning", "1,800 of 2,200");
    let asked = model.requests().len();
    for _ in 0..2 {
        let refused = send(&daemon, &agent);
        let body = refused.expect(429);
        assert_eq!(
            (&body["code"], &body["scope"], &body["period"]),
            (&json!("budget_exceeded"), &json!("global"), &json!("daily"))
        );
        assert_eq!((&body["limit_usd"], &body["spent_usd"]), (&json!(0.002_2), &json!(0.001_8)));
        assert!(text(&body["reset_at"]).ends_with("T00:00:00.000Z"), "{body}");
        assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() <= 86_400);
    }
    let completion = json!({ "model": "a", "messages": [{ "role": "user", "content": "x" }] });
    let refused = daemon.post("/v1/chat/completions", &completion);
    assert_eq!(
        (refused.header("x-should-retry"), &refused.expect(429)["type"]),
        (Some("false"), &json!("rate_limit_error"))
    );
    daemon.post(&format!("/api/agents/{agent}/message/stream"), &json!({ "message": "x" })).expect(429);
    let mut socket = Socket::open(&daemon, &agent);
    socket.say("x");
    let told = socket.until("error").pop().expect("an error");
    assert!(text(&told["content"]).contains("daily budget of all agents"), "{told}");
    assert_eq!(model.requests().len(), asked, "no model was asked");
    assert_eq!(budget(&daemon)["status"], "exceeded");
    daemon.restart();
    send(&daemon, &agent).expect(429);
    // A higher limit lets it go on at once.
    let set = daemon.put("/api/budget", &json!({ "daily_limit_usd": 1.0 })).expect(200);
    assert_eq!((&set["daily_limit_usd"], &set["status"]), (&json!(1.0), &json!("ok")));
    send(&daemon, &agent).expect(200);
    assert!(daemon.get("/api/metrics").text().contains("agentsvc_budget_refusals_total"));
}

#[test]
fn limits_of_an_agent_persist_and_bind_it_alone() {
    let model = Model::start();
    let mut daemon = daemon(&model, "");
    let (poor, rich) = (daemon.agent_with("poor", ""), daemon.agent_with("rich", ""));
    let path = format!("/api/budget/agents/{poor}");
    let set = daemon
        .put(&format!("/api/budget/agents/{poor}"), &json!({ "daily_limit_usd": 0.001, "monthly_limit_usd": 5 }))
        .expect(200);
    assert_eq!(
        (&set["agent_id"], &set["agent_name"], &set["daily_limit_usd"]),
        (&json!(poor), &json!("poor"), &json!(0.001))
    );
    let body = send(&daemon, &poor).expect(429);
    assert_eq!(body["scope"], json!(poor));
    send(&daemon, &rich).expect(200);
    daemon.restart();
    let found = daemon.get(&path).expect(200);
    assert_eq!(
        (&found["daily_limit_usd"], &found["monthly_limit_usd"], &found["status"]),
        (&json!(0.001), &json!(5.0), &json!("exceeded"))
    );
    send(&daemon, &poor).expect(429);
    let set = daemon.put(&path, &json!({ "daily_limit_usd": null })).expect(200);
    assert_eq!(
        (&set["daily_limit_usd"], &set["monthly_limit_usd"]),
        (&json!(0.0), &json!(5.0)),
        "null is none; what is left out stays"
    );
    send(&daemon, &poor).expect(200);
    let list = daemon.get("/api/budget/agents").expect(200);
    send(&daemon, &poor).expect(200);
    let later = daemon.get("/api/budget/agents").expect(200);
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(
        (&later[0]["agent_name"], &later[1]["agent_name"]),
        (&json!("poor"), &json!("rich")),
        "ranked by spending"
    );
    assert_eq!((&later[0]["total_cost_usd"], &later[0]["today_cost_usd"]), (&json!(0.000_036), &json!(0.000_036)));
}

#[test]
fn what_is_no_limit_and_no_agent_is_refused() {
    let daemon = Daemon::start();
    for (key, value) in [("daily_limit_usd", json!(-1)), ("monthly_limit_usd", json!(1e13))] {
        daemon.put("/api/budget", &json!({ key: value })).refused_field(400, key);
    }
    daemon.put("/api/budget", &json!({ "daily_limit_usd": "ten" })).refused(400);
    let nobody = "/api/budget/agents/00000000-0000-0000-0000-000000000001";
    daemon.get(nobody).refused(404);
    daemon.put(nobody, &json!({})).refused(404);
    daemon.get("/api/budget/agents/x").refused(400);
}

#[test]
fn tokens_of_an_hour_are_bounded_by_the_manifest() {
    clear_of_the_hour(ROOM);
    let daemon = Daemon::start();
    let builtin = "[model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n";
    let agent = daemon.agent_with("a", &format!("{builtin}[limits]\nhourly_token_limit = 1\n"));
    send(&daemon, &agent).expect(200);
    let body = send(&daemon, &agent).expect(429);
    assert_eq!(
        (&body["code"], &body["period"], &body["limit_tokens"]),
        (&json!("budget_exceeded"), &json!("hourly"), &json!(1))
    );
    assert_eq!(daemon.get(&format!("/api/budget/agents/{agent}")).expect(200)["hourly_token_limit"], 1);
    daemon
        .post("/api/agents", &json!({ "manifest_toml": "name = \"b\"\n[limits]\ndaily_limit_usd = -3\n" }))
        .refused(400);
}

#[test]
fn days_and_months_are_bounded_by_configuration_and_manifest() {
    let model = Model::start();
    for (budget, limits, period, is_global) in [
        ("daily_limit_usd = 0.0005", "", "daily", true),
        ("monthly_limit_usd = 0.0005", "", "monthly", true),
        ("agent_daily_limit_usd = 0.0005", "", "daily", false),
        ("agent_monthly_limit_usd = 0.0005", "", "monthly", false),
        ("", "daily_limit_usd = 0.0005", "daily", false),
        ("", "monthly_limit_usd = 0.0005", "monthly", false),
        ("agent_daily_limit_usd = 9", "daily_limit_usd = 0.0005", "daily", false),
        ("agent_daily_limit_usd = 0.0005", "daily_limit_usd = 9.0", "daily", false),
    ] {
        let daemon = daemon(&model, &format!("{budget}\n"));
        let agent = daemon.agent_with("a", &format!("[limits]\n{limits}\n"));
        let body = send(&daemon, &agent).expect(429);
        let scope = if is_global { "global" } else { &*agent };
        assert_eq!((&body["scope"], &body["period"]), (&json!(scope), &json!(period)), "{budget} {limits}");
        assert_eq!((&body["limit_usd"], &body["spent_usd"]), (&json!(0.000_5), &json!(0.0)), "the lower one holds");
        let begins = if period == "monthly" { "-01T00:00:00.000Z" } else { "T00:00:00.000Z" };
        assert!(text(&body["reset_at"]).ends_with(begins), "{body}");
    }
    assert!(model.requests().is_empty(), "no model was asked");
}

#[test]
fn tokens_of_an_hour_are_bounded_by_the_api_for_one_and_for_all() {
    clear_of_the_hour(ROOM);
    let daemon = Daemon::start();
    let (one, other) = (daemon.agent("one"), daemon.agent("other"));
    let path = format!("/api/budget/agents/{one}");
    assert_eq!(daemon.put(&path, &json!({ "hourly_token_limit": 1 })).expect(200)["hourly_token_limit"], 1);
    send(&daemon, &one).expect(200);
    assert_eq!(send(&daemon, &one).expect(429)["scope"], json!(one));
    send(&daemon, &other).expect(200);
    daemon.put("/api/budget", &json!({ "hourly_token_limit": 2 })).expect(200);
    let body = send(&daemon, &other).expect(429);
    assert_eq!((&body["scope"], &body["period"]), (&json!("global"), &json!("hourly")));
    let quota = daemon.get("/api/usage/summary").expect(200)["quota"].clone();
    assert_eq!((&quota["hourly_token_limit"], &quota["hourly_tokens_used"]), (&json!(2), &body["used_tokens"]));
    assert_eq!(quota["hourly_reset_at"], body["reset_at"]);
    daemon.put("/api/budget", &json!({ "hourly_token_limit": null })).expect(200);
    send(&daemon, &other).expect(200);
    let entries = daemon.get("/api/audit/recent").expect(200)["entries"].clone();
    let set = entries.as_array().unwrap().iter().filter(|entry| entry["event_type"] == "budget_set");
    let set: Vec<_> = set.map(|entry| (&entry["agent_id"], &entry["actor"])).collect();
    let (nobody, api) = (Value::Null, json!("api"));
    assert_eq!(set, [(&nobody, &api), (&nobody, &api), (&json!(one), &api)], "who changed which limit is on record");
}

#[test]
fn slots_without_budget_are_on_record_and_later_ones_run() {
    let model = Model::start();
    let daemon = daemon(&model, "daily_limit_usd = 0.0005\n");
    let agent = daemon.agent_with("a", "");
    let body = json!({ "agent_id": agent, "cron": "every 1s", "prompt": "tick", "enabled": true });
    let path = format!("/api/schedules/{}", text(&daemon.post("/api/schedules", &body).expect(201)["id"]));
    let read = || daemon.get(&path).expect(200);
    let count = |now: &Value, key: &str| now["outcomes"][key].as_u64().expect("a count");
    let refused = until("a slot finds no budget", || Some(read()).filter(|now| count(now, "over_budget") > 0));
    assert_eq!((&refused["last_result"]["status"], count(&refused, "completed")), (&json!("over_budget"), 0));
    assert_eq!(daemon.poke(&format!("{path}/run")).expect(429)["code"], "budget_exceeded");
    assert!(model.requests().is_empty(), "no model was asked");
    daemon.put("/api/budget", &json!({ "daily_limit_usd": 0 })).expect(200);
    until("slots run again", || (count(&read(), "completed") > 0).then_some(()));
    daemon.put(&path, &json!({ "enabled": false })).expect(200);
    let last = until("nothing waits", || Some(read()).filter(|now| now["open_runs"] == 0 && now["waiting"] == 0));
    assert_eq!(count(&last, "fired"), count(&last, "completed") + count(&last, "failed"), "each has its end");
}

#[test]
fn a_limit_of_less_than_a_micro_dollar_is_a_limit() {
    let model = Model::start();
    let daemon = daemon(&model, "");
    let agent = daemon.agent_with("a", "");
    let set = daemon.put("/api/budget", &json!({ "daily_limit_usd": 1e-9 })).expect(200);
    assert_eq!(set["daily_limit_usd"], 0.000_001);
    send(&daemon, &agent).expect(429);
}

#[test]
fn who_finds_the_money_reserved_waits_for_it() {
    let model = Model::start();
    let daemon = daemon(&model, &format!("daily_limit_usd = {}\n", 1.5 * WORST_USD));
    let agent = daemon.agent_with("a", "");
    model.hold();
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4_u128)
            .map(|n| {
                let (client, agent) = (daemon.client(), &agent);
                scope.spawn(move || {
                    let session = uuid::Uuid::from_u128(n + 1).to_string();
                    let body = json!({ "message": "x", "session_id": session });
                    client.post(&format!("/api/agents/{agent}/message"), &body).status
                })
            })
            .collect();
        until("one call is out and the others wait", || {
            let page = daemon.get("/api/metrics").text();
            (model.waiting() == 1 && page.contains("agentsvc_budget_waiting 3\n")).then_some(())
        });
        let reserved = budget(&daemon)["reserved_usd"].as_f64().unwrap();
        assert!((reserved - WORST_USD).abs() < 1e-9);
        model.release();
        assert!(asked.into_iter().all(|asked| asked.join().unwrap() == 200), "all are answered");
    });
    assert_eq!(budget(&daemon)["reserved_usd"], 0.0);
}

#[test]
fn a_test_of_a_provider_reserves_too_and_is_refused_before_the_provider_is_asked() {
    let model = Model::start();
    let spare = format!(
        "daily_limit_usd = {}\n[providers.spare]\nbase_url = \"{}\"\napi_key_env = \"TEST_MODEL_KEY\"\ncontext_tokens = 1000\n\
         [prices.\"spare/echo-1\"]\ninput_per_m = 1.0\noutput_per_m = 1.0\n",
        1.5 * WORST_USD,
        model.server.base_url()
    );
    let mut daemon = daemon(&model, &spare);
    let path = "/api/providers/spare/test?model=echo-1";
    model.hold();
    std::thread::scope(|scope| {
        let client = daemon.client();
        let asked = scope.spawn(move || client.poke(path).status);
        until("the test is out", || (model.waiting() == 1).then_some(()));
        // A context of 1,000 tokens, and the shortest answer that there is.
        let reserved = budget(&daemon)["reserved_usd"].as_f64().unwrap();
        assert!(reserved > 0.001 && reserved < WORST_USD, "{reserved}");
        let refused = daemon.poke(path);
        assert_eq!(refused.expect(429)["code"], "budget_exceeded");
        assert_eq!(refused.header("retry-after"), Some("1"), "what is reserved comes back soon");
        model.release();
        assert_eq!(asked.join().unwrap(), 200);
    });
    assert_eq!((&budget(&daemon)["reserved_usd"], &budget(&daemon)["status"]), (&json!(0.0), &json!("ok")));
    // Of 1,100 tokens that the provider reports no more is believed than a context and the bytes that came.
    model.script([Reply::text("dear").usage(Some((1_000, 100)))]);
    daemon.poke(path).expect(200);
    let asked = model.requests().len();
    for restarted in [false, true] {
        if restarted {
            daemon.restart();
        }
        let refused = daemon.poke(path);
        let body = refused.expect(429);
        assert_eq!(
            (&body["code"], &body["scope"], &body["period"]),
            (&json!("budget_exceeded"), &json!("global"), &json!("daily"))
        );
        assert_eq!((&body["limit_usd"], &body["spent_usd"]), (&json!(0.001_65), &json!(0.001_022)));
        assert!(text(&body["reset_at"]).ends_with("T00:00:00.000Z"), "{body}");
        assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() <= 86_400);
    }
    assert_eq!(model.requests().len(), asked, "the provider was not asked");
    daemon.put("/api/budget", &json!({ "daily_limit_usd": 1.0 })).expect(200);
    daemon.poke(path).expect(200);
}

#[test]
fn a_provider_that_lies_about_its_usage_uses_no_budget_up_and_an_operator_corrects_what_was_booked() {
    let model = Model::start();
    let daemon = daemon(&model, "daily_limit_usd = 1\n");
    let agent = daemon.agent_with("a", "");
    model.script([Reply::text("lies").usage(Some((1 << 62, 1 << 62)))]);
    daemon.say(&agent, "x");
    let found = budget(&daemon);
    assert_eq!((&found["today_spent_usd"], &found["status"]), (&json!(WORST_USD), &json!("ok")));
    assert_eq!(daemon.say(&agent, "x")["response"], "echo: x");
    let trail = daemon.get("/api/audit/recent?limit=50").expect(200)["entries"].as_array().cloned().unwrap();
    assert_eq!(trail.iter().filter(|entry| entry["event_type"] == "usage_clipped").count(), 1);
    let wrong = json!({ "today_spent_usd": -1.0, "reason": "x" });
    daemon.post("/api/budget/correct", &wrong).refused_field(400, "today_spent_usd");
    let body = json!({ "today_spent_usd": 0.25, "agent_id": agent, "reason": "the invoice says so" });
    let corrected = daemon.post("/api/budget/correct", &body).expect(200);
    assert_eq!((&corrected["today_spent_usd"], &corrected["agent_id"]), (&json!(0.25), &json!(agent)));
    assert_ne!(budget(&daemon)["today_spent_usd"], json!(0.25), "the global budget is its own");
    let trail = daemon.get("/api/audit/recent?limit=5").expect(200)["entries"].as_array().cloned().unwrap();
    let details = text(&trail[0]["details"]);
    assert!(trail[0]["event_type"] == "budget_corrected" && details.contains("the invoice says so"), "{details}");
}

#[test]
fn an_answer_whose_tokens_nobody_has_counted_is_booked_by_its_length() {
    let model = Model::start();
    let daemon = daemon(&model, &format!("daily_limit_usd = {}\n", 7.0 * WORST_USD));
    let answer = |usage: Value| {
        let choice = json!({ "message": { "content": "x".repeat(4_000) }, "finish_reason": "stop" });
        json!({ "choices": [choice], "usage": usage }).to_string()
    };
    let free = answer(json!(null));
    let bodies = [
        free.clone(),
        answer(json!({ "prompt_tokens": "9", "completion_tokens": 9 })),
        answer(json!({ "prompt_tokens": -1, "completion_tokens": -1 })),
        answer(json!({ "prompt_tokens": 9, "completion_tokens": 0 })),
        "no JSON".repeat(600),
    ];
    let ask = |name: &str, body: &str| {
        model.script([Reply::raw(200, &[("content-type", "application/json")], body)]);
        send(&daemon, &daemon.agent_with(name, "")).status
    };
    for (n, body) in bodies.iter().enumerate() {
        let before = budget(&daemon)["today_spent_usd"].as_f64().unwrap();
        let status = ask(&format!("a{n}"), body);
        assert_eq!(status == 200, n < 4, "{status}: what can be read is answered");
        let spent = budget(&daemon)["today_spent_usd"].as_f64().unwrap() - before;
        assert!(spent > 0.000_9 && spent < 1.01 * WORST_USD, "{spent} for {:.80}", body);
    }
    // Who asks on and on is stopped.
    let statuses: Vec<u16> = (0..4).map(|n| ask(&format!("b{n}"), &free)).collect();
    assert_eq!((statuses[0], statuses[3]), (200, 429), "{statuses:?}");
}

#[test]
fn what_is_sent_was_reserved_and_an_honest_bill_above_it_stops_the_next_call() {
    let model = Model::start();
    let daemon = daemon(&model, "daily_limit_usd = 0.0035\n");
    // An answer longer than the context: 1,000 tokens each, 0.002 dollars.
    let ask = |name: &str, message: &str| {
        let agent =
            daemon.agent_with(name, "[model]\nprovider = \"openai\"\nmodel = \"echo-1\"\nmax_tokens = 128000\n");
        daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": message }))
    };
    model.script([Reply::text("ok").usage(Some((1_000, 1)))]);
    ask("dense", &"\u{10000}".repeat(1_000)).expect(200);
    model.script([Reply::text("ok").usage(Some((1_800, 1_000)))]);
    ask("letters", &"qx".repeat(2_000)).expect(200);
    let asked = model.requests();
    let content = |at: usize| text(&asked[at]["messages"].as_array().unwrap().last().unwrap()["content"]).to_owned();
    assert!(content(0).len() < 1_000, "a token for each byte: {}", content(0).len());
    assert!(content(1).len() > 1_800, "{}", content(1).len());
    assert!(asked.iter().all(|asked| asked["max_tokens"] == 1_000), "what was reserved");
    for n in 0..3 {
        let body = ask(&format!("more{n}"), "x").expect(429);
        assert_eq!((&body["code"], &body["spent_usd"]), (&json!("budget_exceeded"), &json!(0.003_801)));
    }
    assert_eq!(model.requests().len(), 2, "no more than one call above the limit");
    assert!(daemon.get("/api/metrics").text().contains("agentsvc_usage_clipped_total 0"));
}

#[test]
fn a_model_without_a_price_is_refused_while_a_limit_is_in_force() {
    let model = Model::start();
    let spare =
        format!("[providers.spare]\nbase_url = \"{}\"\napi_key_env = \"TEST_MODEL_KEY\"\n", model.server.base_url());
    let daemon = daemon(&model, &format!("daily_limit_usd = 1\n{spare}"));
    let agent = daemon.agent_with("a", "[model]\nprovider = \"spare\"\nmodel = \"nobody-knows\"\n");
    let refused = send(&daemon, &agent).expect(409);
    assert_eq!(refused["code"], "price_unknown");
    assert!(text(&refused["error"]).contains("spare/nobody-knows"), "{refused}");
    let path = "/api/providers/spare/test?model=nobody-knows";
    assert_eq!(daemon.poke(path).expect(409)["code"], "price_unknown");
    assert!(model.requests().is_empty());
    daemon.put("/api/budget", &json!({ "daily_limit_usd": 0 })).expect(200);
    send(&daemon, &agent).expect(200);
    daemon.poke(path).expect(200);
}
