//! Goals: what their commands store and refuse, and how they stand in the prompt.

use agentsvc_components::goal::GoalStatus;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, GoalId, RefusalKind, Timestamp};
use uuid::Uuid;

use super::*;
use crate::agent::RemoveAgents;
use crate::kernel::entities::Get;
use crate::testing::TestWorld;
use crate::turn::{NewMessage, SendMessage};

fn goal(title: &str) -> CreateGoal {
    CreateGoal { title: title.into(), ..CreateGoal::default() }
}

fn set(world: &mut TestWorld, command: CreateGoal) -> GoalId {
    world.ask(command).unwrap().id
}

fn under(world: &mut TestWorld, parent: Option<GoalId>) -> GoalId {
    set(world, CreateGoal { parent, ..goal("part") })
}

fn patch(world: &mut TestWorld, goal: GoalId, patch: GoalPatch) -> GoalView {
    world.ask(UpdateGoal { goal, patch, only_of: None }).unwrap()
}

fn status(status: GoalStatus) -> GoalPatch {
    GoalPatch { status: Some(status), ..GoalPatch::default() }
}

#[test]
fn a_goal_is_stored_changed_and_comes_back() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let (top, due) = (under(&mut world, None), Timestamp(1_800_000_000_000));
    let command = CreateGoal {
        description: "of the year".into(),
        agent: Some(agent),
        parent: Some(top),
        due_at: Some(due),
        ..goal(" the report ")
    };
    let made = world.ask(command).unwrap();
    assert_eq!((&*made.goal.title, made.goal.status, made.has_children), ("the report", GoalStatus::Pending, false));
    world.restart();
    assert_eq!(world.ask(Get::<GoalView>(made.id)).unwrap(), made);
    assert!(world.ask(Get::<GoalView>(top)).unwrap().has_children);
    let done = patch(&mut world, made.id, status(GoalStatus::Completed)).goal;
    assert_eq!((done.completed_at, done.due_at), (Some(done.updated_at), Some(due)));
    let open =
        GoalPatch { due_at: Some(None), agent: Some(None), parent: Some(None), ..status(GoalStatus::InProgress) };
    let open = patch(&mut world, made.id, open).goal;
    assert_eq!((open.completed_at, open.due_at, open.agent, open.parent), (None, None, None, None));
    assert_eq!(&*open.description, "of the year", "what is not sent stays");
    world.restart();
    assert_eq!(world.ask(Get::<GoalView>(made.id)).unwrap().goal, open);
}

#[test]
fn a_refused_goal_changes_nothing_and_names_the_field() {
    let mut world = TestWorld::new();
    let a = world.spawn("a");
    let top = set(&mut world, CreateGoal { agent: Some(a), ..goal("top") });
    let before = world.store.clone();
    let (nobody, nothing) = (AgentId(Uuid::nil()), GoalId(Uuid::nil()));
    for (command, kind, field) in [
        (goal(" "), RefusalKind::BadRequest, "title"),
        (goal(&"t".repeat(limit::GOAL_TITLE_BYTES_MAX + 1)), RefusalKind::BadRequest, "title"),
        (goal("a\nb"), RefusalKind::BadRequest, "title"),
        (
            CreateGoal { description: "d".repeat(limit::GOAL_DESCRIPTION_BYTES_MAX + 1), ..goal("t") },
            RefusalKind::BadRequest,
            "description",
        ),
        (CreateGoal { note: "n".repeat(limit::GOAL_NOTE_BYTES_MAX + 1), ..goal("t") }, RefusalKind::BadRequest, "note"),
        (CreateGoal { agent: Some(nobody), ..goal("t") }, RefusalKind::NotFound, "agent_id"),
        (CreateGoal { parent: Some(nothing), ..goal("t") }, RefusalKind::NotFound, "parent_id"),
    ] {
        let refused = world.ask(command).unwrap_err();
        assert_eq!((refused.kind, refused.field.as_deref()), (kind, Some(field)));
    }
    let mixed = GoalPatch { title: Some("new".into()), parent: Some(Some(nothing)), ..GoalPatch::default() };
    assert!(world.ask(UpdateGoal { goal: top, patch: mixed, only_of: None }).is_err());
    let foreign = UpdateGoal { goal: top, patch: status(GoalStatus::Completed), only_of: Some(nobody) };
    assert_eq!(world.ask(foreign).unwrap_err().kind, RefusalKind::Forbidden);
    let b = world.spawn("b");
    let below = CreateGoal { agent: Some(b), parent: Some(top), only_below_own: true, ..goal("t") };
    assert_eq!(world.ask(below).unwrap_err().kind, RefusalKind::Forbidden);
    let goals = |store: &std::collections::HashMap<(_, Vec<u8>), Vec<u8>>| {
        store.iter().filter(|((_, key), _)| key[0] == b'o').map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(goals(&world.store), goals(&before));
}

#[test]
fn deleting_a_goal_takes_all_below_it_and_nothing_else() {
    let mut world = TestWorld::new();
    let top = under(&mut world, None);
    let (left, right) = (under(&mut world, Some(top)), under(&mut world, Some(top)));
    let leaf = under(&mut world, Some(left));
    let other = under(&mut world, None);
    assert_eq!(world.ask(Remove::<Goal>(left)).unwrap(), 2);
    assert!(world.ask(Get::<GoalView>(leaf)).is_err() && world.ask(Get::<GoalView>(right)).is_ok());
    assert_eq!(world.ask(Remove::<Goal>(top)).unwrap(), 2);
    assert_eq!(world.ask(Remove::<Goal>(top)).unwrap_err().kind, RefusalKind::NotFound);
    world.restart();
    let page = world.ask(ListGoals { limit: 10, ..ListGoals::default() }).unwrap();
    assert_eq!(page.items.iter().map(|view| view.id).collect::<Vec<_>>(), [other]);
    assert_eq!(world.store.keys().filter(|(_, key)| key[0] == b'o').count(), 1);
}

#[test]
fn the_tree_has_no_circle_and_a_bounded_depth() {
    let mut world = TestWorld::new();
    let mut chain = vec![under(&mut world, None)];
    while chain.len() < limit::GOAL_DEPTH_MAX {
        let parent = chain.last().copied();
        chain.push(under(&mut world, parent));
    }
    let deeper = world.ask(CreateGoal { parent: chain.last().copied(), ..goal("t") }).unwrap_err();
    assert_eq!((deeper.kind, deeper.field.as_deref()), (RefusalKind::BadRequest, Some("parent_id")));
    let moved = |world: &mut TestWorld, goal, parent| {
        let patch = GoalPatch { parent: Some(Some(parent)), ..GoalPatch::default() };
        world.ask(UpdateGoal { goal, patch, only_of: None })
    };
    for below in [chain[0], chain[1], chain[15]] {
        let refused = moved(&mut world, chain[0], below).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("parent_id"), "a goal cannot stand below itself");
    }
    let other = under(&mut world, None);
    assert!(moved(&mut world, chain[0], other).is_err(), "16 goals and one above are too many");
    moved(&mut world, chain[1], other).unwrap();
    assert!(moved(&mut world, other, chain[0]).is_err());
    moved(&mut world, chain[8], chain[0]).unwrap();
    moved(&mut world, other, chain[0]).unwrap();
}

#[test]
fn a_removed_agent_leaves_its_goals_to_nobody() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let own = set(&mut world, CreateGoal { agent: Some(a), ..goal("own") });
    let other = set(&mut world, CreateGoal { agent: Some(b), parent: Some(own), ..goal("other") });
    let before = world.ask(Get::<GoalView>(own)).unwrap().goal;
    world.ask(RemoveAgents(vec![a])).unwrap();
    world.restart();
    assert_eq!(
        world.ask(Get::<GoalView>(own)).unwrap().goal,
        agentsvc_components::goal::Goal { agent: None, ..before }
    );
    assert_eq!(world.ask(Get::<GoalView>(other)).unwrap().goal.agent, Some(b));
}

#[test]
fn lists_page_and_filter() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let top = under(&mut world, None);
    let parts: Vec<GoalId> = (0..5).map(|_| under(&mut world, Some(top))).collect();
    let own = set(&mut world, CreateGoal { agent: Some(agent), parent: Some(top), ..goal("own") });
    patch(&mut world, parts[2], status(GoalStatus::Cancelled));
    let ids = |world: &mut TestWorld, filter: GoalFilter, after, limit| {
        let page = world.ask(ListGoals { filter, after, limit }).unwrap();
        (page.items.iter().map(|view| view.id).collect::<Vec<_>>(), page.next, page.total)
    };
    let below = GoalFilter { parent: Some(Some(top)), ..GoalFilter::default() };
    let (first, next, total) = ids(&mut world, below.clone(), None, 4);
    assert_eq!((&*first, next, total), (&parts[..4], Some(parts[3]), Some(6)));
    assert_eq!(ids(&mut world, below.clone(), next, 4), (vec![parts[4], own], None, None));
    assert_eq!(ids(&mut world, GoalFilter { agent: Some(Some(agent)), ..below }, None, 9).0, [own]);
    let roots = GoalFilter { parent: Some(None), ..GoalFilter::default() };
    assert_eq!(ids(&mut world, roots, None, 9).0, [top]);
    let of_agent = GoalFilter { agent: Some(Some(agent)), ..GoalFilter::default() };
    assert_eq!(ids(&mut world, of_agent, None, 9), (vec![own], None, Some(1)));
    let cancelled = GoalFilter { status: Some(GoalStatus::Cancelled), ..GoalFilter::default() };
    assert_eq!(ids(&mut world, cancelled, None, 9), (vec![parts[2]], None, Some(7)));
    let filter = GoalFilter { parent: Some(Some(GoalId(Uuid::nil()))), ..GoalFilter::default() };
    let missing = ListGoals { filter: GoalFilter { parent_must_exist: true, ..filter }, limit: 1, after: None };
    assert_eq!(world.ask(missing).unwrap_err().kind, RefusalKind::NotFound);
}

#[test]
fn open_goals_stand_in_the_prompt_due_ones_first_and_never_the_time() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let prompt = |world: &TestWorld| in_prompt(world.engine.world(), agent).map(|text| text.to_string());
    assert_eq!(prompt(&world), None);
    let own = |title: &str| CreateGoal { agent: Some(agent), ..goal(title) };
    let old = set(&mut world, own("old"));
    let late = set(&mut world, CreateGoal { due_at: Some(Timestamp(1_900_000_000_000)), ..own("late") });
    let soon = CreateGoal { due_at: Some(Timestamp(1_700_000_001_000)), parent: Some(old), ..own("soon") };
    let soon = set(&mut world, CreateGoal { description: "two\nlines  here".into(), ..soon });
    let text = prompt(&world).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let due = "due 2023-11-14T22:13:21.000Z";
    assert_eq!(lines[0], format!("- [{soon}] soon (pending, {due}, part of {old}): two lines here"));
    assert!(lines[1].starts_with(&format!("- [{late}] late")) && lines[2] == format!("- [{old}] old (pending)"));
    world.now = world.now.plus_ms(86_400_000);
    world.restart();
    assert_eq!(prompt(&world).unwrap(), text, "neither the time nor a restart changes it");
    let note = GoalPatch { note: Some("half way".into()), ..status(GoalStatus::InProgress) };
    patch(&mut world, old, note);
    assert!(prompt(&world).unwrap().ends_with(&format!("[{old}] old (in_progress) Note: half way")));
    for done in [old, late, soon] {
        patch(&mut world, done, status(GoalStatus::Completed));
    }
    assert_eq!(prompt(&world), None);
}

#[test]
fn the_prompt_is_bounded_and_goes_with_every_model_call() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let long = CreateGoal { description: "é".repeat(2_000), ..goal(&"t".repeat(limit::GOAL_TITLE_BYTES_MAX)) };
    for _ in 0..limit::GOALS_IN_PROMPT_MAX + 1 {
        set(&mut world, CreateGoal { agent: Some(agent), ..long.clone() });
    }
    world.begin(SendMessage { agent, session: None, message: NewMessage::text("go") });
    world.step();
    let text = world.next_call().goals.expect("the goals go with the call");
    assert_eq!(text.lines().filter(|line| line.starts_with("- [")).count(), limit::GOALS_IN_PROMPT_MAX);
    assert!(text.ends_with("come first)") && text.len() < 32 << 10, "{}", text.len());
}

/// Goes on as if there were so many goals more, of so many bytes.
fn pretend(world: &mut TestWorld, goals: usize, bytes: usize) {
    let used = &mut world.engine.world_mut().resource_mut::<Goals>().used;
    (used.count, used.bytes) = (used.count + goals, used.bytes + bytes);
}

#[test]
fn the_house_takes_so_many_goals() {
    let mut world = TestWorld::new();
    pretend(&mut world, limit::GOALS_MAX - 1, 0);
    let last = set(&mut world, goal("last"));
    let refused = world.ask(goal("one more")).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("goals_full")));
    assert!(refused.retry_after_secs.is_some());
    world.ask(Remove::<Goal>(last)).unwrap();
    set(&mut world, goal("there is room again"));
}

#[test]
fn the_texts_of_goals_take_so_many_bytes_whether_they_are_made_or_changed() {
    let mut world = TestWorld::new();
    let id = set(&mut world, goal("a"));
    pretend(&mut world, 0, limit::GOALS_BYTES_MAX - 3);
    let other = set(&mut world, goal("bc"));
    let code = |refused: agentsvc_components::Refusal| (refused.kind, refused.code.unwrap().to_string());
    let full = (RefusalKind::TooMany, "goals_full".to_owned());
    assert_eq!(code(world.ask(goal("d")).unwrap_err()), full);
    let note = |text: &str| GoalPatch { note: Some(text.into()), ..GoalPatch::default() };
    let longer = UpdateGoal { goal: id, patch: note("n"), only_of: None };
    assert_eq!(code(world.ask(longer).unwrap_err()), full);
    assert_eq!(&*world.ask(Get::<GoalView>(id)).unwrap().goal.note, "");
    // What becomes no longer is taken, and what becomes shorter makes room.
    patch(&mut world, id, status(GoalStatus::InProgress));
    patch(&mut world, other, GoalPatch { title: Some("b".into()), ..GoalPatch::default() });
    assert_eq!(&*patch(&mut world, id, note("n")).goal.note, "n");
}

#[test]
fn rows_of_goals_are_those_of_the_first_release() {
    use agentsvc_components::goal::Goal;

    use crate::kernel::record::tests::{comes_back, goal};
    use crate::kernel::record::{encode, put_component};

    #[derive(serde::Serialize)]
    struct Row {
        id: GoalId,
        title: Box<str>,
        description: Box<str>,
        note: Box<str>,
        agent: Option<AgentId>,
        parent: Option<GoalId>,
        status: GoalStatus,
        due_at: Option<Timestamp>,
        created_at: Timestamp,
        updated_at: Timestamp,
        completed_at: Option<Timestamp>,
    }
    let id = GoalId(Uuid::from_u128(7));
    let Goal { title, description, note, agent, parent, status, due_at, created_at, updated_at, completed_at, .. } =
        goal();
    let row = Row { id, title, description, note, agent, parent, status, due_at, created_at, updated_at, completed_at };
    let op = put_component(id, &goal());
    assert_eq!(op.value, Some(encode(&row)));
    comes_back(&op, &(id, goal()));
}
