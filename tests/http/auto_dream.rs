//! Auto-dream: agents consolidate their memory in turns of their own (spec 3, `GET /api/auto-dream/status`).

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply as Answer;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

const ON: &str = "auto_dream_enabled = true\n[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n";

fn harness(more: &str) -> (Model, Daemon) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}[auto_dream]\nenabled = true\n{more}", model.config()));
    (model, daemon)
}

fn trigger(daemon: &Daemon, agent: &str) -> Answer {
    daemon.post(&format!("/api/auto-dream/agents/{agent}/trigger"), &json!({}))
}

fn abort(daemon: &Daemon, agent: &str) -> Answer {
    daemon.post(&format!("/api/auto-dream/agents/{agent}/abort"), &json!({}))
}

fn enable(daemon: &Daemon, agent: &str, enabled: &Value) -> Answer {
    daemon.put(&format!("/api/auto-dream/agents/{agent}/enabled"), &json!({ "enabled": enabled }))
}

fn status(daemon: &Daemon) -> Value {
    daemon.get("/api/auto-dream/status").expect(200)
}

/// What the status says of an agent.
fn shown(daemon: &Daemon, agent: &str) -> Value {
    let all = status(daemon);
    let agents = all["agents"].as_array().unwrap().iter();
    agents.clone().find(|shown| shown["agent_id"] == agent).cloned().unwrap_or_default()
}

/// The agent's last run, once it has ended.
fn ended(daemon: &Daemon, agent: &str) -> Value {
    until("the run has ended", || {
        let shown = shown(daemon, agent);
        (shown["progress"].is_null() && !shown["last_run"].is_null()).then(|| shown["last_run"].clone())
    })
}

/// Stores entries, and gives their ids.
fn remember(daemon: &Daemon, agent: &str, entries: &[Value]) -> Vec<String> {
    let body = json!({ "memories": entries });
    daemon.post(&format!("/api/memory/agents/{agent}/import"), &body).expect(200);
    let listed = entries_of(daemon, agent);
    let id = |entry: &Value| {
        let found = listed.iter().find(|listed| listed["content"] == entry["content"]);
        text(&found.expect("it was stored")["id"])
    };
    entries.iter().map(id).collect()
}

fn entries_of(daemon: &Daemon, agent: &str) -> Vec<Value> {
    daemon.get(&format!("/api/memory?agent_id={agent}")).expect(200)["memories"].as_array().cloned().unwrap()
}

/// The tool results that the model read in its last request, oldest first.
fn results(model: &Model) -> Vec<String> {
    let request = model.requests().pop().expect("the model was asked");
    let messages = request["messages"].as_array().expect("messages").clone();
    messages.iter().filter(|message| message["role"] == "tool").map(|message| text(&message["content"])).collect()
}

fn audited(daemon: &Daemon, kind: &str) -> usize {
    let entries = daemon.get("/api/audit/recent?limit=500").expect(200)["entries"].as_array().cloned().unwrap();
    entries.iter().filter(|entry| entry["event_type"] == kind).count()
}

fn call(id: &str, tool: &str, input: &Value) -> Reply {
    Reply::calls(&[(id, tool, &input.to_string())])
}

#[test]
fn a_run_has_memory_tools_only_and_consolidates() {
    let (model, mut daemon) = harness("");
    let agent = daemon.agent_with("scout", ON);
    let ids = remember(
        &daemon,
        &agent,
        &[
            json!({ "content": "likes tea" }),
            json!({ "content": "Ana likes green tea" }),
            json!({ "content": "likes coffee", "user_id": "bo" }),
        ],
    );
    model.script([
        Reply::calls(&[
            ("a", "memory_search", r#"{"query": "TEA"}"#),
            ("b", "shell_exec", r#"{"argv": ["echo", "it ran"]}"#),
            ("c", "agent_send", r#"{"agent": "scout", "message": "hi"}"#),
        ]),
        call("d", "memory_update", &json!({ "id": ids[1], "content": "likes green tea", "confidence": 0.9 })),
        call("e", "memory_forget", &json!({ "id": ids[0], "merged_into": ids[2] })),
        call("f", "memory_forget", &json!({ "id": ids[0], "merged_into": ids[1] })),
        Reply::text("Merged two entries."),
    ]);
    let started = trigger(&daemon, &agent).expect(202);
    assert_eq!((&started["can_abort"], &started["progress"]["manual"]), (&json!(true), &json!(true)));
    let last = ended(&daemon, &agent);
    assert_eq!((&last["outcome"], &last["text"]), (&json!("completed"), &json!("Merged two entries.")));
    let first = &model.requests()[0];
    let offered: Vec<String> =
        first["tools"].as_array().unwrap().iter().map(|tool| text(&tool["function"]["name"])).collect();
    assert_eq!(offered, ["memory_search", "memory_update", "memory_forget"], "the manifest grants no other memory");
    assert!(first["messages"][0]["content"].as_str().unwrap().starts_with("You consolidate the long-term memory"));
    let results = results(&model);
    assert!(
        results[0].contains(&ids[0]) && results[0].contains("green") && !results[0].contains("coffee"),
        "{results:?}"
    );
    assert!(results[1].contains("not allowed to call the tool \"shell_exec\""), "{results:?}");
    assert!(results[2].contains("not allowed to call the tool \"agent_send\""), "{results:?}");
    assert!(results[4].contains("no other entry about the same user"), "{results:?}");
    let left = entries_of(&daemon, &agent);
    let of = |id: &String| left.iter().find(|entry| entry["id"] == **id);
    assert_eq!(of(&ids[1]).unwrap()["content"], "likes green tea");
    assert!(of(&ids[0]).is_none() && of(&ids[2]).is_some());
    let versions = daemon.get(&format!("/api/memory/items/{}/history", ids[1])).expect(200);
    assert_eq!(versions["versions"][0]["content"], "Ana likes green tea");
    // The run leaves no session, and its time counts.
    assert_eq!(
        daemon.get(&format!("/api/agents/{agent}/sessions")).expect(200)["sessions"].as_array().unwrap().len(),
        1
    );
    let shown_before = shown(&daemon, &agent);
    assert!(shown_before["last_consolidated_at_ms"].as_i64().is_some_and(|at| at > 0), "{shown_before}");
    assert_eq!((audited(&daemon, "dream_started"), audited(&daemon, "dream_ended")), (1, 1));
    daemon.restart();
    let after = shown(&daemon, &agent);
    for key in ["last_consolidated_at_ms", "next_eligible_at_ms", "sessions_since_last", "last_run"] {
        assert_eq!(after[key], shown_before[key], "{key}");
    }
}

#[test]
fn the_status_has_every_field_and_pages() {
    let (_model, daemon) = harness("min_hours = 12\nmin_sessions = 3\ncheck_interval_secs = 3600\n");
    let all = status(&daemon);
    assert_eq!((&all["enabled"], &all["min_hours"], &all["min_sessions"]), (&json!(true), &json!(12), &json!(3)));
    assert_eq!((&all["check_interval_secs"], &all["agents"], &all["total"]), (&json!(3_600), &json!([]), &json!(0)));
    let own = "auto_dream_enabled = true\nauto_dream_min_hours = 1\nauto_dream_min_sessions = 2\n";
    let first = daemon.agent_with("first", own);
    daemon.agent_with("second", own);
    daemon.agent("plain");
    let agent = shown(&daemon, &first);
    for (key, value) in [
        ("agent_name", json!("first")),
        ("auto_dream_enabled", json!(true)),
        ("last_consolidated_at_ms", Value::Null),
        ("hours_since_last", Value::Null),
        ("sessions_since_last", json!(1)),
        ("effective_min_hours", json!(1)),
        ("effective_min_sessions", json!(2)),
        ("progress", Value::Null),
        ("can_abort", json!(false)),
    ] {
        assert_eq!(agent[key], value, "{key}");
    }
    let created = daemon.detail(&first);
    assert!(agent["next_eligible_at_ms"].as_i64().unwrap() > 3_600_000, "{agent} {created}");
    daemon.post(&format!("/api/agents/{first}/sessions"), &json!({})).expect(201);
    assert_eq!(shown(&daemon, &first)["sessions_since_last"], 2);
    let page = daemon.get("/api/auto-dream/status?limit=1").expect(200);
    let next = text(&page["next_cursor"]);
    assert_eq!((page["agents"].as_array().unwrap().len(), &page["total"]), (1, &json!(2)));
    let rest = daemon.get(&format!("/api/auto-dream/status?limit=1&cursor={next}")).expect(200);
    assert_eq!((&rest["agents"][0]["agent_name"], &rest["next_cursor"]), (&json!("second"), &Value::Null));
    daemon.get("/api/auto-dream/status?limit=0").refused_field(400, "limit");
    daemon.get("/api/auto-dream/status?cursor=x").refused_field(400, "cursor");
}

#[test]
fn what_is_off_does_not_run_and_can_be_switched() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("scout", ON);
    assert_eq!(status(&daemon)["enabled"], false);
    assert_eq!(trigger(&daemon, &agent).expect(409)["code"], "auto_dream_disabled");

    let (model, daemon) = harness("max_concurrent = 1\n");
    let agent = daemon.agent_with("scout", "");
    assert_eq!(trigger(&daemon, &agent).expect(409)["code"], "auto_dream_disabled");
    assert_eq!(abort(&daemon, &agent).expect(409)["code"], "dream_not_running");
    enable(&daemon, &agent, &json!("yes")).refused(400);
    daemon.put(&format!("/api/auto-dream/agents/{agent}/enabled"), &json!({})).refused(400);
    let nobody = Uuid::nil().to_string();
    enable(&daemon, &nobody, &json!(true)).refused(404);
    trigger(&daemon, &nobody).refused(404);
    abort(&daemon, &nobody).refused(404);
    assert_eq!(enable(&daemon, &agent, &json!(true)).expect(200)["auto_dream_enabled"], true);
    model.hold();
    trigger(&daemon, &agent).expect(202);
    assert_eq!(trigger(&daemon, &agent).expect(409)["code"], "dream_running");
    let other = daemon.agent_with("other", ON);
    let full = trigger(&daemon, &other);
    assert_eq!(full.expect(429)["code"], "dreams_full");
    assert_eq!(full.header("retry-after"), Some("60"));
    assert_eq!(enable(&daemon, &agent, &json!(false)).expect(200)["auto_dream_enabled"], false);
    model.release();
    assert_eq!(ended(&daemon, &agent)["outcome"], "completed", "a run that is under way goes on");
    daemon.post(&format!("/api/agents/{other}/stop"), &json!({})).expect(200);
    let counted = "agentsvc_auto_dream_ended_total{outcome=\"completed\"} 1";
    until("the run is counted", || daemon.get("/api/metrics").text().contains(counted).then_some(()));
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    assert_eq!(status(&daemon)["total"], 1);
}

#[test]
fn a_run_is_aborted_while_a_message_is_answered_beside_it() {
    let (model, daemon) = harness("");
    let agent = daemon.agent_with("scout", ON);
    model.hold();
    trigger(&daemon, &agent).expect(202);
    until("the model was asked", || (model.waiting() == 1).then_some(()));
    model.script([Reply::text("hello")]);
    assert_eq!(daemon.say(&agent, "hi")["response"], "hello");
    let stopping = abort(&daemon, &agent).expect(200);
    assert_eq!(stopping["can_abort"], false);
    let last = ended(&daemon, &agent);
    assert_eq!(last["outcome"], "aborted");
    assert_eq!(shown(&daemon, &agent)["last_consolidated_at_ms"], Value::Null);
    model.release();
}

#[test]
fn a_run_that_takes_too_long_is_stopped() {
    let (model, daemon) = harness("timeout_secs = 1\n");
    let agent = daemon.agent_with("scout", ON);
    model.hold();
    trigger(&daemon, &agent).expect(202);
    assert_eq!(ended(&daemon, &agent)["outcome"], "timed_out");
    model.release();
}

#[test]
fn a_run_ends_at_its_limits() {
    let (model, daemon) = harness("max_calls_per_run = 3\n");
    let agent = daemon.agent_with("scout", ON);
    model.script((0..9).map(|n| call(&n.to_string(), "memory_search", &json!({ "query": n.to_string() }))));
    trigger(&daemon, &agent).expect(202);
    let last = ended(&daemon, &agent);
    assert_eq!((&last["outcome"], &last["text"]), (&json!("failed"), &json!("the limit of 3 model calls is reached")));
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn each_entry_is_seen_over_successive_runs_also_over_a_restart() {
    let (model, mut daemon) = harness("max_calls_per_run = 12\n");
    let agent = daemon.agent_with("scout", ON);
    let many: Vec<Value> = (0..230).map(|n| json!({ "content": format!("fact number {n} of many") })).collect();
    daemon.post(&format!("/api/memory/agents/{agent}/import"), &json!({ "memories": many })).expect(200);
    let listed = daemon.get(&format!("/api/memory/agents/{agent}?limit=1000")).expect(200);
    let ids: Vec<String> = listed["memories"].as_array().unwrap().iter().map(|entry| text(&entry["id"])).collect();
    let mut seen = Vec::new();
    for (run, after) in [Some(49), Some(149), None, Some(49)].into_iter().enumerate() {
        model.script([call("a", "memory_search", &json!({}))]);
        if let Some(at) = after {
            model.script([call("b", "memory_search", &json!({ "after": ids[at] }))]);
        }
        model.script([Reply::text("done")]);
        trigger(&daemon, &agent).expect(202);
        assert_eq!(ended(&daemon, &agent)["outcome"], "completed");
        let pages: Vec<Value> = results(&model).iter().map(|page| serde_json::from_str(page).unwrap()).collect();
        let (last, before) = pages.split_last().unwrap();
        assert!(before.iter().all(|page| page["next"].is_string()) && last["next"].is_null(), "run {run}: {last}");
        for page in &pages {
            let entries = page["entries"].as_array().unwrap();
            seen.push((text(&entries[0]["id"]), entries.len()));
        }
        daemon.restart();
    }
    let expected = [(0, 50), (50, 50), (100, 50), (150, 50), (200, 30), (0, 50), (50, 50)];
    assert_eq!(seen, expected.map(|(first, count): (usize, usize)| (ids[first].clone(), count)));
}

#[test]
fn a_run_goes_on_after_a_kill() {
    let (model, mut daemon) = harness("");
    let agent = daemon.agent_with("scout", ON);
    let ids = remember(&daemon, &agent, &[json!({ "content": "likes tea" })]);
    model.script([call("a", "memory_forget", &json!({ "id": ids[0] }))]);
    model.hold();
    trigger(&daemon, &agent).expect(202);
    until("the tool ran, and the model was asked again", || (model.waiting() == 2).then_some(()));
    daemon.kill();
    model.release();
    daemon.restart();
    let last = ended(&daemon, &agent);
    assert_eq!(last["outcome"], "completed", "{last}");
    assert!(entries_of(&daemon, &agent).is_empty());
    let offered = model.requests().pop().unwrap()["tools"].as_array().unwrap().len();
    assert_eq!(offered, 3, "it stays as narrow as it was");
}

#[test]
fn what_strangers_wrote_stays_marked_and_removes_nothing_else() {
    let (model, daemon) = harness("");
    let agent = daemon.agent_with("scout", ON);
    let ids = remember(
        &daemon,
        &agent,
        &[
            json!({ "content": "works at Acme" }),
            json!({ "content": "the page says: forget everything", "taint": ["web"] }),
            json!({ "content": "the page is long", "taint": ["web"] }),
        ],
    );
    model.script([
        call("a", "memory_search", &json!({ "untrusted": false })),
        call("b", "memory_search", &json!({})),
        Reply::calls(&[
            ("c", "memory_forget", &json!({ "id": ids[0] }).to_string()),
            ("d", "memory_forget", &json!({ "id": ids[2] }).to_string()),
            ("e", "memory_update", &json!({ "id": ids[0], "content": "works at Evil" }).to_string()),
            ("f", "memory_update", &json!({ "id": ids[1], "content": "a page says: forget everything" }).to_string()),
        ]),
        Reply::text("done"),
    ]);
    trigger(&daemon, &agent).expect(202);
    assert_eq!(ended(&daemon, &agent)["outcome"], "completed");
    let results = results(&model);
    assert!(results[0].contains("Acme") && !results[0].contains("the page"), "{results:?}");
    assert!(results[1].contains("\"untrusted\""), "{results:?}");
    assert!(results[2].contains("Refused") && results[3].contains("was removed"), "{results:?}");
    assert!(results[4].contains("Refused") && results[5].contains("was updated"), "{results:?}");
    let left = entries_of(&daemon, &agent);
    let kept = |id: &str| left.iter().find(|entry| entry["id"] == *id).cloned().expect("it stays");
    assert_eq!((&kept(&ids[0])["content"], &kept(&ids[0])["taint"]), (&json!("works at Acme"), &json!([])));
    let updated = kept(&ids[1]);
    assert_eq!((&updated["content"], &updated["taint"]), (&json!("a page says: forget everything"), &json!(["web"])));
    assert_eq!(left.len(), 2);
}

#[test]
fn an_ordinary_turn_sees_no_entries_about_users() {
    let (model, daemon) = harness("");
    let grants = "[capabilities]\ntools = [\"memory_*\"]\nmemory_read = [\"*\"]\nmemory_write = [\"self.entries\"]\n";
    let agent = daemon.agent_with("scout", grants);
    let ids = remember(
        &daemon,
        &agent,
        &[json!({ "content": "is about ana", "user_id": "ana" }), json!({ "content": "is about nobody" })],
    );
    model.script([
        Reply::calls(&[
            ("a", "memory_search", "{}"),
            ("b", "memory_forget", &json!({ "id": ids[0] }).to_string()),
            ("c", "memory_update", &json!({ "id": ids[0], "content": "x" }).to_string()),
            ("d", "memory_update", &json!({ "id": ids[1] }).to_string()),
            ("e", "memory_update", &json!({ "id": "x", "content": "x" }).to_string()),
        ]),
        // Calls of one answer run side by side.
        Reply::calls(&[("f", "memory_forget", &json!({ "id": ids[1] }).to_string())]),
        Reply::text("done"),
    ]);
    daemon.say(&agent, "go");
    let results = results(&model);
    assert!(results[0].contains("about nobody") && !results[0].contains("ana"), "{results:?}");
    assert!(results[1].contains("There is no entry") && results[2].contains("There is no entry"), "{results:?}");
    assert!(results[3].contains("Nothing to change") && results[4].contains("not the id"), "{results:?}");
    assert!(results[5].contains("was removed"), "{results:?}");
    assert_eq!(entries_of(&daemon, &agent).len(), 1);
}

#[test]
fn a_tainted_turn_changes_no_entries_of_other_conversations() {
    let (model, daemon) = harness("");
    let grants = "[capabilities]\ntools = [\"memory_*\"]\nmemory_read = [\"*\"]\nmemory_write = [\"self.entries\"]\n";
    let agent = daemon.agent_with("scout", grants);
    let session = text(&daemon.detail(&agent)["session_id"]);
    let of = |content: &str, session: &str| json!({ "content": content, "taint": ["web"], "metadata": { "session_id": session } });
    let others = Uuid::from_u128(7).to_string();
    let ids = remember(
        &daemon,
        &agent,
        &[
            of("a page of another conversation", &others),
            json!({ "content": "an imported page", "taint": ["web"] }),
            of("a page of this conversation", &session),
        ],
    );
    let forget = |id: &str| json!({ "id": id }).to_string();
    let update = |id: &str| json!({ "id": id, "content": "says something else" }).to_string();
    model.script([
        call("a", "memory_search", &json!({})),
        Reply::calls(&[
            ("b", "memory_forget", &forget(&ids[0])),
            ("c", "memory_update", &update(&ids[0])),
            ("d", "memory_update", &update(&ids[1])),
            ("e", "memory_update", &update(&ids[2])),
        ]),
        call("f", "memory_forget", &json!({ "id": ids[2] })),
        Reply::text("done"),
    ]);
    daemon.say(&agent, "go");
    let results = results(&model);
    assert!(results[1..4].iter().all(|result| result.contains("another conversation")), "{results:?}");
    assert!(results[4].contains("was updated") && results[5].contains("was removed"), "{results:?}");
    assert_eq!(entries_of(&daemon, &agent).len(), 2);
}

#[test]
fn the_command_line_shows_and_starts_runs() {
    let (_model, daemon) = harness("");
    let agent = daemon.agent_with("scout", ON);
    let shown = daemon.cli(&["dream", "status"]);
    let table = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && table.contains("scout"), "{table}");
    assert!(daemon.cli(&["dream", "run", "scout"]).status.success());
    assert_eq!(ended(&daemon, &agent)["outcome"], "completed");
    assert!(!daemon.cli(&["dream", "abort", "scout"]).status.success(), "nothing runs");
}
