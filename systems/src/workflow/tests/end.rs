//! Runs are cancelled, kept and forgotten.

use agentsvc_components::RefusalKind;
use agentsvc_components::kernel::limit;

use super::*;
use crate::workflow::metrics::RunTotals;

fn runs(world: &mut TestWorld, workflow: WorkflowId) -> Vec<RunSummary> {
    world.ask(ListRuns { workflow, after: None, limit: 1_000 }).unwrap().items
}

#[test]
fn a_cancelled_run_stops_its_turns() {
    let mut world = world();
    let id = make(&mut world, vec![step("p"), fan_out("a"), retried(fan_out("b")), fan_out("c"), step("q")]);
    let asked = begin(&mut world, id, "");
    reply(&mut world, "1");
    reply(&mut world, "A");
    fail(&mut world);
    let run = runs(&mut world, id)[0].id;
    world.ask(CancelRun(run)).unwrap();
    assert_eq!(ended(&asked), (RunState::Cancelled, "cancelled on request".to_owned()));
    let kept = newest(&mut world, id);
    let (done, gone) = (StepState::Completed, StepState::Cancelled);
    assert_eq!(states(&kept), [done, done, gone, gone, gone]);
    assert_eq!(kinds(&world).last(), Some(&"workflow_failed"));
    assert_eq!(world.engine.world().resource::<RunTotals>().cancelled, 1);
    reply(&mut world, "C");
    assert_eq!(world.engine.stats().turns_open, 0);
    beat(&mut world, 10_000_000);
    assert!(world.calls.is_empty() && !world.engine.has_work(), "nothing is due any more");
    let refused = world.ask(CancelRun(run)).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::Conflict, Some("run_ended")));
    let missing = world.ask(CancelRun(RunId(uuid::Uuid::nil()))).unwrap_err();
    assert_eq!(missing.kind, RefusalKind::NotFound);
}

#[test]
fn started_runs_are_read_while_they_go_on() {
    let mut world = world();
    let id = make(&mut world, vec![step("p {{input}}")]);
    let run = world.ask(StartRun { workflow: id, input: "x".into() }).unwrap();
    let view = world.ask(GetRun(run)).unwrap();
    assert_eq!((view.run.state, &*view.run.input, view.run.output), (RunState::Running, "x", None));
    let summary = &runs(&mut world, id)[0];
    assert_eq!((summary.id, summary.state, summary.steps_completed), (run, RunState::Running, 0));
    echo(&mut world);
    let summary = &runs(&mut world, id)[0];
    assert_eq!((summary.state, summary.steps_completed), (RunState::Completed, 1));
    assert_eq!(world.ask(GetRun(run)).unwrap().run.output.as_deref(), Some("<p x>"));
    let page = world.ask(ListRuns { workflow: id, after: Some(run), limit: 5 }).unwrap();
    assert!(page.items.is_empty());
}

#[test]
fn the_oldest_ended_runs_of_a_workflow_go() {
    let mut world = world();
    let id = make(&mut world, vec![step("p {{input}}")]);
    let other = make(&mut world, vec![when("no", "p")]);
    begin(&mut world, other, "stays");
    let open = world.ask(StartRun { workflow: id, input: "open".into() }).unwrap();
    let call = world.next_call();
    for n in 0..limit::WORKFLOW_RUNS_KEPT_MAX + 5 {
        let asked = begin(&mut world, id, &n.to_string());
        reply(&mut world, "done");
        completed(&asked);
    }
    let kept = runs(&mut world, id);
    assert_eq!(kept.len(), limit::WORKFLOW_RUNS_KEPT_MAX + 1, "the one under way does not count");
    assert_eq!(kept[0].id, open);
    assert_eq!(&*world.ask(GetRun(kept[1].id)).unwrap().run.input, "5");
    assert_eq!(runs(&mut world, other).len(), 1);
    let count = |kind: u8| world.store.keys().filter(|(_, key)| key[0] == kind).count();
    assert_eq!((count(b'n'), count(b'p')), (102, 1 + 100 * 3 + 2), "plan, output and text of each; no more");
    world.restart();
    assert_eq!(runs(&mut world, id), kept);
    drop(call);
}

#[test]
fn ended_runs_keep_the_beginnings_of_long_texts() {
    let mut world = world();
    let id = make(&mut world, vec![step("p {{input}}"), step("q")]);
    let asked = begin(&mut world, id, &"i".repeat(100_000));
    let (long, longer) = ("x".repeat(100_000), "y".repeat(200_000));
    reply(&mut world, &long);
    assert_eq!(newest(&mut world, id).outputs[0].as_deref(), Some(long.as_str()));
    reply(&mut world, &longer);
    assert_eq!(completed(&asked), longer);
    for restarted in [false, true] {
        if restarted {
            world.restart();
        }
        let run = newest(&mut world, id);
        assert_eq!(run.output.as_deref(), Some(longer.as_str()), "the result is kept whole");
        let first = run.outputs[0].as_deref().unwrap();
        assert!(first.len() <= limit::WORKFLOW_OUTPUT_KEPT_BYTES_MAX && first.contains("truncated"));
        assert!(run.input.len() <= limit::WORKFLOW_OUTPUT_KEPT_BYTES_MAX);
        assert!(run.steps.iter().all(|step| step.prompt.is_empty()) && &*run.steps[1].name == "step-2");
    }
}

#[test]
fn kept_runs_take_so_many_bytes_at_most() {
    let mut world = world();
    let ids: Vec<WorkflowId> = (0..4).map(|_| make(&mut world, vec![step("p")])).collect();
    let text = "x".repeat(limit::WORKFLOW_OUTPUT_BYTES_MAX);
    for n in 0..300 {
        let asked = begin(&mut world, ids[n % 4], "");
        reply(&mut world, &text);
        completed(&asked);
    }
    let kept: usize = ids.iter().map(|id| runs(&mut world, *id).len()).sum();
    assert!((200..256).contains(&kept), "{kept} runs of a quarter of a MiB");
    assert!(runs(&mut world, ids[3]).len() > 40, "the newest of all workflows are kept");
}

#[test]
fn the_house_takes_so_many_runs() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    for _ in 0..limit::WORKFLOW_RUNS_OPEN_MAX {
        world.begin(StartRun { workflow: id, input: String::new() });
    }
    world.step();
    let refused = world.ask(StartRun { workflow: id, input: String::new() }).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("workflow_runs_full")));
    assert!(refused.retry_after_secs.is_some());
    assert_eq!(world.engine.stats().workflow_runs_open, limit::WORKFLOW_RUNS_OPEN_MAX);
    assert_eq!(world.calls.len() + world.engine.stats().turns_waiting, limit::WORKFLOW_RUNS_OPEN_MAX);
}

#[test]
fn runs_under_way_take_so_many_bytes() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    let long = "i".repeat(limit::WORKFLOW_INPUT_BYTES_MAX + 1);
    let refused = world.ask(StartRun { workflow: id, input: long }).unwrap_err();
    assert_eq!((refused.kind, refused.field.as_deref()), (RefusalKind::BadRequest, Some("input")));
    world.ask(StartRun { workflow: id, input: String::new() }).unwrap();
    let taken = world.engine.world().resource::<Workflows>().open_bytes;
    let free = limit::WORKFLOW_RUNS_OPEN_BYTES_MAX - 2 * taken;
    world.engine.world_mut().resource_mut::<Workflows>().open_bytes += free + 1;
    let refused = world.ask(StartRun { workflow: id, input: String::new() }).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("workflow_runs_full")));
    assert!(refused.retry_after_secs.is_some());
    world.engine.world_mut().resource_mut::<Workflows>().open_bytes -= 1;
    world.ask(StartRun { workflow: id, input: String::new() }).unwrap();
}
