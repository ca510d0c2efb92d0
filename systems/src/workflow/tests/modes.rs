//! Every mode: what is asked, of whom, and what comes out.

use agentsvc_components::SessionId;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;

use super::*;
use crate::agent::SpawnAgent;
use crate::session::GetSession;
use crate::workflow::metrics::RunTotals;
use crate::{manifest, session};

#[test]
fn sequential_steps_pass_their_output_on_and_variables_stay() {
    let mut world = world();
    let steps = vec![
        stored("plan", step("plan {{input}}")),
        stored("draft", step("write {{input}}")),
        step("check {{input}} against {{plan}} and {{ draft }}, {{nothing}}"),
    ];
    let id = make(&mut world, steps);
    let asked = begin(&mut world, id, "tea");
    assert_eq!(kinds(&world), ["workflow_started"]);
    assert_eq!(states(&newest(&mut world, id)), [StepState::Running, StepState::Pending, StepState::Pending]);
    assert_eq!(echo(&mut world), "plan tea");
    assert_eq!(echo(&mut world), "write <plan tea>");
    assert!(asked.take().is_none());
    let last = "check <write <plan tea>> against <plan tea> and <write <plan tea>>, {{nothing}}";
    assert_eq!(echo(&mut world), last);
    assert_eq!(completed(&asked), format!("<{last}>"));
    assert_eq!(kinds(&world), ["workflow_started", "workflow_completed"]);
    let run = newest(&mut world, id);
    assert_eq!((run.state, run.error.clone()), (RunState::Completed, None));
    assert!(run.ended_at > Some(run.started_at) && run.progress.iter().all(|step| step.attempts == 1));
    assert_eq!(run.outputs[0].as_deref(), Some("<plan tea>"));
    assert_eq!(world.engine.world().resource::<RunTotals>().completed, 1);
}

#[test]
fn inserted_values_are_never_expanded_again() {
    let mut world = world();
    let id = make(&mut world, vec![stored("x", step("{{input}}")), step("{{input}} {{x}}")]);
    let asked = begin(&mut world, id, "{{x}} {{input}}");
    assert_eq!(reply(&mut world, "{{input}}{{x}}"), "{{x}} {{input}}");
    assert_eq!(reply(&mut world, "end"), "{{input}}{{x}} {{input}}{{x}}");
    assert_eq!(completed(&asked), "end");
}

#[test]
fn members_of_the_input_stand_in_every_prompt() {
    let mut world = world();
    let steps = vec![
        step("{{run_input.topic|run_input}} for {{run_input.audience|everyone}}, {{run_input.n|}}"),
        step("{{input}} of {{run_input.topic|run_input}}"),
    ];
    let id = make(&mut world, steps);
    let asked = begin(&mut world, id, r#"{"topic": "tea {{input}}", "n": [1, 2]}"#);
    assert_eq!(reply(&mut world, "A"), "tea {{input}} for everyone, [1,2]");
    assert_eq!(reply(&mut world, "end"), "A of tea {{input}}");
    assert_eq!(completed(&asked), "end");
    // A text is the parameter that has the whole input.
    let asked = begin(&mut world, id, "tea");
    assert_eq!(reply(&mut world, "A"), "tea for everyone, ");
    reply(&mut world, "end");
    assert_eq!(completed(&asked), "end");
    // One that must be there, and is not, fails the run before its model is asked.
    let id = make(&mut world, vec![step("{{run_input.topic}}")]);
    let _asked = begin(&mut world, id, "tea");
    assert!(world.calls.is_empty());
    let run = newest(&mut world, id);
    assert_eq!(run.state, RunState::Failed);
    assert!(run.error.clone().is_some_and(|error| error.contains("JSON object with \"topic\"")), "{:?}", run.error);
    // A variable of this name comes first.
    let id = make(&mut world, vec![stored("run_input", step("x")), step("{{run_input}}")]);
    let _asked = begin(&mut world, id, "tea");
    reply(&mut world, "A");
    assert_eq!(reply(&mut world, "end"), "A");
}

#[test]
fn fan_out_runs_side_by_side_and_collect_joins() {
    let mut world = world();
    let steps = vec![
        step("first {{input}}"),
        fan_out("a {{input}}"),
        stored("b", fan_out("b {{input}}")),
        fan_out("c {{input}}"),
        stored("all", collect()),
        step("last {{input}} | {{b}} | {{all}}"),
    ];
    let id = make(&mut world, steps);
    let asked = begin(&mut world, id, "x");
    reply(&mut world, "1");
    assert_eq!(world.calls.len(), 3, "all at once");
    let calls: Vec<_> = (0..3).map(|_| world.next_call()).collect();
    let prompts: Vec<String> = calls.iter().map(|call| heard(&world, call)).collect();
    assert_eq!(prompts, ["a 1", "b 1", "c 1"]);
    for (call, answer) in calls.iter().zip(["A", "B", "C"]).rev() {
        assert!(world.calls.is_empty(), "the next step waits for all");
        world.answer(call.attempt, answer);
    }
    assert_eq!(reply(&mut world, "end"), "last A\n\nB\n\nC | B | A\n\nB\n\nC", "in the order of the steps");
    assert_eq!(completed(&asked), "end");
    let run = newest(&mut world, id);
    assert_eq!((run.progress[4].attempts, run.progress[4].state), (0, StepState::Completed), "nobody is asked");
}

#[test]
fn a_group_at_the_end_or_without_collect_is_joined_all_the_same() {
    let mut world = world();
    let id = make(&mut world, vec![fan_out("a {{input}}"), fan_out("b {{input}}")]);
    let asked = begin(&mut world, id, "x");
    reply(&mut world, "A");
    reply(&mut world, "B");
    assert_eq!(completed(&asked), "A\n\nB");
    let id = make(&mut world, vec![step("p"), collect(), fan_out("a {{input}}")]);
    let asked = begin(&mut world, id, "x");
    reply(&mut world, "one");
    assert_eq!(reply(&mut world, "two"), "a one", "a single output is collected as it is");
    assert_eq!(completed(&asked), "two");
}

#[test]
fn a_conditional_step_runs_when_its_condition_holds() {
    let mut world = world();
    let steps = vec![
        stored("verdict", step("judge {{input}}")),
        when("approved", "celebrate {{input}}"),
        when("verdict matches /^no/ and input contains 'no'", "repair {{input}}"),
    ];
    let id = make(&mut world, steps);
    let asked = begin(&mut world, id, "x");
    reply(&mut world, "It is APPROVED");
    assert_eq!(reply(&mut world, "hurray"), "celebrate It is APPROVED");
    assert_eq!(completed(&asked), "hurray", "what is left out changes nothing");
    let run = newest(&mut world, id);
    assert_eq!(states(&run), [StepState::Completed, StepState::Completed, StepState::Skipped]);
    assert_eq!((run.progress[2].attempts, run.progress[2].error.as_deref()), (0, None));
    let asked = begin(&mut world, id, "x");
    reply(&mut world, "no");
    assert_eq!(reply(&mut world, "fixed"), "repair no");
    assert_eq!(completed(&asked), "fixed");
}

#[test]
fn a_run_whose_steps_are_all_left_out_gives_its_input() {
    let mut world = world();
    let id = make(&mut world, vec![when("no such text", "p")]);
    let asked = begin(&mut world, id, "as it was");
    assert_eq!(completed(&asked), "as it was");
    assert!(world.calls.is_empty());
}

#[test]
fn a_loop_goes_on_with_its_own_output_until_it_is_enough() {
    let mut world = world();
    let until = stored("n", repeat(Some("n >= 3 or output contains 'stop'"), "add to {{input}} ({{n}})"));
    let id = make(&mut world, vec![until, step("end {{input}} {{n}}")]);
    let asked = begin(&mut world, id, "0");
    assert_eq!(reply(&mut world, "1"), "add to 0 ()");
    assert_eq!(states(&newest(&mut world, id))[0], StepState::Running);
    assert_eq!(reply(&mut world, "2"), "add to 1 (1)");
    assert_eq!(reply(&mut world, "3"), "add to 2 (2)");
    assert_eq!(reply(&mut world, "end"), "end 3 3");
    assert_eq!(completed(&asked), "end");
    let run = newest(&mut world, id);
    assert_eq!((run.progress[0].iterations, run.progress[0].attempts), (3, 3));
}

#[test]
fn a_loop_ends_after_its_iterations() {
    let mut world = world();
    let three = NewStep { max_iterations: Some(3), ..repeat(None, "{{input}}x") };
    let id = make(&mut world, vec![three, repeat(Some("never"), "{{input}}y")]);
    let asked = begin(&mut world, id, "");
    let mut count = 0;
    while !world.calls.is_empty() {
        let heard = heard(&world, &world.calls[0].clone());
        reply(&mut world, &heard);
        count += 1;
    }
    assert_eq!((count, completed(&asked)), (8, "xxxyyyyy".to_owned()), "three, then the default of five");
}

#[test]
fn long_outputs_are_cut_and_say_so() {
    let mut world = world();
    let id = make(&mut world, vec![step("p"), step("{{input}}")]);
    let asked = begin(&mut world, id, "");
    reply(&mut world, &"é".repeat(limit::WORKFLOW_OUTPUT_BYTES_MAX));
    let heard = echo(&mut world);
    assert!(heard.len() <= limit::WORKFLOW_OUTPUT_BYTES_MAX);
    assert!(heard.ends_with("[... truncated: the full text is 524288 bytes ...]"), "{}", &heard[heard.len() - 60..]);
    assert!(completed(&asked).len() <= limit::WORKFLOW_OUTPUT_BYTES_MAX);
}

fn spawn(world: &mut TestWorld, name: &str, session_mode: SessionMode) -> AgentId {
    let word = if session_mode == SessionMode::New { "new" } else { "persistent" };
    let text = format!("name = {name:?}\nsession_mode = {word:?}\n");
    let parsed = manifest::parse(&text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    world.ask(SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }).unwrap().agent
}

#[test]
fn steps_run_in_sessions_of_their_own_unless_the_manifest_says_otherwise() {
    let mut world = world();
    let by_id = spawn(&mut world, "keeper", SessionMode::Persistent);
    let fresh = spawn(&mut world, "fresh", SessionMode::New);
    let of = |agent| NewStep { agent_id: Some(agent), agent_name: None, ..step("for {{input}}") };
    let id = make(&mut world, vec![of(by_id), of(by_id), of(fresh), step("p")]);
    let asked = begin(&mut world, id, "x");
    let current = world.ask(GetSession::Current(by_id)).unwrap();
    let mut sessions: Vec<SessionId> = vec![];
    for answer in ["1", "2", "3", "4"] {
        sessions.push(world.calls[0].session);
        reply(&mut world, answer);
    }
    assert_eq!(completed(&asked), "4");
    assert_eq!(sessions[..2], [current.id, current.id]);
    assert_eq!(world.texts(current.log), ["for x", "1", "for 1", "2"]);
    for session in &sessions[2..] {
        assert!(world.ask(session::GetSession::ById(*session)).is_err(), "it went with its turn");
    }
    assert_eq!(world.engine.stats().sessions_hidden, 0);
}
