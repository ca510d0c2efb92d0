//! Definitions are listed, changed and removed.

use agentsvc_components::RefusalKind;
use agentsvc_components::kernel::limit;

use super::*;
use crate::kernel::entities::Get;

#[test]
fn definitions_are_listed_in_pages_in_the_order_of_their_making() {
    let mut world = world();
    let ids: Vec<WorkflowId> = (0..5).map(|_| make(&mut world, vec![step("p"), step("q")])).collect();
    let first = world.ask(ListWorkflows { limit: 3, ..ListWorkflows::default() }).unwrap();
    assert_eq!((first.items.len(), first.total, first.next), (3, Some(5), Some(ids[2])));
    let first_one = &first.items[0];
    assert_eq!((first_one.steps, &*first_one.description), (2, "what for"));
    world.restart();
    let rest = world.ask(ListWorkflows { filter: (), after: first.next, limit: 3 }).unwrap();
    assert_eq!(rest.items.iter().map(|item| item.id).collect::<Vec<_>>(), ids[3..]);
    assert_eq!(rest.next, None);
}

#[test]
fn a_change_touches_what_is_sent_and_not_the_runs_under_way() {
    let mut world = world();
    let id = make(&mut world, vec![step("one {{input}}"), step("two {{input}}")]);
    let asked = begin(&mut world, id, "x");
    let patch = WorkflowPatch { steps: Some(vec![step("other")]), ..WorkflowPatch::default() };
    let changed = world.ask(UpdateWorkflow { workflow: id, patch }).unwrap().workflow;
    assert_eq!((changed.steps.len(), &*changed.name, &*changed.description), (1, "w", "what for"));
    assert!(changed.updated_at > changed.created_at);
    let patch = WorkflowPatch { name: Some("new".into()), ..WorkflowPatch::default() };
    world.ask(UpdateWorkflow { workflow: id, patch }).unwrap();
    world.restart();
    let view = world.ask(Get::<WorkflowView>(id)).unwrap().workflow;
    assert_eq!((&*view.name, view.steps.len(), view.created_at), ("new", 1, changed.created_at));
    assert_eq!(echo(&mut world), "one x");
    assert_eq!(echo(&mut world), "two <one x>");
    assert_eq!(newest(&mut world, id).output.as_deref(), Some("<two <one x>>"));
    assert_eq!(&*newest(&mut world, id).name, "w", "the name that it was begun under");
    drop(asked);
}

#[test]
fn a_refused_change_changes_nothing() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    let before = world.ask(Get::<WorkflowView>(id)).unwrap();
    let patch = WorkflowPatch { name: Some("new".into()), steps: Some(vec![]), ..WorkflowPatch::default() };
    let refused = world.ask(UpdateWorkflow { workflow: id, patch }).unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("steps"));
    assert_eq!(world.ask(Get::<WorkflowView>(id)).unwrap(), before);
}

#[test]
fn a_removed_workflow_takes_its_runs_along() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    let done = begin(&mut world, id, "");
    reply(&mut world, "done");
    completed(&done);
    let open = begin(&mut world, id, "");
    let run = world.ask(ListRuns { workflow: id, after: None, limit: 9 }).unwrap().items[1].id;
    assert_eq!(world.ask(Remove::<Workflow>(id)).unwrap(), 1);
    let (state, why) = ended(&open);
    assert_eq!((state, why.as_str()), (RunState::Cancelled, "cancelled: its workflow was deleted"));
    for kind in [b'f', b'n', b'p'] {
        assert!(!world.store.keys().any(|(_, key)| key[0] == kind), "nothing is left of {}", kind as char);
    }
    let gone = [
        world.ask(Get::<WorkflowView>(id)).err(),
        world.ask(GetRun(run)).err(),
        world.ask(Remove::<Workflow>(id)).err(),
        world.ask(ListRuns { workflow: id, after: None, limit: 9 }).err(),
        world.ask(StartRun { workflow: id, input: String::new() }).err(),
        world.ask(UpdateWorkflow { workflow: id, patch: WorkflowPatch::default() }).err(),
    ];
    for refusal in gone {
        assert_eq!(refusal.map(|refusal| refusal.kind), Some(RefusalKind::NotFound));
    }
    // Its turn was asked to stop; what it still says is heard by nobody.
    reply(&mut world, "late");
    assert_eq!(world.engine.stats().turns_open, 0);
    world.restart();
    assert_eq!(world.engine.stats().workflows, 0);
}

#[test]
fn the_house_takes_so_many_definitions() {
    let mut world = world();
    for _ in 0..limit::WORKFLOWS_MAX {
        world.begin(CreateWorkflow(NewWorkflow { name: "w".into(), steps: vec![step("p")], ..NewWorkflow::default() }));
    }
    world.step();
    let refused = create(&mut world, vec![step("p")]).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("workflows_full")));
}

#[test]
fn the_texts_of_definitions_take_so_many_bytes_whether_they_are_made_or_changed() {
    let mut world = world();
    let used = |world: &mut TestWorld| world.engine.world_mut().resource_mut::<Definitions>().used.bytes;
    let id = make(&mut world, vec![step("p")]);
    let one = used(&mut world);
    let other = make(&mut world, vec![step("qq")]);
    assert_eq!(used(&mut world), 2 * one + 1, "a byte of a prompt is a byte");
    world.engine.world_mut().resource_mut::<Definitions>().used.bytes = limit::WORKFLOWS_BYTES_MAX;
    let full = (RefusalKind::TooMany, Some(error_codes::WORKFLOWS_FULL), Some(60));
    let said = |refused: Refusal| (refused.kind, refused.code, refused.retry_after_secs);
    let before = world.ask(Get::<WorkflowView>(id)).unwrap();
    assert_eq!(said(create(&mut world, vec![step("p")]).unwrap_err()), full);
    let change = |world: &mut TestWorld, workflow, prompt: &str| {
        let patch = WorkflowPatch { steps: Some(vec![step(prompt)]), ..WorkflowPatch::default() };
        world.ask(UpdateWorkflow { workflow, patch })
    };
    let longer = WorkflowPatch { description: Some("what it is for".into()), ..WorkflowPatch::default() };
    assert_eq!(said(world.ask(UpdateWorkflow { workflow: id, patch: longer }).unwrap_err()), full);
    assert_eq!(said(change(&mut world, id, "pp").unwrap_err()), full);
    assert_eq!(world.ask(Get::<WorkflowView>(id)).unwrap(), before);
    // What becomes no longer is taken, and what becomes shorter or goes makes room.
    change(&mut world, id, "r").unwrap();
    change(&mut world, other, "q").unwrap();
    change(&mut world, id, "pp").unwrap();
    assert_eq!(said(change(&mut world, id, "ppp").unwrap_err()), full);
    world.ask(Remove::<Workflow>(other)).unwrap();
    create(&mut world, vec![step("p")]).unwrap();
    assert_eq!(said(create(&mut world, vec![step("p")]).unwrap_err()), full);
    // A restart counts what there is.
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    assert_eq!(used(&mut world), 2 * one + 1);
}
