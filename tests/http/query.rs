//! Queries over the world: `GET /api/world/query`, its schema and its streams, and the command line.

use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply;
use crate::support::model::Model;
use crate::support::stream::{Event, Events};
use crate::support::{PATIENCE, until};

/// A text as a value of a URL's query.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn send(daemon: &Daemon, query: &str) -> Reply {
    daemon.get(&format!("/api/world/query?q={}", encoded(query)))
}

#[track_caller]
fn ask(daemon: &Daemon, query: &str) -> Value {
    let answer = send(daemon, query).expect(200);
    for key in ["columns", "rows", "total", "looked_at", "complete", "step", "took_ms", "at"] {
        assert!(answer.get(key).is_some(), "{query}: no {key}: {answer}");
    }
    answer
}

#[track_caller]
fn rows(daemon: &Daemon, query: &str) -> Value {
    ask(daemon, query)["rows"].clone()
}

/// A daemon without the assistant, with three agents.
fn harness() -> (Daemon, Vec<String>) {
    let daemon = Daemon::start();
    for agent in daemon.get("/api/agents").expect(200).as_array().unwrap() {
        daemon.delete(&format!("/api/agents/{}", text(&agent["id"]))).expect(200);
    }
    let agents = ["ops-one", "ops-two", "writer"].map(|name| daemon.agent(name));
    (daemon, agents.to_vec())
}

#[test]
fn entities_are_found_sorted_and_counted() {
    let (daemon, agents) = harness();
    daemon.say(&agents[0], "hello");
    let answer = ask(&daemon, "agents where state = \"Running\" and tokens > 0 sort by tokens desc limit 20");
    assert_eq!((&answer["total"], &answer["complete"], &answer["looked_at"]), (&json!(1), &json!(true), &json!(3)));
    assert_eq!(answer["columns"][0], json!({"name": "name", "type": "text"}));
    assert_eq!(answer["rows"][0][0], "ops-one");
    let tokens = &daemon.detail(&agents[0]);
    let sum = tokens["input_tokens"].as_u64().unwrap() + tokens["output_tokens"].as_u64().unwrap();
    assert_eq!(rows(&daemon, "agents select sum(tokens), count"), json!([[sum, 3]]));
    assert_eq!(
        rows(&daemon, "agents where name ~ 'ops-*' select name, id sort by name desc"),
        json!([["ops-two", agents[1]], ["ops-one", agents[0]]])
    );
    assert_eq!(rows(&daemon, "sessions group by agent.name count sort by agent.name limit 1"), json!([["ops-one", 1]]));
    let schedule = |agent: &str, cron: &str| {
        let body = json!({"agent_id": agent, "cron": cron, "prompt": "go", "enabled": true});
        daemon.post("/api/schedules", &body).expect(201)
    };
    schedule(&agents[0], "every 10m");
    schedule(&agents[2], "every 10m");
    schedule(&agents[1], "every 2d");
    let soon = "schedules where next_run < now + 1h and agent.name ~ \"ops-*\" select agent.name, next_run";
    let soon = rows(&daemon, soon);
    assert_eq!((soon.as_array().unwrap().len(), &soon[0][0]), (1, &json!("ops-one")));
    assert!(text(&soon[0][1]).ends_with('Z'), "{soon}");
    let one = ask(&daemon, &format!("agents where id = \"{}\"", agents[1]));
    assert_eq!((&one["looked_at"], &one["total"]), (&json!(1), &json!(1)));
    assert_eq!(rows(&daemon, "budgets where agent.name = 'writer' select total_usd, status"), json!([[0, "ok"]]));
    assert!(text(&ask(&daemon, "models select model")["rows"][0][0]) == "builtin");
}

#[test]
fn turns_are_seen_while_they_run() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("busy", "");
    model.hold();
    let client = daemon.client();
    let path = format!("/api/agents/{agent}/message");
    let talk = thread::spawn(move || client.post(&path, &json!({ "message": "hi" })));
    until("the model is asked", || (model.waiting() == 1).then_some(()));
    assert_eq!(rows(&daemon, "turns group by state count"), json!([["Calling", 1]]));
    let turns =
        rows(&daemon, "turns where agent.name = 'busy' and called_at is not null select origin, iterations, age");
    assert_eq!((&turns[0][0], &turns[0][1], turns[0][2].is_number()), (&json!("api"), &json!(1), true));
    model.release();
    talk.join().unwrap().expect(200);
    until("no turn is open", || (rows(&daemon, "turns count") == json!([[0]])).then_some(()));
}

#[test]
fn mistakes_say_where_and_what_was_meant() {
    let daemon = Daemon::start();
    let reply = send(&daemon, "agents where toknes > 1");
    let error = reply.expect(400);
    assert_eq!(error["error"], "q: column 14: unknown field `toknes` of agents; did you mean `tokens`?");
    assert_eq!((&error["column"], &error["code"], &error["field"]), (&json!(14), &json!("bad_query"), &json!("q")));
    for wrong in ["", "nothing", "agents limit 99999", "agents where", "agents sort by count", "agents; drop"] {
        assert_eq!(send(&daemon, wrong).expect(400)["code"], "bad_query", "{wrong}");
    }
    daemon.get("/api/world/query").refused_field(400, "q");
    daemon.get("/api/world/query?q=agents&format=xml").refused_field(400, "format");
    let long = format!("agents where name = '{}'", "x".repeat(9_000));
    assert!(send(&daemon, &long).status >= 400);
    let nested = format!("agents where {}name = 'x'{}", "(".repeat(400), ")".repeat(400));
    send(&daemon, &nested).refused_field(400, "q");
}

#[test]
fn answers_come_as_csv() {
    let (daemon, agents) = harness();
    let path =
        format!("/api/world/query?q={}", encoded("agents select name, tokens, parent_id, id sort by name limit 1"));
    let by_accept = daemon.send("GET", &path, &[("accept", "text/csv")], None);
    let by_format = daemon.get(&format!("{path}&format=csv"));
    for reply in [by_accept, by_format] {
        assert_eq!(reply.header("content-type"), Some("text/csv; charset=utf-8"));
        assert_eq!((reply.header("x-total-count"), reply.header("x-query-complete")), (Some("3"), Some("true")));
        let expected = format!("\"name\",\"tokens\",\"parent_id\",\"id\"\r\n\"ops-one\",0,,{}\r\n", agents[0]);
        assert_eq!(reply.text(), expected);
    }
    let json = daemon.send("GET", &format!("{path}&format=json"), &[("accept", "text/csv")], None);
    assert_eq!(json.expect(200)["rows"][0][0], "ops-one");
}

#[test]
fn the_schema_lists_what_can_be_asked_for() {
    let daemon = Daemon::start();
    let schema = daemon.get("/api/world/query/schema").expect(200);
    let kinds = schema["kinds"].as_array().unwrap();
    for kind in kinds {
        let name = text(&kind["name"]);
        let fields = kind["fields"].as_array().unwrap();
        let answer = ask(&daemon, &format!("{name} select * limit 3"));
        let of = |key: &str, list: &Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|item| text(&item[key])).collect()
        };
        assert_eq!(of("name", &answer["columns"]), of("name", &kind["fields"]), "{name}");
        assert_eq!(of("type", &answer["columns"]), of("type", &kind["fields"]), "{name}");
        assert!(fields.iter().all(|field| (field["type"] == "word") == field["words"].is_array()), "{name}");
    }
    for example in schema["examples"].as_array().unwrap() {
        ask(&daemon, &text(example));
    }
    // The table of the manual is the table of the program.
    let manual = std::fs::read_to_string(crate::support::routes::root().join("docs/query.md")).unwrap();
    for kind in kinds {
        let name = text(&kind["name"]);
        assert!(manual.contains(&format!("\n### `{name}`\n")), "docs/query.md has no section on {name}");
        let section = manual.split(&format!("\n### `{name}`\n")).nth(1).unwrap();
        let section = section.split("\n### ").next().unwrap();
        for field in kind["fields"].as_array().unwrap() {
            let line = format!("| `{}` | {} | {} |", text(&field["name"]), text(&field["type"]), text(&field["text"]));
            assert!(section.contains(&line), "docs/query.md, {name}: no line\n{line}");
        }
        for relation in kind["relations"].as_array().unwrap() {
            let line =
                format!("| `{}.` | {} | {} |", text(&relation["name"]), text(&relation["to"]), text(&relation["text"]));
            assert!(section.contains(&line), "docs/query.md, {name}: no line\n{line}");
        }
    }
}

/// Reads a stream on a thread of its own and hands each event on.
pub(crate) fn follow(events: Events) -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel();
    // Ends with the receiver.
    thread::spawn(move || events.take_while(|event| sender.send(event.clone()).is_ok()).for_each(drop));
    receiver
}

#[test]
fn a_standing_query_tells_of_changes_only() {
    let (daemon, agents) = harness();
    let path = format!("/api/world/query/stream?q={}&every=500ms", encoded("agents group by state count"));
    let events = follow(Events::open(&daemon, "GET", &path, None));
    let first = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!((first.name.as_str(), &first.data["rows"]), ("result", &json!([["Running", 3]])));
    daemon.delete(&format!("/api/agents/{}", agents[2])).expect(200);
    let next =
        until("the change is told", || events.recv_timeout(PATIENCE).ok().filter(|event| event.name == "result"));
    assert_eq!(next.data["rows"], json!([["Running", 2]]));
    // Nothing else changes, so nothing else is told, though it is looked at again and again.
    let looked = |daemon: &Daemon| {
        let metrics = daemon.get("/api/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("agentsvc_world_commands_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = looked(&daemon);
    until("it is looked at again", || (looked(&daemon) >= before + 2).then_some(()));
    assert!(events.try_recv().is_err());
    daemon.get("/api/world/query/stream?q=agents&every=1ms").refused_field(400, "every");
    daemon.get("/api/world/query/stream?q=agentz").refused_field(400, "q");
}

#[test]
fn standing_queries_are_bounded_and_end_with_their_client() {
    let daemon = Daemon::start();
    let path = "/api/world/query/stream?q=agents&every=1h";
    let open: Vec<Events> = (0..32).map(|_| Events::open(&daemon, "GET", path, None)).collect();
    let refused = daemon.get(path);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.expect(429)["code"], "too_many");
    drop(open);
    until("a place is free again", || {
        let taken = daemon.get("/api/metrics").text();
        taken.lines().any(|line| line == "agentsvc_query_streams 0").then_some(())
    });
    Events::open(&daemon, "GET", path, None);
}

#[test]
fn the_command_line_asks_too() {
    let (daemon, agents) = harness();
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), error)
    };
    let (code, table, error) = run(&["query", "agents where name ~ 'ops-*' select name, tokens sort by name"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(table.starts_with("name     tokens\nops-one       0\nops-two       0\n(2 rows, 3 scanned, "), "{table}");
    let (_, csv, _) = run(&["query", "agents select id sort by name limit 1", "--csv"]);
    assert_eq!(csv, format!("\"id\"\r\n{}\r\n", agents[0]));
    let (_, json, _) = run(&["query", "agents count", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["rows"], json!([[3]]));
    let (code, _, error) = run(&["query", "agents where nmae = 'x'"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("column 14") && error.contains("did you mean `name`?"), "{error}");
}
