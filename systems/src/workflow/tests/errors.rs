//! What a failure does: every error mode, timeouts, agents that are not there.

use agentsvc_components::RefusalKind;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelOutcome};

use super::*;
use crate::agent::{RemoveAgents, StopAgents};
use crate::testing::answer;
use crate::turn::StopTurns;
use crate::workflow::metrics::RunTotals;

fn timed(secs: u64, step: NewStep) -> NewStep {
    NewStep { timeout_secs: Some(secs), ..step }
}

#[test]
fn a_failed_step_fails_the_run() {
    let mut world = world();
    let id = make(&mut world, vec![named("think", step("p")), step("q")]);
    let asked = begin(&mut world, id, "");
    fail(&mut world);
    let (state, why) = ended(&asked);
    assert_eq!((state, why.as_str()), (RunState::Failed, "step \"think\" failed: no answer in time"));
    assert_eq!(kinds(&world), ["workflow_started", "workflow_failed"]);
    let run = newest(&mut world, id);
    assert_eq!(states(&run), [StepState::Failed, StepState::Cancelled]);
    assert_eq!(run.progress[0].error.as_deref(), Some("no answer in time"));
    assert!(run.ended_at.is_some() && run.progress[1].ended_at.is_none());
    assert_eq!(world.engine.world().resource::<RunTotals>().failed, 1);
}

#[test]
fn a_step_that_may_be_left_out_passes_its_input_on() {
    let mut world = world();
    let steps = vec![step("p {{input}}"), stored("x", skipped(step("q {{input}}"))), step("r {{input}} [{{x}}]")];
    let id = make(&mut world, steps);
    let asked = begin(&mut world, id, "1");
    reply(&mut world, "2");
    assert_eq!(fail(&mut world), "q 2");
    assert_eq!(reply(&mut world, "3"), "r 2 []");
    assert_eq!(completed(&asked), "3");
    let run = newest(&mut world, id);
    assert_eq!(states(&run), [StepState::Completed, StepState::Skipped, StepState::Completed]);
    assert_eq!(run.progress[1].error.as_deref(), Some("no answer in time"));
}

#[test]
fn retries_come_after_pauses_and_end() {
    let mut world = world();
    let id = make(&mut world, vec![retried(step("p"))]);
    let asked = begin(&mut world, id, "");
    for pause in [1_000, 2_000, 4_000] {
        fail(&mut world);
        assert_eq!(states(&newest(&mut world, id)), [StepState::Retrying]);
        beat(&mut world, pause - 500);
        assert!(world.calls.is_empty(), "not before the pause of {pause} is over");
        beat(&mut world, 500);
    }
    let run = newest(&mut world, id);
    assert_eq!((states(&run), run.progress[0].attempts), (vec![StepState::Running], 4));
    fail(&mut world);
    assert_eq!(ended(&asked).0, RunState::Failed);
    let asked = begin(&mut world, id, "");
    fail(&mut world);
    beat(&mut world, 1_000);
    reply(&mut world, "better");
    assert_eq!(completed(&asked), "better");
    let run = newest(&mut world, id);
    assert_eq!((run.progress[0].attempts, run.progress[0].error.as_deref()), (2, None));
}

#[test]
fn no_retry_may_be_asked_for() {
    let mut world = world();
    let id = make(&mut world, vec![NewStep { max_retries: Some(0), ..retried(step("p")) }]);
    let asked = begin(&mut world, id, "");
    fail(&mut world);
    assert_eq!(ended(&asked).0, RunState::Failed);
}

#[test]
fn an_attempt_has_its_time_and_what_comes_late_is_not_heard() {
    let mut world = world();
    let id = make(&mut world, vec![timed(5, named("slow", step("p"))), step("q")]);
    let asked = begin(&mut world, id, "");
    let call = world.next_call();
    beat(&mut world, 4_900);
    assert!(asked.take().is_none());
    beat(&mut world, 200);
    assert_eq!(ended(&asked).1, "step \"slow\" failed: timed out after 5 seconds");
    assert!(world.effects.iter().any(|effect| effect.get() == Some(&Abort(call.attempt))));
    world.answer(call.attempt, "late");
    assert_eq!(world.engine.stats().turns_open, 0);
    assert!(world.calls.is_empty());
    assert_eq!(newest(&mut world, id).outputs[0], None);
}

#[test]
fn a_late_answer_of_one_attempt_does_not_end_the_next() {
    let mut world = world();
    let id = make(&mut world, vec![timed(5, retried(step("p")))]);
    let asked = begin(&mut world, id, "");
    let late = world.next_call();
    beat(&mut world, 5_000);
    beat(&mut world, 1_000);
    let second = world.next_call();
    let partial =
        ModelAnswer { ..answer(vec![agentsvc_components::session::message::Block::Text { text: "late".into() }]) };
    world.outcome(ModelOutcome(late.attempt, ModelEnd::Aborted(partial)));
    assert!(asked.take().is_none());
    world.answer(second.attempt, "in time");
    assert_eq!(completed(&asked), "in time");
}

#[test]
fn all_of_a_group_end_before_the_run_fails() {
    let mut world = world();
    let id = make(&mut world, vec![named("x", fan_out("a")), skipped(fan_out("b")), fan_out("c"), collect()]);
    let asked = begin(&mut world, id, "");
    fail(&mut world);
    fail(&mut world);
    assert!(asked.take().is_none());
    reply(&mut world, "C");
    assert_eq!(ended(&asked), (RunState::Failed, "step \"x\" failed: no answer in time".to_owned()));
    let expected = [StepState::Failed, StepState::Skipped, StepState::Completed, StepState::Cancelled];
    assert_eq!(states(&newest(&mut world, id)), expected);
}

#[test]
fn what_is_left_out_of_a_group_is_not_collected() {
    let mut world = world();
    let id = make(&mut world, vec![fan_out("a"), skipped(fan_out("b")), retried(fan_out("c")), collect()]);
    let asked = begin(&mut world, id, "");
    reply(&mut world, "A");
    fail(&mut world);
    fail(&mut world);
    beat(&mut world, 1_000);
    reply(&mut world, "C");
    assert_eq!(completed(&asked), "A\n\nC");
    let id = make(&mut world, vec![skipped(fan_out("a")), skipped(fan_out("b")), collect()]);
    let asked = begin(&mut world, id, "as it was");
    fail(&mut world);
    fail(&mut world);
    assert_eq!(completed(&asked), "as it was");
}

#[test]
fn a_loop_keeps_what_it_gave() {
    let mut world = world();
    let id = make(&mut world, vec![skipped(repeat(None, "{{input}}x")), step("then {{input}}")]);
    let asked = begin(&mut world, id, "0");
    reply(&mut world, "1");
    assert_eq!(fail(&mut world), "1x");
    assert_eq!(reply(&mut world, "end"), "then 1");
    assert_eq!(completed(&asked), "end");
    assert_eq!(states(&newest(&mut world, id))[0], StepState::Completed);
    let id = make(&mut world, vec![NewStep { max_iterations: Some(2), ..retried(repeat(None, "{{input}}x")) }]);
    let asked = begin(&mut world, id, "0");
    for answer in ["1", "2"] {
        for pause in [1_000, 2_000, 4_000] {
            fail(&mut world);
            beat(&mut world, pause);
        }
        reply(&mut world, answer);
    }
    assert_eq!(completed(&asked), "2", "each iteration has its own retries");
    assert_eq!(newest(&mut world, id).progress[0].attempts, 8);
}

#[test]
fn an_agent_that_is_not_there_or_does_not_run_is_a_failure() {
    let mut world = TestWorld::new();
    let id = make(&mut world, vec![retried(step("p"))]);
    let asked = begin(&mut world, id, "");
    let run = newest(&mut world, id);
    assert_eq!(
        (states(&run), run.progress[0].error.as_deref()),
        (vec![StepState::Retrying], Some("agent not found: a"))
    );
    let agent = world.spawn("a");
    world.ask(StopAgents(vec![agent])).unwrap();
    beat(&mut world, 1_000);
    let error = newest(&mut world, id).progress[0].error.clone();
    assert!(error.unwrap().starts_with("the agent is not running (state Stopped)"));
    world.ask(crate::agent::StartAgents(vec![agent])).unwrap();
    beat(&mut world, 2_000);
    reply(&mut world, "there");
    assert_eq!(completed(&asked), "there");
}

#[test]
fn a_turn_that_is_stopped_or_loses_its_agent_is_a_failure() {
    let mut world = world();
    let agent = world.spawn("b");
    let of_b = make(&mut world, vec![named("s", NewStep { agent_name: Some("b".into()), ..step("p") })]);
    let asked = begin(&mut world, of_b, "");
    let call = world.next_call();
    world.ask(StopTurns { agent, session: None }).unwrap();
    world.answer(call.attempt, "half");
    assert_eq!(ended(&asked).1, "step \"s\" failed: its turn was stopped");
    let asked = begin(&mut world, of_b, "");
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(ended(&asked).1, "step \"s\" failed: the agent was removed");
    let asked = begin(&mut world, of_b, "");
    assert_eq!(ended(&asked).1, "step \"s\" failed: agent not found: b");
}

#[test]
fn prompts_that_cannot_be_sent_are_failures() {
    let mut world = world();
    let id = make(&mut world, vec![step("{{input}}")]);
    let asked = begin(&mut world, id, "");
    assert_eq!(ended(&asked).1, "step \"step-1\" failed: the prompt with its variables is empty");
    let id = make(&mut world, vec![step(&"{{input}}".repeat(7_000))]);
    let asked = begin(&mut world, id, &"x".repeat(10_000));
    assert!(ended(&asked).1.contains("longer than 1048576 bytes"));
    let refused = world.ask(StartRun { workflow: id, input: "x".repeat(262_145) }).unwrap_err();
    assert_eq!((refused.kind, refused.field.as_deref()), (RefusalKind::BadRequest, Some("input")));
}

#[test]
fn one_beat_finds_a_bounded_number_of_steps_out_of_time_and_the_next_the_rest() {
    let mut world = world();
    let workflow = make(&mut world, vec![timed(5, step("p"))]);
    let many = limit::WORKFLOW_STEPS_DUE_MAX + 5;
    for _ in 0..many {
        world.begin(StartRun { workflow, input: String::new() });
    }
    world.step();
    assert_eq!(world.engine.stats().workflow_runs_open, many);
    beat(&mut world, 5_001);
    assert_eq!(world.engine.stats().workflow_runs_open, 5);
    beat(&mut world, 0);
    assert_eq!(world.engine.stats().workflow_runs_open, 0);
    assert_eq!(world.engine.world().resource::<RunTotals>().failed as usize, many);
}

#[test]
fn a_clock_that_is_set_back_makes_no_pause_longer() {
    for is_restarted in [false, true] {
        let mut world = world();
        let id = make(&mut world, vec![retried(step("p"))]);
        begin(&mut world, id, "");
        fail(&mut world);
        assert_eq!(states(&newest(&mut world, id)), [StepState::Retrying]);
        world.now = world.now.plus_ms(-7_200_000);
        if is_restarted {
            world.restart();
        }
        beat(&mut world, 0);
        beat(&mut world, i64::from(limit::WORKFLOW_BACKOFF_SECS_MAX) * 1_000);
        assert_eq!(reply(&mut world, "better"), "p", "restarted: {is_restarted}");
        assert_eq!(newest(&mut world, id).state, RunState::Completed);
    }
}
