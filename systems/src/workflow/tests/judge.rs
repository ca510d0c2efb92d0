//! Conditions cost time of the world: each one, each run and each step of the world has so much of it.

use agentsvc_components::RunId;
use agentsvc_components::kernel::limit;

use super::*;
use crate::testing::{key_of, two_users};
use crate::workflow::judge::Told;

/// Half of what one condition may cost.
const HALF: usize = limit::WORKFLOW_CONDITION_WORK_MAX / 2;

/// A condition that does not hold, and costs about a million units for each test over the text of [`heavy`].
fn tests(count: usize) -> String {
    vec!["input contains 'zqN'"; count].join(" or ")
}

/// A text of which one look costs nearly a million units.
fn heavy() -> String {
    "É".repeat(62_000)
}

/// Begins a run that nobody waits for.
fn start(world: &mut TestWorld, workflow: WorkflowId, input: &str) -> RunId {
    world.ask(StartRun { workflow, input: input.into() }).unwrap()
}

/// The run as it is, without a further step.
fn run(world: &TestWorld, id: RunId) -> WorkflowRun {
    let entity = world.engine.world().resource::<Workflows>().run(id).unwrap();
    world.engine.world().get::<WorkflowRun>(entity).unwrap().clone()
}

#[test]
fn a_condition_that_takes_too_long_fails_its_step_and_the_run_whatever_the_error_mode() {
    let slow = "input matches /[01]*1[01]{200}x/";
    for (error_mode, condition) in
        [(ErrorMode::Fail, slow.to_owned()), (ErrorMode::Retry, slow.to_owned()), (ErrorMode::Skip, tests(17))]
    {
        let mut world = world();
        let id = make(&mut world, vec![named("check", NewStep { error_mode, ..when(&condition, "p") }), step("q")]);
        let text = if error_mode == ErrorMode::Skip { heavy() } else { "01".repeat(50_000) };
        let asked = begin(&mut world, id, &text);
        let (state, why) = ended(&asked);
        assert_eq!(state, RunState::Failed);
        assert!(why.starts_with("step \"check\" failed: its condition takes too long"), "{why}");
        assert!(why.contains("WORKFLOW_CONDITION_WORK_MAX"), "{why}");
        let after = newest(&mut world, id);
        assert_eq!(states(&after), [StepState::Failed, StepState::Cancelled]);
        assert!(world.calls.is_empty() && after.judged <= limit::WORKFLOW_CONDITION_WORK_MAX as u64);
        // A short text is no trouble.
        let asked = begin(&mut world, id, "01");
        assert_eq!(reply(&mut world, "end"), "q");
        assert_eq!(completed(&asked), "end");
    }
}

#[test]
fn a_run_has_so_much_time_for_all_of_its_conditions_also_over_restarts() {
    let mut world = world();
    let steps: Vec<NewStep> = (0..64).map(|_| when(&tests(15), "p")).collect();
    let id = make(&mut world, steps);
    let run_id = start(&mut world, id, &heavy());
    let mut spent = 0;
    for at in 0.. {
        let found = run(&world, run_id);
        assert!(found.judged >= spent, "{} after {spent}", found.judged);
        spent = found.judged;
        if !found.state.is_open() {
            break;
        }
        if at == 5 {
            world.restart();
        }
        world.step();
        assert!(at < 64);
    }
    let found = run(&world, run_id);
    assert_eq!((found.state, spent), (RunState::Failed, limit::WORKFLOW_RUN_WORK_MAX as u64));
    let why = found.error.unwrap();
    assert!(why.contains("the conditions of the run take too long") && why.contains("WORKFLOW_RUN_WORK_MAX"), "{why}");
    assert!(world.calls.is_empty());
}

#[test]
fn a_step_of_the_world_has_so_much_time_and_the_rest_goes_on_in_the_next() {
    let mut world = world();
    let heavy_one = make(&mut world, (0..8).map(|_| when(&tests(3), "p")).collect());
    let light_one = make(&mut world, vec![step("light")]);
    let heavy_run = start(&mut world, heavy_one, &heavy());
    let before = run(&world, heavy_run);
    assert!(before.state.is_open() && before.at < 8, "{}", before.at);
    // Those that wait for no condition do not wait.
    start(&mut world, light_one, "x");
    assert_eq!(world.calls.len(), 1);
    let mut steps = 0;
    while run(&world, heavy_run).state.is_open() {
        let judged = run(&world, heavy_run).judged;
        assert!(world.engine.has_work());
        world.step();
        assert_eq!(world.engine.world().resource::<Told>().0, 0, "each step begins anew");
        let more = run(&world, heavy_run).judged - judged;
        assert!(more < (limit::WORKFLOW_WORK_PER_STEP_MAX + HALF) as u64, "{more}");
        steps += 1;
        assert!(steps < 20);
    }
    assert!(steps >= 2, "{steps}");
    assert_eq!(run(&world, heavy_run).state, RunState::Completed);
}

#[test]
fn users_take_turns() {
    let (mut world, [anns, bobs, _]) = two_users();
    let of = |agent, condition: &str| NewStep { agent_name: None, agent_id: Some(agent), ..when(condition, "p") };
    world.actor = key_of(1);
    let ann = make(&mut world, (0..64).map(|_| of(anns, &tests(15))).collect());
    world.actor = key_of(2);
    let bob = make(&mut world, vec![of(bobs, "input == 'x'")]);
    world.actor = key_of(1);
    let of_ann: Vec<RunId> = (0..5).map(|_| start(&mut world, ann, &heavy())).collect();
    world.actor = key_of(2);
    let of_bob = start(&mut world, bob, "x");
    for _ in 0..2 {
        world.step();
    }
    assert_eq!(world.calls.len(), 1, "the one of bob has had its turn");
    assert_eq!(states(&run(&world, of_bob)), [StepState::Running]);
    assert!(of_ann.iter().all(|id| run(&world, *id).state.is_open()));
}

#[test]
fn what_a_loop_was_given_is_there_when_its_condition_is_told_in_another_step() {
    for restarts in [false, true] {
        let mut world = world();
        let until = "input contains 'given' and output contains 'enough'";
        let id = make(&mut world, vec![repeat(Some(until), "again {{input}}"), step("then {{input}}")]);
        let looped = start(&mut world, id, "it");
        reply(&mut world, "given");
        let call = world.next_call();
        world.engine.world_mut().resource_mut::<Told>().0 = limit::WORKFLOW_WORK_PER_STEP_MAX;
        world.answer(call.attempt, "enough");
        // The step had no time for it.
        assert!(world.calls.is_empty());
        let waiting = run(&world, looped);
        assert_eq!((states(&waiting)[0], waiting.given.as_deref()), (StepState::Pending, Some("given")));
        if restarts {
            world.restart();
        }
        world.step();
        assert_eq!(reply(&mut world, "end"), "then enough");
        let after = run(&world, looped);
        assert_eq!((after.state, after.given), (RunState::Completed, None));
    }
}

#[test]
fn the_regular_expressions_of_a_definition_are_bounded_together() {
    let mut world = world();
    let wide = || when(r"output matches /\w\w\w/", "p");
    assert!(create(&mut world, vec![wide(), step("q")]).is_ok());
    let refused = create(&mut world, vec![wide(), step("q"), wide()]).unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("steps[2].condition"));
    assert!(refused.message.contains("too large"), "{}", refused.message);
    let many: Vec<NewStep> = (0..64).map(|_| when(&vec!["input matches /[a-z]{20}/"; 32].join(" or "), "p")).collect();
    assert!(create(&mut world, many).unwrap_err().message.contains("too large"));
}
