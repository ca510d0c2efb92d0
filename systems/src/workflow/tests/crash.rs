//! A run with every mode is killed at each of its committed steps. It must come to the same end, and no step whose output
//! was committed may be asked again.

use std::collections::BTreeMap;

use super::*;

/// The steps of the run.
fn steps() -> Vec<NewStep> {
    vec![
        stored("plan", step("plan {{input}}")),
        fan_out("a {{input}}"),
        retried(fan_out("flaky {{input}}")),
        skipped(fan_out("broken {{input}}")),
        stored("all", collect()),
        when("all contains 'flaky'", "check {{input}} {{plan}}"),
        when("all contains 'broken'", "never {{input}}"),
        NewStep { max_iterations: Some(4), ..retried(repeat(Some("output matches /x{3}/"), "flaky loop {{input}}x")) },
        step("end {{input}} {{plan}}"),
    ]
}

/// The outside: what each prompt gets, and how often it was answered.
#[derive(Default)]
struct Outside {
    failed: BTreeMap<String, u32>,
    answered: BTreeMap<String, u32>,
}

impl Outside {
    /// Settles the next call, if there is one.
    fn settle(&mut self, world: &mut TestWorld) -> bool {
        let Some(call) = world.calls.first() else { return false };
        let prompt = heard(world, call);
        let failures = self.failed.entry(prompt.clone()).or_default();
        if prompt.starts_with("broken") || (prompt.starts_with("flaky") && *failures < 2) {
            *failures += 1;
            fail(world);
        } else {
            *self.answered.entry(prompt.clone()).or_default() += 1;
            reply(world, &prompt.replace("flaky loop ", "").replace(' ', "-"));
        }
        true
    }
}

/// Runs to the end, killed after so many commits; gives the output, the outside, and how many commits there were.
fn run_killed_at(kill: Option<usize>) -> (WorkflowRun, Outside, usize) {
    let mut world = world();
    let workflow = make(&mut world, steps());
    let run = world.ask(StartRun { workflow, input: "tea".into() }).unwrap();
    let (mut outside, mut commits) = (Outside::default(), 1);
    loop {
        if kill == Some(commits) {
            world.restart();
        }
        let view = world.ask(GetRun(run)).unwrap();
        if !view.run.state.is_open() {
            return (view.run, outside, commits);
        }
        if !outside.settle(&mut world) {
            beat(&mut world, 500);
        }
        commits += 1;
        assert!(commits < 200, "the run is stuck: {:?}", view.run.progress);
    }
}

fn essence(run: &WorkflowRun) -> (RunState, Option<String>, Vec<(StepState, u32, u32)>) {
    let progress = run.progress.iter().map(|step| (step.state, step.attempts, step.iterations)).collect();
    (run.state, run.output.as_deref().map(str::to_owned), progress)
}

#[test]
fn a_kill_at_any_step_changes_nothing() {
    let (whole, outside, commits) = run_killed_at(None);
    assert_eq!(whole.state, RunState::Completed, "{:?}", whole.error);
    assert!(outside.answered.values().all(|times| *times == 1), "{:?}", outside.answered);
    assert_eq!(whole.progress[7].iterations, 3);
    assert!(commits > 20, "{commits}");
    for kill in 1..=commits {
        let (killed, after, _) = run_killed_at(Some(kill));
        assert_eq!(essence(&killed), essence(&whole), "killed after commit {kill}");
        assert_eq!(after.answered, outside.answered, "killed after commit {kill}: a settled step was asked again");
        assert_eq!(after.failed, outside.failed, "killed after commit {kill}: an attempt was repeated");
    }
}

#[test]
fn a_pause_ends_when_it_would_have_and_an_attempt_gets_its_whole_time() {
    let mut world = world();
    let id = make(&mut world, vec![NewStep { timeout_secs: Some(10), ..retried(step("p")) }]);
    world.ask(StartRun { workflow: id, input: String::new() }).unwrap();
    fail(&mut world);
    beat(&mut world, 1_000);
    fail(&mut world);
    let due = |world: &mut TestWorld| newest(world, id).progress[0].due;
    let pause = due(&mut world);
    world.restart();
    assert_eq!(due(&mut world), pause);
    beat(&mut world, 900);
    assert!(world.calls.is_empty(), "the pause of two seconds is not over");
    beat(&mut world, 200);
    assert_eq!(world.calls.len(), 1);
    beat(&mut world, 9_000);
    world.restart();
    beat(&mut world, 9_000);
    assert_eq!((states(&newest(&mut world, id)), world.calls.len()), (vec![StepState::Running], 1));
    beat(&mut world, 1_000);
    assert_eq!(states(&newest(&mut world, id)), [StepState::Retrying]);
    assert_eq!(newest(&mut world, id).progress[0].attempts, 3);
}

#[test]
fn a_time_that_ran_out_while_the_daemon_was_down_is_not_held_against_the_step() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    world.ask(StartRun { workflow: id, input: String::new() }).unwrap();
    world.now = world.now.plus_ms(1_000_000);
    world.restart();
    beat(&mut world, 1_000);
    assert_eq!(echo(&mut world), "p");
    assert_eq!(newest(&mut world, id).state, RunState::Completed);
}

#[test]
fn a_step_whose_turn_is_gone_fails_instead_of_waiting() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    world.ask(StartRun { workflow: id, input: String::new() }).unwrap();
    world.store.retain(|(_, key), _| key[0] != b't');
    world.restart();
    let run = newest(&mut world, id);
    assert_eq!(
        (run.state, run.error.as_deref()),
        (RunState::Failed, Some("step \"step-1\" failed: its turn no longer exists"))
    );
}

#[test]
fn a_run_without_its_plan_or_workflow_is_removed() {
    for kind in [b'f', b'p'] {
        let mut world = world();
        let id = make(&mut world, vec![step("p")]);
        world.ask(StartRun { workflow: id, input: String::new() }).unwrap();
        world.store.retain(|(_, key), _| key[0] != kind);
        world.restart();
        assert_eq!(world.engine.stats().workflow_runs_open, 0);
        assert!(!world.store.keys().any(|(_, key)| key[0] == b'n' || key[0] == b'p'));
    }
}
