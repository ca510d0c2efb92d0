//! A user and a family of agents leave definitions, runs and their bytes, and ended runs, to others.

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, RefusalKind, RunId};
use uuid::Uuid;

use super::*;
use crate::testing::{key_of, share_is_full, turn_of, two_users};

const RUNS: usize = limit::WORKFLOW_RUNS_OPEN_MAX / limit::POOL_SHARES;
const BYTES: usize = limit::WORKFLOW_RUNS_OPEN_BYTES_MAX / limit::POOL_SHARES;
const ANN: Holder = Holder::User(UserId(Uuid::from_u128(1)));

fn of(agent: AgentId) -> NewStep {
    NewStep { agent_name: None, agent_id: Some(agent), ..step("p") }
}

fn start(world: &mut TestWorld, workflow: WorkflowId) -> Result<RunId, Refusal> {
    world.ask(StartRun { workflow, input: String::new() })
}

/// Goes on as if a holder had so much more under way.
fn pretend(world: &mut TestWorld, holder: Holder, count: usize, bytes: usize) {
    world.engine.world_mut().resource_mut::<Workflows>().shares.add(Some(holder), count, bytes);
}

#[track_caller]
fn is_full(result: Result<RunId, Refusal>) {
    let refused = result.unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("workflow_runs_full")));
    assert!(refused.message.contains("of this user or family") && refused.retry_after_secs.is_some(), "{refused:?}");
}

#[test]
fn a_user_and_a_family_leave_runs_to_others_also_over_a_restart() {
    let (mut world, [anns, bobs, shared]) = two_users();
    for (actor, agent, holder) in [(key_of(1), anns, ANN), (turn_of(shared), shared, Holder::Family(shared))] {
        world.actor = actor;
        let id = create(&mut world, vec![of(agent)]).unwrap().id;
        pretend(&mut world, holder, RUNS - 1, 0);
        let last = start(&mut world, id).unwrap();
        is_full(start(&mut world, id));
        world.actor = key_of(2);
        let bob = create(&mut world, vec![of(bobs)]).unwrap().id;
        start(&mut world, bob).unwrap();
        world.actor = Actor::Api;
        start(&mut world, id).unwrap();
        world.actor = actor;
        world.ask(CancelRun(last)).unwrap();
        start(&mut world, id).unwrap();
    }
    let before = world.engine.world().resource::<Workflows>().shares.clone();
    world.restart();
    let after = world.engine.world().resource::<Workflows>().shares.clone();
    assert_ne!(after, before, "what was pretended is gone");
    pretend(&mut world, ANN, RUNS - 1, 0);
    pretend(&mut world, Holder::Family(shared), RUNS - 1, 0);
    assert_eq!(world.engine.world().resource::<Workflows>().shares, before);
}

#[test]
fn runs_of_a_user_have_no_room_beyond_their_bytes_and_an_output_without_room_fails_its_step() {
    let (mut world, [anns, bobs, _]) = two_users();
    world.actor = key_of(1);
    let id = create(&mut world, vec![of(anns)]).unwrap().id;
    let run = start(&mut world, id).unwrap();
    let taken = world.engine.world().resource::<Workflows>().open_bytes;
    pretend(&mut world, ANN, 0, BYTES - taken - 2);
    is_full(start(&mut world, id));
    let call = world.next_call();
    world.answer(call.attempt, "long");
    let view = world.ask(GetRun(run)).unwrap().run;
    assert_eq!(view.state, RunState::Failed);
    assert!(view.error.unwrap().contains("no room for its output"));
    world.actor = key_of(2);
    let bob = create(&mut world, vec![of(bobs)]).unwrap().id;
    let run = start(&mut world, bob).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "long");
    assert_eq!(world.ask(GetRun(run)).unwrap().run.state, RunState::Completed);
}

#[test]
fn a_user_leaves_definitions_to_others_and_longer_ones_take_the_share_of_whoever_makes_them_longer() {
    let (mut world, [anns, bobs, _]) = two_users();
    let share = limit::WORKFLOWS_MAX / limit::POOL_SHARES;
    let pretend = |world: &mut TestWorld, count, bytes| {
        world.engine.world_mut().resource_mut::<Definitions>().shares.add(Some(ANN), count, bytes);
    };
    let given = create(&mut world, vec![of(anns)]).unwrap().id;
    pretend(&mut world, share - 1, 0);
    world.actor = key_of(1);
    let own = create(&mut world, vec![of(anns)]).unwrap();
    share_is_full(create(&mut world, vec![of(anns)]), "workflows_full", "a user");
    let taken = own.workflow.bytes();
    pretend(&mut world, 0, limit::WORKFLOWS_BYTES_MAX / limit::POOL_SHARES - taken);
    for workflow in [given, own.id] {
        let patch = WorkflowPatch { description: Some("longer than what for".into()), ..WorkflowPatch::default() };
        share_is_full(world.ask(UpdateWorkflow { workflow, patch }), "workflows_full", "a user");
    }
    world.actor = key_of(2);
    create(&mut world, vec![of(bobs)]).unwrap();
    world.actor = Actor::Api;
    create(&mut world, vec![of(anns)]).unwrap();
}

#[test]
fn ended_runs_of_one_user_do_not_push_out_those_of_another() {
    let (mut world, [anns, bobs, _]) = two_users();
    let text = "x".repeat(limit::WORKFLOW_OUTPUT_BYTES_MAX);
    let run = |world: &mut TestWorld, user, workflow| {
        world.actor = key_of(user);
        let run = start(world, workflow).unwrap();
        let call = world.next_call();
        world.answer(call.attempt, &text);
        run
    };
    let make = |world: &mut TestWorld, user, agent| {
        world.actor = key_of(user);
        create(world, vec![of(agent)]).unwrap().id
    };
    let bob = make(&mut world, 2, bobs);
    let bobs_run = run(&mut world, 2, bob);
    let anns: Vec<_> = (0..4).map(|_| make(&mut world, 1, anns)).collect();
    let first = run(&mut world, 1, anns[0]);
    for n in 0..260 {
        run(&mut world, 1, anns[n % 4]);
    }
    world.ask(GetRun(first)).unwrap_err();
    world.actor = key_of(2);
    assert_eq!(world.ask(GetRun(bobs_run)).unwrap().run.state, RunState::Completed);
}

#[test]
fn a_share_that_holds_other_than_what_the_runs_take_is_told() {
    let (mut world, [anns, ..]) = two_users();
    world.actor = key_of(1);
    let id = create(&mut world, vec![of(anns)]).unwrap().id;
    start(&mut world, id).unwrap();
    assert_eq!(world.engine.check(), [] as [String; 0]);
    pretend(&mut world, ANN, 1, 0);
    let faults = world.engine.check();
    assert!(faults.iter().any(|fault| fault.contains("open runs by holders")), "{faults:?}");
}
