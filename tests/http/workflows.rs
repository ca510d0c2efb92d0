//! Workflows: definitions, every mode and error mode, runs that are awaited, watched and cancelled, and what a kill leaves
//! (spec 1, Workflow, Workflow run, Workflows, Limits).

use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

pub(crate) const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";

/// A daemon on the scripted model, with the agent `a`; gives the agent's id.
pub(crate) fn harness() -> (Model, Daemon, String) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"*\"]\n");
    (model, daemon, agent)
}

pub(crate) fn make(daemon: &Daemon, name: &str, steps: &Value) -> String {
    let made = daemon.post("/api/workflows", &json!({ "name": name, "description": "what for", "steps": steps }));
    text(&made.expect(201)["workflow_id"])
}

pub(crate) fn run(daemon: &Daemon, workflow: &str, input: &str) -> http::Reply {
    daemon.post(&format!("/api/workflows/{workflow}/run"), &json!({ "input": input }))
}

pub(crate) fn detail(daemon: &Daemon, run: &str) -> Value {
    daemon.get(&format!("/api/workflows/runs/{run}")).expect(200)
}

pub(crate) fn runs(daemon: &Daemon, workflow: &str) -> Vec<Value> {
    daemon.get(&format!("/api/workflows/{workflow}/runs")).expect(200).as_array().expect("an array").clone()
}

/// The output of a run that must be completed.
#[track_caller]
pub(crate) fn output(reply: &http::Reply) -> String {
    let body = reply.expect(200);
    assert_eq!(body["status"], "completed");
    assert!(body["run_id"].is_string());
    text(&body["output"])
}

pub(crate) fn states(run: &Value) -> Vec<String> {
    run["steps"].as_array().expect("steps").iter().map(|step| text(&step["state"])).collect()
}

/// What the model was asked, in order.
pub(crate) fn prompts(model: &Model) -> Vec<String> {
    model.server.requests().iter().map(|request| request.last_user().to_owned()).collect()
}

pub(crate) fn in_background(daemon: &Daemon, workflow: &str) -> JoinHandle<http::Reply> {
    let (client, path) = (daemon.client(), format!("/api/workflows/{workflow}/run"));
    thread::spawn(move || client.post(&path, &json!({ "input": "x" })))
}

#[test]
fn definitions_are_created_read_listed_changed_and_deleted() {
    let mut daemon = Daemon::start();
    assert_eq!(daemon.get("/api/workflows").expect(200), json!([]));
    let agent = daemon.agent("a");
    let steps = json!([
        { "name": "plan", "agent_id": agent, "prompt": "Plan {{input}}", "output_var": "plan", "timeout_secs": 7 },
        { "agent_name": "later", "mode": "conditional", "condition": "plan contains 'tea'", "error_mode": "retry" },
    ]);
    let id = make(&daemon, "tea", &steps);
    daemon.restart();
    let list = daemon.get("/api/workflows").expect(200);
    let item = &list[0];
    assert_eq!((&item["id"], &item["name"], &item["steps"]), (&json!(id), &json!("tea"), &json!(2)));
    assert_eq!(item["description"], "what for");
    let path = format!("/api/workflows/{id}");
    let definition = daemon.get(&path).expect(200);
    assert_eq!(definition["created_at"], item["created_at"]);
    let first = json!({ "name": "plan", "agent_id": agent, "prompt": "Plan {{input}}", "mode": "sequential",
        "timeout_secs": 7, "error_mode": "fail", "max_retries": 3, "output_var": "plan", "max_iterations": 5 });
    let second = json!({ "name": "step-2", "agent_name": "later", "prompt": "{{input}}", "mode": "conditional",
        "timeout_secs": 120, "error_mode": "retry", "max_retries": 3, "condition": "plan contains 'tea'",
        "max_iterations": 5 });
    assert_eq!(definition["steps"], json!([first, second]));
    let same = daemon.put(&path, &json!({ "steps": definition["steps"] })).expect(200);
    assert_eq!(same["steps"], definition["steps"], "what is read can be sent");
    let changed = daemon.put(&path, &json!({ "name": "coffee", "description": "" })).expect(200);
    assert_eq!((&changed["name"], &changed["description"]), (&json!("coffee"), &json!("")));
    assert_eq!((&changed["steps"], &changed["created_at"]), (&definition["steps"], &definition["created_at"]));
    let other = make(&daemon, "coffee", &json!([{ "agent_name": "a" }]));
    let page = daemon.get("/api/workflows?limit=1");
    let cursor = page.header("x-next-cursor").expect("there is more").to_owned();
    assert_eq!(page.expect(200).as_array().map(Vec::len), Some(1));
    let rest = daemon.get(&format!("/api/workflows?limit=5&cursor={cursor}")).expect(200);
    assert_eq!(rest[0]["id"], json!(other));
    let gone = daemon.delete(&path).expect(200);
    assert_eq!((&gone["status"], &gone["workflow_id"]), (&json!("removed"), &json!(id)));
    daemon.get(&path).refused(404);
    daemon.delete(&path).refused(404);
    assert_eq!(daemon.get("/api/workflows").expect(200).as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_wrong_is_named_and_nothing_is_kept() {
    let daemon = Daemon::start();
    for (key, value, field) in [
        ("mode", json!("parallel"), "steps[1].mode"),
        ("mode", json!("conditional"), "steps[1].condition"),
        ("error_mode", json!("ignore"), "steps[1].error_mode"),
        ("agent_id", json!("nobody"), "steps[1].agent_id"),
        ("agent_id", json!(NOBODY), "steps[1].agent_name"),
        ("agent_name", json!(null), "steps[1].agent_id"),
        ("agent_name", json!(7), "steps[1].agent_name"),
        ("prompt", json!(""), "steps[1].prompt"),
        ("timeout_secs", json!(0), "steps[1].timeout_secs"),
        ("timeout_secs", json!(-1), "steps[1].timeout_secs"),
        ("timeout_secs", json!("10"), "steps[1].timeout_secs"),
        ("max_retries", json!(1_000), "steps[1].max_retries"),
        ("max_iterations", json!(51), "steps[1].max_iterations"),
        ("output_var", json!("a b"), "steps[1].output_var"),
        ("condition", json!("output contains"), "steps[1].condition"),
        ("until", json!("output matches /(/"), "steps[1].until"),
    ] {
        let mut step = json!({ "agent_name": "a", "prompt": "p" });
        step[key] = value;
        let body = json!({ "name": "w", "steps": [{ "agent_name": "a" }, step] });
        let reply = daemon.post("/api/workflows", &body);
        assert_eq!(reply.expect(400)["field"], field, "{}", reply.text());
    }
    let refused = daemon.post(
        "/api/workflows",
        &json!({ "name": "w", "steps": [
        { "agent_name": "a", "output_var": "verdict" },
        { "agent_name": "a", "mode": "conditional", "condition": "verdict == yes" },
    ] }),
    );
    assert!(refused.refused(400).starts_with("steps[1].condition: column 12: "), "{}", refused.text());
    let one = json!({ "agent_name": "a" });
    for (body, field) in [
        (json!({ "steps": [one] }), "name"),
        (json!({ "name": "", "steps": [one] }), "name"),
        (json!({ "name": "w" }), "steps"),
        (json!({ "name": "w", "steps": [] }), "steps"),
        (json!({ "name": "w", "steps": {} }), "steps"),
        (json!({ "name": "w", "steps": vec![one.clone(); 65] }), "steps"),
        (json!({ "name": "w", "description": 1, "steps": [one] }), "description"),
    ] {
        daemon.post("/api/workflows", &body).refused_field(400, field);
    }
    assert_eq!(daemon.get("/api/workflows").expect(200), json!([]));
    let id = make(&daemon, "w", &json!([one]));
    daemon.put(&format!("/api/workflows/{id}"), &json!({ "steps": [] })).refused_field(400, "steps");
    daemon.post(&format!("/api/workflows/{id}/run"), &json!({ "input": 7 })).refused_field(400, "input");
    daemon
        .post(&format!("/api/workflows/{id}/run"), &json!({ "input": "x".repeat(300_000) }))
        .refused_field(400, "input");
    daemon.get(&format!("/api/workflows/{id}/runs?limit=0")).refused_field(400, "limit");
    for path in [format!("/api/workflows/{NOBODY}"), format!("/api/workflows/{NOBODY}/runs")] {
        daemon.get(&path).refused(404);
    }
    daemon.get(&format!("/api/workflows/runs/{NOBODY}")).refused(404);
    daemon.poke(&format!("/api/workflows/runs/{NOBODY}/cancel")).refused(404);
    daemon.poke(&format!("/api/workflows/{NOBODY}/run")).refused(404);
    daemon.get("/api/workflows/nonsense").refused_field(400, "id");
    daemon.get("/api/workflows/runs/nonsense").refused_field(400, "id");
}

#[test]
fn a_sequence_passes_outputs_and_variables_on() {
    let (model, daemon, agent) = harness();
    let steps = json!([
        { "name": "one", "agent_id": agent, "prompt": "first {{input}}", "output_var": "first" },
        { "name": "two", "agent_name": "a", "prompt": "second {{input}}" },
        { "name": "three", "agent_name": "a", "prompt": "{{input}} / {{first}} / {{unknown}}" },
    ]);
    let id = make(&daemon, "pipeline", &steps);
    let given = output(&run(&daemon, &id, "tea {{first}}"));
    let (first, second) = ("echo: first tea {{first}}", "echo: second echo: first tea {{first}}");
    assert_eq!(given, format!("echo: {second} / {first} / {{{{unknown}}}}"), "inserted values are not expanded");
    assert_eq!(prompts(&model)[0], "first tea {{first}}");
    let listed = runs(&daemon, &id);
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["state"], &listed[0]["workflow_name"]), (&json!("Completed"), &json!("pipeline")));
    assert_eq!(listed[0]["steps_completed"], 3);
    assert!(text(&listed[0]["completed_at"]) >= text(&listed[0]["started_at"]));
    let shown = detail(&daemon, &text(&listed[0]["id"]));
    assert_eq!((&shown["input"], &shown["output"]), (&json!("tea {{first}}"), &json!(given)));
    assert_eq!((&shown["steps"][0]["output"], &shown["steps"][0]["attempts"]), (&json!(first), &json!(1)));
    assert_eq!(states(&shown), ["Completed", "Completed", "Completed"]);
    let sessions = daemon.get(&format!("/api/agents/{agent}/sessions")).expect(200);
    assert_eq!(sessions["total"], 1, "steps leave no sessions behind");
    let traces = daemon.get(&format!("/api/agents/{agent}/traces")).expect(200);
    assert_eq!((&traces["traces"][0]["origin"], &traces["total"]), (&json!("workflow"), &json!(3)));
}

#[test]
fn a_run_without_a_body_has_an_empty_input() {
    let (_model, daemon, _) = harness();
    let id = make(&daemon, "w", &json!([{ "agent_name": "a", "prompt": "hello{{input}}" }]));
    assert_eq!(output(&daemon.poke(&format!("/api/workflows/{id}/run"))), "echo: hello");
}

#[test]
fn fan_out_runs_side_by_side_and_collect_joins() {
    let (model, daemon, _) = harness();
    let id = make(
        &daemon,
        "w",
        &json!([
            { "agent_name": "a", "mode": "fan_out", "prompt": "x {{input}}" },
            { "agent_name": "a", "mode": "fan_out", "prompt": "y {{input}}" },
            { "agent_name": "a", "mode": "fan_out", "prompt": "z {{input}}" },
            { "name": "all", "mode": "collect" },
            { "agent_name": "a", "prompt": "[{{input}}]" },
        ]),
    );
    model.hold();
    let asked = in_background(&daemon, &id);
    until("all three are asked at once", || (model.waiting() == 3).then_some(()));
    let live = detail(&daemon, &text(&runs(&daemon, &id)[0]["id"]));
    assert_eq!(states(&live), ["Running", "Running", "Running", "Pending", "Pending"]);
    assert!(live["steps"][0]["turn_id"].is_string() && live["steps"][0]["due_at"].is_string());
    assert_eq!((&live["state"], &live["completed_at"]), (&json!("Running"), &Value::Null));
    model.release();
    let given = output(&asked.join().unwrap());
    assert_eq!(given, "echo: [echo: x x\n\necho: y x\n\necho: z x]");
    assert_eq!(model.requests().len(), 4, "no agent is asked to collect");
}

#[test]
fn conditions_and_loops() {
    let (model, daemon, _) = harness();
    let id = make(
        &daemon,
        "w",
        &json!([
            { "agent_name": "a", "prompt": "score {{input}}", "output_var": "score" },
            { "agent_name": "a", "mode": "conditional", "condition": "score >= 8 and not output contains '9'", "prompt": "good" },
            { "agent_name": "a", "mode": "conditional", "condition": "ECHO: GOOD", "prompt": "very {{input}}" },
            { "agent_name": "a", "mode": "loop", "until": "output matches /done$/i", "max_iterations": 4, "prompt": "more {{input}}" },
        ]),
    );
    model.script(["8", "echo: good", "very good", "not yet", "DONE"].map(Reply::text));
    assert_eq!(output(&run(&daemon, &id, "it")), "DONE");
    assert_eq!(prompts(&model), ["score it", "good", "very echo: good", "more very good", "more not yet"]);
    model.script(["9", "1", "2", "3", "4"].map(Reply::text));
    assert_eq!(output(&run(&daemon, &id, "it")), "4");
    let shown = detail(&daemon, &text(&runs(&daemon, &id)[1]["id"]));
    assert_eq!(states(&shown), ["Completed", "Skipped", "Skipped", "Completed"]);
    assert_eq!((&shown["steps_completed"], &shown["steps"][3]["iterations"]), (&json!(2), &json!(4)));
}

#[test]
fn a_failed_run_is_500_and_says_why() {
    let (model, daemon, _) = harness();
    let id = make(&daemon, "w", &json!([{ "name": "think", "agent_name": "a" }, { "agent_name": "a" }]));
    model.script([Reply::error(401, "no")]);
    let reply = run(&daemon, &id, "x");
    assert!(reply.refused(500).starts_with("step \"think\" failed: "), "{}", reply.text());
    let body = reply.expect(500);
    assert_eq!((&body["status"], &body["code"]), (&json!("failed"), &json!("run_failed")));
    let shown = detail(&daemon, &text(&body["run_id"]));
    assert_eq!((&shown["state"], &shown["error"]), (&json!("Failed"), &body["error"]));
    assert_eq!(states(&shown), ["Failed", "Cancelled"]);
    let id = make(&daemon, "w", &json!([{ "name": "ask", "agent_name": "nobody" }]));
    assert!(run(&daemon, &id, "x").refused(500).contains("agent not found: nobody"));
    let id = make(&daemon, "w", &json!([{ "name": "ask", "agent_id": NOBODY }]));
    assert!(run(&daemon, &id, "x").refused(500).contains("agent not found"));
    for line in
        ["agentsvc_workflows 3", "agentsvc_workflow_runs_open 0", "agentsvc_workflow_runs_total{end=\"failed\"} 3"]
    {
        until(line, || daemon.get("/api/metrics").text().lines().any(|l| l == line).then_some(()));
    }
}

#[test]
fn failures_are_skipped_or_tried_again() {
    let (model, daemon, _) = harness();
    let id = make(
        &daemon,
        "w",
        &json!([
            { "agent_name": "a", "prompt": "p {{input}}", "error_mode": "skip" },
            { "agent_name": "a", "prompt": "q {{input}}", "error_mode": "retry", "max_retries": 1 },
        ]),
    );
    model.script([Reply::error(401, "no"), Reply::error(401, "no"), Reply::text("at last")]);
    assert_eq!(output(&run(&daemon, &id, "x")), "at last");
    assert_eq!(prompts(&model), ["p x", "q x", "q x"]);
    let shown = detail(&daemon, &text(&runs(&daemon, &id)[0]["id"]));
    assert_eq!(
        (states(&shown), &shown["steps"][1]["attempts"]),
        (vec!["Skipped".into(), "Completed".into()], &json!(2))
    );
    assert!(shown["steps"][0]["error"].is_string());
    model.script([Reply::text("p"), Reply::error(401, "no"), Reply::error(401, "no")]);
    run(&daemon, &id, "x").refused(500);
}

#[test]
fn an_attempt_that_takes_too_long_is_given_up() {
    let (model, daemon, agent) = harness();
    let id = make(&daemon, "w", &json!([{ "name": "slow", "agent_name": "a", "timeout_secs": 1 }]));
    model.hold();
    let reply = run(&daemon, &id, "x");
    assert_eq!(reply.refused(500), "step \"slow\" failed: timed out after 1 seconds");
    until("its turn is stopped", || {
        let traces = daemon.get(&format!("/api/agents/{agent}/traces")).expect(200);
        (traces["traces"][0]["status"] == "stopped").then_some(())
    });
    model.release();
}
