//! What happened by minute, hour and day: counted like the model server counted, there after a kill, a snapshot and a backup,
//! and asked for in bounds (docs/api.md, History).

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::clear_of_the_hour;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;

/// 11 tokens in at a dollar and 7 out at two: 25 micro-dollars.
const PRICES: &str = "[prices.\"openai/*\"]\ninput_per_m = 1.0\noutput_per_m = 2.0\n";

fn points(client: &Client, query: &str) -> Vec<Value> {
    let body = client.get(&format!("/api/history{query}")).expect(200);
    let points = body["points"].as_array().expect("points").clone();
    assert_eq!(body["total"], points.len());
    points
}

/// The sum of a figure over all points.
fn sum(points: &[Value], figure: &str) -> f64 {
    points.iter().map(|point| point[figure].as_f64().unwrap_or_else(|| panic!("{figure}: {point}"))).sum()
}

fn sums(client: &Client, query: &str) -> Vec<f64> {
    let points = points(client, query);
    let figures = [
        "turns",
        "turns_completed",
        "turns_failed",
        "model_calls",
        "model_calls_failed",
        "tool_calls",
        "tool_calls_failed",
        "input_tokens",
        "output_tokens",
        "client_messages",
    ];
    figures.iter().map(|figure| sum(&points, figure)).collect()
}

#[test]
fn what_happened_is_counted_once_and_is_there_after_a_kill() {
    let model = Model::start();
    clear_of_the_hour(Duration::from_secs(60));
    let mut daemon = Daemon::with(&format!("{}{PRICES}", model.config()));
    let before = points(&daemon, "");
    assert!((24..=25).contains(&before.len()), "{}", before.len());
    assert!(before.iter().all(|point| point["turns"] == 0 && point["turn_ms_average"].is_null()), "{before:?}");
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    model.script([Reply::calls(&[("c1", "system_time", "{}"), ("c2", "no_such_tool", "{}")]), Reply::text("noon")]);
    daemon.say(&agent, "what time is it");
    model.fail(401);
    daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "x" })).refused(500);
    let expected = [2.0, 1.0, 1.0, 3.0, 1.0, 2.0, 1.0, 22.0, 14.0, 2.0];
    assert_eq!(sums(&daemon, ""), expected);
    for _ in 0..2 {
        daemon.restart();
        for query in ["", "?step=minute", "?step=day"] {
            assert_eq!(sums(&daemon, query), expected, "{query}");
        }
    }
    let hours = points(&daemon, "?step=hour");
    let now = hours.iter().find(|point| point["turns"] == 2).expect("both turns are in one hour");
    assert!((now["cost_usd"].as_f64().unwrap() - 0.000_050).abs() < 1e-9, "{now}");
    assert!(now["turn_ms_average"].is_u64() && now["turn_ms_p95"].is_u64(), "{now}");
    assert!(text(&now["from"]).ends_with(":00:00.000Z"), "{now}");
    // A range of before has nothing.
    let past = points(&daemon, "?from=2020-01-01T00:00:00Z&to=2020-01-31T00:00:00Z&step=day");
    assert_eq!((past.len(), sum(&past, "turns")), (30, 0.0));
    let shown = daemon.cli(&["history", "show", "--step", "day", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["points"].as_array().unwrap().last().unwrap()["turns"], 2);
    let shown = String::from_utf8(daemon.cli(&["history", "show"]).stdout).unwrap();
    assert!(shown.contains("TURNS") && shown.contains("MODEL CALLS"), "{shown}");
}

#[test]
fn a_snapshot_has_the_history_of_its_moment() {
    clear_of_the_hour(Duration::from_secs(60));
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    daemon.say(&agent, "one");
    let then = sums(&daemon, "");
    let snapshot = text(&daemon.post("/api/world/snapshots", &json!({ "label": "then" })).expect(201)["id"]);
    daemon.say(&agent, "two");
    assert_ne!(sums(&daemon, ""), then);
    daemon.poke(&format!("/api/world/snapshots/{snapshot}/restore")).expect(200);
    assert_eq!(sums(&daemon, ""), then);
    daemon.say(&agent, "three");
    assert_eq!(sums(&daemon, "")[0], then[0] + 1.0, "it counts on");
}

#[test]
fn a_range_is_bounded_and_what_is_wrong_is_named() {
    let daemon = Daemon::start();
    for (query, field) in [
        ("step=week", "step"),
        ("step=", "step"),
        ("from=yesterday", "from"),
        ("from=2026-01-01", "from"),
        ("to=x", "to"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z&step=minute", "step"),
        ("from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z&step=day", "step"),
    ] {
        daemon.get(&format!("/api/history?{query}")).refused_field(400, field);
    }
    let day = "from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&step=minute";
    assert_eq!(points(&daemon, &format!("?{day}")).len(), 1_440);
    let odd = "from=0000-01-01T00:00:00Z&to=0000-01-02T00:00:00Z";
    assert_eq!(points(&daemon, &format!("?{odd}")).len(), 24);
}
