//! Usage: totals, days, models and the CSV, equal to what the scripted model server counted (spec 3, Usage).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{clear_of_the_hour, until};

/// 11 tokens in at a dollar and 7 out at two: 25 micro-dollars.
const PRICES: &str = "[prices.\"openai/*\"]\ninput_per_m = 1.0\noutput_per_m = 2.0\ncached_input_per_m = 0.5\n";

fn daemon(model: &Model, more: &str) -> Daemon {
    // What is looked at is of this hour and of this day.
    clear_of_the_hour(Duration::from_secs(60));
    Daemon::with(&format!("{}{PRICES}{more}", model.config()))
}

fn usage(client: &Client, query: &str) -> Value {
    client.get(&format!("/api/usage{query}")).expect(200)
}

fn today(client: &Client) -> String {
    let days = usage(client, "/daily?days=1");
    text(&days["days"][0]["date"])
}

fn close(value: &Value, usd: f64) -> bool {
    value.as_f64().is_some_and(|found| (found - usd).abs() < 1e-9)
}

/// A small reader of RFC 4180: rows of fields.
fn csv(body: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut rest = body.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '"' if quoted && rest.peek() == Some(&'"') => field.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted && rest.peek() == Some(&'\n') => {
                rest.next();
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    assert!(field.is_empty() && row.is_empty(), "every line has its end");
    rows
}

#[test]
fn every_kind_of_call_is_counted_and_priced() {
    let model = Model::start();
    let mut daemon = daemon(&model, "");
    let (a, b) = (daemon.agent_with("a", ""), daemon.agent_with("b", ""));
    let answer = daemon.say(&a, "one");
    assert!(close(&answer["cost_usd"], 0.000_025), "{answer}");
    let trace = daemon.get(&format!("/api/agents/{a}/traces")).expect(200)["traces"][0].clone();
    assert!(close(&trace["cost_usd"], 0.000_025) && close(&trace["steps"][0]["cost_usd"], 0.000_025), "{trace}");
    let session = text(&answer["session_id"]);
    let exported = daemon.get(&format!("/api/agents/{a}/sessions/{session}/trajectory")).expect(200);
    let told = &exported["messages"][1]["usage"]["cost_usd"];
    assert!(close(told, 0.000_025), "{exported}");
    // Streamed, through the OpenAI endpoint, with a tool, and one that fails.
    daemon.post(&format!("/api/agents/{b}/message/stream"), &json!({ "message": "two" }));
    let done =
        daemon.post("/v1/chat/completions", &json!({ "model": "a", "messages": [{ "role": "user", "content": "x" }] }));
    done.expect(200);
    model.script([Reply::calls(&[("c", "system_time", "{}")]), Reply::text("it is late").usage(Some((100, 10)))]);
    daemon.say(&a, "three");
    model.script([Reply::error(400, "no")]);
    daemon.post(&format!("/api/agents/{a}/message"), &json!({ "message": "four" })).refused(500);
    let (input, output) = (4 * 11 + 100, 4 * 7 + 10);
    let cost = f64::from(input + 2 * output) / 1e6;
    for restarted in [false, true] {
        let total = usage(&daemon, "");
        assert_eq!((&total["period"], &total["request_count"]), (&json!("day"), &json!(6)), "{total}");
        assert_eq!((&total["total_input_tokens"], &total["total_output_tokens"]), (&json!(input), &json!(output)));
        assert!(close(&total["total_cost_usd"], cost), "{total}");
        assert_eq!(total["active_agents"], 2);
        for period in ["hour", "week", "month"] {
            assert_eq!(usage(&daemon, &format!("?period={period}"))["request_count"], 6);
        }
        let models = usage(&daemon, "/by-model")["models"].clone();
        assert_eq!(models.as_array().unwrap().len(), 1);
        let row = &models[0];
        assert_eq!(
            (&row["provider"], &row["model"], &row["request_count"]),
            (&json!("openai"), &json!("echo-1"), &json!(6))
        );
        let summary = usage(&daemon, "/summary");
        assert_eq!((&summary["today"]["requests"], &summary["today"]["input_tokens"]), (&json!(6), &json!(input)));
        assert_eq!(summary["quota"]["hourly_token_limit"], 0);
        assert_eq!(summary["quota"]["hourly_tokens_used"], input + output);
        let metrics = daemon.get(&format!("/api/agents/{b}/metrics")).expect(200);
        assert!(close(&metrics["cost_usd"], 0.000_025), "{metrics}");
        if !restarted {
            daemon.restart();
        }
    }
}

#[test]
fn a_model_without_a_price_costs_nothing_and_is_counted() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let (priced, free) = (daemon.agent_with("a", ""), daemon.agent("b"));
    assert!(close(&daemon.say(&priced, "x")["cost_usd"], 0.0));
    daemon.say(&free, "x");
    // The built-in model is known to be free.
    until("the call is in the metrics", || {
        let page = daemon.get("/api/metrics").text();
        page.contains("agentsvc_model_calls_unpriced_total 1\n").then_some(())
    });
    let models = usage(&daemon, "/by-model")["models"].clone();
    assert_eq!(models.as_array().unwrap().len(), 2);
}

#[test]
fn cached_tokens_have_their_own_price() {
    let model = Model::start();
    let daemon = daemon(&model, "");
    let agent = daemon.agent_with("a", "");
    let body = json!({
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 1, "prompt_tokens_details": { "cached_tokens": 800 } },
    });
    model.script([Reply::raw(200, &[("content-type", "application/json")], &body.to_string())]);
    let answer = daemon.say(&agent, "x");
    assert!(close(&answer["cost_usd"], 0.000_602), "200 at one, 800 at a half, 1 at two: {answer}");
}

#[test]
fn dates_are_checked_and_the_wrong_one_is_named() {
    let daemon = Daemon::start();
    for route in ["", "/summary", "/by-model", "/daily", "/export"] {
        for (query, field) in [
            ("start_date=2026-1-5", "start_date"),
            ("start_date=", "start_date"),
            ("end_date=yesterday", "end_date"),
            ("end_date=2026-02-30", "end_date"),
            ("start_date=2026-02-02&end_date=2026-02-01", "end_date"),
        ] {
            daemon.get(&format!("/api/usage{route}?{query}")).refused_field(400, field);
        }
        let same = daemon.get(&format!("/api/usage{route}?start_date=2026-02-01&end_date=2026-02-01"));
        assert_eq!(same.status, 200, "{route}");
    }
    for (query, field) in [
        ("daily?days=367", "days"),
        ("daily?days=99999999999999999999", "days"),
        ("daily?days=0", "days"),
        ("daily?days=-1", "days"),
        ("daily?days=x", "days"),
        ("daily?days=3&start_date=2026-01-01", "days"),
        ("daily?days=3&end_date=2026-01-01", "days"),
        ("daily?start_date=2001-01-01&end_date=2026-01-01", "start_date"),
        ("export?format=json", "format"),
    ] {
        daemon.get(&format!("/api/usage/{query}")).refused_field(400, field);
    }
    let refused = daemon.get("/api/usage/daily?days=400").refused(400);
    assert!(refused.contains("/api/usage/export"), "{refused}");
    daemon.get("/api/usage?period=year").refused_field(400, "period");
    daemon.get("/api/usage?period=day&start_date=2026-01-01").refused_field(400, "period");
    assert_eq!(daemon.get("/api/usage/by-model").expect(200)["models"], json!([]));
    assert!(daemon.get("/api/usage/summary").expect(200)["range"].is_null());
    assert_eq!(usage(&daemon, "/daily")["days"].as_array().unwrap().len(), 7);
    assert_eq!(usage(&daemon, "/daily?days=366")["total"], 366);
}

#[test]
fn ranges_hold_whole_days_at_both_ends() {
    let model = Model::start();
    let daemon = daemon(&model, "");
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "x");
    let today = today(&daemon);
    let range = format!("start_date={today}&end_date={today}");
    let total = usage(&daemon, &format!("?{range}"));
    assert_eq!(
        (&total["period"], &total["request_count"], &total["active_agents"]),
        (&json!("range"), &json!(1), &json!(1))
    );
    assert_eq!(usage(&daemon, &format!("/by-model?{range}"))["models"][0]["request_count"], 1);
    assert_eq!(usage(&daemon, &format!("/summary?{range}"))["range"]["requests"], 1);
    let days = usage(&daemon, &format!("/daily?{range}"));
    assert_eq!((&days["total"], &days["days"][0]["request_count"]), (&json!(1), &json!(1)));
    let before = "start_date=2020-01-01&end_date=2020-01-31";
    assert_eq!(usage(&daemon, &format!("?{before}"))["request_count"], 0);
    assert_eq!(usage(&daemon, &format!("/by-model?{before}"))["models"], json!([]));
    assert_eq!(usage(&daemon, &format!("/daily?{before}"))["total"], 31);
    assert_eq!(csv(&daemon.get(&format!("/api/usage/export?{before}")).text()).len(), 1, "only the header");
    assert_eq!(csv(&daemon.get(&format!("/api/usage/export?start_date={today}")).text()).len(), 2);
}

#[test]
fn the_export_is_a_table_that_survives_hostile_names() {
    let model = Model::start();
    let daemon = daemon(&model, "");
    let names = ["=1+2", "a,b \\\"c\\\"", "@sum", "-x", "+y", "plain"];
    for name in names {
        let agent = daemon.agent_with(name, "");
        daemon.say(&agent, "hello");
        daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    }
    let reply = daemon.get("/api/usage/export?format=csv");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/csv; charset=utf-8")));
    assert_eq!(reply.header("content-disposition"), Some("attachment; filename=\"usage.csv\""));
    let rows = csv(&reply.text());
    let columns = "timestamp agent_id agent_name billed_agent_id provider model input_tokens output_tokens cost_usd \
                   tool_calls latency_ms user_id channel session_id";
    assert_eq!(rows[0], columns.split(' ').collect::<Vec<_>>());
    let found: Vec<&str> = rows[1..].iter().map(|row| row[2].as_str()).collect();
    assert_eq!(found, ["'=1+2", "a,b \"c\"", "'@sum", "'-x", "'+y", "plain"], "the oldest first; the killed are there");
    for row in &rows[1..] {
        assert_eq!((row.len(), &row[1], row[4].as_str(), row[5].as_str()), (14, &row[3], "openai", "echo-1"));
        assert_eq!(
            (&*row[6], &*row[7], &*row[8], &*row[9], &*row[11], &*row[12]),
            ("11", "7", "0.000025", "0", "", "api")
        );
    }
    let named = daemon.get("/api/usage/export?start_date=2026-01-01&end_date=2026-01-31");
    assert_eq!(
        named.header("content-disposition"),
        Some("attachment; filename=\"usage-2026-01-01-to-2026-01-31.csv\"")
    );
}

#[test]
fn totals_equal_what_the_model_server_counted_over_faults_and_pages() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}{PRICES}", model.config()));
    // Faults: some tries fail and are made again, some calls fail for good, some answers ask for a tool.
    model.server.respond(|request| {
        let heard = request.last_user();
        let number: u64 = heard.trim_start_matches('m').parse().unwrap_or(0);
        match number % 7 {
            3 => Reply::error(400, "no"),
            _ => Reply::text("ok").usage(Some((100 + number, 1 + number % 5))),
        }
    });
    let agents: Vec<String> = (0..4).map(|n| daemon.agent_with(&format!("a{n}"), "")).collect();
    let calls = 700_u64;
    std::thread::scope(|scope| {
        for (n, agent) in agents.iter().enumerate() {
            let client = daemon.client();
            scope.spawn(move || {
                for number in (n as u64..calls).step_by(4) {
                    let session = uuid::Uuid::from_u128(u128::from(number) + 1).to_string();
                    let body = json!({ "message": format!("m{number}"), "session_id": session });
                    let reply = client.post(&format!("/api/agents/{agent}/message"), &body);
                    assert_eq!(reply.status, if number % 7 == 3 { 500 } else { 200 });
                }
            });
        }
    });
    let answered = (0..calls).filter(|number| number % 7 != 3);
    let (input, output) = answered.fold((0, 0), |(i, o), number| (i + 100 + number, o + 1 + number % 5));
    let total = usage(&daemon, "");
    assert_eq!(total["request_count"], calls);
    assert_eq!((&total["total_input_tokens"], &total["total_output_tokens"]), (&json!(input), &json!(output)));
    assert!(close(&total["total_cost_usd"], (input + 2 * output) as f64 / 1e6));
    let rows = csv(&daemon.get("/api/usage/export").text());
    assert_eq!(rows.len() as u64, calls + 1, "more than one page");
    let mut by_agent = BTreeMap::<&str, u64>::new();
    for row in &rows[1..] {
        *by_agent.entry(&row[1]).or_default() += row[6].parse::<u64>().unwrap();
    }
    assert_eq!(by_agent.values().sum::<u64>(), input);
    assert!(rows[1..].is_sorted_by_key(|row| row[0].clone()));
    for agent in &agents {
        let detail = daemon.detail(agent);
        assert_eq!(detail["input_tokens"], by_agent[agent.as_str()]);
    }
}
