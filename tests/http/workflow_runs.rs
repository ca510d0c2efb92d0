//! Runs of workflows that are watched, cancelled, killed in the middle, and begun by agents (spec 1, Workflow run).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;
use crate::workflows::{detail, harness, in_background, make, prompts, run, runs, states};

/// Begins a run that nobody waits for; gives its id.
fn start(daemon: &Daemon, workflow: &str, input: &str) -> String {
    let begun = daemon.post(&format!("/api/workflows/{workflow}/run"), &json!({ "input": input, "async": true }));
    text(&begun.expect(202)["run_id"])
}

/// Waits until a run is in this state.
fn reaches(daemon: &Daemon, run: &str, state: &str) -> Value {
    until(&format!("the run is {state}"), || Some(detail(daemon, run)).filter(|run| run["state"] == state))
}

#[test]
fn a_run_goes_on_without_being_waited_for() {
    let (model, daemon, _) = harness();
    let id = make(&daemon, "w", &json!([{ "agent_name": "a" }, { "agent_name": "a" }]));
    model.hold();
    let begun = daemon.post(&format!("/api/workflows/{id}/run"), &json!({ "input": "x", "async": true })).expect(202);
    assert_eq!(begun["status"], "running");
    let run = text(&begun["run_id"]);
    let live = detail(&daemon, &run);
    assert_eq!(
        (&live["state"], &live["output"], &live["steps_completed"]),
        (&json!("Running"), &Value::Null, &json!(0))
    );
    model.release();
    let done = reaches(&daemon, &run, "Completed");
    assert_eq!((&done["output"], &done["steps_completed"]), (&json!("echo: echo: x"), &json!(2)));
}

#[test]
fn a_cancelled_run_stops_and_answers_who_waits() {
    let (model, daemon, agent) = harness();
    let id = make(&daemon, "w", &json!([{ "agent_name": "a" }, { "agent_name": "a" }]));
    model.hold();
    let asked = in_background(&daemon, &id);
    until("the first step is asked", || (model.waiting() == 1).then_some(()));
    let run = text(&runs(&daemon, &id)[0]["id"]);
    let cancelled = daemon.poke(&format!("/api/workflows/runs/{run}/cancel")).expect(200);
    assert_eq!((&cancelled["status"], &cancelled["run_id"]), (&json!("cancelled"), &json!(run)));
    let body = asked.join().unwrap().expect(409);
    assert_eq!(
        (&body["status"], &body["code"], &body["run_id"]),
        (&json!("cancelled"), &json!("run_cancelled"), &json!(run))
    );
    let shown = detail(&daemon, &run);
    assert_eq!((&shown["state"], states(&shown)), (&json!("Cancelled"), vec!["Cancelled".into(), "Cancelled".into()]));
    until("its turn is stopped", || {
        let traces = daemon.get(&format!("/api/agents/{agent}/traces")).expect(200);
        (traces["traces"][0]["status"] == "stopped").then_some(())
    });
    model.release();
    assert_eq!(daemon.poke(&format!("/api/workflows/runs/{run}/cancel")).expect(409)["code"], "run_ended");
    assert_eq!(model.requests().len(), 1);
    // A workflow that is deleted takes its runs along.
    model.hold();
    let asked = in_background(&daemon, &id);
    until("the first step is asked", || (model.waiting() == 1).then_some(()));
    assert_eq!(daemon.delete(&format!("/api/workflows/{id}")).expect(200)["runs_cancelled"], 1);
    asked.join().unwrap().refused(409);
    model.release();
    daemon.get(&format!("/api/workflows/runs/{run}")).refused(404);
}

#[test]
fn a_kill_in_the_middle_loses_and_repeats_nothing() {
    let (model, mut daemon, _) = harness();
    let id = make(
        &daemon,
        "w",
        &json!([
            { "agent_name": "a", "prompt": "first {{input}}", "output_var": "first" },
            { "agent_name": "a", "mode": "fan_out", "prompt": "b {{input}}" },
            { "agent_name": "a", "mode": "fan_out", "prompt": "c {{input}}" },
            { "mode": "collect" },
            { "agent_name": "a", "prompt": "last {{first}} | {{input}}" },
        ]),
    );
    model.script([Reply::text("one")]);
    model.hold();
    let run = start(&daemon, &id, "x");
    until("the group is asked", || (model.waiting() == 3).then_some(()));
    assert_eq!(states(&detail(&daemon, &run))[..3], ["Completed", "Running", "Running"]);
    daemon.restart();
    until("the group is asked again", || (model.waiting() == 5).then_some(()));
    assert_eq!(states(&detail(&daemon, &run)), ["Completed", "Running", "Running", "Pending", "Pending"]);
    model.release();
    let done = reaches(&daemon, &run, "Completed");
    assert_eq!(done["output"], "echo: last one | echo: b one\n\necho: c one");
    let asked = prompts(&model);
    let times = |prompt: &str| asked.iter().filter(|other| *other == prompt).count();
    assert_eq!((times("first x"), times("b one"), times("last one | echo: b one\n\necho: c one")), (1, 2, 1));
    // What is shown need not be stored yet.
    daemon.settle();
    daemon.restart();
    assert_eq!(detail(&daemon, &run), done, "an ended run is as it was");
    assert_eq!(runs(&daemon, &id).len(), 1);
    assert_eq!(prompts(&model).len(), asked.len());
}

#[test]
fn kills_during_retries_and_loops_come_to_the_same_end() {
    let (model, mut daemon, _) = harness();
    let id = make(
        &daemon,
        "w",
        &json!([
            { "agent_name": "a", "prompt": "once {{input}}", "error_mode": "retry", "max_retries": 3 },
            { "agent_name": "a", "mode": "loop", "prompt": "{{input}}+", "max_iterations": 3 },
        ]),
    );
    // The third pause lasts four seconds. On a machine that takes longer than that, the next try is out at the kill,
    // without an answer, and is made again after it.
    model.script([Reply::error(401, "no"), Reply::error(401, "no"), Reply::error(401, "no")]);
    model.hold();
    let run = start(&daemon, &id, "x");
    let waiting = until("the step waits for its last try", || {
        let step = detail(&daemon, &run)["steps"][0].clone();
        (step["state"] == "Retrying" && step["attempts"] == 3).then_some(step)
    });
    assert!(waiting["error"].is_string() && waiting["due_at"].is_string());
    daemon.settle();
    daemon.kill();
    model.script([Reply::text("y"), Reply::text("y+")]);
    daemon.restart();
    until("the second iteration is asked", || prompts(&model).contains(&"y++".to_owned()).then_some(()));
    assert_eq!(detail(&daemon, &run)["steps"][1]["iterations"], 1);
    daemon.restart();
    model.release();
    let done = reaches(&daemon, &run, "Completed");
    assert_eq!((&done["steps"][0]["attempts"], &done["steps"][1]["iterations"]), (&json!(4), &json!(3)));
    let last = "echo: echo: y+++";
    assert_eq!(done["output"], last);
}

#[test]
fn an_agent_runs_a_workflow_through_its_tool() {
    let (model, daemon, agent) = harness();
    make(&daemon, "brew", &json!([{ "agent_name": "a", "prompt": "brew {{input}}" }]));
    let result = |model: &Model| {
        let request = model.requests().pop().unwrap();
        text(&request["messages"].as_array().unwrap().last().unwrap()["content"])
    };
    let call = |input: Value| Reply::calls(&[("1", "workflow_run", &input.to_string())]);
    model.script([call(json!({ "workflow": "brew", "input": "tea" })), Reply::text("green tea"), Reply::text("done")]);
    daemon.say(&agent, "go");
    assert_eq!(prompts(&model)[1], "brew tea");
    assert_eq!(result(&model), "green tea");
    model.script([call(json!({ "workflow": "nothing" })), Reply::text("done")]);
    daemon.say(&agent, "go");
    assert!(result(&model).contains("workflow not found: nothing"));
    model.script([call(json!({ "workflow": "brew", "input": "tea" })), Reply::error(401, "no"), Reply::text("done")]);
    daemon.say(&agent, "go");
    assert!(result(&model).contains("ended with the state Failed: step \"step-1\" failed"), "{}", result(&model));
    // Within its own step it is refused.
    let id = make(&daemon, "self", &json!([{ "agent_name": "a" }]));
    model.script([call(json!({ "workflow": id })), Reply::text("done")]);
    run(&daemon, &id, "x").expect(200);
    assert!(result(&model).contains("cannot be run within itself"), "{}", result(&model));
}

#[test]
fn a_killed_agent_fails_its_step_and_leaves_the_definition() {
    let (model, daemon, _) = harness();
    let agent = daemon.agent_with("b", "");
    let id = make(&daemon, "w", &json!([{ "name": "s", "agent_id": agent }]));
    model.hold();
    let asked = in_background(&daemon, &id);
    until("the step is asked", || (model.waiting() == 1).then_some(()));
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    assert_eq!(asked.join().unwrap().refused(500), "step \"s\" failed: the agent was removed");
    model.release();
    assert_eq!(daemon.get(&format!("/api/workflows/{id}")).expect(200)["steps"][0]["agent_id"], json!(agent));
}
